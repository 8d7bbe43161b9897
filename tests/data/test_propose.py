"""Proposed schemas: useful, marked, and without rare values or exact bounds."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.schema import READ_FROM_DATA, Bins, Category
from dpsim.data import propose as propose_module
from dpsim.data.importers import check_table
from dpsim.data.propose import propose, rounded_bounds
from dpsim.data.schema_file import dump_schema, parse_schema
from dpsim.data.tables import RawTable, frame_table

CANARY = "s3cr3t-c4n4ry"


def table_of(cells, batch_rows=1000) -> RawTable:
    table = pa.table({"a": cells})
    return RawTable(("a",), lambda: iter(table.to_batches(max_chunksize=batch_rows)))


def proposed(cells, batch_rows=1000):
    table = table_of(cells, batch_rows)
    schema = propose(table)
    assert not check_table(table, schema).errors
    return schema["a"]


def test_a_proposal_is_marked_and_not_declared():
    schema = propose(table_of(["x"] * 20))
    assert (schema.origin, schema.reviewed) == (READ_FROM_DATA, False)
    assert not schema.is_declared
    assert parse_schema(dump_schema(schema), "x") == schema


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_rare_values_are_hidden(batch_rows):
    attribute = proposed(["b"] * 20 + ["a"] * 30 + [CANARY] * 19, batch_rows)
    assert attribute.domain == Category(("a", "b"), other=True)
    assert attribute.missing == "refuse"


def test_without_rare_values_there_is_no_other():
    assert proposed(["b"] * 20 + ["a"] * 30).domain == Category(("a", "b"), other=False)


def test_a_column_of_rare_values_is_hidden_altogether():
    assert proposed([f"{CANARY}{i}" for i in range(99)]).domain == Category((), other=True)


def test_an_empty_table_gives_hidden_columns():
    assert proposed(pa.array([], pa.string())).domain == Category((), other=True)
    schema = propose(RawTable(("a", "b"), lambda: iter(())))
    assert {attribute.domain for attribute in schema} == {Category((), other=True)}


@pytest.mark.parametrize("absent", ["", None])
def test_missing_cells_become_a_category(absent):
    attribute = proposed(["x"] * 20 + [absent])
    assert (attribute.domain, attribute.missing) == (Category(("x",)), "category")


def test_a_column_without_any_value_is_hidden():
    attribute = proposed([None, None])
    assert (attribute.domain, attribute.missing) == (Category((), other=True), "category")


def test_whole_numbers_are_ordered_as_numbers():
    assert proposed(["10"] * 20 + ["9"] * 20 + ["-1"] * 20).domain == Category(
        ("-1", "9", "10")
    )
    mixed = Category(("10", "9", "x"))
    assert proposed(["10"] * 20 + ["9"] * 20 + ["x"] * 20).domain == mixed


def test_many_numbers_become_bins_with_rounded_bounds():
    ages = [str(age) for age in range(17, 94)]
    assert proposed(ages).domain == Bins(10, 100, 16)
    assert proposed(pa.array(range(17, 94))).domain == Bins(10, 100, 16)
    assert proposed([*ages, None]).missing == "category"


def test_one_cell_that_is_no_number_makes_a_category():
    ages = [str(age) for age in range(17, 94)]
    for cell in (CANARY, "nan", "inf"):
        assert proposed([*ages, cell]).domain == Category((), other=True)


def test_sixty_four_numbers_are_still_a_category():
    assert isinstance(proposed([str(i) for i in range(64)] * 20).domain, Category)
    assert isinstance(proposed([str(i) for i in range(65)] * 20).domain, Bins)


def test_many_spellings_of_one_number_are_a_category():
    domain = proposed(["1" + "0" * 300 + "." + "0" * i for i in range(99)]).domain
    assert domain == Category((), other=True)


def test_only_the_most_frequent_values_are_listed(monkeypatch):
    monkeypatch.setattr(propose_module, "MAX_LISTED", 2)
    cells = ["a"] * 20 + ["b"] * 40 + ["c"] * 30
    assert proposed(cells).domain == Category(("b", "c"), other=True)


@pytest.mark.parametrize("batch_rows", [60, 1000])
def test_counting_stops_at_too_many_values(monkeypatch, batch_rows):
    monkeypatch.setattr(propose_module, "MAX_COUNTED", 70)
    texts = [f"t{i}" for i in range(80)] * 30
    assert proposed(texts, batch_rows).domain == Category((), other=True)
    numbers = [str(i) for i in range(80)] * 30
    assert proposed(numbers, batch_rows).domain == Bins(0, 80, 16)


def test_frames_follow_the_same_rules():
    frame = pd.DataFrame(
        {
            "age": [*range(17, 94), None],
            "flag": [True] * 39 + [False] * 39,
            "label": pd.Categorical(["x"] * 77 + [CANARY]),
        }
    )
    schema = propose(frame_table(frame))
    assert (schema["age"].domain, schema["age"].missing) == (Bins(10, 100, 16), "category")
    assert schema["flag"].domain == Category(("False", "True"))
    assert schema["label"].domain == Category(("x",), other=True)
    assert not check_table(frame_table(frame), schema).errors


@pytest.mark.parametrize("cells", [pa.array([[CANARY]]), pa.array([CANARY.encode()])])
def test_nested_and_binary_columns_are_refused(cells):
    with pytest.raises(InputError, match="column 'a' holds neither texts") as caught:
        propose(table_of(cells))
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (17, 93, (10, 100)),
        (0, 99999, (0, 100000)),
        (0.0123, 0.987, (0, 1)),
        (-3, 3, (-3, 3)),
        (1900, 2024, (1900, 2040)),
        (5e-324, 1e-323, (5e-324, 1e-323)),
    ],
)
def test_bounds_move_outward_on_a_grid(low, high, bounds):
    assert rounded_bounds(low, high) == bounds


@given(st.floats(-1e299, 1e299), st.floats(-1e299, 1e299))
def test_rounded_bounds_hold_every_value_and_are_not_far(one, other):
    low, high = min(one, other), max(one, other)
    if low < high:
        below, above = rounded_bounds(low, high)
        assert below <= low < high <= above
        assert above - below <= 1.6 * (high - low) or high - low < 1e-300
