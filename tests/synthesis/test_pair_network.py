"""A network from noisy pairs: sensitivity by enumeration, structure, laws, an audit."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import OneProcess
from dpsim.evaluation.audit_bounds import two_arm_epsilon
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.mechanisms.selection import PermuteAndFlip
from dpsim.synthesis import noisy_margins, pair_network
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.pair_network import (
    Effort,
    NetworkBudget,
    effort,
    fit_pair_network,
    surplus,
)
from dpsim.synthesis.table import CodeTable
from tests.synthesis.small_tables import Many, chain, table_of

NOISE = CentralNoise(5, "network")
RICH = NetworkBudget(Fraction(20), Fraction(20), Fraction(30))
THIRD = NetworkBudget(Fraction(1, 2), Fraction(1, 10), Fraction(2, 5))


def fit(table, budget=RICH, noise=NOISE, pool=None):
    return fit_pair_network(table, budget, noise, pool or OneProcess())


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 2.5])
def test_one_replaced_record_moves_a_score_by_one_at_most(scale):
    """All tables of 4 records in 2x3 cells, all replacements, several public expectations."""
    worst = 0.0
    random = np.random.default_rng(0)
    for expected in (np.zeros((2, 3)), np.full((2, 3), 4 / 6), random.random((2, 3)) * 2):
        for cells in product(range(6), repeat=4):
            counts = np.bincount(cells, minlength=6).reshape(2, 3)
            for target in range(6):
                moved = np.bincount((target, *cells[1:]), minlength=6).reshape(2, 3)
                difference = surplus(counts, expected, scale) - surplus(moved, expected, scale)
                worst = max(worst, abs(difference))
    assert worst <= 1 + 1e-12
    assert worst > (0.9 if scale <= 1 else 0.4)


def test_a_surplus_counts_what_lies_above_the_noise():
    counts, expected = np.array([[10, 0], [3, 7]]), np.array([[5.0, 1], [3, 11]])
    assert surplus(counts, expected, 2.0) == pytest.approx((3 + 0 + 0 + 2) / 2)


def test_effort_is_public_arithmetic():
    assert effort((4, 1, 2, 3), 10**6, Fraction(1)) == Effort(2, 0)
    assert effort((4,) * 15, 10**6, Fraction(1)) == Effort(14, 6)
    assert effort((4,) * 15, 14_000, Fraction(1)) == Effort(14, 6)
    assert effort((4,) * 15, 13_999, Fraction(1)) == Effort(14, 0)
    assert effort((1, 5), 100, Fraction(1)) == Effort(0, 0)
    assert Effort(14, 6).steps == 20


def test_a_chain_is_found():
    table = chain(20_000, 6, 4)
    model = fit(table)
    assert {tuple(sorted(edge)) for edge in model.net.edges} >= {(a, a + 1) for a in range(5)}


def test_much_budget_recovers_the_pairs_that_were_asked_for():
    table = chain(20_000, 6, 3)
    model = fit(table)
    assert max(map(len, model.net.parents)) == 2
    for parent, child in model.net.edges:
        truth = joint_counts(table, (parent, child)) / table.n
        np.testing.assert_allclose(model.marginal((parent, child)), truth, atol=2e-3)


def test_second_parents_bring_what_a_tree_cannot_hold():
    """Two causes of one child: a tree loses one of them."""
    random = np.random.default_rng(3)
    first, second = random.integers(0, 3, (2, 30_000))
    child = np.where(random.random(30_000) < 0.5, first, second)
    second = np.where(random.random(30_000) < 0.3, first, second)
    codes = np.array([first, second, child, child], np.uint8)
    codes[3] = np.where(random.random(30_000) < 0.7, child, second)
    table = CodeTable((3,) * 4, codes)
    model = fit(table)
    assert sum(map(len, model.net.parents)) == 4
    asked = [pair for pair in combinations(range(4), 2)
             if pair in model.net.edges or pair[::-1] in model.net.edges]  # fmt: skip
    for pair in asked:
        truth = joint_counts(table, pair) / table.n
        np.testing.assert_allclose(model.marginal(pair), truth, atol=3e-3)


def test_workers_change_nothing():
    table = chain(2_000, 5, 3)
    one, three = fit(table, THIRD), fit(table, THIRD, pool=Many(3))
    assert one.net == three.net
    for left, right in zip(one.tables, three.tables, strict=True):
        np.testing.assert_array_equal(left, right)


def test_seeds_change_the_result():
    table = chain(2_000, 5, 3)
    other = fit(table, THIRD, CentralNoise(6, "network"))
    assert not np.array_equal(fit(table, THIRD).tables[0], other.tables[0])


def test_constants_and_pairs_too_wide_stand_alone(monkeypatch):
    monkeypatch.setattr(pair_network, "MAX_CELLS", 15)
    table = table_of((3, 1, 4, 9), np.random.default_rng(1).integers(0, 1, (500, 4)))
    model = fit(table, THIRD)
    assert model.net.parents[1] == model.net.parents[3] == ()
    assert len(model.net.edges) == 1
    assert model.sample(50, NOISE).shape == (4, 50)


@pytest.mark.parametrize("n", [1, 3])
def test_few_records_and_much_noise_still_give_a_law(n):
    table = table_of((3, 4, 2), [(0, 1, 1)] * n)
    model = fit(table, NetworkBudget(*[Fraction(1, 1000)] * 3))
    for law in model.tables:
        assert np.isfinite(law).all()
        np.testing.assert_allclose(law.sum(axis=-1), 1)


def losses(table, budget, monkeypatch):
    """Every mechanism that a run uses, with its loss."""
    spent = []
    measure, keys = DiscreteLaplace.measure, PermuteAndFlip.keys

    def measuring(self, counts, noise, subject, start=0):
        spent.append((subject, self.loss.epsilon))
        return measure(self, counts, noise, subject, start)

    def keying(self, scores, noise, subject, start=0):
        spent.append((subject, self.loss.epsilon))
        return keys(self, scores, noise, subject, start)

    with monkeypatch.context() as patch:
        patch.setattr(DiscreteLaplace, "measure", measuring)
        patch.setattr(PermuteAndFlip, "keys", keying)
        fit(table, budget)
    return spent


@pytest.mark.parametrize("n", [300, 20_000])
def test_what_a_run_spends_is_its_budget_exactly_and_no_subject_comes_twice(n, monkeypatch):
    spent = losses(chain(n, 7, 3), THIRD, monkeypatch)
    for start, part in (("margin", THIRD.margins), ("structure", THIRD.structure),
                        ("pair", THIRD.tables)):  # fmt: skip
        assert sum(loss for what, loss in spent if what.startswith(start)) == part
    assert len({what for what, _ in spent}) == len(spent)
    assert len(spent) == 7 + 2 * effort((3,) * 7, n, THIRD.tables).steps


def refuted(monkeypatch, factor, runs=3000):
    """The ε that a run's released numbers refute, with noise divided by a factor."""
    released: list[np.ndarray] = []
    measure = DiscreteLaplace.measure

    def measuring(self, counts, noise, subject, start=0):
        mechanism = DiscreteLaplace(self.epsilon * factor, self.sensitivity)
        released.append(measure(mechanism, counts, noise, subject, start))
        return released[-1]

    monkeypatch.setattr(DiscreteLaplace, "measure", measuring)
    monkeypatch.setattr(pair_network, "shrink", lambda measured, expected, scale: expected)
    hits = []
    for rest, first in (((0, 0), 0), ((1, 1), runs)):
        table = table_of((2, 2), [(0, 0)] * 5 + [rest])
        hits.append(0)
        for seed in range(first, first + runs):
            released.clear()
            fit(table, THIRD, CentralNoise(seed, "audit"))
            left, right, pair = released
            hits[-1] += left[0] >= 6 and right[0] >= 6 and pair[0, 0] >= 6 and pair[1, 1] <= 0
    return two_arm_epsilon(hits[0], runs, hits[1], runs, 1e-4)


@pytest.mark.statistical
def test_an_audit_of_neighbors_does_not_refute_epsilon(monkeypatch):
    assert 0.2 < refuted(monkeypatch, 1) <= 1


@pytest.mark.statistical
def test_the_audit_flags_half_the_noise(monkeypatch):
    assert refuted(monkeypatch, 2) > 1


def test_a_whole_table_moves_by_two():
    assert noisy_margins.WHOLE_TABLE == 2
    first, second = (joint_counts(table_of((2, 2), [record, (0, 0)]), (0, 1))
                     for record in ((0, 0), (1, 1)))  # fmt: skip
    assert np.abs(first - second).sum() == 2


@pytest.mark.parametrize("turn", range(4))
def test_attributes_of_all_sizes_in_any_order_keep_their_pairs(turn):
    """Children before and after their parents: a table turned around would not fit."""
    random = np.random.default_rng(turn)
    sizes = tuple(np.roll((3, 4, 2, 5, 6), turn).tolist())
    hidden = random.random(30_000)
    mixed = 0.6 * hidden + 0.4 * random.random((5, 30_000)) ** 2
    codes = np.array([np.floor(row * size) for row, size in zip(mixed, sizes, strict=True)])
    table = CodeTable(sizes, codes.astype(np.uint8))
    model = fit(table)
    assert max(map(len, model.net.parents)) == 2
    for pair in model.net.edges:
        truth = joint_counts(table, pair) / table.n
        np.testing.assert_allclose(model.marginal(pair), truth, atol=3e-3)
