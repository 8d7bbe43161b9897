"""Distances of marginals, by hand and by enumeration, and the figures of real tables."""

from fractions import Fraction
from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.evaluation.baselines import bootstrap_table, independent_table, uniform_table
from dpsim.evaluation.distances import (
    Distance,
    mse,
    mse_code,
    mse_counts,
    mse_floor_of,
    total_variation,
    tvd,
    tvd_floor,
    tvd_to_model,
    two_sample_floor,
)
from dpsim.evaluation.marginals import survey
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.table import CodeTable
from tests.evaluation.tables import table_of, tables

NOISE = CentralNoise(11, "distances")


def shares(table, subset):
    return [Fraction(int(c), table.n) for c in joint_counts(table, subset).ravel()]


def exact_distances(truth, other, alpha):
    """TVD and MSE of every subset, in exact fractions."""
    found = []
    for subset in combinations(range(len(truth.sizes)), alpha):
        gaps = [
            a - b for a, b in zip(shares(truth, subset), shares(other, subset), strict=True)
        ]
        found.append((sum(map(abs, gaps)) / 2, sum(g * g for g in gaps) / len(gaps)))
    return found


@given(tables(), st.data())
def test_distances_are_those_of_exact_fractions(pair, data):
    truth, other = pair
    alpha = data.draw(st.integers(1, len(truth.sizes)))
    expected = exact_distances(truth, other, alpha)
    apart, squared = zip(*expected, strict=True)
    found = tvd(truth, other, alpha)
    assert found.mean == pytest.approx(float(sum(apart) / len(apart)), rel=1e-14, abs=0)
    assert found.worst == float(max(apart))
    subsets = list(combinations(range(len(truth.sizes)), alpha))
    assert found.worst_subset == subsets[apart.index(max(apart))]
    assert found.subsets == found.all_subsets == len(subsets)
    mean = float(sum(squared) / len(squared))
    assert mse(truth, other, alpha) == pytest.approx(mean, rel=1e-14, abs=0)


@given(tables())
def test_total_variation_is_a_distance_that_grows_with_alpha(pair):
    truth, other = pair
    before = 0.0
    for alpha in range(1, len(truth.sizes) + 1):
        found = tvd(truth, other, alpha)
        assert found.mean == tvd(other, truth, alpha).mean
        assert tvd(truth, truth, alpha).mean == 0
        # A marginal's distance is at least that of any of its own marginals.
        assert before - 1e-15 <= found.mean <= found.worst <= 1
        before = found.mean


def test_tables_without_a_common_cell_are_one_apart():
    one, two = table_of((2, 2), [0, 0], [0, 1]), table_of((2, 2), [1], [1])
    assert tvd(one, two, 1) == Distance(1, 0.75, 1.0, (0,), 2, 2)
    assert tvd(one, two, 2) == Distance(2, 1.0, 1.0, (0, 1), 1, 1)


def test_a_sample_of_subsets_says_so():
    wide = CodeTable((2,) * 142, np.zeros((142, 3), np.uint8))
    found = tvd(wide, wide, 2)
    assert (found.subsets, found.all_subsets) == (10_000, 10_011)


@given(tables(n_tables=1, max_d=2, max_rows=4), st.integers(1, 4))
def test_floors_are_the_means_over_all_tables_drawn_from_the_truth(found, rows):
    """Every way to draw the rows, each as likely as any other: no sampling."""
    (truth,) = found
    draws = list(product(range(truth.n), repeat=rows))
    for alpha in range(1, len(truth.sizes) + 1):
        drawn = [CodeTable(truth.sizes, truth.codes[:, users]) for users in draws]
        both = [exact_distances(truth, each, alpha) for each in drawn]
        mean_tvd, mean_mse = (
            float(sum(value[i] for each in both for value in each) / len(both) / len(both[0]))
            for i in (0, 1)
        )
        assert tvd_floor(truth, alpha, rows) == pytest.approx(mean_tvd, rel=1e-12, abs=1e-15)
        floor = mse_floor_of(survey(truth, (), alpha, rows))
        assert floor == pytest.approx(mean_mse, rel=1e-12, abs=1e-15)


def test_the_two_sample_floor_adds_the_variances():
    truth = table_of((2,), [0, 0, 0, 1])
    spread = 2 * sqrt(3 / 16)
    for rows in (4, 100):
        expected = spread * sqrt((1 / rows + 1 / 4) / (2 * np.pi))
        assert two_sample_floor(truth, 1, rows) == pytest.approx(expected, rel=1e-14)


@given(tables())
def test_errors_of_counts_are_those_of_the_notes(pair):
    truth, other = pair
    if truth.n != other.n:
        with pytest.raises(InputError, match="publish as many rows as the truth has"):
            mse_counts(truth, other)
        return
    parts = []
    for attribute, size in enumerate(truth.sizes):
        one, two = joint_counts(truth, (attribute,)), joint_counts(other, (attribute,))
        parts.append(Fraction(int(((one - two) ** 2).sum()), size))
    mean = float(sum(parts) / len(parts))
    assert mse_counts(truth, other) == pytest.approx(mean, rel=1e-14, abs=0)
    assert mse_code(truth, other) == pytest.approx(mean / truth.n, rel=1e-14, abs=0)


class Fitted:
    """A model that repeats a table's own marginals."""

    def __init__(self, table):
        self.table, self.sizes = table, table.sizes

    def sample(self, n, noise, start=0):
        raise NotImplementedError

    def marginal(self, attributes):
        return joint_counts(self.table, attributes) / self.table.n


@given(tables())
def test_the_distance_to_a_model_is_that_of_its_exact_marginals(pair):
    truth, other = pair
    for alpha in range(1, len(truth.sizes) + 1):
        found, table = tvd_to_model(truth, Fitted(other), alpha), tvd(truth, other, alpha)
        assert found.mean == pytest.approx(table.mean, abs=1e-14)
        assert found.worst == pytest.approx(table.worst, abs=1e-14)
        assert (found.subsets, found.alpha) == (table.subsets, alpha)
        assert tvd_to_model(truth, Fitted(truth), alpha).mean == 0


def test_a_model_of_other_domains_is_refused():
    with pytest.raises(InputError, match="same domain sizes"):
        tvd_to_model(table_of((2,), [0]), Fitted(table_of((3,), [0])), 1)
    with pytest.raises(InputError, match="same shape"):
        total_variation(np.ones(2), np.ones(3))


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "n", "tvd_law", "mse_law"), [
    (100, 1000, (0.19675, 0.0018), (16.094, 0.28)),
    (50, 10_000, (0.06266, 0.0008), (160.94, 4.0)),
])  # fmt: skip
def test_independent_uniform_tables_are_as_far_apart_as_the_notes_print(d, n, tvd_law, mse_law):
    sizes = tuple(100 + round(50 * a / (d - 1)) for a in range(d))
    one, two = (uniform_table(sizes, n, CentralNoise(seed, "notes")) for seed in (1, 2))
    mean, spread = tvd_law
    assert abs(tvd(one, two, 1).mean - mean) < 5 * spread
    assert abs(mse_counts(one, two) - mse_law[0]) < 5 * mse_law[1]
    other = uniform_table(sizes, n, CentralNoise(3, "notes"))
    mixed = CodeTable(sizes, np.where(np.arange(n) % 5 < 1, one.codes, other.codes))
    assert abs(tvd(one, mixed, 1).mean - mean) > 5 * spread


FIGURES = {
    "nltcs": {
        "floor": (0.0024, 0.0040, 0.0057), "bootstrap": (None, 0.004, 0.006),
        "independent": (None, 0.161, 0.253), "uniform": (None, 0.334, 0.438),
    },
    "adult": {
        "floor": (0.0036, 0.0092, 0.0192), "bootstrap": (None, 0.009, 0.019),
        "independent": (None, 0.075, 0.167), "uniform": (None, 0.728, 0.840),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_the_floors_of_real_tables_are_those_of_the_reference(name, request):
    truth = request.getfixturevalue(name)
    for alpha, figure in zip((1, 2, 3), FIGURES[name]["floor"], strict=True):
        normal = two_sample_floor(truth, alpha, truth.n) / sqrt(2)
        assert normal == pytest.approx(figure, abs=5e-5)
        # The reference uses the normal approximation; rare cells deviate less.
        assert 0.985 * normal < tvd_floor(truth, alpha, truth.n) < normal


@pytest.mark.statistical
@pytest.mark.parametrize("name", FIGURES)
def test_the_baselines_of_real_tables_are_those_of_the_reference(name, request):
    """The reference rounds to three digits, and its own draws differ as much again."""
    truth = request.getfixturevalue(name)
    made = {
        "bootstrap": bootstrap_table(truth, truth.n, NOISE),
        "independent": independent_table(truth, truth.n, NOISE),
        "uniform": uniform_table(truth.sizes, truth.n, NOISE),
    }
    for baseline, table in made.items():
        for alpha in (2, 3):
            figure = FIGURES[name][baseline][alpha - 1]
            assert tvd(truth, table, alpha).mean == pytest.approx(figure, abs=0.0015)
