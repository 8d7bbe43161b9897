"""Compiled runs equal the steps bit by bit; trials do not depend on their chunks."""

import numpy as np
import pytest

from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem.batched import BatchedMWEM, run_trials
from dpsim.synthesis.mwem.noise import trial_noise
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests.synthesis.mwem.problems import NOISE, child_run, every_box, small_run

CHOICES = [
    {},
    {"noise": "laplace", "selection": "permute-and-flip"},
    {"selection": "random", "measure_share": 1, "is_shuffled": False},
    {"is_clipped": False, "neighbors": "add_remove", "epsilon": "0.001"},
    {"score_divisor": 100_000, "noise_divisor": 2},
    {"fit": "newton"},
    {"output": "average"},
]


def agree(left, right):
    assert left.queries == right.queries
    assert left.total == right.total
    np.testing.assert_array_equal(left.measured, right.measured)
    np.testing.assert_allclose(left.guess.masses, right.guess.masses, rtol=1e-9)


@pytest.mark.parametrize("choices", CHOICES)
@pytest.mark.parametrize("engine", ["dense", "atoms"])
def test_batched_runs_agree_with_the_steps_on_one_stream(choices, engine):
    mwem, truth = child_run(1, engine=engine, **choices)
    batch = BatchedMWEM.of(mwem, truth)
    is_compiled = engine == "dense" and not {"fit", "output"} & set(choices)
    assert (batch.cells is not None) == is_compiled
    agree(batch.run(NOISE), mwem.run(truth, NOISE))


def test_whole_marginals_agree_with_the_steps():
    whole = BoxWorkload.marginals((3, 4), [(0,), (1,), (0, 1)])
    histogram = np.arange(12).reshape(3, 4) * 10
    mwem, truth = small_run(whole, histogram, iterations=3)
    batch = BatchedMWEM.of(mwem, truth)
    assert batch.cells is not None
    agree(batch.run(NOISE), mwem.run(truth, NOISE))


def test_iterations_may_be_made_in_any_portions():
    mwem, truth = child_run(1)
    batch = BatchedMWEM.of(mwem, truth)
    whole = batch.run(NOISE)
    for portions in ([1] * 30, [7, 20, 99], [29, 1]):
        state = mwem.start(truth, NOISE)
        for portion in portions:
            state = batch.advance(state, portion, NOISE)
        assert state.queries == whole.queries
        np.testing.assert_array_equal(state.guess.masses, whole.guess.masses)
        np.testing.assert_array_equal(state.measured, whole.measured)
    assert batch.advance(whole, 5, NOISE).queries == whole.queries


@pytest.mark.parametrize("chunk", [1, 3, 10, 64])
def test_no_chunking_of_trials_changes_a_bit(chunk):
    mwem, truth = child_run(1)
    batch = BatchedMWEM.of(mwem, truth)
    whole = run_trials(batch, NOISE, range(64))
    parts = [
        run_trials(batch, NOISE, range(first, min(first + chunk, 64)))
        for first in reversed(range(0, 64, chunk))
    ][::-1]
    np.testing.assert_array_equal(np.concatenate([p.answers for p in parts]), whole.answers)
    np.testing.assert_array_equal(np.concatenate([p.queries for p in parts]), whole.queries)
    assert sum((p.trials for p in parts), ()) == whole.trials


def test_a_trial_is_the_run_with_its_noise_and_no_two_are_alike():
    mwem, truth = child_run(1)
    trials = run_trials(BatchedMWEM.of(mwem, truth), NOISE, [5, 2])
    state = mwem.run(truth, trial_noise(NOISE, 5))
    np.testing.assert_allclose(trials.answers[0], mwem.answers(state), rtol=1e-12)
    assert trial_noise(NOISE, 5) == CentralNoise(11, "plan/5")
    assert not np.array_equal(trials.answers[0], trials.answers[1])


def test_nobody_and_steps_without_a_compiled_way():
    mwem, truth = small_run(every_box((3,)), [0, 0, 0], engine="dense")
    assert BatchedMWEM.of(mwem, truth).run(NOISE).iteration == 0
