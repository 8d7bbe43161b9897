"""The engine that keeps a mass for every cell of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.synthesis.mwem._atom_kernels import LEAST, replay, replay_cells, replay_weighted
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.newton import BoxQueries, Queries, RowQueries, project
from dpsim.synthesis.mwem.state import Guess
from dpsim.synthesis.mwem.workloads import BoxWorkload, parts_of

Floats = NDArray[np.float64]
BYTE_LIMIT = 1 << 31
"""The most memory that a guess and its table of sums may take, unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """What a guess is fitted to: queries, a target for each part, and how."""

    queries: Sequence[int]
    targets: Floats
    total: float
    replays: int
    """Passes of updates; 0 for Newton's method."""
    words: NDArray[np.uint64]
    """Shuffle the updates of each pass; without any they keep the order of measuring."""
    ridge: float
    """Of Newton's method: variance of the noise over n²."""


class Engine(Protocol):
    """Keeps a guess in its own way; all engines agree but for rounding."""

    name: str

    def start(self, total: float) -> Guess:
        """The uniform guess."""

    def answers(self, guess: Guess) -> Floats:
        """What the guess answers, one number per part of the workload."""

    def fit(self, guess: Guess, fitting: Fitting) -> Guess:
        """The guess moved towards all measurements."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseEngine:
    """One mass per cell; a table of sums answers boxes, updates touch a query's cells only."""

    workload: BoxWorkload | LinearWorkload

    name = "dense"

    def start(self, total: float) -> Guess:
        """The same mass in every cell."""
        shape = self.workload.shape
        return Guess(np.full(shape, total / prod(shape)))

    def answers(self, guess: Guess) -> Floats:
        """One number per part."""
        return np.asarray(self.workload.answers(guess.masses))

    def fit(self, guess: Guess, fitting: Fitting) -> Guess:
        """By replays or by Newton's method."""
        if not fitting.replays:
            return self._project(guess, fitting)
        masses = guess.masses.reshape(-1).copy()
        head = masses, fitting.total, fitting.replays, fitting.words
        queries = np.array(fitting.queries, np.int64)
        _, slots = parts_of(self.workload.groups, fitting.queries)
        measured = queries, slots, fitting.targets
        if not self.workload.is_counting and isinstance(self.workload, LinearWorkload):
            replay_weighted(*head, measured, self.workload.rows)
        elif self.workload.cells is not None:
            replay_cells(*head, measured, self.workload.cells)
        elif isinstance(self.workload, BoxWorkload):
            layout = self.workload.layout(fitting.queries)
            replay(*head, (np.arange(queries.size), slots, fitting.targets), layout)
        return Guess(masses.reshape(self.workload.shape), (), guess.summed)

    def _project(self, guess: Guess, fitting: Fitting) -> Guess:
        shape, volumes = self.workload.shape, np.full(guess.masses.size, 1 / guess.masses.size)
        if isinstance(self.workload, BoxWorkload):
            parts, _ = self.workload.parts_of(fitting.queries)
            lower, upper = self.workload.lower[parts], self.workload.upper[parts]
            queries: Queries = BoxQueries(lower, upper, shape)
        else:
            pointers, cells, values = self.workload.rows_of(fitting.queries)
            weights = np.zeros((pointers.size - 1, prod(shape)))
            weights[np.repeat(np.arange(pointers.size - 1), np.diff(pointers)), cells] = values
            queries = RowQueries(weights)
        return project_guess(guess, queries, volumes, fitting)


def project_guess(guess: Guess, queries: Queries, volumes: Floats, fitting: Fitting) -> Guess:
    """The guess by Newton's method, warm from the last one's multipliers."""
    known = np.zeros(0) if guess.multipliers is None else guess.multipliers
    start = np.concatenate([known, np.zeros(fitting.targets.size - known.size)])
    targets = fitting.targets / fitting.total
    law, multipliers = project(queries, targets, volumes, fitting.ridge, start)
    masses = (fitting.total * np.maximum(law, LEAST)).reshape(guess.masses.shape)
    return Guess(masses, guess.edges, guess.summed, multipliers)


def require_room(cells: int, byte_limit: int, what: str) -> None:
    """Refuse a state that does not fit, before any of it is made."""
    needed = 2 * 8 * cells
    if needed > byte_limit:
        raise InputError(
            f"{what} needs {needed / 2**20:,.0f} MiB, the limit is "
            f"{byte_limit / 2**20:,.0f} MiB; use boxes with the engine 'atoms', fewer "
            "iterations, or marginals of fewer attributes"
        )
