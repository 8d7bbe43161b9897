"""What Gaussian noise costs: known figures, and whole noise's exact loss by enumeration."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr  # type: ignore[import-untyped]

from dpsim.core.errors import InputError
from dpsim.recommend.gaussian_accounting import (
    GaussianStage,
    gaussian_delta,
    gaussian_epsilon,
    largest_mu,
    stage_sigmas,
    whole_noise_slack,
    zcdp_epsilon,
    zcdp_rho,
)

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("epsilon", "rho", "loose", "exact"),
    [
        ("0.5", 0.00444384, 10.6073, 8.0576),
        ("1", 0.01746890, 5.3500, 4.2247),
        ("5", 0.38534638, 1.1391, 0.9800),
        ("20", 4.40239434, 0.3370, 0.3091),
    ],
)
def test_conversions_are_those_of_the_tables(epsilon, rho, loose, exact):
    value = Fraction(epsilon)
    assert zcdp_rho(float(value), 1e-6) == pytest.approx(rho, rel=1e-6)
    assert (2 * zcdp_rho(float(value), 1e-6)) ** -0.5 == pytest.approx(loose, abs=1e-4)
    assert 1 / float(largest_mu(value, DELTA)) == pytest.approx(exact, abs=1e-4)
    assert zcdp_epsilon(zcdp_rho(float(value), 1e-6), 1e-6) == pytest.approx(float(value))


@pytest.mark.parametrize(("epsilon", "sigma"), [("1", 9.016), ("0.5", 17.235), ("5", 2.048)])
def test_noise_of_a_gram_of_sensitivity_13265_is_that_of_the_tables(epsilon, sigma):
    mu = largest_mu(Fraction(epsilon) * Fraction(6, 10), DELTA)
    assert 1.3265 / float(mu) == pytest.approx(sigma, abs=1.1e-3)


@given(st.floats(0.01, 25), st.floats(0.02, 6))
def test_delta_is_the_gaussians(epsilon, mu):
    """By logarithms of another library, and where nothing cancels."""
    left, right = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
    expected = np.exp(left) * -np.expm1(min(right - left, 0.0))
    assert gaussian_delta(epsilon, mu) == pytest.approx(expected, rel=1e-7, abs=1e-14)


def test_no_noise_needed_without_a_signal():
    assert gaussian_delta(1.0, 0.0) == 0
    assert gaussian_epsilon(Fraction(0), DELTA) == 0


@given(st.fractions("0.01", 25, max_denominator=100), st.sampled_from([3, 6, 9]))
def test_conversion_there_and_back_never_gains_and_loses_little(epsilon, power):
    delta = Fraction(1, 10**power)
    mu = largest_mu(epsilon, delta)
    assert gaussian_delta(float(epsilon), float(mu)) <= float(delta)
    back = gaussian_epsilon(mu**2 / 2, delta)
    assert back <= epsilon + Fraction(1, 10**9)
    assert back == pytest.approx(float(epsilon), rel=1e-5)
    assert float(back) < zcdp_epsilon(float(mu**2 / 2), float(delta))


def whole_delta(epsilon, sigma, shift):
    """The exact δ(ε) of one entry of whole noise, by enumeration of all its values."""
    values = np.arange(-int(12 * sigma) - shift, int(12 * sigma) + shift + 1)
    here = np.exp(-0.5 * (values / sigma) ** 2)
    there = np.exp(-0.5 * ((values - shift) / sigma) ** 2)
    here, there = here / here.sum(), there / there.sum()
    return np.maximum(here - np.exp(epsilon) * there, 0).sum()


@pytest.mark.parametrize("epsilon", ["0.2", "1", "4"])
@pytest.mark.parametrize("shift", [400, 3_000])
def test_whole_noise_costs_what_is_stated_and_half_of_it_does_not_do(epsilon, shift):
    delta, loss = Fraction(1, 10**4), Fraction(epsilon)
    stage = GaussianStage(Fraction(shift), 1, Fraction(1))
    (sigma,) = stage_sigmas([stage], loss, delta)
    assert whole_delta(float(loss), sigma, shift) <= float(delta)
    assert whole_delta(float(loss), sigma * 0.95, shift) > float(delta)
    assert whole_delta(float(loss), sigma / 2, shift) > 10 * float(delta)


@pytest.mark.parametrize("sigma", [16, 40, 200])
def test_the_ratio_of_whole_to_rounded_noise_is_within_its_bound(sigma):
    """|ln f(z)| ≤ (1 + z²/σ²)/(8σ²): from logarithms of normal tails, 8σ out."""
    z = np.arange(0, 8 * sigma)
    upper, lower = log_ndtr(-(z - 0.5) / sigma), log_ndtr(-(z + 0.5) / sigma)
    rounded = upper + np.log1p(-np.exp(lower - upper))
    whole = -0.5 * (z / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
    bound = (1 + (z / sigma) ** 2) / (8 * sigma**2)
    assert (np.abs(rounded - whole) <= bound + 1e-12).all()
    assert (np.abs(rounded - whole) >= bound / 20)[z < sigma // 2].all()


def test_the_slack_covers_the_sums_of_the_proof():
    for entries, sigma, mu in ((1, 16, 3.0), (1000, 200, 0.1), (10**7, 2**30, 1.0)):
        squares = 1.4 * entries + 400
        first = (entries + squares) / (8 * sigma**2)
        second = (entries + 2 * squares + 2 * mu**2) / (8 * sigma**2)
        stage = GaussianStage(Fraction(mu * sigma), entries, Fraction(1))
        assert first + second <= float(whole_noise_slack([stage], [sigma])) <= 10 * first


@given(st.fractions("0.05", 20, max_denominator=20), st.integers(1, 5))
def test_stages_share_rho_by_their_weights_and_stay_within_epsilon(epsilon, weight):
    stages = [
        GaussianStage(Fraction(2**30), 1000, Fraction(weight)),
        GaussianStage(Fraction(2**25), 50, Fraction(1)),
    ]
    sigmas = stage_sigmas(stages, epsilon, DELTA)
    rhos = [
        (stage.sensitivity / sigma) ** 2 / 2
        for stage, sigma in zip(stages, sigmas, strict=True)
    ]
    assert float(rhos[0] / rhos[1]) == pytest.approx(weight, rel=1e-3)
    total = gaussian_epsilon(sum(rhos, Fraction(0)), DELTA) + whole_noise_slack(stages, sigmas)
    assert total <= epsilon + Fraction(1, 10**9)
    assert float(total) == pytest.approx(float(epsilon), rel=1e-4)


def test_noise_that_the_grid_cannot_hold_is_refused():
    with pytest.raises(InputError, match="below the grid"):
        stage_sigmas([GaussianStage(Fraction(1), 1, Fraction(1))], Fraction(20), DELTA)
    with pytest.raises(InputError, match="too small for its grid"):
        stage_sigmas([GaussianStage(Fraction(5), 10**6, Fraction(1))], Fraction(1), DELTA)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, "0.1"), (-1, "0.1"), (1, 0), (1, 1)])
def test_bad_losses_are_refused_by_name(epsilon, delta):
    name = "epsilon must be > 0" if epsilon <= 0 else "delta must be > 0 and < 1"
    with pytest.raises(InputError, match=name):
        largest_mu(Fraction(epsilon), Fraction(delta))
