"""From (ε, δ) to ρ: the reference's values, never more than allowed."""

from fractions import Fraction
from math import exp, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.concentrated import (
    concentrated_delta,
    concentrated_rho,
    select_epsilon_for,
    sigma_for,
)


@pytest.mark.parametrize(
    ("epsilon", "rho"), [("0.1", 1.77138e-4), (1, 0.0149731), (5, 0.311693), (10, 1.09079)]
)
def test_rho_is_that_of_the_reference(epsilon, rho):
    assert float(concentrated_rho(epsilon, "1e-9")) == pytest.approx(rho, rel=5e-6)


@given(st.floats(1e-4, 2), st.floats(0.05, 10))
def test_the_best_order_is_at_least_as_good_as_any_other(rho, epsilon):
    found = concentrated_delta(rho, epsilon)
    for a in (1.001, 1.1, 2.0, 5.0, 20.0, 100.0, 1000.0):
        exponent = (a - 1) * (a * rho - epsilon) + a * log(1 - 1 / a) - log(a - 1)
        assert found <= exp(min(exponent, 0.0)) * (1 + 1e-9)


@given(st.fractions("0.05", 10, max_denominator=100), st.integers(2, 12))
def test_rho_costs_no_more_than_delta_and_little_less(epsilon, digits):
    delta = Fraction(1, 10**digits)
    rho = concentrated_rho(epsilon, delta)
    assert concentrated_delta(float(rho), float(epsilon)) <= delta
    assert concentrated_delta(float(rho) * 1.001 + 1e-11, float(epsilon)) > delta
    # The well-known bound allows less.
    root = sqrt(log(1 / delta))
    assert float(rho) >= (sqrt(root**2 + float(epsilon)) - root) ** 2


@given(st.fractions("1/1000000", 3, max_denominator=10**9))
def test_noise_is_rounded_up_and_selection_down(rho):
    sigma, epsilon = sigma_for(rho), select_epsilon_for(rho)
    assert 1 / sigma**2 <= rho < 1 / (sigma - Fraction(1, 1 << 20)) ** 2
    assert epsilon**2 / 8 <= rho < (epsilon + Fraction(1, 1 << 39)) ** 2 / 8


def test_impossible_wishes_are_refused():
    for delta in (0, 1, "-0.1"):
        with pytest.raises(InputError, match="delta must be > 0 and < 1"):
            concentrated_rho(1, delta)
    with pytest.raises(InputError, match="epsilon"):
        concentrated_rho(0, "0.1")
    with pytest.raises(InputError, match="leave no noise that fits"):
        concentrated_rho("1e-7", "1e-30")
    with pytest.raises(InputError, match="rho must be > 0"):
        sigma_for(Fraction(0))
