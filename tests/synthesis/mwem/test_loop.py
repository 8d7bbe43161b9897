"""The loop: the update law, oracles without noise, selection as enumerated, addresses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.mwem.dense import Fitting
from dpsim.synthesis.mwem.errors import QueryErrors
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.state import Guess, MWEMState
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests import laws
from tests.synthesis.mwem.problems import (
    NOISE,
    ORACLES,
    box_masks,
    child,
    child_run,
    every_box,
    forced,
    small_run,
)

INTERVALS = every_box((3,))


def errors(mwem, guess, truth):
    found = QueryErrors.of(mwem.engine.answers(guess), truth.answers)
    return [found.max, found.min, found.mse, found.mean]


@pytest.mark.parametrize("engine", ["dense", "atoms"])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_the_uniform_guess_errs_as_tabulated(engine, dimensions):
    mwem, truth = child_run(dimensions, engine=engine)
    found = errors(mwem, mwem.engine.start(float(truth.total)), truth)
    np.testing.assert_allclose(found, ORACLES["uniform_guess"][f"{dimensions}d"], rtol=1e-9)


@pytest.mark.parametrize("engine", ["dense", "atoms"])
@pytest.mark.parametrize(("n", "dimensions"), [(3, 1), (30, 1), (3, 2)])
def test_forced_queries_without_noise_give_the_tabulated_guess(engine, n, dimensions):
    oracle = ORACLES["forced"][f"first_{n}_queries_{dimensions}d"]
    mwem, truth = child_run(dimensions, engine=engine)
    guess = forced(mwem, truth, n)
    cells = mwem.histogram(MWEMState(float(truth.total), guess))
    np.testing.assert_allclose(cells.reshape(-1), oracle["guess"], atol=1e-6, rtol=0)
    np.testing.assert_allclose(errors(mwem, guess, truth), oracle["errors"], rtol=1e-8)


def test_one_update_is_as_tabulated():
    oracle = ORACLES["forced"]["one_update_1d"]
    mwem, truth = child_run(1)
    worst = int(
        np.argmax(mwem.scores(mwem.engine.answers(mwem.engine.start(1013184.0)), truth))
    )
    assert (mwem.workload.lower[worst, 0], mwem.workload.upper[worst, 0] - 1) == (4, 13)
    targets = np.array([float(oracle["measurement"])])
    fitting = Fitting((worst,), targets, 1013184.0, 1, np.zeros(0, np.uint64), 0.0)
    guess = mwem.engine.fit(mwem.engine.start(1013184.0), fitting)
    assert guess.masses[0] == pytest.approx(oracle["cell_0"], abs=1e-6)
    assert guess.masses[4] == pytest.approx(oracle["cell_4"], abs=1e-6)
    assert mwem.engine.answers(guess)[worst] == pytest.approx(oracle["answer_after"], abs=1e-6)


@given(st.integers(0, 2**32), st.floats(0, 1), st.integers(0, 17))
def test_an_update_keeps_mass_and_sign_and_moves_towards_the_measurement(seed, share, query):
    workload = every_box((3, 2))
    mwem, truth = small_run(workload, np.full((3, 2), 7), engine="dense")
    total, target = float(truth.total), share * truth.total
    masses = np.random.default_rng(seed).random((3, 2)) + 0.01
    guess = Guess(masses * total / masses.sum())
    fitting = Fitting((query,), np.array([target]), total, 1, np.zeros(0, np.uint64), 0.0)
    after = mwem.engine.fit(guess, fitting)
    before, now = (mwem.engine.answers(each)[query] for each in (guess, after))
    growth = np.exp((target - before) / (2 * total))
    law = total * growth * before / (total + (growth - 1) * before)
    assert now == pytest.approx(law, rel=1e-12)
    assert after.masses.min() > 0
    assert after.masses.sum() == pytest.approx(total, rel=1e-12)
    is_movable = abs(target - before) > 1e-6 and before < total * (1 - 1e-9)
    assert not is_movable or abs(now - target) < abs(before - target)


@pytest.mark.parametrize("engine", ["dense", "atoms"])
@pytest.mark.parametrize("fit", ["replays", "newton"])
def test_the_guess_stays_positive_and_keeps_its_sum_and_no_query_comes_twice(engine, fit):
    mwem, truth = child_run(1, "0.1", engine=engine, fit=fit)
    state = mwem.start(truth, NOISE)
    while not mwem.is_done(state):
        state = mwem.advance(state, truth, NOISE)
        assert state.guess.masses.min() > 0
        assert state.guess.masses.sum() == pytest.approx(truth.total, rel=1e-9)
    assert len(set(state.queries)) == 30
    with pytest.raises(InputError, match="the run is done after 30 iterations"):
        mwem.advance(state, truth, NOISE)


@pytest.mark.parametrize("iterations", [30, 100])
def test_tiny_tables_with_heavy_noise_keep_every_cell(iterations):
    """Measurements far outside 0..n are clipped for the fit: no cell is lost for good."""
    workload = every_box((14,))
    histogram = np.arange(14) + 1
    mwem, truth = small_run(workload, histogram, epsilon="0.001", iterations=iterations)
    state = mwem.run(truth, NOISE)
    assert (state.measured < 0).any()
    assert (state.measured > truth.total).any()
    assert state.guess.masses.min() > 0
    assert state.guess.masses.sum() == pytest.approx(truth.total, rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("selection", ["exponential", "permute-and-flip", "random"])
def test_the_first_query_follows_the_enumerated_law(selection):
    choices = {"measure_share": 1} if selection == "random" else {}
    mwem, truth = small_run(
        INTERVALS, [9, 2, 1], selection=selection, iterations=1, epsilon=2, **choices
    )
    scores = mwem.scores(mwem.engine.answers(mwem.engine.start(12.0)), truth)
    np.testing.assert_allclose(scores, [5, 3, 0, 2, 5, 3], atol=1e-12)
    law = np.full(6, 1 / 6) if selection == "random" else mwem.selector.probabilities(scores)
    if selection == "exponential":
        odds = np.exp(np.array([5, 3, 0, 2, 5, 3]) / 2)
        np.testing.assert_allclose(law, odds / odds.sum(), rtol=1e-12)
    chosen = [mwem.select(scores, (), CentralNoise(seed, "law")) for seed in range(4000)]
    counts = np.bincount(chosen, minlength=6)
    laws.assert_counts_follow(counts, law)
    if selection == "exponential":
        with pytest.raises(AssertionError):
            laws.assert_counts_follow(counts, odds**0.5 / (odds**0.5).sum())


@pytest.mark.statistical
def test_later_queries_follow_the_law_without_those_measured():
    mwem, truth = small_run(INTERVALS, [9, 2, 1], iterations=3, epsilon=6)
    scores = mwem.scores(mwem.engine.answers(mwem.engine.start(12.0)), truth)
    chosen = [mwem.select(scores, (0, 4), CentralNoise(seed, "x")) for seed in range(4000)]
    law = mwem.selector.probabilities(scores)
    law[[0, 4]] = 0
    laws.assert_counts_follow(np.bincount(chosen, minlength=6), law / law.sum())


def test_noise_belongs_to_iteration_and_query():
    """Another query in the same iteration, or the same in another, has other noise."""
    mwem, truth = small_run(INTERVALS, [900, 200, 100], epsilon="0.1")
    start = mwem.start(truth, NOISE)
    later = MWEMState(start.total, start.guess, (5,), np.zeros(1))
    noises = {
        float(mwem.measure(query, state, truth, NOISE)[0] - truth.answers[query])
        for query in range(6)
        for state in (start, later)
    }
    assert len(noises) == 12
    again = mwem.measure(3, start, truth, NOISE)
    np.testing.assert_array_equal(again, mwem.measure(3, start, truth, NOISE))
    table = DiscreteLaplace("0.025", 1).measure(np.zeros(12, int), NOISE, "mwem")
    assert again[0] - truth.answers[3] == table[3]
    assert mwem.measure(3, later, truth, NOISE)[0] - truth.answers[3] == table[9]


@pytest.mark.parametrize(
    ("neighbors", "scale"), [("replace", 2 * 20), ("add_remove", 1 / (0.98 / 2 / 10))]
)
def test_whole_marginals_have_the_noise_of_their_sensitivity(neighbors, scale):
    whole = BoxWorkload.marginals((3, 2), [(0,), (1,), (0, 1)] * 4)
    mwem, _ = small_run(whole, np.ones((3, 2), int), neighbors=neighbors, iterations=10)
    assert float(mwem.measurer.scale) == pytest.approx(scale)
    np.testing.assert_allclose(mwem.penalties[:3], scale * np.array([3, 2, 6]))


def test_a_whole_marginal_is_fitted_to_its_measurement():
    whole = BoxWorkload.marginals((3, 2), [(0,)])
    mwem, truth = small_run(
        whole, [[50, 0], [0, 30], [10, 10]], iterations=1, epsilon=30, replays=200
    )
    state = mwem.run(truth, NOISE)
    assert state.measured.shape == (3,)
    np.testing.assert_allclose(state.guess.masses.sum(axis=1), [50, 30, 20], atol=1)


def test_the_average_is_that_of_all_guesses_before_the_last():
    for engine in ("dense", "atoms"):
        mwem, truth = child_run(1, engine=engine, iterations=5, output="average")
        last, _ = child_run(1, engine=engine, iterations=5)
        state, guesses = last.start(truth, NOISE), []
        while not last.is_done(state):
            guesses.append(last.histogram(state))
            state = last.advance(state, truth, NOISE)
        found = mwem.histogram(mwem.run(truth, NOISE))
        np.testing.assert_allclose(found, np.mean(guesses, axis=0), rtol=1e-12)
        assert mwem.histogram(mwem.start(truth, NOISE)).sum() == pytest.approx(truth.total)


def test_a_private_total_is_measured_once_and_used_everywhere():
    mwem, truth = child_run(1, "0.01", neighbors="add_remove")
    totals = {mwem.start(truth, CentralNoise(seed, "n")).total for seed in range(20)}
    assert len(totals) == 20
    assert truth.total not in totals
    state = mwem.run(truth, NOISE)
    assert state.guess.masses.sum() == pytest.approx(state.total, rel=1e-9)
    tiny, nobody = small_run(INTERVALS, [0, 0, 0], neighbors="add_remove", epsilon="0.1")
    assert {tiny.start(nobody, CentralNoise(s, "n")).total for s in range(30)} >= {1.0}
    assert tiny.run(nobody, NOISE).iteration == 2


def test_with_nobody_there_is_nothing_to_ask():
    mwem, truth = small_run(INTERVALS, [0, 0, 0])
    state = mwem.run(truth, NOISE)
    assert state.iteration == 0
    assert (mwem.histogram(state) == 0).all()


def test_fractional_queries_run_with_laplace_noise_and_are_fitted():
    weights = np.array([[0.5, 1, 0], [0, 0.25, 1], [1, 0, 0.5]])
    workload = LinearWorkload.of((3,), weights)
    for fit in ("replays", "newton"):
        mwem, truth = small_run(
            workload, [500, 200, 300], noise="laplace", iterations=3, epsilon=30, fit=fit,
            replays=300,
        )  # fmt: skip
        state = mwem.run(truth, NOISE)
        np.testing.assert_allclose(mwem.answers(state), truth.answers, atol=3)


def test_counting_rows_give_the_same_bits_as_boxes_with_one_row_of_cells():
    boxes = every_box((5,))
    rows = box_masks(boxes).astype(float)
    histogram = np.array([40, 10, 30, 5, 15])
    by_box, truth = small_run(boxes, histogram, engine="dense", iterations=8)
    by_row, same = small_run(LinearWorkload.of((5,), rows), histogram, iterations=8)
    left, right = by_box.run(truth, NOISE), by_row.run(same, NOISE)
    assert left.queries == right.queries
    np.testing.assert_allclose(left.guess.masses, right.guess.masses, rtol=1e-12)


def settings(**change):
    base: dict[str, Any] = {
        "shape": (3,),
        "neighbors": "replace",
        "epsilon": 1,
        "iterations": 2,
    }
    return MWEMSettings(**base | change)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MWEM(settings(iterations=7), INTERVALS),
         "none is measured twice: got 7 and 6"),
        (lambda: MWEM(settings(shape=(4,)), INTERVALS), r"one domain, got \(4,\) and \(3,\)"),
        (lambda: MWEM(settings(), LinearWorkload.of((3,), np.full((2, 3), 0.5))),
         "discrete noise needs 0/1 queries .* noise='laplace'"),
        (lambda: MWEM(settings(), LinearWorkload.of((3,), np.ones((2, 3))), "atoms"),
         "engine_name must be 'dense', or 'atoms' for boxes"),
        (lambda: MWEM(settings(), INTERVALS, "gpu")  # type: ignore[arg-type]
        , "engine_name must be 'dense'"),
        (lambda: MWEM(settings(shape=(10**10,)), BoxWorkload.of((10**10,), [(0, 1), (2, 3)]),
                      "dense"), "every cell needs .* MiB, the limit is 2,048 MiB; .*'atoms'"),
        (lambda: Truth.of(INTERVALS, np.array([1.0, 2.0, 3.0])), "whole counts >= 0"),
        (lambda: Truth.of(INTERVALS, np.array([1, -2, 3])), "whole counts >= 0"),
    ],
)  # fmt: skip
def test_bad_runs_are_refused_before_anything_is_charged(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_truth_of_another_workload_is_refused():
    mwem, _ = small_run(INTERVALS, [1, 2, 3])
    with pytest.raises(
        InputError, match="the truth must answer 6 parts of the workload, got 2"
    ):
        mwem.start(Truth(3, np.zeros(2, np.int64)), NOISE)


def test_a_histogram_too_large_for_memory_is_refused():
    workload = BoxWorkload.of((10**10,), [(0, 1), (2, 3)])
    mwem = MWEM(settings(shape=(10**10,)), workload)
    assert mwem.engine_name == "atoms"
    state = mwem.run(Truth(5, np.array([1, 4])), NOISE)
    with pytest.raises(InputError, match="a mass for every cell needs"):
        mwem.histogram(state)


def test_the_plan_knows_settings_workload_and_engine():
    dense, _ = child_run(1)
    atoms, _ = child_run(1, engine="atoms")
    assert dict(dense.parameters)["engine"] == "dense"
    assert dict(dense.parameters)["workload"] == child(1)[0].digest
    assert dense.parameters != atoms.parameters
