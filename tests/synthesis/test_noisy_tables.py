"""Noisy tables made plausible: laws of the corrections, and what they gain."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis import noisy_tables
from dpsim.synthesis.noisy_tables import clip_and_scale, fit_margins, lift, project, shrink

cells = st.lists(st.integers(-500, 2000), min_size=1, max_size=12)


@given(cells)
def test_corrected_tables_are_counts_with_the_total(values):
    measured = np.array(values, float)
    for table in (clip_and_scale(measured, 900.0), project(measured, 900.0)):
        assert table.min() >= 0
        assert table.sum() == pytest.approx(900)
    expected = np.full(measured.size, 900 / measured.size)
    shrunk = shrink(measured, expected, 30.0)
    assert (shrunk >= 0).all()
    assert (shrunk <= 900 * (1 + 1e-9)).all()


def test_clipping_keeps_shares_and_projection_keeps_differences():
    measured = np.array([[100.0, -20], [50, 10]])
    np.testing.assert_allclose(clip_and_scale(measured, 80), [[50, 0], [25, 5]])
    np.testing.assert_allclose(project(measured, 80), [[65, 0], [15, 0]])
    np.testing.assert_allclose(clip_and_scale(-measured[:, :1], 6), [[3], [3]])


def test_a_lift_makes_nothing_impossible_and_keeps_the_total():
    np.testing.assert_allclose(lift(np.array([10.0, 0]), 0.1), [9.5, 0.5])


def by_quadrature(measured, expected, scale, strength, steps):
    """The same posterior mean by sums over a fine grid of each interval."""
    total = expected.sum()
    ratios = list(noisy_tables._RATIOS)
    while ratios[-1] < total / expected.min():
        ratios.append(ratios[-1] * noisy_tables._GROWTH)
    middles = np.array([(b * max(a, b / 4)) ** 0.5 for a, b in pairwise(ratios)])
    prior = np.exp(-np.abs(np.log(middles)))
    prior /= prior.sum()
    density, center = np.zeros((2, expected.size, prior.size))
    for cell, (seen, mean) in enumerate(zip(measured, expected, strict=True)):
        for place, (low, high) in enumerate(pairwise(ratios)):
            low, high = min(low * mean, total), min(high * mean, total)  # noqa: PLW2901
            if high > low:
                grid = low + (np.arange(4000) + 0.5) / 4000 * (high - low)
                weights = np.exp(-np.abs(grid - seen) / scale)
                density[cell, place] = weights.mean()
                center[cell, place] = (weights * grid).sum() / weights.sum()
    weights = prior
    for _ in range(steps + 1):
        shares = density * weights
        shares /= shares.sum(axis=1, keepdims=True)
        result = (shares * center).sum(axis=1)
        weights = (shares.sum(axis=0) + strength * prior) / (expected.size + strength)
    return result


def test_shrinking_is_the_posterior_mean_that_it_says():
    expected = np.array([400.0, 100, 30, 5, 0.5, 64.5])
    measured = np.array([250.0, 180, -20, 40, 3, 700])
    for scale in (2.0, 20.0, 90.0):
        np.testing.assert_allclose(
            shrink(measured, expected, scale, strength=1.5, steps=7),
            by_quadrature(measured, expected, scale, 1.5, 7), rtol=1e-4,
        )  # fmt: skip


def test_much_noise_leaves_the_expectation_and_none_the_measurement():
    expected, measured = np.array([600.0, 300, 90, 10]), np.array([500.0, 330, 150, 20])
    np.testing.assert_allclose(shrink(measured, expected, 0.01), measured, atol=0.1)
    other = shrink(measured[::-1], expected, 1e9)
    np.testing.assert_allclose(shrink(measured, expected, 1e9), other, rtol=1e-5)
    assert (np.diff(other) < 0).all()


@pytest.mark.statistical
def test_shrinking_beats_projection_and_projection_beats_clipping_on_sparse_tables():
    random = np.random.default_rng(4)
    product = np.outer(random.dirichlet(np.ones(16) / 3), random.dirichlet(np.ones(16) / 3))
    law = product * random.lognormal(0, 0.5, (16, 16))
    truth = random.multinomial(20_000, law.ravel() / law.sum()).reshape(16, 16)
    expected = product * 20_000
    errors = np.zeros(3)
    for _ in range(20):
        measured = truth + random.laplace(0, 50, (16, 16))
        tables = (shrink(measured, expected, 50), project(measured, truth.sum()),
                  clip_and_scale(measured, truth.sum()))  # fmt: skip
        errors += [np.abs(table - truth).sum() for table in tables]
    assert errors[0] < 0.8 * errors[1] < errors[1] < 0.8 * errors[2]


@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 999))
def test_fitted_margins_hold_and_odds_ratios_stay(rows, columns, seed):
    random = np.random.default_rng(seed)
    table = random.random((rows, columns)) + 0.1
    first, second = random.dirichlet(np.ones(rows)), random.dirichlet(np.ones(columns))
    first, second = first + 0.05, second + 0.05
    first, second = first / first.sum(), second / second.sum()
    fitted = fit_margins(table, [((0,), first), ((1,), second)], sweeps=200)
    np.testing.assert_allclose(fitted.sum(axis=1), first, atol=1e-9)
    np.testing.assert_allclose(fitted.sum(axis=0), second, atol=1e-9)
    odds = fitted[0, 0] * fitted[1, 1] / fitted[0, 1] / fitted[1, 0]
    assert odds == pytest.approx(table[0, 0] * table[1, 1] / table[0, 1] / table[1, 0])


def test_pairs_of_a_cube_can_be_fitted():
    cube = np.random.default_rng(1).random((2, 3, 4)) + 0.2
    start = np.ones((2, 3, 4))
    sides = [((0, 2), cube.sum(axis=1)), ((1, 2), cube.sum(axis=0)), ((0, 1), cube.sum(axis=2))]
    fitted = fit_margins(start, sides, sweeps=500)
    for axes, side in sides:
        (other,) = {0, 1, 2} - set(axes)
        np.testing.assert_allclose(fitted.sum(axis=other), side, rtol=1e-8)


def test_tables_of_different_shapes_are_refused():
    with pytest.raises(InputError, match="is not one of"):
        shrink(np.ones((2, 3)), np.ones((3, 2)), 1.0)
