"""Many iterations, and many trials, in one call: compiled runs on boxes that fit in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.rng import CentralNoise, Purpose, key_of
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.mwem._atom_kernels import iterate
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.noise import SUBJECT, Measurer, order_words, trial_noise
from dpsim.synthesis.mwem.state import Guess, MWEMState
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload, Cells

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Independent runs of one plan, for evaluation: releasing k of them costs k times ε."""

    trials: tuple[int, ...]
    answers: Floats
    """One row per trial, one column per part of the workload."""
    queries: NDArray[np.int64]
    """What each trial measured, in order."""


@dataclass(frozen=True, eq=False)
class BatchedMWEM:
    """The same runs as `MWEM.run`, many iterations at a time.

    Where a run keeps a mass for each of up to 4096 cells, its queries are boxes, and its fit is
    by replays of the last guess, whole iterations are compiled. Other runs advance step by
    step: nothing but the time differs.
    """

    mwem: MWEM
    truth: Truth
    cells: Cells | None

    @classmethod
    def of(cls, mwem: MWEM, truth: Truth) -> BatchedMWEM:
        """Prepare what all trials share."""
        workload, settings = mwem.workload, mwem.settings
        is_compiled = (
            isinstance(workload, BoxWorkload)
            and mwem.engine_name == "dense"
            and settings.fit == "replays"
            and settings.output == "last"
        )
        if not is_compiled or not isinstance(workload, BoxWorkload):
            return cls(mwem, truth, None)
        return cls(mwem, truth, workload.cells)

    def run(self, noise: CentralNoise) -> MWEMState:
        """All iterations."""
        state = self.mwem.start(self.truth, noise)
        return self.advance(state, self.mwem.settings.iterations, noise)

    def advance(self, state: MWEMState, iterations: int, noise: CentralNoise) -> MWEMState:
        """So many iterations, or as many as are left."""
        left = 0 if self.mwem.is_done(state) else self.mwem.settings.iterations
        last = min(state.iteration + iterations, left)
        if self.cells is None:
            while state.iteration < last:
                state = self.mwem.advance(state, self.truth, noise)
            return state
        return self._iterate(state, last, noise, self.cells) if last else state

    def _iterate(
        self, state: MWEMState, last: int, noise: CentralNoise, cells: Cells
    ) -> MWEMState:
        mwem, settings, groups = self.mwem, self.mwem.settings, cells[0]
        workload = mwem.workload
        if not isinstance(workload, BoxWorkload):
            return state
        first, n_queries = state.iteration, groups.size - 1
        masses = state.guess.masses.reshape(-1).copy()
        queries = np.zeros(last, np.int64)
        queries[:first] = state.queries
        sizes = np.diff(groups)
        slots = np.zeros(last + 1, np.int64)
        slots[1 : first + 1] = np.cumsum(sizes[queries[:first]])
        measured = np.empty(int(slots[first] + (last - first) * sizes.max()))
        measured[: slots[first]] = state.measured
        zeros = np.zeros((last - first) * n_queries)
        keys = mwem.selector.keys(zeros, noise, SUBJECT, first * n_queries)
        words = np.zeros(0, np.uint64)
        if settings.is_shuffled:
            words = order_words(noise, settings.replays, first, last - first)
        limits = (0.0, state.total) if settings.is_clipped else (-np.inf, np.inf)
        shape = np.array(workload.shape, np.int64)
        iterate(
            (masses, state.total, first, limits),
            (queries, slots, measured),
            (shape, *workload.corners, self.truth.answers, cells),
            (keys, mwem.penalties, float(mwem.selector.scaled(np.ones(1))[0])),
            _noise(mwem.measurer, noise, (first, last), self.truth.answers.size),
            (settings.replays, words),
        )
        guess = Guess(masses.reshape(workload.shape))
        chosen = tuple(int(query) for query in queries)
        return MWEMState(state.total, guess, chosen, measured[: slots[last]].copy())


def _noise(
    measurer: Measurer, noise: CentralNoise, span: tuple[int, int], parts: int
) -> tuple[NDArray[np.uint64], tuple[np.uint64, np.uint64], Floats]:
    """Key and scale of discrete noise; or that of every part in every iteration."""
    key = key_of((noise.seed, Purpose.MEASURE.value, noise.plan_hash, SUBJECT))
    scale = np.uint64(1), np.uint64(1)
    if isinstance(measurer, DiscreteLaplace):
        numbers = measurer.scale.numerator, measurer.scale.denominator
        return key, (np.uint64(numbers[0]), np.uint64(numbers[1])), np.zeros(0)
    zeros = np.zeros((span[1] - span[0]) * parts)
    return key, scale, measurer.measure(zeros, noise, SUBJECT, span[0] * parts)


def run_trials(batch: BatchedMWEM, noise: CentralNoise, trials: Sequence[int]) -> Trials:
    """Independent runs, by number: no chunking of them changes a bit."""
    answers, queries = [], []
    for trial in trials:
        state = batch.run(trial_noise(noise, trial))
        answers.append(batch.mwem.answers(state))
        queries.append(state.queries)
    return Trials(tuple(trials), np.array(answers), np.array(queries, np.int64))
