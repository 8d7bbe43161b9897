"""A network that grows greedily from its root, one attribute at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from dpsim.synthesis import _network_kernels as kernels
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.candidates import Level, Measurement
from dpsim.synthesis.scores import Scores
from dpsim.synthesis.table import TableSource

_GRID = 2.0**40


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """A network, and how it was found."""

    net: BayesNet
    scores: tuple[float, ...]
    """By attribute; 0 where there are no parents."""
    tables: int
    """How many subsets were counted."""
    dropped: int = 0
    """How many subsets had more cells than the limit."""
    reduced: tuple[int, ...] = ()
    """Attributes with fewer parents than there was room for."""
    is_complete: bool = True
    """Whether all was counted before time was over; else another run may differ."""

    @property
    def total(self) -> float:
        """The sum of all scores."""
        return float(np.sum(self.scores))


def on_grid(scores: Scores) -> Scores:
    """Scores as whole multiples of 2^-40: what differs by rounding only is equal."""
    return np.rint(scores * _GRID)


class Growth:
    """A network as it grows: who joined, and each waiting child's best parents so far."""

    def __init__(
        self,
        levels: Sequence[Level],
        root: int,
        members: tuple[int, ...],
        *,
        is_by_entry: bool = False,
    ) -> None:
        self.levels, self.members, self.order = levels, members, [root]
        self.is_by_entry = is_by_entry
        self.keys = [each.scores if is_by_entry else on_grid(each.scores) for each in levels]
        d = levels[0].attributes if levels else max(members) + 1
        self.parents: dict[int, tuple[int, ...]] = {root: ()}
        self.scores = dict.fromkeys(members, 0.0)
        self.entry = np.arange(d)
        self.is_placed = np.zeros(d, np.bool_)
        self.best = [
            (np.full(d, -inf), np.full(d, -1, np.int64), np.full(d, -1, np.int64))
            for _ in levels
        ]

    def grow(self, *, is_largest: bool) -> None:
        """Let all members join: by their best set of the largest size, or of any size."""
        while len(self.order) < len(self.members):
            self._join(self.order[-1])
            child, level = self._choose(is_largest=is_largest)
            self.order.append(child)
            self.parents[child] = ()
            if level:
                each, (_, rows, places) = self.levels[level - 1], self.best[level - 1]
                row, place = int(rows[child]), int(places[child])
                self.parents[child] = each.parents(row, place)
                self.scores[child] = float(each.scores[row, place])

    def found(
        self, table: TableSource, k: int, work: Measurement, dropped: int = 0
    ) -> FoundNetwork:
        """The result; attributes with one value come last, alone."""
        d = len(table.sizes)
        order = (*self.order, *(a for a in range(d) if a not in self.parents))
        net = BayesNet(order, tuple(self.parents.get(a, ()) for a in range(d)))
        reduced = sorted(
            a for i, a in enumerate(self.order) if len(self.parents[a]) < min(i, k)
        )
        scores = tuple(self.scores.get(a, 0.0) for a in range(d))
        return FoundNetwork(
            net, scores, work.tables, dropped, tuple(reduced), not work.is_stopped
        )

    def _join(self, newest: int) -> None:
        """Only sets that hold the newest attribute are new."""
        self.is_placed[newest] = True
        if self.is_by_entry:
            self.entry[newest] = len(self.order) - 1
        for level, keys, best in zip(self.levels, self.keys, self.best, strict=True):
            held = level.holding(newest)
            kernels.keep_best(level.subsets, keys, held, self.is_placed, self.entry, best)

    def _choose(self, *, is_largest: bool) -> tuple[int, int]:
        """The child that joins next, and how many parents it takes."""
        waiting = np.array([a for a in self.members if not self.is_placed[a]])
        table = np.array([np.zeros(self.entry.size), *(best[0] for best in self.best)])
        table = table[:, waiting]
        if is_largest:
            last = table.shape[0] - 1 - np.argmax(table[::-1] > -inf, axis=0)
        else:
            last = np.argmax(table, axis=0)
        winner = int(np.argmax(table[last, np.arange(waiting.size)]))
        return int(waiting[winner]), int(last[winner])
