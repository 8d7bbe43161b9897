"""MWEM as pure steps: start, advance by one iteration, release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem.atoms import AtomsEngine, spread_evenly
from dpsim.synthesis.mwem.dense import BYTE_LIMIT, DenseEngine, Engine, Fitting, require_room
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.noise import (
    SUBJECT,
    Measurer,
    Selector,
    measure_total,
    measurer_of,
    order_words,
    selector_of,
)
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.state import Guess, MWEMState
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload

Floats = NDArray[np.float64]
EngineName = Literal["dense", "atoms"]


@dataclass(frozen=True, eq=False)
class MWEM:
    """A run of MWEM: settings and a workload over the same public domain.

    Settings, workload and data are checked here, before anything is charged. ``engine`` is
    chosen by cost unless it is given; it belongs to the plan, since engines round differently.
    """

    settings: MWEMSettings
    workload: BoxWorkload | LinearWorkload
    engine_name: EngineName | None = None
    byte_limit: int = BYTE_LIMIT

    def __post_init__(self) -> None:
        settings, workload = self.settings, self.workload
        n_queries = workload.groups.size - 1
        if settings.shape != workload.shape:
            raise InputError(
                f"settings and workload must have one domain, got {settings.shape} and "
                f"{workload.shape}"
            )
        if settings.iterations > n_queries:
            raise InputError(
                f"iterations must be <= the number of queries, since none is measured twice: "
                f"got {settings.iterations} and {n_queries}"
            )
        if settings.noise == "discrete" and not workload.is_counting:
            raise InputError(
                "discrete noise needs 0/1 queries on whole counts; write noise='laplace'"
            )
        if self.engine_name is None:
            object.__setattr__(self, "engine_name", self._cheaper())
        if self.engine_name == "dense":
            require_room(prod(workload.shape), self.byte_limit, "a mass for every cell")
        elif self.engine_name != "atoms" or isinstance(workload, LinearWorkload):
            raise InputError(
                f"engine_name must be 'dense', or 'atoms' for boxes, got {self.engine_name!r}"
            )
        else:
            require_room(self.most_atoms, self.byte_limit, "a mass for every atom")

    @property
    def most_atoms(self) -> int:
        """How many atoms the boxes can cut the domain into."""
        ends = 2 * self.settings.iterations + 1
        if isinstance(self.workload, LinearWorkload) or self.workload.is_whole:
            return prod(self.workload.shape)
        return prod(min(ends, size) for size in self.workload.shape)

    def _cheaper(self) -> EngineName:
        """Atoms where they are fewer than half the cells: splitting and interpolation cost."""
        return "atoms" if 2 * self.most_atoms <= prod(self.workload.shape) else "dense"

    @cached_property
    def engine(self) -> Engine:
        """What keeps the guess."""
        if self.engine_name == "atoms" and isinstance(self.workload, BoxWorkload):
            return AtomsEngine(self.workload)
        return DenseEngine(self.workload)

    @cached_property
    def selector(self) -> Selector:
        """The mechanism that selects."""
        return selector_of(self.settings, self._sensitivity)

    @cached_property
    def measurer(self) -> Measurer:
        """The mechanism that measures."""
        return measurer_of(self.settings, self._sensitivity)

    @property
    def _sensitivity(self) -> int:
        return self.workload.sensitivity(self.settings.neighbors)

    @property
    def parameters(self) -> Parameters:
        """All that determines a release besides data and seed, for the plan."""
        extra = ("workload", self.workload.digest), ("engine", self.engine_name)
        return (*self.settings.parameters, *extra)

    def start(self, truth: Truth, noise: CentralNoise) -> MWEMState:
        """The uniform guess; costs `MWEMSettings.start_parts`."""
        if truth.answers.shape != (int(self.workload.groups[-1]),):
            raise InputError(
                f"the truth must answer {self.workload.groups[-1]} parts of the workload, "
                f"got {truth.answers.size}"
            )
        total = measure_total(truth.total, self.settings, noise)
        guess = self.engine.start(total)
        if self.settings.output == "average":
            guess = replace(guess, summed=np.zeros(guess.masses.shape))
        return MWEMState(total, guess)

    def is_done(self, state: MWEMState) -> bool:
        """Whether no iteration is left: all are made, or there is nobody to ask about."""
        return state.iteration == self.settings.iterations or state.total == 0

    def advance(self, state: MWEMState, truth: Truth, noise: CentralNoise) -> MWEMState:
        """One iteration; costs `MWEMSettings.iteration_parts`, charged before it is made."""
        if self.is_done(state):
            raise InputError(f"the run is done after {state.iteration} iterations")
        guess = state.guess
        scores = self.scores(self.engine.answers(guess), truth)
        query = self.select(scores, state.queries, noise)
        measured = np.concatenate([state.measured, self.measure(query, state, truth, noise)])
        queries = (*state.queries, query)
        if guess.summed is not None:
            guess = replace(guess, summed=guess.summed + guess.masses)
        fitted = self.engine.fit(guess, self._fitting(queries, measured, state.total, noise))
        return MWEMState(state.total, fitted, queries, measured)

    def scores(self, answers: Floats, truth: Truth) -> Floats:
        """How badly each query is answered: |q(A) - q(B)|, summed over its parts."""
        misses: Floats = np.abs(answers - truth.answers)
        if self.workload.groups.size == misses.size + 1:
            return misses
        scores = np.add.reduceat(misses, self.workload.groups[:-1])
        penalized: Floats = scores - self.penalties
        return penalized

    @cached_property
    def penalties(self) -> Floats:
        """The noise expected in a measurement, for marginals of different sizes; else 0.

        It depends on no record: subtracting it from the scores is no loss.
        """
        sizes = np.diff(self.workload.groups)
        return sizes * float(self.measurer.scale) if np.ptp(sizes) else np.zeros(sizes.size)

    def select(self, scores: Floats, done: tuple[int, ...], noise: CentralNoise) -> int:
        """A query not measured before; the lowest of equal ones."""
        keys = self.selector.keys(scores, noise, SUBJECT, len(done) * scores.size)
        keys[list(done)] = -np.inf
        return int(np.argmax(keys))

    def measure(
        self, query: int, state: MWEMState, truth: Truth, noise: CentralNoise
    ) -> Floats:
        """The query's true answer with noise."""
        first, last = (int(part) for part in self.workload.groups[query : query + 2])
        start = state.iteration * int(self.workload.groups[-1]) + first
        measured = self.measurer.measure(truth.answers[first:last], noise, SUBJECT, start)
        return np.asarray(measured, np.float64)

    def _fitting(
        self, queries: tuple[int, ...], measured: Floats, total: float, noise: CentralNoise
    ) -> Fitting:
        settings = self.settings
        targets = np.clip(measured, 0, total) if settings.is_clipped else measured
        replays = settings.replays if settings.fit == "replays" else 0
        words = np.zeros(0, np.uint64)
        if replays and settings.is_shuffled:
            words = order_words(noise, replays, len(queries) - 1, 1)
        ridge = self.measurer.variance / total**2
        return Fitting(queries, targets, total, replays, words, ridge)

    def run(self, truth: Truth, noise: CentralNoise) -> MWEMState:
        """All iterations, one after the other."""
        state = self.start(truth, noise)
        while not self.is_done(state):
            state = self.advance(state, truth, noise)
        return state

    def output(self, state: MWEMState) -> Guess:
        """What is released: the last guess, or the average of all guesses before it."""
        guess = state.guess
        if guess.summed is None or not state.iteration:
            return guess
        return replace(guess, masses=guess.summed / state.iteration, summed=None)

    def histogram(self, state: MWEMState) -> Floats:
        """The released mass of every cell."""
        require_room(prod(self.workload.shape), self.byte_limit, "a mass for every cell")
        return spread_evenly(self.output(state))

    def answers(self, state: MWEMState) -> Floats:
        """What the release answers, one number per part of the workload."""
        return self.engine.answers(self.output(state))
