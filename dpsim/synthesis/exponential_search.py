"""A network drawn by the exponential mechanism: for a trusted curator, at a stated loss.

From a uniform root, each step draws one of all possible (child, parents) with probability
∝ exp(ε_step score / 2Δ). All that shapes the list of candidates is public: sizes, n, limits,
and the attributes drawn before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.exact import Number, exact
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.core.tasks import OneProcess, TaskPool
from dpsim.synthesis import _network_kernels as kernels
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.candidates import (
    Level,
    Measurement,
    Tell,
    Universe,
    levels_of,
    require_tables,
)
from dpsim.synthesis.scores import Score, score_of
from dpsim.synthesis.structure_search import draw_root, require_table
from dpsim.synthesis.table import TableSource

_CHUNK = 1 << 20  # candidates whose noise is in memory at once


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """The candidates of a network that is drawn; public numbers only."""

    parents: int
    """The most parents of an attribute."""
    cell_limit: float
    """The most cells of a child with its parents: see `useful_cells`."""
    score: str | Score = "distance"
    root: int | None = None
    """The first attribute; drawn where not given."""

    def __post_init__(self) -> None:
        require_at_least(0, parents=self.parents)
        score_of(self.score)
        if not self.cell_limit > 0:
            raise InputError(f"cell_limit must be > 0, got {self.cell_limit}")


@dataclass(frozen=True, slots=True)
class DrawnNetwork:
    """A private network. What it was chosen by stays behind: scores are raw data."""

    net: BayesNet
    loss: PrivacyLoss
    """What it cost each user, when one record is replaced."""
    tables: int
    """How many subsets were counted."""
    draws: int
    """How many candidates had a draw, all steps together."""


def useful_cells(n: int, attributes: int, epsilon: Number, theta: Number = 4) -> float:
    """τ = n ε / (2 d θ): cells of a table whose average count is θ times its noise.

    The noise is Laplace's with scale 2d/ε on counts: d tables share the loss ε, and replacing
    a record moves two cells by one.
    """
    require_at_least(1, n=n)
    require_at_least(1, attributes=attributes)
    loss, ratio = exact(epsilon, "epsilon"), exact(theta, "theta")
    if loss <= 0 or ratio <= 0:
        raise InputError(f"epsilon and theta must be > 0, got {epsilon} and {theta}")
    return float(n * loss / (2 * attributes * ratio))


def draw_network(
    table: TableSource,
    settings: DrawSettings,
    epsilon: Number,
    noise: CentralNoise,
    pool: TaskPool | None = None,
    tell: Tell | None = None,
) -> DrawnNetwork:
    """A network by as many exponential mechanisms as it has attributes after the root.

    A child's parent sets are those of at most ``parents`` attributes whose table with the
    child stays within the limit of cells, and that no further parent fits into; where none
    fits, the empty set with score 0. Each candidate of each step has a fresh Gumbel draw, by
    its rank in the list of the step, and the largest ``ε_step score / 2Δ + g`` wins: the
    exponential mechanism, up to the 64 bits of a draw and rounding in floats.

    Guarantees ε when one record is replaced and n is public: the steps get equal parts of it.
    """
    loss = PrivacyLoss.of(epsilon)
    if loss.epsilon <= 0:
        raise InputError(f"epsilon must be > 0, got {epsilon}")
    require_at_least(2, n=table.n)
    active = require_table(table, settings.root)
    root = draw_root(active, noise) if settings.root is None else settings.root
    k, score = min(settings.parents, active.size - 1), score_of(settings.score)
    universe = Universe(table.sizes, settings.cell_limit)
    work = Measurement(table, score, pool or OneProcess(), tell)
    work.expected = require_tables(sum(universe.count(width) for width in range(1, k + 2)))
    measured = [work.of(universe.subsets(width)) for width in range(1, k + 2)]
    alone = Level(measured[0].subsets, np.zeros((active.size, 1)), len(table.sizes))
    levels = [alone, *levels_of(measured, score, table)]
    waiting = Waiting(levels, table.sizes, settings.cell_limit, k)
    order, parents, draws = [root], {root: tuple[int, ...]()}, 0
    steps = active.size - 1
    for step in range(1, steps + 1):
        waiting.join(order[-1])
        delta = score.sensitivity(table.n, is_narrow=waiting.is_narrow)
        factor = float(loss.epsilon / steps) / (2 * delta)
        winner = select(waiting.scores(), factor, noise, f"structure {step}")
        draws += waiting.n
        child, parents_found = waiting.candidate(winner)
        order.append(child)
        parents[child] = parents_found
    d = len(table.sizes)
    order += [attribute for attribute in range(d) if attribute not in parents]
    net = BayesNet(tuple(order), tuple(parents.get(attribute, ()) for attribute in range(d)))
    return DrawnNetwork(net, loss if steps else PrivacyLoss.of(Fraction(0)), work.tables, draws)


def select(
    scores: Iterator[NDArray[np.float64]], factor: float, noise: CentralNoise, subject: str
) -> int:
    """The rank of the largest ``factor · score + g``, g a Gumbel draw at the rank."""
    best, winner, start = -np.inf, -1, 0
    for part in scores:
        values = factor * part + gumbels(noise.words(Purpose.SELECT, subject, part.size, start))
        place = int(np.argmax(values))
        if values[place] > best:
            best, winner = float(values[place]), start + place
        start += part.size
    return winner


def gumbels(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Draws with the law Pr[g ≤ x] = exp(-exp(-x)), one per word.

    g = -ln(-ln(1 - u)) with u in 2^-65 … 1: the upper tail, which decides, is the finest.
    """
    u = np.minimum((words.astype(np.float64) + 0.5) * 2.0**-64, 1 - 2.0**-53)
    return -np.log(-np.log1p(-u))


@dataclass(frozen=True, slots=True)
class _Open:
    """The candidates of one level that are still possible, by subset and place of the child."""

    rows: NDArray[np.int32]
    places: NDArray[np.int16]

    def where(self, is_kept: NDArray[np.bool_]) -> _Open:
        return _Open(self.rows[is_kept], self.places[is_kept])

    def and_also(self, other: _Open) -> _Open:
        return _Open(
            np.concatenate([self.rows, other.rows]), np.concatenate([self.places, other.places])
        )


class Waiting:
    """The candidates of a step: all parents joined, the child not; no further parent fits.

    Their ranks: fewer parents first, then in the order in which they became possible, then
    as the subsets are ordered.
    """

    def __init__(
        self, levels: Sequence[Level], sizes: Sequence[int], limit: float, most: int
    ) -> None:
        self._levels, self._limit, self._most = levels, limit, most
        self._sizes = np.array(sizes, np.int64)
        self._cells = [self._sizes[each.subsets].prod(axis=1, dtype=float) for each in levels]
        self._is_placed = np.zeros(len(sizes), np.bool_)
        none = _Open(np.zeros(0, np.int32), np.zeros(0, np.int16))
        n = len(levels[0].subsets)
        alone = _Open(np.arange(n, dtype=np.int32), np.zeros(n, np.int16))
        self._open = [alone, *(none for _ in levels[1:])]

    @property
    def n(self) -> int:
        """How many candidates there are."""
        return sum(each.rows.size for each in self._open)

    @property
    def is_narrow(self) -> bool:
        """Whether in every candidate child or compound parent has at most two values."""
        for level, found in enumerate(self._open):
            own = self._sizes[self._children(level, found)]
            others = self._cells[level][found.rows] / own
            if (np.minimum(own, others) > 2).any():  # noqa: PLR2004
                return False
        return True

    def join(self, newest: int) -> None:
        """An attribute joins: it is no child any more, and may be a parent."""
        self._is_placed[newest] = True
        size = self._sizes[newest]
        for place, level in enumerate(self._levels):
            old, cells = self._open[place], self._cells[place]
            is_kept = self._children(place, old) != newest
            rows, places, room = kernels.completed(
                level.subsets, level.holding(newest), self._is_placed, self._sizes
            )
            new = _Open(rows, places)
            if place < self._most:  # a set that the newest, or anybody else, fits into goes
                is_kept &= cells[old.rows] * size > self._limit
                new = new.where(np.isinf(room) | (cells[rows] * room > self._limit))
            self._open[place] = old.where(is_kept).and_also(new)

    def scores(self) -> Iterator[NDArray[np.float64]]:
        """Scores by rank, in parts."""
        for level, found in zip(self._levels, self._open, strict=True):
            for start in range(0, found.rows.size, _CHUNK):
                end = start + _CHUNK
                yield level.scores[found.rows[start:end], found.places[start:end]]

    def candidate(self, rank: int) -> tuple[int, tuple[int, ...]]:
        """The child and the parents of a rank."""
        place = 0
        while rank >= self._open[place].rows.size:
            rank -= self._open[place].rows.size
            place += 1
        found, level = self._open[place], self._levels[place]
        row, member = int(found.rows[rank]), int(found.places[rank])
        return int(level.subsets[row, member]), level.parents(row, member)

    def _children(self, level: int, found: _Open) -> NDArray[np.int16]:
        children: NDArray[np.int16] = self._levels[level].subsets[found.rows, found.places]
        return children
