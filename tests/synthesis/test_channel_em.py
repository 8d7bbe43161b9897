"""The most likely law of reports."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.channel_em import (
    cluster_law,
    em_step,
    independent_law,
    most_likely_compound,
    most_likely_law,
    through_channels,
)
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3)
cases = st.tuples(shapes, st.integers(0, 10**6), st.sampled_from(["1/4", 1, 3]))


def case(shape, seed, epsilon, n=500):
    rng = np.random.default_rng(seed)
    channels = tuple(GRR(size, epsilon) for size in shape)
    law = rng.dirichlet(np.ones(np.prod(shape))).reshape(shape)
    counts = rng.multinomial(n, through_channels(law, channels).ravel()).reshape(shape)
    return channels, law, counts


def matrix(channels):
    result = np.ones((1, 1))
    for channel in channels:
        result = np.kron(result, channel.channel())
    return result


def log_likelihood(law, counts, channels):
    return float((counts * np.log(through_channels(law, channels))).sum())


@given(cases)
def test_axis_by_axis_is_the_whole_matrix(drawn):
    channels, law, _ = case(*drawn)
    expected = (law.ravel() @ matrix(channels)).reshape(law.shape)
    np.testing.assert_allclose(through_channels(law, channels), expected, atol=1e-15)


@given(cases)
def test_a_step_is_bayes_rule_averaged_over_the_reports(drawn):
    channels, law, counts = case(*drawn)
    joint = law.ravel()[:, None] * matrix(channels)
    expected = (joint / joint.sum(axis=0)) @ (counts.ravel() / counts.sum())
    step = em_step(law, counts / counts.sum(), channels)
    np.testing.assert_allclose(step.ravel(), expected, atol=1e-14)


@given(cases)
def test_steps_never_lower_the_likelihood_and_stay_on_the_simplex(drawn):
    channels, _, counts = case(*drawn)
    shares = counts / counts.sum()
    law = np.full(counts.shape, 1 / counts.size)
    for _ in range(10):
        moved = em_step(law, shares, channels)
        assert moved.min() >= 0
        assert moved.sum() == pytest.approx(1, abs=1e-12)
        before, after = (log_likelihood(each, counts, channels) for each in (law, moved))
        assert after >= before - 1e-9 * abs(before)
        law = moved


@given(cases)
def test_the_fit_does_not_lose_to_the_true_law_nor_to_its_neighbors(drawn):
    shape, seed, _ = drawn
    channels, law, counts = case(shape, seed, 3)
    fit = most_likely_law(counts, channels, tolerance=1e-11, max_steps=50_000)
    assert fit.is_settled
    best = log_likelihood(fit.law, counts, channels)
    assert best >= log_likelihood(law, counts, channels) - 1e-5
    for cell in np.ndindex(*shape):
        corner = np.zeros(shape)
        corner[cell] = 1
        near = 0.999 * fit.law + 0.001 * corner
        assert best >= log_likelihood(near, counts, channels) - 1e-5


@given(cases)
def test_shares_that_a_law_explains_fully_give_that_law(drawn):
    shape, seed, _ = drawn
    channels, law, _ = case(shape, seed, 3)
    counts = np.rint(through_channels(law, channels) * 1e12).astype(np.int64)
    fit = most_likely_law(counts, channels, tolerance=1e-12, max_steps=50_000)
    np.testing.assert_allclose(fit.law, law, atol=2e-5)


def test_the_vectors_of_one_attribute_of_four_codes():
    oracle = GRR(4, 1)
    inside = most_likely_law(np.array([22, 24, 26, 28]), (oracle,)).law
    np.testing.assert_allclose(inside, [0.150163, 0.216721, 0.283279, 0.349837], atol=1e-6)
    np.testing.assert_allclose(
        inside, oracle.estimate(np.array([22, 24, 26, 28]), 100), atol=1e-12
    )
    outside = most_likely_law(np.array([15, 25, 28, 32]), (oracle,)).law
    np.testing.assert_allclose(outside, [0, 0.225650, 0.322565, 0.451785], atol=1e-6)
    assert oracle.estimate(np.array([15, 25, 28, 32]), 100)[0] == pytest.approx(
        -0.082791, abs=1e-6
    )


def test_one_axis_in_closed_form_is_where_the_steps_go():
    oracle, counts = GRR(4, 1), np.array([15, 25, 28, 32])
    law, shares = np.full(4, 0.25), counts / 100
    for _ in range(20_000):
        law = em_step(law, shares, (oracle,))
    np.testing.assert_allclose(most_likely_law(counts, (oracle,)).law, law, atol=1e-4)


@pytest.mark.parametrize("counts", [[[22, 24], [26, 28]], [[150, 25], [28, 32]]])
def test_a_compound_report_has_the_fixed_point_of_the_reduced_step(counts):
    oracle, counts = GRR(4, 1), np.array(counts)
    law, shares = np.full((2, 2), 0.25), counts / counts.sum()
    for _ in range(5_000):
        law = law * shares / (oracle.q + oracle.gap * law)
        law /= law.sum()
    fit = most_likely_compound(counts, oracle)
    np.testing.assert_allclose(fit.law, law, atol=1e-6)
    assert fit.is_settled


def test_real_and_not_ideal_probabilities_are_inverted():
    """For 128 codes on 32 bits they differ by a millionth, and so would the law."""
    oracle = GRR(128, 1)
    truth = np.arange(1, 129) / np.arange(1, 129).sum()
    counts = np.rint((truth * oracle.gap + oracle.q) * 2**50).astype(np.int64)
    ideal_p, ideal_q = np.e / (np.e + 127), 1 / (np.e + 127)
    ideal = (counts / counts.sum() - ideal_q) / (ideal_p - ideal_q)
    np.testing.assert_allclose(most_likely_law(counts, (oracle,)).law, truth, atol=1e-12)
    assert np.abs(ideal - truth).max() > 1e-9


def test_the_stops_are_told_apart():
    channels, _, counts = case((3, 4), 5, "1/4")
    short = most_likely_law(counts, channels, max_steps=7)
    assert (short.steps, short.is_settled) == (7, False)
    assert short.change >= 1e-6
    channels, _, counts = case((3, 4), 5, 3)
    long = most_likely_law(counts, channels)
    assert long.is_settled
    assert long.steps < 300
    assert long.change < 1e-6
    assert most_likely_law(counts, channels, max_steps=0).law.tolist() == [[1 / 12] * 4] * 3


def test_permuting_codes_and_axes_permutes_the_law():
    channels, _, counts = case((3, 4), 9, 1)
    law = most_likely_law(counts, channels).law
    np.testing.assert_allclose(
        most_likely_law(counts[::-1], channels).law, law[::-1], atol=1e-12
    )
    np.testing.assert_allclose(
        most_likely_law(counts.T.copy(), channels[::-1]).law, law.T, atol=1e-12
    )


def test_a_cluster_starts_from_independence_with_no_cell_empty():
    channels, _, counts = case((3, 1, 4), 9, 1)
    start = independent_law(counts, channels)
    assert start.shape == counts.shape
    assert start.min() > 0
    assert start.sum() == pytest.approx(1)
    margins = [start.sum(axis=(1, 2)), start.sum(axis=(0, 1))]
    np.testing.assert_allclose(start[:, 0], np.outer(*margins), atol=1e-15)
    for axis, margin in ((0, margins[0]), (2, margins[1])):
        others = tuple(each for each in range(3) if each != axis)
        exact = most_likely_law(counts.sum(axis=others), (channels[axis],)).law
        np.testing.assert_allclose(margin, 0.95 * exact + 0.05 / exact.size, atol=1e-12)


def test_a_cluster_whose_reports_say_little_keeps_its_margins():
    channels = (GRR(2, "1/32"), GRR(2, "1/32"))
    truth = np.outer([0.9, 0.1], [0.3, 0.7])
    counts = np.rint(through_channels(truth, channels) * 10**9).astype(np.int64)
    codes = np.array(list(product(range(2), repeat=2)), np.uint8).T
    table = CodeTable((2, 2), np.repeat(codes, counts.ravel() // 10**4, axis=1))
    kept = cluster_law(SplitReports(table, channels), (0, 1))
    uniform = most_likely_law(joint_counts(table, (0, 1)), channels)
    assert not kept.is_settled
    assert not uniform.is_settled
    assert np.abs(kept.law - truth).sum() < 0.1
    assert np.abs(uniform.law - truth).sum() > 0.5


def test_a_cluster_takes_its_own_attributes_and_channels():
    rng = np.random.default_rng(2)
    table = CodeTable(
        (2, 3, 4), np.stack([rng.integers(0, k, 400) for k in (2, 3, 4)]).astype(np.uint8)
    )
    channels = (GRR(2, 1), GRR(3, 2), GRR(4, 3))
    fit = cluster_law(SplitReports(table, channels), (2, 0))
    counts = joint_counts(table, (2, 0))
    pair = (channels[2], channels[0])
    expected = most_likely_law(counts, pair, independent_law(counts, pair))
    np.testing.assert_array_equal(fit.law, expected.law)
    assert fit.law.shape == (4, 2)


def test_faults_are_named():
    channels = (GRR(2, 1), GRR(3, 1))
    counts = np.ones((2, 3), np.int64)
    with pytest.raises(InputError, match="counts must have"):
        most_likely_law(counts.T, channels)
    for bad in (np.zeros((2, 3), np.int64), -counts):
        with pytest.raises(InputError, match="counts must be"):
            most_likely_law(bad, channels)
    with pytest.raises(InputError, match="start must have"):
        most_likely_law(counts, channels, np.full((3, 2), 1 / 6))
    with pytest.raises(InputError, match="a law must"):
        most_likely_law(counts, channels, np.ones((2, 3)))
    with pytest.raises(InputError, match="counts must"):
        most_likely_law(np.array(1), ())
    with pytest.raises(InputError, match="counts must have"):
        most_likely_compound(counts, GRR(5, 1))
