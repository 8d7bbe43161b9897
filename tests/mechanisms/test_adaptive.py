"""The choice between GRR and OUE: by variance, never by data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.mechanisms.adaptive import adaptive
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.unary import OUE

LARGEST = {
    "f0": {"0.25": 5, "0.5": 6, "1": 10, "2": 24, "3": 62, "4": 165},
    "average": {"0.25": 5, "0.5": 6, "1": 9, "2": 20, "3": 51, "4": 134},
}


@pytest.mark.parametrize("rule", ["f0", "average"])
def test_the_largest_domains_of_grr_are_those_of_the_tables(rule):
    for epsilon, size in LARGEST[rule].items():
        assert adaptive(size, epsilon, rule) == GRR(size, epsilon)
        assert adaptive(size + 1, epsilon, rule) == OUE(size + 1, epsilon)


def test_a_code_that_nobody_holds_is_compared_by_default():
    assert adaptive(10, 1) == GRR(10, 1)
    assert adaptive(10, 1, "average") == OUE(10, 1)


@given(st.integers(2, 500), st.fractions("0.05", 6, max_denominator=100))
def test_the_choice_has_the_smaller_variance(size, epsilon):
    oracles = GRR(size, epsilon), OUE(size, epsilon)
    assert adaptive(size, epsilon).variance(1) <= min(
        oracle.variance(1) for oracle in oracles
    ) * (1 + 1e-4)
    chosen = adaptive(size, epsilon, "average")
    assert chosen.variance(1, 1 / size) <= min(
        oracle.variance(1, 1 / size) for oracle in oracles
    ) * (1 + 1e-4)


def test_one_code_costs_nothing():
    assert adaptive(1, 1).loss.epsilon == 0
