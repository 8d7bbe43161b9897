"""Margins: pooled without bias, and averaged over what they may be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.unary import OUE
from dpsim.synthesis import margins as module
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.margins import (
    Margin,
    margin_of,
    pooled_margins,
    posterior_margin,
    projected_margin,
    require_margins,
)
from tests.synthesis.group_laws import expected_reports, marginal

JOINT = np.arange(1, 25, dtype=float).reshape(2, 3, 4)
JOINT /= JOINT.sum()


@pytest.mark.parametrize("make", [GRR, OUE])
@pytest.mark.parametrize("attributes", [(0,), (2, 0), (1, 0, 2)])
def test_margins_of_a_group_are_those_of_its_law(attributes, make):
    group = expected_reports(JOINT, attributes, make=make)
    for axis, attribute in enumerate(attributes):
        found = margin_of(group, axis, JOINT.shape)
        expected = marginal(JOINT, (attribute,))
        np.testing.assert_allclose(found.estimate, expected, atol=1e-6)


def test_the_noise_of_a_margin_is_the_channels():
    """Of a code that nobody holds: cells of GRR add up, bits of OUE are independent."""
    n, inside = 1000, np.array([0, 1, 2])
    for make in (GRR, OUE):
        oracle = make(6, 1)
        group = GroupReports((0, 1), oracle, n, np.full(6, 300))
        if make is GRR:
            chance = oracle.channel()[5, inside].sum()
            spread = chance * (1 - chance)
        else:
            spread = inside.size * oracle.q * (1 - oracle.q)
        expected = spread / (n * oracle.gap**2) + 1 / (2 * n)
        assert margin_of(group, 0, (2, 3)).variance == pytest.approx(expected)


def test_pooling_weighs_by_inverse_variance():
    one = GroupReports((0,), GRR(2, 1), 100, np.array([60, 40]))
    two = GroupReports((0, 1), GRR(6, 1), 400, np.array([90, 80, 70, 60, 50, 50]))
    parts = [margin_of(one, 0, (2, 3)), margin_of(two, 0, (2, 3))]
    weights = [1 / part.variance for part in parts]
    mean = sum(w * part.estimate for w, part in zip(weights, parts, strict=True)) / sum(weights)
    found, other = pooled_margins([one, two], (2, 3))
    assert found is not None
    np.testing.assert_allclose(found.estimate, mean)
    assert found.variance == pytest.approx(1 / sum(weights))
    assert other is not None
    assert other.estimate.shape == (3,)


def test_groups_without_users_and_constants_say_nothing():
    empty = GroupReports((1,), GRR(3, 1), 0, np.zeros(3, np.int64))
    asked = GroupReports((0,), GRR(2, 1), 9, np.array([5, 4]))
    found = pooled_margins([empty, asked], (2, 3, 1))
    assert found[1] is None
    assert found[2] is not None
    assert found[2].estimate.tolist() == [1.0]
    with pytest.raises(InputError, match=r"no reports on attributes \[1\]"):
        require_margins(found)


def test_the_posterior_of_two_codes_is_the_integral():
    estimate, variance, alpha = np.array([0.8, 0.2]), 0.02, 0.8
    share = (np.arange(400_000) + 0.5) / 400_000
    weight = (share * (1 - share)) ** (alpha - 1)
    # Noise has one dimension: both codes are off by x, with variance 2v each.
    density = weight * np.exp(-((share - 0.8) ** 2) / (2 * variance))
    mean = float((density * share).sum() / density.sum())
    found = posterior_margin(Margin(estimate, variance), (alpha,))
    np.testing.assert_allclose(found, [mean, 1 - mean], atol=2e-3)


def test_the_posterior_of_three_codes_is_the_integral():
    estimate, variance, alpha, steps = np.array([0.7, 0.35, -0.05]), 0.02, 2.0, 600
    side = np.arange(1, steps) / steps
    x, y = np.meshgrid(side, side, indexing="ij")
    z = 1 - x - y
    inside = z > 0
    power = ((x - 0.7) ** 2 + (y - 0.35) ** 2 + (z + 0.05) ** 2) / (2 * variance * 1.5)
    density = np.where(inside, (x * y * np.where(inside, z, 1)) ** (alpha - 1), 0)
    density *= np.exp(-power)
    expected = [(density * share).sum() / density.sum() for share in (x, y, z)]
    found = posterior_margin(Margin(estimate, variance), (alpha,))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_the_evidence_compares_priors_as_integrals_do():
    estimate, variance, steps = np.array([0.9, 0.1]), 0.02, 2_000
    share = (np.arange(400_000) + 0.5) / 400_000
    likely = np.exp(-2 * (share - 0.9) ** 2 / (2 * variance))
    flat = likely.mean()  # the Dirichlet with α = 1 is uniform
    humped = (likely * 6 * share * (1 - share)).mean()
    found = [module._posterior(estimate, variance, alpha, steps)[1] for alpha in (1.0, 2.0)]
    assert found[1] - found[0] == pytest.approx(np.log(humped / flat), abs=1e-3)


vectors = st.lists(st.floats(-0.3, 1), min_size=2, max_size=12).map(np.array)


@given(vectors, st.floats(1e-4, 0.5))
def test_posterior_shares_are_a_distribution(estimate, variance):
    found = posterior_margin(Margin(estimate, variance))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)


@given(vectors)
def test_permuting_the_codes_permutes_the_posterior(estimate):
    found = posterior_margin(Margin(estimate, 0.01))
    back = posterior_margin(Margin(estimate[::-1].copy(), 0.01))
    np.testing.assert_allclose(back[::-1], found, atol=1e-8)


def test_precise_margins_stay_and_vague_ones_become_equal():
    shares = np.array([0.55, 0.25, 0.15, 0.05])
    np.testing.assert_allclose(posterior_margin(Margin(shares, 1e-7)), shares, atol=1e-3)
    vague = posterior_margin(Margin(shares, 1e4))
    np.testing.assert_allclose(vague, 0.25, atol=0.01)


def test_a_rare_total_does_not_decide_by_rounding():
    """Of 41 codes one has nearly all: under an even prior that is a one in 10^60 event."""
    shares = np.full(41, 0.002)
    shares[7] = 0.92
    means, evidence = module._posterior(shares, 1e-3, 3.2, 400)
    assert abs(means.sum() - 1) < 1e-6
    assert evidence < module._posterior(shares, 1e-3, 0.05, 400)[1] - 100


def gains(estimator):
    """How much less than the projection it errs, squared, on shares drawn from the priors."""
    random = np.random.default_rng(5)
    found = []
    for _ in range(60):
        truth = random.dirichlet(np.full(41, 0.05))
        noisy = Margin(truth + random.normal(size=41) * 0.035, 0.035**2)
        worse = ((projected_margin(noisy) - truth) ** 2).sum()
        found.append(worse - ((estimator(noisy) - truth) ** 2).sum())
    return np.mean(found) / (np.std(found) / 60**0.5)


@pytest.mark.statistical
def test_the_posterior_mean_errs_less_than_the_projection():
    assert gains(posterior_margin) > 5


@pytest.mark.statistical
def test_the_comparison_rejects_a_prior_that_is_far_off():
    assert gains(lambda margin: posterior_margin(margin, (1.6,))) < 0


def test_where_the_grid_would_be_too_large_or_coarse_margins_are_projected():
    wide = Margin(np.full(30_000, 1 / 30_000), 1e-3)
    np.testing.assert_array_equal(posterior_margin(wide), projected_margin(wide))
    sharp = Margin(np.array([0.3, 0.8]), 1e-9)
    np.testing.assert_array_equal(posterior_margin(sharp), projected_margin(sharp))
    known = Margin(np.array([0.25, 0.75]), 0.0)
    np.testing.assert_array_equal(posterior_margin(known), known.estimate)
