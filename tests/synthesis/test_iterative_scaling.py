"""Fitting: never uphill, to the one best law, exactly as the dense problem would."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.iterative_scaling import ScalingFit, Target, cell_steps, wright_omega


@st.composite
def problems(draw, most=4, ridges=(-4, -1)):
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=most)))
    scope = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    scopes = list(map(tuple, draw(st.lists(scope, min_size=1, max_size=5))))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    targets = []
    for attributes in scopes:
        weights = rng.exponential(1, [sizes[a] for a in attributes])
        weights *= rng.random(weights.shape) < 0.8  # cells with a target of 0
        total = weights.sum() or 1.0
        targets.append(Target(attributes, weights / total, 10 ** rng.uniform(*ridges)))
    return ScalingFit(sizes, tuple(targets))


def masks_of(fit):
    """One row per cell of each target, over the whole universe."""
    rows = []
    cells = np.array(list(np.ndindex(*fit.sizes)))
    for target in fit.targets:
        codes = [cells[:, a] for a in target.attributes]
        found = np.ravel_multi_index(codes, target.shares.shape)
        rows.append(np.eye(target.shares.size)[:, found])
    return np.vstack(rows)


def dense_minimum(fit):
    """The dual's minimum by damped Newton steps on the whole universe."""
    masks = masks_of(fit)
    y = np.concatenate([t.shares.ravel() for t in fit.targets])
    r = np.concatenate([np.full(t.shares.size, t.ridge) for t in fit.targets])

    def value(theta):
        logs = masks.T @ theta
        top = logs.max()
        return np.log(np.exp(logs - top).sum()) + top - theta @ y + (r * theta) @ theta / 2

    theta = np.zeros(y.size)
    for _ in range(200):
        logs = masks.T @ theta
        p = np.exp(logs - logs.max())
        p /= p.sum()
        slope = masks @ p - y + r * theta
        if np.abs(slope).max() < 1e-12:
            break
        curve = (masks * p) @ masks.T - np.outer(masks @ p, masks @ p) + np.diag(r)
        step, scale = np.linalg.solve(curve, slope), 1.0
        while value(theta - scale * step) > value(theta) and scale > 1e-6:
            scale /= 2
        theta = theta - scale * step
    return theta, p.reshape(fit.sizes)


@given(problems())
@settings(deadline=None, max_examples=60)
def test_no_sweep_ever_goes_uphill(fit):
    potentials = fit.start()
    values = [fit.value(potentials)]
    for _ in range(6):
        potentials = fit.sweep(potentials)
        values.append(fit.value(potentials))
    assert (np.diff(values) <= 1e-11 * (1 + np.abs(values[1:]))).all()


def swept_slowly(fit, potentials):
    """A sweep that computes the whole law again before every target."""
    found = list(potentials)
    for place in dict.fromkeys(fit._walk):
        for number in fit._inside[place]:
            target = fit.targets[number]
            p = fit.beliefs(found).marginal(target.attributes)
            found[number] = found[number] + cell_steps(p, found[number], target)
    return found


@given(problems(most=6, ridges=(-3, 0)))
@settings(deadline=None, max_examples=60)
def test_the_law_that_follows_along_the_tree_is_the_exact_one(fit):
    fast = slow = fit.start()
    for _ in range(2):
        fast, slow = fit.sweep(fast), swept_slowly(fit, slow)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_every_target_is_fitted_once_in_a_sweep():
    spokes = tuple(Target((0, a), np.full((2, 2), 0.25), 1.0) for a in range(1, 6))
    fit = ScalingFit((2,) * 6, (*spokes, Target((0,), np.array([0.9, 0.1]), 1.0)))
    assert sorted(number for inside in fit._inside for number in inside) == list(range(6))
    assert set(fit._walk) == set(range(len(fit.tree.cliques)))
    assert all(fit.tree.parents[max(a, b)] == min(a, b) for a, b in pairwise(fit._walk))


@given(problems())
@settings(deadline=None, max_examples=40)
def test_the_gradient_is_that_of_the_value(fit):
    rng = np.random.default_rng(0)
    at = [rng.normal(0, 1, t.shares.shape) for t in fit.targets]
    to = [rng.normal(0, 1, t.shares.shape) for t in fit.targets]
    slope = sum(float((g * d).sum()) for g, d in zip(fit.gradient(at), to, strict=True))
    step = 1e-5
    ahead = fit.value([a + step * d for a, d in zip(at, to, strict=True)])
    behind = fit.value([a - step * d for a, d in zip(at, to, strict=True)])
    assert abs((ahead - behind) / (2 * step) - slope) < 1e-7 * (1 + abs(slope))


@given(problems(most=3, ridges=(-1, 0)))
@settings(deadline=None, max_examples=20)
def test_sweeps_come_to_the_minimum_of_the_dense_problem(fit):
    _, law = dense_minimum(fit)
    found = fit.fit(fit.start(), 250)
    assert max(np.abs(part).max() for part in fit.gradient(found)) < 1e-6
    everything = tuple(range(len(fit.sizes)))
    np.testing.assert_allclose(fit.beliefs(found).marginal(everything), law, atol=1e-5)


def test_consistent_targets_of_a_tree_are_met_in_two_sweeps():
    rng = np.random.default_rng(1)
    law = rng.exponential(1, (3, 4, 2))
    law /= law.sum()
    law = law.sum(2)[:, :, None] * (law.sum(0) / law.sum((0, 2))[:, None])[None]
    pairs = ((0, 1), law.sum(2)), ((1, 2), law.sum(0))
    fit = ScalingFit((3, 4, 2), tuple(Target(scope, y, 1e-12) for scope, y in pairs))
    found = fit.beliefs(fit.fit(fit.start(), 2)).marginal((0, 1, 2))
    np.testing.assert_allclose(found, law, rtol=1e-6)


def test_a_ring_of_targets_is_met_by_its_maximum_entropy_law():
    rng = np.random.default_rng(2)
    logs = [rng.normal(0, 1, (2, 2)) for _ in range(4)]
    ring = ((0, 1), (1, 2), (2, 3), (0, 3))
    joint = np.zeros((2, 2, 2, 2))
    for cell in np.ndindex(2, 2, 2, 2):
        joint[cell] = np.exp(
            sum(t[cell[a], cell[b]] for (a, b), t in zip(ring, logs, strict=True))
        )
    joint /= joint.sum()
    targets = []
    for a, b in ring:
        away = tuple(axis for axis in range(4) if axis not in (a, b))
        targets.append(Target((a, b), joint.sum(away), 1e-12))
    fit = ScalingFit((2, 2, 2, 2), tuple(targets))
    found = fit.beliefs(fit.fit(fit.start(), 200)).marginal((0, 1, 2, 3))
    np.testing.assert_allclose(found, joint, rtol=1e-6)


def test_a_single_target_stays_between_uniform_and_itself():
    y = np.array([0.7, 0.3, 0.0])
    gaps = []
    for ridge in (1e-6, 1e-2, 1e0, 1e4):
        fit = ScalingFit((3,), (Target((0,), y, ridge),))
        law = fit.beliefs(fit.fit(fit.start(), 400)).marginal((0,))
        gaps.append(np.abs(law - y).sum())
        assert law[0] > law[1] > law[2] > 0
    assert gaps == sorted(gaps)
    assert gaps[0] < 1e-4
    assert abs(law - 1 / 3).max() < 1e-3


def test_a_warm_start_goes_on_where_it_stopped():
    target = Target((0, 1), np.array([[0.5, 0.1], [0.1, 0.3]]), 1e-3)
    margin = Target((1,), np.array([0.55, 0.45]), 1e-4)
    fit = ScalingFit((2, 2), (margin, target))
    five, two = fit.fit(fit.start(), 5), fit.fit(fit.start(), 2)
    for one, other in zip(fit.fit(two, 3), five, strict=True):
        np.testing.assert_array_equal(one, other)
    first = ScalingFit((2, 2), (margin,))
    known = first.fit(first.start(), 3)
    started = fit.start(known)
    assert started[0] is known[0]
    np.testing.assert_array_equal(started[1], np.zeros((2, 2)))


@given(st.floats(1e-200, 1), st.floats(-50, 50), st.floats(0, 1), st.floats(-15, 1))
def test_a_cells_step_solves_its_equation_for_any_ridge(p, theta, y, exponent):
    r = 10.0**exponent
    target = Target((0,), np.array([y]), r)
    step = float(cell_steps(np.array([p]), np.array([theta]), target)[0])
    odds = p * np.exp(step)
    slope = odds + r
    # How far the step is from the root: by less than 10^-8, whatever the ridge.
    assert abs(odds + r * (theta + step) - y) <= 1e-8 * slope + 1e-15


@given(st.floats(-600, 1e6))
def test_wright_omega_solves_its_equation(value):
    u = float(wright_omega(np.array([value]))[0])
    assert u > 0
    assert abs(u + np.log(u) - value) <= 1e-12 * max(1, abs(value), u)


def test_wright_omega_keeps_shape_and_known_values():
    values = np.array([[1.0, 0.0], [-800.0, 1e-300]])
    found = wright_omega(values)
    assert found.shape == (2, 2)
    np.testing.assert_allclose(found.ravel()[[0, 1]], [1.0, 0.5671432904097838], rtol=1e-15)
    assert (found > 0).all()
    assert wright_omega(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("shares", "ridge", "message"),
    [
        (np.zeros(3), 1.0, r"the shape \(3,\)"),
        (np.zeros(2), 0.0, "ridge > 0"),
        (np.zeros(2), np.inf, "ridge > 0"),
        (np.array([np.nan, 1]), 1.0, "must be finite"),
    ],
)
def test_bad_targets_are_refused(shares, ridge, message):
    with pytest.raises(InputError, match=message):
        ScalingFit((2,), (Target((0,), shares, ridge),))
