"""Columns as texts and numbers: what Python and people would write."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.data.columns import numbers_of, texts_of


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (pa.array([3, -1, None]), ["3", "-1", None]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([True, False, None]), ["True", "False", None]),
        (pa.array([3.0, 2.5, 1e20, None, 3.0]), ["3.0", "2.5", "1e+20", None, "3.0"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
        (pa.array([dt.date(2020, 1, 2), None]), ["2020-01-02", None]),
        (pa.array([dt.datetime(2020, 1, 2, 3)]), ["2020-01-02 03:00:00"]),
        (pa.array([1], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000001"]),
        (pa.array(["x", "", None], pa.large_string()), ["x", None, None]),
        (pa.array(["x", "", None], pa.string_view()), ["x", None, None]),
        (pa.array(["y", "", None, "y"]).dictionary_encode(), ["y", None, None, "y"]),
        (pa.array([5, None, 5]).dictionary_encode(), ["5", None, "5"]),
        (pa.nulls(2), [None, None]),
        (pa.array([], pa.float64()), []),
    ],
)
def test_typed_cells_have_the_text_that_python_gives_them(cells, labels):
    assert texts_of(cells, "a").to_pylist() == labels
    assert texts_of(cells.slice(1), "a").to_pylist() == labels[1:]


def is_number(text: str) -> bool:
    return bool(
        re.fullmatch(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*", text)
        or re.fullmatch(r"[ \t]*[+-]?(inf|infinity|nan)[ \t]*", text, re.I | re.A)
    )


@given(st.lists(st.text("0123456789+-.eE \tinfa\n_x١", min_size=1, max_size=6), max_size=8))
def test_decimal_numbers_are_read_wherever_they_stand(texts):
    numbers = numbers_of(pa.array(texts, pa.string()), "a")
    assert numbers.unreadable.tolist() == [not is_number(text) for text in texts]
    expected = [float(text) if is_number(text) else np.nan for text in texts]
    np.testing.assert_array_equal(numbers.values, expected)
