"""χ²: against sums that are exact, far into the tail."""

from decimal import Decimal, localcontext
from math import erfc, log, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.chi_square import quantile, upper_tail


def even_tail(value, freedom):
    """``e^(-x/2) Σ_{j < freedom/2} (x/2)^j / j!`` in 60 digits."""
    with localcontext(prec=60):
        x = Decimal(value) / 2
        term = total = Decimal(1)
        for j in range(1, freedom // 2):
            term *= x / j
            total += term
        return float(total * (-x).exp())


@given(st.integers(1, 400).map(lambda half: 2 * half), st.floats(0.05, 4))
def test_tails_of_even_freedom_are_sums_of_a_poisson_law(freedom, ratio):
    exact = even_tail(ratio * freedom, freedom)
    assert upper_tail(ratio * freedom, freedom) == pytest.approx(exact, rel=1e-11, abs=1e-300)


@given(st.floats(1e-6, 1000))
def test_the_tail_of_one_square_is_the_normal_one(value):
    assert upper_tail(value, 1) == pytest.approx(erfc(sqrt(value / 2)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("level", "freedom", "value"),
    [
        (0.01, 1, 6.634896601021217), (0.05, 9, 16.918977604620448),
        (0.01 / 120, 1, 15.481123285828271), (1e-6, 225, 340.58561399348685),
        (0.01 / 105, 600, 737.9496077525971), (1e-12, 15376, 16642.094091798976),
        (1e-100, 3, 466.2143575712913), (0.99, 40, 22.16426125297514),
    ],
)  # fmt: skip
def test_quantiles_are_those_of_scipy(level, freedom, value):
    assert quantile(level, freedom) == pytest.approx(value, rel=1e-9)


@given(st.floats(1e-200, 0.999), st.integers(1, 2000))
def test_a_quantile_is_exceeded_with_its_level(level, freedom):
    assert upper_tail(quantile(level, freedom), freedom) == pytest.approx(level, rel=1e-9)


@given(st.floats(1e-200, 0.999))
def test_the_quantile_of_two_squares_is_a_logarithm(level):
    assert quantile(level, 2) == pytest.approx(-2 * log(level), rel=1e-12)


def test_the_usual_approximation_would_not_do():
    """Wilson and Hilferty are off by more than a percent where a Bonferroni level lies."""
    spread, z = 2 / 9, -NormalDist().inv_cdf(1e-6)
    usual = (1 - spread + z * spread**0.5) ** 3
    assert abs(usual / quantile(1e-6, 1) - 1) > 0.01


def test_the_ends_of_the_tail():
    assert upper_tail(0, 3) == 1
    assert upper_tail(float("inf"), 3) == 0
    assert upper_tail(1e5, 2) == 0


@pytest.mark.parametrize("level", [0, 1, -0.1, float("nan"), 1e-300])
def test_a_bad_level_is_refused_by_name(level):
    with pytest.raises(InputError, match="level must be"):
        quantile(level, 3)


def test_bad_values_are_refused_by_name():
    with pytest.raises(InputError, match="value must be"):
        upper_tail(-1, 3)
    with pytest.raises(InputError, match="freedom must be"):
        upper_tail(1, 0)
    with pytest.raises(InputError, match="freedom must be"):
        quantile(0.1, 0)
