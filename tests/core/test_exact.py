"""Exact numbers: read as meant, written in one way."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.exact import exact, text_of


@pytest.mark.parametrize(
    "value", [0.1, "0.1", "1/10", "1e-1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)]
)
def test_a_tenth_is_a_tenth_however_it_is_written(value):
    assert exact(value) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), ("-2", -2), (np.int64(7), 7), ("1e3", 1000)]
)
def test_whole_numbers_are_read(value, number):
    assert exact(value) == number


@pytest.mark.parametrize(
    "value",
    [
        True, None, "", "x", "1/0", "1/x", "1/2/3", "nan", "inf", float("nan"), float("-inf"),
        Decimal("NaN"), Decimal("Infinity"), [1], np.array([1.0]), 1j, b"1",
    ],
)  # fmt: skip
def test_what_is_not_a_finite_number_is_refused_by_name(value):
    with pytest.raises(InputError, match="rate must be a finite number, got"):
        exact(value, "rate")


@pytest.mark.timeout(5)
@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "1e51"])
@pytest.mark.parametrize("kind", [str, Decimal])
def test_absurd_exponents_are_refused_before_they_fill_the_memory(text, kind):
    with pytest.raises(InputError, match="must be a finite number"):
        exact(kind(text))


@given(st.fractions())
def test_text_reads_back_as_the_same_number(value):
    assert exact(text_of(value)) == value


@given(st.decimals(-1000, 1000, places=6))
def test_decimals_are_written_without_slash_or_trailing_zero(value):
    text = text_of(Fraction(value))
    assert "/" not in text
    assert not ("." in text and text.endswith("0"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1), "1"), (Fraction(0), "0"), (Fraction(1, 10), "0.1"),
        (Fraction(1, 14), "1/14"),
        (Fraction(-3, 2), "-1.5"), (Fraction(-1, 20), "-0.05"), (Fraction(100), "100"),
        (Fraction(1, 2**12), "0.000244140625"), (Fraction(1, 2**13), "1/8192"),
    ],
)  # fmt: skip
def test_the_canonical_text_is_known(value, text):
    assert text_of(value) == text


@given(st.integers(1, 1000))
def test_n_nths_are_one(n):
    assert sum(exact(f"1/{n}") for _ in range(n)) == 1
