"""Directions that stand out of noise: known figures, fixed signs, one rule for none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.discrete_gaussian import DiscreteGaussian
from dpsim.recommend import denoise as module
from dpsim.recommend.denoise import denoise, rating_factors, top_n_factors
from dpsim.recommend.gram import unpack
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.split_sums import ItemFacts
from tests.recommend.stand_in import SCALE


def noise_matrix(size, subject="noise"):
    law = DiscreteGaussian(2**20, 1)
    entries = law.draw(size * (size - 1) // 2, CentralNoise(3, "p"), subject)
    return unpack(entries / 2**20, size)


def planted(size, strengths, seed=2):
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(0, 1, (size, len(strengths))))
    return basis * strengths @ basis.T, basis


@pytest.mark.statistical
def test_planted_directions_are_seen_and_shrunk_as_the_tables_say():
    truth, basis = planted(600, (80.0, 60.0, 52.0))
    spectrum = denoise(truth + noise_matrix(600), 1.0, 10)
    seen = np.sqrt(spectrum.strengths**2 + 4 * 600)
    np.testing.assert_allclose(seen, [87.5, 70, 63.54], atol=2.5)
    np.testing.assert_allclose(spectrum.strengths, [72.5, 50, 40.46], atol=4)
    overlaps = (basis.T @ spectrum.directions) ** 2
    np.testing.assert_allclose(
        overlaps.sum(0), 1 - 600 / np.array([80, 60, 52]) ** 2, atol=0.07
    )


@pytest.mark.parametrize("size", [300, 900])
def test_pure_noise_leaves_no_direction(size):
    spectrum = denoise(noise_matrix(size), 1.0, 10)
    assert spectrum.rank == 0
    assert spectrum.directions.shape == (size, 0)
    assert spectrum.edge == pytest.approx(2.04 * size**0.5)


def test_noise_that_is_understated_would_be_taken_for_taste():
    assert denoise(noise_matrix(300), 0.5, 10).rank == 10


@given(st.floats(10, 500), st.floats(0.1, 3))
def test_shrinking_is_strength_times_squared_overlap(strength, sd):
    """λ(1 - σ²m/λ²) of l = λ + σ²m/λ is √(l² - 4σ²m), wherever λ > σ√m."""
    size = 4
    if strength <= 1.3 * sd * size**0.5:
        return
    shown = strength + sd**2 * size / strength
    spectrum = denoise(np.diag([shown, 0.0, 0.0, 0.0]), sd, 2)
    if shown > 2.04 * sd * size**0.5:
        expected = strength * (1 - sd**2 * size / strength**2)
        np.testing.assert_allclose(spectrum.strengths, [expected], rtol=1e-9)


def test_without_noise_nothing_is_shrunk_and_only_positive_directions_are_kept():
    spectrum = denoise(np.diag([3.0, -2.0, 1.0, 0.0]), 0.0, 10)
    assert spectrum.strengths.tolist() == [3, 1]
    assert spectrum.directions.T.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def test_both_solvers_agree_in_order_and_sign(monkeypatch):
    matrix = planted(90, (80.0, 60.0, 52.0, 20.0))[0] + noise_matrix(90)
    dense = denoise(matrix, 1.0, 5)
    monkeypatch.setattr(module, "_DENSE_SIZE", 10)
    sparse, again = denoise(matrix, 1.0, 5), denoise(matrix, 1.0, 5)
    assert dense.rank == 3 + (dense.rank > 3)
    np.testing.assert_allclose(sparse.strengths, dense.strengths, rtol=1e-9)
    np.testing.assert_allclose(sparse.directions, dense.directions, atol=1e-7)
    np.testing.assert_array_equal(sparse.directions, again.directions)
    largest = np.abs(dense.directions).argmax(0)
    assert (dense.directions[largest, np.arange(dense.rank)] > 0).all()


def test_at_most_the_wanted_number_is_kept():
    assert denoise(np.diag(np.arange(1.0, 9.0)), 0.0, 3).strengths.tolist() == [8, 7, 6]


def facts(counts, users=100.0, sd=2.0):
    popular = np.arange(len(counts), dtype=np.int32)
    counts = np.array(counts, np.float64)
    return ItemFacts(3.0, users, counts, np.full(len(counts), 3.0), popular, sd)


def test_factors_follow_their_formulas():
    spectrum = denoise(np.diag([9.0, 4.0, 0.0]), 0.0, 2)
    known = facts([400.0, 100.0, -5.0])
    damped = np.array([424.0, 124.0, 24.0]) + 31
    for protects, kappa in (
        ("rating", 1.3 / (100 * 5**0.5)),
        ("user", 1 / (100 * (5 / 0.3) * 0.09)),
    ):
        settings = GramSettings.of(100, 3, SCALE, None, protects=protects)
        factors = rating_factors(spectrum, known, settings)
        expected = np.array([[3, 0], [0, 2], [0, 0]]) / kappa**0.5 / damped[:, None]
        np.testing.assert_allclose(factors, expected, rtol=1e-12)
    ranked = top_n_factors(spectrum, known)
    np.testing.assert_allclose(ranked, [[3 / 400**0.25, 0], [0, 2 / 100**0.25], [0, 0]])
