"""Agreements of binary attributes: their joint sensitivity, their noise, their classes."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import OneProcess
from dpsim.evaluation.audit_bounds import two_arm_epsilon
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis import pair_agreements
from dpsim.synthesis.binary_classes import BinaryClasses
from dpsim.synthesis.pair_agreements import (
    Agreements,
    agreement_mechanisms,
    fit_agreements,
    measure_agreements,
)
from tests.synthesis.small_tables import Many, chain, table_of


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6, 7])
def test_no_replaced_record_costs_more_than_epsilon_and_one_costs_all_of_it(d):
    """Every pair of records: the losses of all counts that they move, in exact fractions."""
    for_ones, for_pairs = agreement_mechanisms(Fraction(1), d)
    records = np.array(list(product((0, 1), repeat=d)))
    agreed = np.array([records[:, a] == records[:, b] for a, b in combinations(range(d), 2)])
    worst = Fraction(0)
    for first in range(2**d):
        ones = np.abs(records - records[first]).sum(axis=1)
        pairs = (agreed != agreed[:, first : first + 1]).sum(axis=0)
        for h, moved in set(zip(ones.tolist(), pairs.tolist(), strict=True)):
            worst = max(worst, h / for_ones.scale + moved / for_pairs.scale)
    assert worst == 1


def measured(table, epsilon, seed=0, pool=None):
    noise = CentralNoise(seed, "agreements")
    return measure_agreements(table, Fraction(epsilon), noise, pool or OneProcess())


def test_counts_are_those_of_the_table():
    table = chain(300, 5, 2)
    found = measured(table, 30)
    spread = found.pairs_scale * 20
    codes = table.codes
    assert np.abs(found.ones - codes.sum(axis=1)).max() < spread
    truth = [(codes[a] == codes[b]).sum() for a, b in combinations(range(5), 2)]
    assert np.abs(found.pairs - truth).max() < spread
    assert spread < 15


def test_workers_change_nothing():
    table = chain(200, 6, 2)
    one, four = measured(table, 1), measured(table, 1, pool=Many(4))
    np.testing.assert_array_equal(one.pairs, four.pairs)
    np.testing.assert_array_equal(one.ones, four.ones)


ZEROS = table_of((2, 2), [(0, 0)] * 6)
OTHER = table_of((2, 2), [(0, 0)] * 5 + [(1, 0)])


def refuted(runs=3000):
    """The ε that the rates of the worst event refute: few ones, and all agree."""
    hits = []
    for table, first in ((ZEROS, 0), (OTHER, runs)):
        found = [measured(table, 1, seed) for seed in range(first, first + runs)]
        hits.append(sum(each.ones[0] <= 0 and each.pairs[0] >= 6 for each in found))
    return two_arm_epsilon(hits[0], runs, hits[1], runs, 1e-6)


@pytest.mark.statistical
def test_an_audit_of_neighbors_does_not_refute_epsilon():
    assert 0.6 < refuted() <= 1


@pytest.mark.statistical
def test_the_audit_flags_half_the_noise(monkeypatch):
    def half(epsilon, d):
        return tuple(DiscreteLaplace(2 * each.epsilon, 1)
                     for each in agreement_mechanisms(epsilon, d))  # fmt: skip

    monkeypatch.setattr(pair_agreements, "agreement_mechanisms", half)
    assert refuted() > 1


def test_the_cost_counts_misses_in_scales_and_parameters():
    model = BinaryClasses(np.array([0.5, 0.5]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    found = Agreements(100, np.array([60, 50]), np.array([90]), 5.0, 2.0)
    assert found.cost(model) == pytest.approx(10 / 5 + 10 / 2 + 2 * 3)


def test_strong_classes_are_found_and_independent_attributes_need_one():
    random = np.random.default_rng(1)
    kind = random.random(4000) < 0.4
    shares = np.where(kind, 0.9, 0.15)
    table = table_of((2,) * 6, (random.random((6, 4000)) < shares).T)
    noise = CentralNoise(1, "fit")
    model = fit_agreements(measured(table, 1), noise, OneProcess())
    assert 2 <= model.weights.size <= 4
    truth = np.bincount(table.codes[0] * 2 + table.codes[5], minlength=4) / 4000
    np.testing.assert_allclose(model.marginal((0, 5)).ravel(), truth, atol=0.03)
    alone = table_of((2,) * 6, random.random((4000, 6)) < 0.3)
    assert fit_agreements(measured(alone, "0.05"), noise, OneProcess()).weights.size == 1


@pytest.mark.parametrize("sizes", [(2,), (2, 3)])
def test_other_tables_are_refused(sizes):
    table = table_of(sizes, [(0,) * len(sizes)] * 3)
    with pytest.raises(InputError, match="agreements need two attributes"):
        measured(table, 1)
