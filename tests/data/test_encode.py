"""Codes from cells: exact, in the order of the labels, and every misfit counted."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.schema import Attribute, Bins, Category, CodeRange, Schema
from dpsim.data.encode import encode
from dpsim.data.findings import Findings, Problem

CANARY = "s3cr3t-c4n4ry"


def coded(cells, domain, missing="refuse"):
    column = cells if isinstance(cells, pa.Array) else pa.array(cells)
    attribute = Attribute("a", domain, missing)
    codes, findings = encode(pa.record_batch([column], ["a"]), Schema((attribute,)))
    assert codes["a"].dtype == attribute.code_type
    assert codes["a"].size == len(column)
    assert codes["a"].max(initial=0) < attribute.size
    assert CANARY not in repr(findings)
    return codes["a"].tolist(), findings


def clean(cells, domain, missing="refuse"):
    codes, findings = coded(cells, domain, missing)
    assert not findings.errors
    return codes


def test_labels_are_matched_by_exact_text():
    codes = clean(["b", "a", "B", " a", "b"], Category(("a", "b"), other=True))
    assert codes == [1, 0, 2, 2, 1]


def test_missing_cells_have_the_last_code():
    both = Category(("a", "b"), other=True)
    assert clean(["b", None, "", "zz"], both, "category") == [1, 3, 3, 2]
    assert clean(["b", None, ""], Category(("a", "b")), "category") == [1, 2, 2]
    assert clean(["1", None, "", "9"], Bins(0, 10, 5), "category") == [0, 5, 5, 4]
    assert clean(["1", None, ""], CodeRange(3), "category") == [1, 3, 3]


def test_a_domain_of_other_values_has_one_code():
    assert clean(["x", "y"], Category((), other=True)) == [0, 0]


def test_bins_follow_the_oracle():
    codes, findings = coded(["5", "17", "21.5625", "90", "120"], Bins(17, 90, 16))
    assert codes == [0, 0, 1, 15, 15]
    assert findings.errors == []
    assert findings.notes == [
        "a: 2 rows are outside the bounds; the nearest bound stands for such numbers"
    ]


finite = st.floats(-1e6, 1e6)


@given(finite, st.floats(1e-3, 1e6), st.integers(1, 50), st.lists(finite, max_size=20))
def test_a_value_lies_between_the_borders_of_its_bin(low, width, bins, values):
    domain = Bins(low, low + width, bins)
    edges = domain.edges
    codes, findings = coded(pa.array(values, pa.float64()), domain)
    outside = [value for value in values if not low <= value <= low + width]
    assert findings.counts["a", Problem.CLIPPED] == len(outside)
    for value, code in zip(values, codes, strict=True):
        inside = min(max(value, edges[0]), edges[-1])
        assert edges[code] <= inside
        assert inside < edges[code + 1] or (code == bins - 1 and inside == edges[-1])


@given(st.lists(finite, min_size=1, max_size=20))
def test_texts_and_typed_numbers_fall_into_the_same_bins(values):
    domain = Bins(-1e6, 1e6, 1000)
    texts = [repr(value) for value in values]
    typed = clean(values, domain)
    assert clean(texts, domain) == typed
    assert clean([f" +{t}" if t[0] != "-" else f"{t}\t" for t in texts], domain) == typed


def test_codes_are_whole_numbers_below_the_size():
    assert clean(["0", "7", "03", "2.0"], CodeRange(8)) == [0, 7, 3, 2]
    assert clean([0, 7], CodeRange(8)) == [0, 7]
    assert clean([0.0, 7.0, None], CodeRange(8), "category") == [0, 7, 8]
    _, findings = coded(["0", "8", "-1", "2.5", "1e30"], CodeRange(8))
    assert findings.errors == [
        "a: 4 rows are outside the codes 0..size-1; "
        "write smaller codes, or declare a larger size"
    ]


def test_a_dictionary_is_read_by_label_and_not_by_index():
    cells = pa.DictionaryArray.from_arrays([0, 1, None], ["b", "a"])
    assert clean(cells, Category(("a", "b")), "category") == [1, 0, 2]
    numbers = pa.DictionaryArray.from_arrays([1, 0, 1], [30, 10])
    assert clean(numbers, Bins(0, 40, 4)) == [1, 3, 1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(24, 2)])
def test_typed_numbers_are_numbers(kind):
    assert clean(pa.array([0, 5, 10], pa.int64()).cast(kind), Bins(0, 10, 2)) == [0, 1, 1]


def test_large_whole_numbers_do_not_fail():
    assert clean([2**53 + 1, 0], Bins(0, 2.0**54, 4)) == [2, 0]


def test_cells_of_the_wrong_kind_are_counted_as_no_numbers():
    for cells in (pa.array([True]), pa.array([dt.date(2020, 1, 2)])):
        assert coded(cells, Bins(0, 1, 2))[1].counts["a", Problem.NOT_NUMERIC] == 1


@pytest.mark.parametrize(
    "cells", [pa.array([[1]]), pa.array([{"x": CANARY}]), pa.array([b"x"])]
)
def test_nested_and_binary_columns_are_refused(cells):
    with pytest.raises(InputError, match="column 'a' holds neither texts, numbers") as caught:
        coded(cells, Category(("x",)))
    assert CANARY not in str(caught.value)


def test_every_problem_is_counted_and_no_value_is_told():
    cells = pa.array([CANARY, None, "", "inf", "nan", "-1e999", "1e5", "7", "1_0", "0x1", " "])
    assert coded(cells, Bins(0, 10, 5))[1].errors == [
        'a: 2 rows are missing; fill the gaps, or declare missing = "category"',
        "a: 4 rows are not numeric; write decimal numbers such as -1.5",
        "a: 3 rows are infinite or NaN; write finite numbers",
    ]
    assert coded(cells, Category(("inf", "7")))[1].errors == [
        'a: 2 rows are missing; fill the gaps, or declare missing = "category"',
        "a: 7 rows are outside the declared values; list every value, or declare other = true",
    ]
    assert coded(["x", CANARY], Category(("x",)))[1].errors == [
        "a: 1 row is outside the declared values; list every value, or declare other = true"
    ]


def test_nan_in_a_typed_column_is_refused():
    cells = pa.array([1.0, float("nan"), float("inf"), None])
    counts = coded(cells, Bins(0, 10, 5), "category")[1].counts
    assert counts["a", Problem.NOT_FINITE] == 2
    assert counts["a", Problem.MISSING] == 0


def test_columns_without_attribute_are_noted():
    batch = pa.record_batch([pa.array(["1"])] * 3, ["x", "a", "y"])
    codes, findings = encode(batch, Schema((Attribute("a", CodeRange(2)),)))
    assert list(codes) == ["a"]
    assert findings.notes == ["not in the schema, so ignored: x, y"]


def test_attributes_without_column_are_refused_with_the_nearest_name():
    schema = Schema((Attribute("age", CodeRange(2)), Attribute("zip", CodeRange(2))))
    with pytest.raises(InputError) as caught:
        encode(pa.record_batch([pa.array([CANARY])], ["Age"]), schema)
    assert str(caught.value) == (
        "the table has no column for: age (nearest: Age), zip; "
        "rename its columns, or take the attributes out of the schema"
    )


def test_findings_of_parts_add_up_in_the_order_of_the_schema():
    schema = Schema((Attribute("a", CodeRange(2)), Attribute("b", CodeRange(2))))
    parts = [
        pa.record_batch([pa.array(a), pa.array(b)], ["a", "b"])
        for a, b in ((["0", "1"], ["x", "1"]), (["y", "1"], ["z", "1"]))
    ]
    whole = sum((encode(part, schema)[1] for part in parts), Findings())
    assert whole.n == 4
    assert [line.split(";")[0] for line in whole.errors] == [
        "a: 1 row is not numeric",
        "b: 2 rows are not numeric",
    ]
    assert Findings() + whole == whole
