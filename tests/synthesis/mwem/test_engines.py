"""Engines agree but for rounding; Newton's method finds the projection."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.synthesis.mwem.atoms import AtomsEngine, refine, spread_evenly
from dpsim.synthesis.mwem.errors import QueryErrors
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.newton import GRADIENT, BoxQueries, RowQueries, project
from dpsim.synthesis.mwem.random_workload import random_boxes
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests.synthesis.mwem.problems import (
    NOISE,
    ORACLES,
    box_masks,
    child_run,
    forced,
    small_run,
)

SHAPES = [(40,), (14, 9), (6, 5, 7), (3, 4, 3, 5)]


def histogram_for(shape, seed=0):
    generator = np.random.default_rng(seed)
    return generator.poisson(50 * generator.random(shape) ** 3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit", ["replays", "newton"])
def test_dense_and_atoms_agree_on_one_stream(shape, fit):
    workload = random_boxes(shape, 40, NOISE)
    runs = [
        small_run(workload, histogram_for(shape), engine, iterations=12, fit=fit, epsilon=4)
        for engine in ("dense", "atoms")
    ]
    (dense, left), (atoms, right) = ((mwem, mwem.run(truth, NOISE)) for mwem, truth in runs)
    assert left.queries == right.queries
    np.testing.assert_array_equal(left.measured, right.measured)
    np.testing.assert_allclose(dense.histogram(left), atoms.histogram(right), rtol=1e-9)
    np.testing.assert_allclose(dense.answers(left), atoms.answers(right), rtol=1e-9, atol=1e-7)
    assert right.guess.masses.size <= atoms.most_atoms


@given(st.sampled_from(SHAPES), st.integers(0, 99), st.integers(1, 5))
def test_atoms_answer_any_box_as_their_cells_would(shape, seed, cuts):
    generator = np.random.default_rng(seed)
    workload = random_boxes(shape, 12, NOISE)
    engine = AtomsEngine(workload)
    places = np.stack([generator.integers(0, size + 1, cuts) for size in shape], axis=1)
    guess = refine(engine.start(10.0), places)
    np.testing.assert_allclose(spread_evenly(guess), 10 / prod(shape), rtol=1e-12)
    masses = generator.random(guess.masses.shape)
    guess = type(guess)(masses, guess.edges)
    expected = box_masks(workload) @ spread_evenly(guess).reshape(-1)
    np.testing.assert_allclose(engine.answers(guess), expected, rtol=1e-12, atol=1e-12)


def test_the_engine_is_chosen_by_the_number_of_atoms():
    few, _ = small_run(random_boxes((1000, 1000), 50, NOISE), np.ones((1000, 1000), int))
    assert (few.engine_name, few.most_atoms) == ("atoms", 25)
    many, _ = child_run(2, engine=None)
    assert (many.engine_name, many.most_atoms) == ("dense", 56)
    rows, _ = small_run(LinearWorkload.of((9,), np.eye(9)), np.ones(9, int))
    whole, _ = small_run(BoxWorkload.marginals((9, 9), [(0,), (1,)]), np.ones((9, 9), int))
    assert rows.engine_name == whole.engine_name == "dense"


def test_the_projection_on_three_queries_is_as_tabulated():
    oracle = ORACLES["forced"]["kl_projection_first_3_queries_1d"]
    for engine in ("dense", "atoms"):
        mwem, truth = child_run(1, engine=engine)
        guess = forced(mwem, truth, 3, replays=0)
        np.testing.assert_allclose(guess.multipliers, oracle["theta"], atol=1e-8)
        np.testing.assert_allclose(spread_evenly(guess), oracle["guess"], atol=2e-3)
        found = QueryErrors.of(mwem.engine.answers(guess), truth.answers)
        assert found.mean == pytest.approx(oracle["errors"][3], abs=1e-2)


def moments(matrix, law):
    return matrix @ law, (matrix * law) @ matrix.T


@given(st.integers(0, 2**32), st.floats(1e-8, 1e-2))
def test_newton_ends_where_the_gradient_vanishes(seed, ridge):
    generator = np.random.default_rng(seed)
    workload = random_boxes((5, 4), 9, NOISE)
    matrix = box_masks(workload)
    truth = generator.dirichlet(np.full(20, 0.5))
    targets = np.clip(matrix @ truth + 0.01 * generator.normal(size=9), 0, 1)
    volumes = np.full(20, 1 / 20)
    boxes = BoxQueries(workload.lower, workload.upper, workload.shape)
    law, theta = project(boxes, targets, volumes, ridge, np.zeros(9))
    assert np.abs(matrix @ law - targets + ridge * theta).max() < GRADIENT
    exponents = matrix.T @ theta
    tilted = np.exp(exponents - exponents.max())
    np.testing.assert_allclose(law, tilted / tilted.sum(), rtol=1e-6)
    by_rows, _ = project(RowQueries(matrix.astype(float)), targets, volumes, ridge, theta * 0)
    np.testing.assert_allclose(law, by_rows, rtol=1e-5, atol=1e-8)
    again, _ = project(boxes, targets, volumes, ridge, theta)
    np.testing.assert_array_equal(law, again)


def test_newton_copes_with_contradictions_and_repeats():
    lower, upper = np.array([[0], [0], [0]]), np.array([[1], [1], [2]])
    queries = BoxQueries(lower, upper, (3,))
    targets, volumes = np.array([0.0, 1.0, 0.0]), np.full(3, 1 / 3)
    law, theta = project(queries, targets, volumes, 1e-9, np.zeros(3))
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1)
    means, _ = queries.moments(law)
    assert np.abs(means - targets + 1e-9 * theta).max() < 1e-6
    assert means[0] == pytest.approx(1 / 3, abs=1e-3)  # 0 and 1 and at most 0: least squares
