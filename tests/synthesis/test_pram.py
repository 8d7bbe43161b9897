"""Invariant PRAM: exact in law, by enumeration and on a grid of draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.postprocess import norm_sub
from dpsim.synthesis._pram_kernels import redraw_rows
from dpsim.synthesis.attribute_clustering import AttributeClustering
from dpsim.synthesis.channel_em import cluster_law, em_step, most_likely_law, through_channels
from dpsim.synthesis.pram import _tables, redraw, redraw_cluster, redraw_table, transition
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable
from tests import laws

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
cases = st.tuples(shapes, st.integers(0, 10**6), st.booleans())
NOISE = CentralNoise(7, "plan")


def case(shape, seed, sparse):
    """A law, sometimes with empty cells, and a channel of another ε for each axis."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(np.prod(shape)))
    if sparse and law.size > 1:
        law[rng.random(law.size) < 0.5] = 0
        law[0] += law.sum() == 0
    channels = tuple(GRR(size, e) for size, e in zip(shape, ("1/2", 1, 2), strict=False))
    return (law / law.sum()).reshape(shape), channels


def matrix(channels):
    result = np.ones((1, 1))
    for channel in channels:
        result = np.kron(result, channel.channel())
    return result


def by_subsets(law, channels):
    """Q' from the sets T of kept axes: what the kernel draws from, as a plain sum."""
    rows = np.zeros((law.size, law.size))
    for i, report in enumerate(np.ndindex(*law.shape)):
        for mask in range(1 << law.ndim):
            kept = [axis for axis in range(law.ndim) if mask >> axis & 1]
            weight = np.prod([c.gap if a in kept else c.q for a, c in enumerate(channels)])
            agrees = np.ones(law.shape, bool)
            for axis in kept:
                agrees &= np.indices(law.shape)[axis] == report[axis]
            rows[i] += weight * np.where(agrees, law, 0).ravel()
    return rows / rows.sum(axis=1, keepdims=True)


def twin(reports, draws, law, channels):
    """The kernel in plain Python: choose the set, then walk through the cells in order."""
    made = np.empty_like(reports)
    for i in range(reports.shape[1]):
        parts = []
        for mask in reversed(range(1 << law.ndim)):
            kept = [axis for axis in range(law.ndim) if mask >> axis & 1]
            free = [axis for axis in range(law.ndim) if axis not in kept]
            weight = np.prod([c.gap if a in kept else c.q for a, c in enumerate(channels)])
            block = law.transpose(kept + free)[tuple(reports[kept, i])]
            parts.append((kept, free, weight, np.cumsum(block), block.shape))
        reached = np.cumsum([weight * sums[-1] for _, _, weight, sums, _ in parts])
        left = draws[i] * reached[-1]
        t = min(int(np.searchsorted(reached, left, side="right")), len(parts) - 1)
        kept, free, weight, sums, shape = parts[t]
        target = (left - (reached[t - 1] if t else 0)) / weight
        target = min(target, sums[-1] * (1 - 2.0**-53))
        place = int(np.searchsorted(sums, target, side="right"))
        made[kept, i] = reports[kept, i]
        made[free, i] = np.unravel_index(place, shape) if free else ()
    return made


@given(cases)
def test_rows_sum_to_one_and_follow_bayes_rule(drawn):
    law, channels = case(*drawn)
    rows = transition(law, channels)
    laws.assert_is_stochastic(rows)
    joint = law.ravel()[:, None] * matrix(channels)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(row, joint[:, i] / joint[:, i].sum(), atol=1e-15)


@given(cases)
def test_choosing_the_kept_axes_first_is_the_same_transition(drawn):
    law, channels = case(*drawn)
    np.testing.assert_allclose(by_subsets(law, channels), transition(law, channels), atol=1e-14)


@given(cases)
def test_the_channel_and_then_pram_keep_any_law(drawn):
    law, channels = case(*drawn)
    kept = law.ravel() @ matrix(channels) @ transition(law, channels)
    np.testing.assert_allclose(kept, law.ravel(), atol=1e-14)


def test_the_other_order_keeps_nothing():
    """The paper's P = Q'Q with P π = π is false."""
    law, channels = case((2, 3), 4, False)
    product = transition(law, channels) @ matrix(channels)
    assert np.abs(product @ law.ravel() - law.ravel()).max() > 0.01


@given(cases)
def test_pram_of_shares_is_one_step_of_expectation_and_maximization(drawn):
    law, channels = case(*drawn)
    shares = np.random.default_rng(1).dirichlet(np.ones(law.size)).reshape(law.shape)
    step = em_step(law, shares, channels)
    made = shares.ravel() @ transition(law, channels)
    np.testing.assert_allclose(made, step.ravel(), atol=1e-14)


def test_the_most_likely_law_is_restored_and_another_is_not():
    oracle = GRR(4, 1)
    for counts in ([22, 24, 26, 28], [15, 25, 28, 32]):
        fit = most_likely_law(np.array(counts), (oracle,)).law
        made = np.array(counts) / 100 @ transition(fit, (oracle,))
        np.testing.assert_allclose(made, fit, atol=1e-12)
    shares = np.array([0.15, 0.25, 0.28, 0.32])
    projected = norm_sub(oracle.estimate(shares, 1))
    np.testing.assert_allclose(projected, [0, 0.222403, 0.322240, 0.455357], atol=1e-6)
    made = shares @ transition(projected, (oracle,))
    np.testing.assert_allclose(made, [0, 0.222719, 0.322331, 0.454949], atol=1e-6)


def test_a_channel_of_another_epsilon_does_not_restore_the_law():
    counts = np.array([15, 25, 28, 32])
    fit = most_likely_law(counts, (GRR(4, 1),)).law
    made = counts / 100 @ transition(fit, (GRR(4, "1.1"),))
    assert np.abs(made - fit).max() > 1e-3


def test_a_single_attribute_keeps_a_code_by_the_closed_form():
    oracle = GRR(4, 1)
    law = most_likely_law(np.array([22, 24, 26, 28]), (oracle,)).law
    kept = law * oracle.gap / (oracle.q + law * oracle.gap)
    np.testing.assert_allclose(kept, [0.205101, 0.271343, 0.327393, 0.375437], atol=1e-6)
    expected = np.diag(kept) + np.outer(1 - kept, law)
    np.testing.assert_allclose(transition(law, (oracle,)), expected, atol=1e-15)


def test_the_shifted_inverse_of_a_product_is_neither_identity_nor_inverse():
    one = GRR(3, "1/2")
    shifted = np.linalg.inv(matrix((one, one)))
    shifted -= shifted.min()
    shifted /= shifted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.diag(shifted), 0.398, atol=5e-4)
    alone = np.linalg.inv(one.channel())
    alone -= alone.min()
    np.testing.assert_allclose(alone / alone.sum(axis=1, keepdims=True), np.eye(3), atol=1e-12)


@given(cases)
def test_equally_spaced_draws_follow_the_transition(drawn):
    """No sampling: a set of cells is made of intervals of draws, and a grid measures them."""
    law, channels = case(*drawn)
    n, rows = 4096, transition(law, channels)
    grid = (np.arange(n) + 0.5) / n
    for i, report in enumerate(np.ndindex(*law.shape)):
        reports = np.repeat(np.array(report, np.uint8)[:, None], n, axis=1)
        made = redraw(reports, law, channels, grid).astype(np.int64)
        counts = np.bincount(np.ravel_multi_index(tuple(made), law.shape), minlength=law.size)
        assert np.abs(counts / n - rows[i]).max() <= 2 * (1 << law.ndim) / n
        assert not counts[rows[i] == 0].any()


@given(cases, st.sampled_from([np.uint8, np.uint16, np.uint32]))
def test_the_kernel_equals_its_plain_twin(drawn, kind):
    law, channels = case(*drawn)
    rng = np.random.default_rng(drawn[1])
    reports = np.stack([rng.integers(0, size, 40) for size in law.shape]).astype(kind)
    draws = rng.random(40)
    draws[:2] = 0, 1
    made = redraw_rows(reports, draws, *_tables(law, channels))
    assert made.dtype == kind
    np.testing.assert_array_equal(made, twin(reports, draws, law, channels))


@pytest.mark.parametrize("draw", [0.0, 2.0**-54, 1 - 2.0**-53, 1.0])
def test_the_ends_of_a_draw_hit_no_empty_cell(draw):
    law = np.array([[0, 0.5, 0], [0, 0.5, 0], [0, 0, 0]])
    channels = (GRR(3, 1), GRR(3, 2))
    for report in np.ndindex(3, 3):
        made = redraw(np.array(report, np.uint8)[:, None], law, channels, np.array([draw]))
        assert law[tuple(made[:, 0])] > 0


def test_nobody_is_redrawn_where_there_is_nobody():
    law, channels = case((2, 3), 1, False)
    made = redraw(np.zeros((2, 0), np.uint16), law, channels, np.zeros(0))
    assert made.shape == (2, 0)
    assert made.dtype == np.uint16


def reports_of(sizes, n, seed=1):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in sizes]).astype(np.uint8)
    return SplitReports(CodeTable(sizes, codes), tuple(GRR(size, 1) for size in sizes))


def part(reports, where):
    table = CodeTable(reports.table.sizes, reports.table.codes[:, where])
    return SplitReports(table, reports.channels)


@given(st.integers(0, 99), st.integers(0, 99))
def test_any_block_of_users_is_redrawn_as_in_the_whole(one, two):
    low, high = sorted((one, two))
    reports = reports_of((2, 3, 4), 99)
    law = cluster_law(reports, (2, 0)).law
    whole = redraw_cluster(reports, (2, 0), law, NOISE)
    block = redraw_cluster(part(reports, slice(low, high)), (2, 0), law, NOISE, low)
    np.testing.assert_array_equal(block, whole[:, low:high])


def test_user_i_takes_draw_i_of_the_clusters_subject():
    reports = reports_of((2, 3, 4), 50)
    law = cluster_law(reports, (0, 2)).law
    draws = NOISE.uniforms(Purpose.PUBLISH, "pram:0,2", 50)
    expected = redraw(reports.table.codes[[0, 2]], law, reports.channels_of((0, 2)), draws)
    np.testing.assert_array_equal(redraw_cluster(reports, (0, 2), law, NOISE), expected)


def test_seed_plan_and_cluster_change_the_draws():
    reports = reports_of((4, 4), 500)
    law = np.full(4, 0.25)
    first = redraw_cluster(reports, (0,), law, NOISE)
    for noise in (CentralNoise(8, "plan"), CentralNoise(7, "other")):
        assert (redraw_cluster(reports, (0,), law, noise) != first).any()
    same = SplitReports(CodeTable((4, 4), reports.table.codes[[0, 0]]), reports.channels)
    assert (redraw_cluster(same, (1,), law, NOISE) != first).any()


def test_a_table_is_redrawn_cluster_by_cluster_and_the_reports_stay():
    reports = reports_of((2, 3, 4, 1), 300)
    reports.table.codes.flags.writeable = False
    before = reports.table.codes.copy()
    clustering = AttributeClustering(4, ((0, 3), (2,), (1,)))
    fits = [cluster_law(reports, cluster).law for cluster in clustering.clusters]
    made = redraw_table(reports, clustering, fits, NOISE)
    assert made.codes.dtype == np.uint8
    for cluster, law in zip(clustering.clusters, fits, strict=True):
        np.testing.assert_array_equal(
            made.codes[list(cluster)], redraw_cluster(reports, cluster, law, NOISE)
        )
    np.testing.assert_array_equal(reports.table.codes, before)
    assert not np.shares_memory(made.codes, reports.table.codes)


def test_reports_at_the_largest_epsilon_are_kept():
    sizes = (3, 4)
    codes = np.stack([np.arange(600) % 3, np.arange(600) % 4]).astype(np.uint8)
    reports = SplitReports(CodeTable(sizes, codes), (GRR(3, 30), GRR(4, 30)))
    law = cluster_law(reports, (0, 1)).law
    np.testing.assert_array_equal(redraw_cluster(reports, (0, 1), law, NOISE), codes)


@pytest.mark.statistical
def test_a_redrawn_cluster_follows_its_most_likely_law():
    law = np.array([[0.4, 0.1, 0.05], [0.05, 0.1, 0.3]])
    channels = (GRR(2, 1), GRR(3, 1))
    n = 60_000
    seen = through_channels(law, channels).ravel()
    cells = np.random.default_rng(5).choice(6, n, p=seen / seen.sum())
    table = CodeTable((2, 3), np.stack(np.unravel_index(cells, (2, 3))).astype(np.uint8))
    made = redraw_cluster(SplitReports(table, channels), (0, 1), law, NOISE)
    counts = np.bincount(made[0] * 3 + made[1], minlength=6)
    laws.assert_counts_follow(counts, law.ravel())
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(counts, seen)


def test_faults_are_named():
    law, channels = case((2, 3), 1, False)
    reports = np.zeros((2, 5), np.uint8)
    with pytest.raises(InputError, match="reports must have 2 rows of 4"):
        redraw(reports, law, channels, np.zeros(4))
    with pytest.raises(InputError, match="a law must have"):
        redraw(reports, law.T, channels, np.zeros(5))
    with pytest.raises(InputError, match="a law must sum to 1"):
        transition(2 * law, channels)
    with pytest.raises(InputError, match=r"5 of 5 codes lie outside 0\.\.1"):
        redraw(reports + 9, law, channels, np.zeros(5))
    with pytest.raises(InputError, match="4096 cells at most"):
        transition(np.full(5000, 1 / 5000), (GRR(5000, 5),))
    with pytest.raises(InputError, match="too many for one cluster"):
        redraw(
            reports,
            np.full((2048, 2049), 1 / 2048 / 2049),
            (GRR(2048, 5), GRR(2049, 5)),
            np.zeros(5),
        )
    with pytest.raises(InputError, match="one law per cluster"):
        redraw_table(reports_of((2, 3), 5), AttributeClustering.singletons(2), [law], NOISE)
    with pytest.raises(InputError, match="got 3 attributes"):
        redraw_table(reports_of((2, 3), 5), AttributeClustering.singletons(3), [law] * 3, NOISE)
