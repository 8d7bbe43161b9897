"""Parts of a loss sum to it, to the last bit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.budget import split
from dpsim.core.errors import InputError

epsilons = st.fractions(0, 30, max_denominator=10**6)
weights = st.lists(st.integers(0, 1000), min_size=1, max_size=20).filter(any)


@given(epsilons, weights)
def test_parts_sum_to_the_whole_exactly(epsilon, parts):
    assert sum(split(epsilon, parts)) == epsilon


@given(epsilons, weights)
def test_parts_are_proportional_to_the_weights(epsilon, parts):
    whole = sum(parts)
    assert [part * whole for part in split(epsilon, parts)] == [w * epsilon for w in parts]


def test_weights_may_be_written_in_any_way():
    assert split(Fraction(1), [0.1, "0.1", "4/5"]) == (
        Fraction(1, 10), Fraction(1, 10), Fraction(4, 5),
    )  # fmt: skip


@pytest.mark.parametrize("bad", [[], [0, 0], [1, -1], ["x"]])
def test_weights_that_divide_nothing_are_refused(bad):
    with pytest.raises(InputError, match="weight"):
        split(Fraction(1), bad)
