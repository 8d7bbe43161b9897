"""Numbers become whole shares of 2^31, or are refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.unit_interval import share_of, shares_of


@given(st.floats(-1, 1))
def test_a_share_is_within_one_part_of_2_to_the_31_of_its_number(number):
    exact = Fraction(share_of(number), 2**30) - 1
    assert abs(exact - Fraction(number)) <= Fraction(1, 2**31) + Fraction(1, 2**53)
    assert abs(share_of(number) + share_of(-number) - 2**31) <= 1


def test_the_ends_and_the_middle_are_exact():
    assert [share_of(x) for x in (-1.0, -0.5, 0.0, -0.0, 0.5, 1.0)] == [
        0, 2**29, 2**30, 2**30, 3 * 2**29, 2**31,
    ]  # fmt: skip


def test_rows_follow_each_other():
    numbers = np.array([[-1.0, 0.0], [0.5, 1.0]])
    assert shares_of(numbers, 2).tolist() == [0, 2**30, 3 * 2**29, 2**31]
    assert shares_of(numbers.T, 2).tolist() == [0, 3 * 2**29, 2**30, 2**31]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1 + 2.0**-52, -1 - 2.0**-52, 1e300])
def test_what_lies_outside_is_counted(bad):
    with pytest.raises(InputError, match=r"^1 of 3 numbers lie outside \[-1, 1\]$"):
        shares_of(np.array([0.0, bad, 1.0]), 3)
