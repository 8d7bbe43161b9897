"""Postprocessing: each step does what its table says, and nothing else."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.postprocess import (
    base_cut,
    base_pos,
    consistent,
    grr_mle,
    norm,
    norm_cut,
    norm_mul,
    norm_sub,
    same_total,
)

EXAMPLE = np.array([0.7, 0.4, 0.1, -0.1, -0.3])
EXAMPLE.flags.writeable = False
RARE = np.array([400, 300, 150, 90, 60])
STEPS = [norm, base_pos, norm_mul, norm_sub, norm_cut]

vectors = st.lists(st.floats(-2, 2), min_size=1, max_size=12).map(np.array)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (norm, [0.74, 0.44, 0.14, -0.06, -0.26]),
        (base_pos, [0.7, 0.4, 0.1, 0, 0]),
        (norm_mul, [7 / 12, 4 / 12, 1 / 12, 0, 0]),
        (norm_sub, [0.633333333333, 0.333333333333, 0.033333333333, 0, 0]),
        (norm_cut, [0.7, 0.3, 0, 0, 0]),
    ],
)
def test_the_steps_are_those_of_the_tables(step, expected):
    np.testing.assert_allclose(step(EXAMPLE), expected, atol=1e-12)
    np.testing.assert_allclose(step(EXAMPLE[::-1]), expected[::-1], atol=1e-12)


@given(vectors)
def test_norm_sub_is_the_nearest_distribution(estimates):
    """The conditions of Karush, Kuhn and Tucker: one shift, and only cut where it must be."""
    nearest = norm_sub(estimates)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1)
    shift = (estimates - nearest)[nearest > 0]
    assert np.ptp(shift) < 1e-12
    assert (estimates[nearest == 0] <= shift.max() + 1e-12).all()


@given(vectors)
def test_norm_mul_is_a_distribution_with_the_same_ratios(estimates):
    scaled = norm_mul(estimates)
    assert scaled.min() >= 0
    assert scaled.sum() == pytest.approx(1)
    if estimates.max() > 1e-100:
        positive = base_pos(estimates)
        np.testing.assert_allclose(scaled * positive.sum(), positive, atol=1e-12)


def test_norm_mul_of_nothing_positive_is_uniform():
    assert norm_mul(np.array([-0.5, 0.0, -1, -2])).tolist() == [0.25] * 4


@given(vectors)
def test_norm_cut_keeps_the_largest_and_cuts_one_at_most(estimates):
    cut, positive = norm_cut(estimates), base_pos(estimates)
    assert cut.sum() == pytest.approx(min(1, positive.sum()))
    assert (cut <= positive).all()
    touched = (cut > 1e-12) & (np.abs(cut - positive) > 1e-12)
    assert np.count_nonzero(touched) <= 1
    if (cut < positive - 1e-12).any():
        assert positive[cut < positive - 1e-12].max() <= positive[cut > 1e-12].min() + 1e-12


@given(vectors, st.floats(-3, 3))
def test_norm_adds_the_same_to_all(estimates, total):
    moved = norm(estimates, total)
    assert moved.sum() == pytest.approx(total, abs=1e-12)
    assert np.ptp(moved - estimates) < 1e-12


def test_base_cut_keeps_what_noise_alone_would_hardly_reach():
    limit = NormalDist().inv_cdf(1 - 0.05 / 5) * 0.1
    assert limit == pytest.approx(0.2326348)
    assert base_cut(EXAMPLE, 0.1).tolist() == [0.7, 0.4, 0, 0, 0]
    assert base_cut(EXAMPLE, 0.1, 0.9).tolist() == [0.7, 0.4, 0.1, 0, 0]
    near = np.array([limit * 1.0001, limit * 0.9999, 0, 0, 0])
    assert np.flatnonzero(base_cut(near, 0.1)).tolist() == [0]


def test_grr_mle_is_that_of_the_tables():
    oracle = GRR(5, 1)
    raw = [0.9819767, 0.5909884, 0.0045058, -0.2300872, -0.3473837]
    np.testing.assert_allclose(oracle.estimate(RARE, 1000), raw, rtol=1e-5)
    np.testing.assert_allclose(
        grr_mle(RARE, oracle), [0.6545681, 0.3454319, 0, 0, 0], rtol=1e-6
    )
    np.testing.assert_allclose(
        norm_sub(oracle.estimate(RARE, 1000)), [0.6954942, 0.3045058, 0, 0, 0], rtol=1e-6
    )


@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=6).filter(any),
    st.fractions("0.3", 5, max_denominator=100),
)
def test_no_distribution_makes_the_tally_more_likely(counts, epsilon):
    """At a maximum over the simplex no code's slope exceeds that of the codes in use."""
    oracle, tally = GRR(len(counts), epsilon), np.array(counts)
    shares = grr_mle(tally, oracle)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    slopes = tally / (oracle.q + (oracle.p - oracle.q) * shares)
    assert slopes.max() <= slopes[shares > 0].min() * (1 + 1e-9)


def test_grr_mle_of_unclipped_estimates_is_the_raw_estimate():
    oracle, tally = GRR(3, 2), np.array([400, 350, 250])
    np.testing.assert_allclose(grr_mle(tally, oracle), oracle.estimate(tally, 1000))
    assert grr_mle(np.array([7]), GRR(1, 1)).tolist() == [1.0]


def test_estimates_of_one_marginal_are_weighted_by_their_precision():
    first, second = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    combined, variance = consistent([first, second], [1.0, 3.0])
    np.testing.assert_allclose(combined, [0.275, 0.725])
    assert variance == pytest.approx(0.75)
    same, half = consistent([first, first], [0.2, 0.2])
    np.testing.assert_allclose(same, first)
    assert half == pytest.approx(0.1)


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=5), st.floats(0.01, 0.99))
def test_no_other_weights_have_a_smaller_variance(variances, tilt):
    _, variance = consistent([np.ones(1)] * len(variances), variances)
    weights = np.full(len(variances), (1 - tilt) / (len(variances) - 1))
    weights[0] = tilt
    assert variance <= (weights**2 @ variances) * (1 + 1e-12)


def test_attributes_are_moved_to_one_total():
    first, second = np.array([0.5, 0.7]), np.array([0.3, 0.3, 0.3])
    moved = same_total([first, second], [1.0, 2.0])
    common = (1.2 / 2 + 0.9 / 6) / (1 / 2 + 1 / 6)
    assert [each.sum() for each in moved] == pytest.approx([common, common])
    for before, after in zip((first, second), moved, strict=True):
        assert np.ptp(after - before) < 1e-12


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("wrong", [[], [np.nan, 1.0], [[0.5, 0.5]], [np.inf]])
def test_estimates_that_are_none_are_refused(step, wrong):
    with pytest.raises(InputError, match="estimates must be finite"):
        step(np.array(wrong, np.float64))


def test_bad_parameters_are_refused():
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="standard_error must be"):
            base_cut(EXAMPLE, wrong)
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(InputError, match="alpha must be"):
            base_cut(EXAMPLE, 0.1, wrong)
    for tally in ([1, 2], [-1, 2, 3], [0, 0, 0]):
        with pytest.raises(InputError, match="tally must hold 3 counts"):
            grr_mle(np.array(tally), GRR(3, 1))
    for variances in ([1.0], [1.0, 0.0], [1.0, np.nan], [1.0, -1.0]):
        with pytest.raises(InputError, match="variances must be"):
            consistent([EXAMPLE, EXAMPLE], variances)
    with pytest.raises(InputError, match="variances must be"):
        same_total([], [])
    with pytest.raises(InputError, match="same shape"):
        consistent([EXAMPLE, EXAMPLE[:2]], [1.0, 1.0])
