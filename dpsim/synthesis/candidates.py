"""Which subsets of attributes a search looks at, and how many workers measure them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import ceil, comb, inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.tasks import TaskPool
from dpsim.synthesis import _network_kernels as kernels
from dpsim.synthesis.contingency import Subsets
from dpsim.synthesis.scores import Measured, Score, Scores
from dpsim.synthesis.table import TableSource

Tell: TypeAlias = Callable[[int, int], None]
"""Hears how many tables are counted, and how many there will be."""

MAX_TABLES = 50_000_000
"""More tables than this are refused: their scores would not fit into memory."""

SECONDS_PER_VALUE = 6e-10
"""Assumed for one user and one table, and never below `SECONDS_PER_TABLE`."""
SECONDS_PER_TABLE = 1e-6
SHORTEST_TASK, LONGEST_TASK, TASKS_PER_WORKER = 0.05, 1.0, 4


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """Attributes that can depend on each other, and the most cells a table of some may have."""

    sizes: tuple[int, ...]
    limit: float = inf

    @property
    def active(self) -> NDArray[np.int16]:
        """Attributes with two values at least; the others tell nothing."""
        return np.flatnonzero(np.array(self.sizes) > 1).astype(np.int16)

    def count(self, width: int) -> int:
        """How many subsets of so many attributes are within the limit.

        Far beyond `MAX_TABLES` it is how many there are at all.
        """
        every = comb(self.active.size, width)
        if width == 1 or self.limit == inf:
            return every
        within = self._fill(np.empty((0, width), np.int16))
        return within if within <= 2 * MAX_TABLES else every

    def subsets(self, width: int) -> Subsets:
        """Those subsets, in order. Single attributes have no limit."""
        if width == 1:
            return self.active[:, None]
        rows = np.empty((require_tables(self.count(width)), width), np.int16)
        self._fill(rows)
        return rows

    def among(self, chosen: Sequence[Sequence[int]], width: int, most: int) -> Subsets:
        """Subsets of a child with some of its chosen parents, and of the parents alone.

        The latter up to ``most`` members: no child has more parents.
        """
        found: set[tuple[int, ...]] = set()
        for child, parents in enumerate(chosen):
            found.update(
                tuple(sorted((child, *others))) for others in combinations(parents, width - 1)
            )
            if width <= most:
                found.update(tuple(sorted(others)) for others in combinations(parents, width))
        rows: Subsets = np.array(sorted(found), np.int16).reshape(-1, width)
        is_within = np.array(self.sizes, np.float64)[rows].prod(axis=1) <= self.limit
        within: Subsets = rows[is_within]
        return within

    def _fill(self, rows: Subsets) -> int:
        sizes = np.array(self.sizes, np.int64)
        limit, most = float(self.limit), 2 * MAX_TABLES
        return int(kernels.subsets_within(sizes, self.active, limit, rows, most))


@dataclass(frozen=True, eq=False)
class Level:
    """All candidates with one number of parents: subsets, and each member's score as child."""

    subsets: Subsets
    scores: Scores
    attributes: int

    @cached_property
    def _holders(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        first, found = kernels.holders(self.subsets, self.attributes)
        return first, found

    def holding(self, attribute: int) -> NDArray[np.int32]:
        """The subsets that hold an attribute."""
        first, found = self._holders
        return found[first[attribute] : first[attribute + 1]]

    def parents(self, row: int, place: int) -> tuple[int, ...]:
        """The members of a subset but one."""
        return tuple(int(a) for i, a in enumerate(self.subsets[row]) if i != place)


@dataclass(slots=True)
class Measurement:
    """Measures subsets as tasks, tells how far it is, and stops when its time is over."""

    table: TableSource
    score: Score
    pool: TaskPool
    tell: Tell | None = None
    deadline: float = inf
    """By `time.monotonic`."""
    tables: int = 0
    expected: int = 0
    is_stopped: bool = False

    def of(self, subsets: Subsets) -> Measured:
        """One value, or one per member, for each subset; the first ones where time is over."""
        parts: list[NDArray[np.float64]] = []
        tasks = pieces(subsets, self.table.n, self.pool.workers)
        results: Iterator[NDArray[np.float64]] = iter(())
        if not self.is_stopped:
            results = self.pool.map(
                _measure, self.table, [(self.score, task) for task in tasks]
            )
        for part in results:
            parts.append(part)
            self.tables += len(part)
            if self.tell is not None:
                self.tell(self.tables, max(self.expected, self.tables))
            if time.monotonic() > self.deadline:
                self.is_stopped = True
                break
        done = sum(map(len, parts))
        values = np.concatenate(parts) if parts else np.zeros((0, subsets.shape[1]))
        return Measured(subsets[:done], values)


def require_tables(tables: int) -> int:
    """Refuse what would not fit into memory, before anything is counted."""
    if tables > MAX_TABLES:
        raise InputError(
            f"the search asks for {tables:,} tables, and {MAX_TABLES:,} is the most; allow "
            "fewer parents, fewer cells, or fewer candidates per child"
        )
    return tables


def seconds_for(tables: int, n: int) -> float:
    """What so many tables of n users may take one worker, roughly."""
    return tables * max(SECONDS_PER_TABLE, SECONDS_PER_VALUE * n)


def pieces(subsets: Subsets, n: int, workers: int) -> list[Subsets]:
    """Ranges of subsets: some per worker, none too short to be sent or too long to wait for."""
    seconds = seconds_for(len(subsets), n)
    tasks = min(ceil(seconds / SHORTEST_TASK), TASKS_PER_WORKER * workers)
    tasks = max(1, tasks, ceil(seconds / LONGEST_TASK))
    ends = [len(subsets) * task // tasks for task in range(tasks + 1)]
    return [subsets[start:end] for start, end in pairwise(ends) if start < end]


def _measure(table: TableSource, task: tuple[Score, Subsets]) -> NDArray[np.float64]:
    score, subsets = task
    return score.measure(table.open(), subsets)


def levels_of(measured: Sequence[Measured], score: Score, table: TableSource) -> list[Level]:
    """Candidates with 1, 2, … parents, from subsets of 1, 2, 3, … attributes."""
    d = len(table.sizes)
    return [
        Level(
            measured[width].subsets,
            score.scores(measured[: width + 1], table.sizes, table.n),
            d,
        )
        for width in range(1, len(measured))
        if len(measured[width].subsets)
    ]
