"""Entropies of laws, and of nothing else."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.law_entropy import entropy_of_law, information_of_law


def law_of(counts):
    """Never all zero: the diagonal counts one more."""
    more = np.array(counts) + np.eye(len(counts), 3)
    return more / more.sum()


laws_2d = (
    st.integers(1, 4)
    .flatmap(
        lambda rows: st.lists(
            st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=rows, max_size=rows
        )
    )
    .map(law_of)
)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_uniform_law_has_the_largest_entropy(size):
    assert entropy_of_law(np.full(size, 1 / size)) == pytest.approx(log(size))


def test_a_certain_law_has_none_and_zeros_add_nothing():
    assert entropy_of_law(np.array([0.0, 1.0, 0.0])) == 0
    assert entropy_of_law(np.array([0.5, 0, 0.5])) == pytest.approx(log(2))


@given(laws_2d)
def test_information_is_what_entropies_say(law):
    said = (
        entropy_of_law(law.sum(axis=1)) + entropy_of_law(law.sum(axis=0)) - entropy_of_law(law)
    )
    assert information_of_law(law) == pytest.approx(said, abs=1e-12)
    assert information_of_law(law.T) == pytest.approx(said, abs=1e-12)


def test_information_of_an_axis_with_several_others():
    law = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        law[a ^ b, a, b] = 0.25
    assert information_of_law(law) == pytest.approx(log(2))
    assert information_of_law(law.sum(axis=2)) == 0


@pytest.mark.parametrize("law", [[3.0, 4.0], [0.5, 0.4], [-0.1, 1.1], [np.nan, 1.0], []])
def test_counts_and_other_things_that_are_no_law_are_refused(law):
    for function in (entropy_of_law, information_of_law):
        with pytest.raises(InputError, match="a law must"):
            function(np.array(law))
