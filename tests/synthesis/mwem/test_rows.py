"""Synthetic records: by index, with the law of the guess; or rounded within one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem.atoms import spread_evenly
from dpsim.synthesis.mwem.rows import HistogramModel
from dpsim.synthesis.mwem.state import Guess
from tests import laws
from tests.synthesis.mwem.problems import NOISE

DENSE = Guess(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]]))
ATOMS = Guess(np.array([[1.0, 3.0], [2.0, 6.0]]), (np.array([0, 2, 3]), np.array([0, 1, 5])))


@pytest.mark.parametrize("guess", [DENSE, ATOMS])
def test_a_record_depends_on_its_index_only(guess):
    model = HistogramModel(guess)
    whole = model.sample(50, NOISE)
    assert whole.shape == (2, 50)
    assert whole.dtype == np.uint8
    parts = [model.sample(n, NOISE, start) for start, n in [(0, 7), (7, 0), (7, 43)]]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    assert (whole.max(axis=1) < model.sizes).all()


@pytest.mark.statistical
@pytest.mark.parametrize("guess", [DENSE, ATOMS])
def test_samples_follow_the_guess(guess):
    model = HistogramModel(guess)
    codes = model.sample(20_000, NOISE)
    cells = np.ravel_multi_index(tuple(codes.astype(int)), model.sizes)
    law = spread_evenly(guess).reshape(-1)
    law = law / law.sum()
    counts = np.bincount(cells, minlength=law.size)
    laws.assert_counts_follow(counts, law)
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(counts[::-1], law)


def test_marginals_are_exact_and_in_the_order_given():
    model = HistogramModel(ATOMS)
    table = spread_evenly(ATOMS) / 12
    assert model.sizes == (3, 5)
    np.testing.assert_allclose(model.marginal((0,)), table.sum(axis=1))
    np.testing.assert_allclose(model.marginal((1, 0)), table.T)
    np.testing.assert_allclose(HistogramModel(DENSE).marginal((1,)), np.array([3, 1, 6]) / 10)
    with pytest.raises(InputError, match="names each attribute once"):
        model.marginal((0, 0))


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=12).filter(lambda m: sum(m) > 0.1),
    st.integers(0, 1000), st.integers(0, 99),
)  # fmt: skip
def test_rounded_counts_sum_to_n_and_any_range_is_off_by_less_than_one(masses, n, seed):
    model = HistogramModel(Guess(np.array(masses)))
    counts = model.rounded(n, CentralNoise(seed, "rows"))
    assert counts.dtype == np.int64
    assert counts.sum() == n
    assert counts.min() >= 0
    exact = np.array(masses) * n / np.sum(masses)
    for start in range(len(masses)):
        off = np.cumsum(counts[start:]) - np.cumsum(exact[start:])
        assert np.abs(off).max() < 1 + 1e-9


@pytest.mark.statistical
def test_rounded_counts_are_right_on_average():
    model = HistogramModel(DENSE)
    mean = np.mean([model.rounded(7, CentralNoise(s, "rows")) for s in range(2000)], axis=0)
    np.testing.assert_allclose(mean, DENSE.masses * 0.7, atol=5 * 0.5 / 2000**0.5)


def test_rounded_rows_have_the_rounded_counts():
    model = HistogramModel(ATOMS)
    codes = model.rounded_rows(100, NOISE)
    cells = np.ravel_multi_index(tuple(codes.astype(int)), (3, 5))
    counts = np.bincount(cells, minlength=15).reshape(3, 5)
    np.testing.assert_array_equal(counts, model.rounded(100, NOISE))
    assert codes.dtype == np.uint8
    assert model.rounded_rows(0, NOISE).shape == (2, 0)


@pytest.mark.parametrize("masses", [[0.0, 0.0], [1.0, -1.0], [1.0, np.nan]])
def test_masses_without_a_law_are_refused(masses):
    with pytest.raises(InputError, match="masses must"):
        HistogramModel(Guess(np.array(masses)))
