"""Greedy search for the network of the best scores: no noise, no loss of its own.

For tables that are private already, like reports, or that need no privacy. Every (k+1)-subset
of attributes is counted once, in parallel; its members are scored as children of the others
from the subsets' entropies, and the network is grown from a root: in each step the child and
parents with the best score join. Scores are compared as whole multiples of 2^-40; of equal
ones the lowest child wins, then the first parents in lexicographic order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf, prod

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.core.tasks import OneProcess, TaskPool
from dpsim.synthesis.candidates import (
    Level,
    Measurement,
    Tell,
    Universe,
    levels_of,
    require_tables,
    seconds_for,
)
from dpsim.synthesis.growth import FoundNetwork, Growth, on_grid
from dpsim.synthesis.scores import Information, Measured, Score, score_of
from dpsim.synthesis.table import TableSource

MOST_CELLS, USERS_PER_CELL = 32_768, 5
_ALWAYS_TRIED = 2  # so many parents need no pruning


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a search looks for, and how long."""

    parents: int = 2
    """The most parents of an attribute."""
    score: str | Score = "information"
    cell_limit: int | None = None
    """The most cells of a child with its parents; n/5 or 32,768 where not given."""
    prune: int | None = None
    """With three parents or more: each child's best so many single parents are tried."""
    root: int | None = None
    """The first attribute; drawn where not given."""
    time_limit: float | None = None
    """Seconds, after which the best network of what was counted is taken."""

    def __post_init__(self) -> None:
        require_at_least(0, parents=self.parents)
        score_of(self.score)
        if self.cell_limit is not None:
            require_at_least(1, cell_limit=self.cell_limit)
        if self.prune is not None:
            require_at_least(max(1, self.parents), prune=self.prune)
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit must be seconds > 0, got {self.time_limit}")

    def universe(self, table: TableSource) -> Universe:
        """The attributes, and the limit of cells for so many users."""
        limit = self.cell_limit
        if limit is None:
            limit = min(table.n // USERS_PER_CELL, MOST_CELLS)
        return Universe(table.sizes, limit)


@dataclass(frozen=True, slots=True)
class SearchEstimate:
    """What a search will need, roughly."""

    tables: int
    largest_cells: int
    bytes: int
    """Codes, subsets and scores, in the process that asks."""
    seconds: float


def require_table(table: TableSource, root: int | None) -> NDArray[np.int16]:
    """The attributes with two values or more; refuse a table that has none, or no users."""
    require_at_least(1, n=table.n)
    active = Universe(table.sizes).active
    if not active.size:
        raise InputError("a network needs an attribute with two values or more")
    if root is not None and root not in active:
        raise InputError(f"root must be an attribute with two values or more, got {root}")
    return active


def draw_root(active: NDArray[np.int16], noise: CentralNoise | None) -> int:
    """One of the attributes, uniformly."""
    if noise is None:
        raise InputError("a root is drawn from noise: give the noise, or a root")
    word = int(noise.words(Purpose.START, "root", 1)[0])
    return int(active[word * active.size >> 64])


def estimate(
    table: TableSource, settings: SearchSettings, workers: int = 1, rate: float | None = None
) -> SearchEstimate:
    """What a search will need; rate are seconds per table on one worker, if measured."""
    active, universe = require_table(table, settings.root), settings.universe(table)
    k = min(settings.parents, active.size - 1)
    counts = [universe.count(width) for width in range(1, k + 2)]
    if settings.prune is not None and k > _ALWAYS_TRIED:
        for width in range(3, k + 2):
            chosen = comb(settings.prune, width - 1) + (width <= k) * comb(
                settings.prune, width
            )
            counts[width - 1] = min(counts[width - 1], active.size * chosen)
    tables = sum(counts)
    largest = prod(sorted(table.sizes)[-k - 1 :])
    seconds = seconds_for(tables, table.n) if rate is None else tables * rate
    size = table.n * len(table.sizes) + sum(
        count * 10 * width for width, count in enumerate(counts, 1)
    )
    return SearchEstimate(tables, min(largest, int(universe.limit)), size, seconds / workers)


def search(
    table: TableSource,
    settings: SearchSettings,
    pool: TaskPool | None = None,
    noise: CentralNoise | None = None,
    tell: Tell | None = None,
) -> FoundNetwork:
    """The network that grows from the root by the best score in each step.

    A child takes as many parents as there are, up to the limit; fewer where no such set is
    within the limit of cells. A score that a further parent may lower compares sets of all
    sizes, the empty one included. The result depends on neither pool nor order of tasks,
    unless its time is over.
    """
    active = require_table(table, settings.root)
    root = draw_root(active, noise) if settings.root is None else settings.root
    universe, score = settings.universe(table), score_of(settings.score)
    k = min(settings.parents, active.size - 1)
    limit = settings.time_limit
    work = Measurement(table, score, pool or OneProcess(), tell)
    work.deadline = inf if limit is None else time.monotonic() + limit
    work.expected = require_tables(estimate(table, settings).tables)
    measured = [work.of(universe.subsets(width)) for width in range(1, min(k, 1) + 2)]
    is_pruned = settings.prune is not None and k > _ALWAYS_TRIED
    chosen = (
        _best_single(levels_of(measured, score, table), settings.prune) if is_pruned else []
    )
    wanted, dropped = sum(len(each.subsets) for each in measured), 0
    for width in range(3, k + 2):
        subsets = universe.among(chosen, width, k) if is_pruned else universe.subsets(width)
        measured.append(work.of(subsets))
        wanted += len(subsets)
    every = Universe(table.sizes)
    if not is_pruned:
        dropped = sum(every.count(width) for width in range(2, k + 2)) - wanted + active.size
    growth = Growth(levels_of(measured, score, table), root, tuple(map(int, active)))
    growth.grow(is_largest=score.grows and not work.is_stopped)
    return growth.found(table, k, work, dropped)


def search_as_notes(
    table: TableSource,
    parents: int,
    noise: CentralNoise,
    pool: TaskPool | None = None,
    tell: Tell | None = None,
) -> FoundNetwork:
    """The greedy network as the DP2-Pub notes find it, on all tables whatever their size.

    The root is uniform. Each step looks at children in the order of columns and at parents in
    the order in which attributes joined, m = min(joined, k) of them, and takes the first
    maximum of mutual information, compared as floats. On sparse tables most candidates tie:
    then the network says nothing about the data.
    """
    require_at_least(1, parents=parents)
    require_at_least(1, n=table.n)
    d = len(table.sizes)
    everyone = np.arange(d, dtype=np.int16)
    work = Measurement(table, Information(), pool or OneProcess(), tell)
    universe = Universe(tuple(2 for _ in table.sizes))  # every subset, constants included
    k = min(parents, d - 1)
    work.expected = require_tables(sum(universe.count(width) for width in range(1, k + 2)))
    measured: list[Measured] = [work.of(universe.subsets(width)) for width in range(1, k + 2)]
    levels = levels_of(measured, Information(), table)
    growth = Growth(levels, draw_root(everyone, noise), tuple(range(d)), is_by_entry=True)
    growth.grow(is_largest=True)
    return growth.found(table, k, work)


def _best_single(levels: Sequence[Level], n: int | None) -> list[list[int]]:
    """By child, its n best single parents; ties to the lowest."""
    found: list[list[tuple[float, int]]] = [[] for _ in range(levels[0].attributes)]
    for (one, other), (first, second) in zip(
        levels[0].subsets.tolist(), on_grid(levels[0].scores).tolist(), strict=True
    ):
        found[one].append((-first, other))
        found[other].append((-second, one))
    return [[parent for _, parent in sorted(each)[:n]] for each in found]
