"""A Bayes network from noisy margins and pair tables: PrivBayes, aware of its own noise.

1. Margins: one noisy count per value.
2. A tree: d - 1 times, a pair that joins one more attribute is selected and measured.
3. Where tables are accurate enough, second parents: a pair that the tree predicts badly and
   that closes a triangle is selected and measured.

A candidate's score is how much of its table lies above the noise, against what the numbers
released so far predict, μ::

    score = ½ Σ (|c - μ| - b)⁺        b the scale of the noise

μ is public, so replacing one record moves two cells by one each, and the score by 1 at most;
PrivBayes's own scores move by three times as much. No table of three attributes is measured:
the law of a child given two parents has the largest entropy among those with the pair tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import TaskPool
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.mechanisms.selection import PermuteAndFlip
from dpsim.synthesis.bayes_net import BayesNet, NetworkModel
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.noisy_margins import WHOLE_TABLE, measure_margins
from dpsim.synthesis.noisy_tables import Table, fit_margins, shrink
from dpsim.synthesis.table import CodeTable, TableSource

Pair = tuple[int, int]
Triangle = tuple[int, int, int]
"""Child, parent, second parent."""

MAX_CELLS = 1 << 16
"""The largest table of two or three attributes that a network uses."""

_CLEAR = 500  # second parents need a noise whose scale is below n/500
_TASKS_PER_WORKER = 4


@dataclass(frozen=True, slots=True)
class NetworkBudget:
    """The parts of ε that a network spends."""

    margins: Fraction
    structure: Fraction
    tables: Fraction


@dataclass(frozen=True, slots=True)
class Effort:
    """How often a network selects and measures, by public numbers only."""

    edges: int
    second_parents: int

    @property
    def steps(self) -> int:
        """Selections, and as many measured tables."""
        return self.edges + self.second_parents


def effort(sizes: Sequence[int], n: int, tables: Fraction) -> Effort:
    """One edge per attribute but the first; second parents for half of the others, or none."""
    edges = max(0, sum(size > 1 for size in sizes) - 1)
    is_clear = edges * WHOLE_TABLE * _CLEAR <= n * tables
    return Effort(edges, (edges - 1) // 2 if is_clear and edges > 1 else 0)


def surplus(counts: NDArray[np.int64], expected: Table, scale: float) -> float:
    """``½ Σ (|c - μ| - b)⁺``: what a table holds that noise would not hide.

    Moves by 1 at most when one record is replaced and the expectation is public.
    """
    return 0.5 * float(np.maximum(np.abs(counts - expected) - scale, 0.0).sum())


@dataclass(frozen=True, slots=True, eq=False)
class _PairScores:
    """What tasks need to score pairs against the product of their margins."""

    source: TableSource
    margins: tuple[Table, ...]
    scale: float


def _score_pairs(shared: _PairScores, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    table = shared.source.open()
    return np.array([
        surplus(
            joint_counts(table, pair),
            np.outer(shared.margins[pair[0]], shared.margins[pair[1]]) / table.n,
            shared.scale,
        )
        for pair in pairs
    ])  # fmt: skip


@dataclass(slots=True)
class _Growth:
    """The network as far as it is released: all of it is public."""

    table: CodeTable
    margins: tuple[Table, ...]
    noise: CentralNoise
    laplace: DiscreteLaplace
    flip: PermuteAndFlip
    order: list[int] = field(default_factory=list)
    parents: dict[int, tuple[int, ...]] = field(default_factory=dict)
    pairs: dict[Pair, Table] = field(default_factory=dict)
    """Tables that the network has, by (first, second) in both orders."""
    triples: dict[int, Table] = field(default_factory=dict)
    """By child with two parents: parent, second parent, child."""

    @property
    def scale(self) -> float:
        return float(self.laplace.scale)

    def select(self, scores: NDArray[np.float64], allowed: NDArray[np.bool_]) -> int:
        """The position of one of the allowed candidates; noise belongs to all positions."""
        subject = f"structure {len(self.order)} {len(self.triples)}"
        keys = self.flip.keys(scores, self.noise, subject)
        return int(np.argmax(np.where(allowed, keys, -np.inf)))

    def measure(self, first: int, second: int, expected: Table) -> Table:
        """The table of a pair, shrunk to what is expected and fitted to its margins."""
        low, high = sorted((first, second))
        counts = joint_counts(self.table, (low, high))
        measured = self.laplace.measure(counts, self.noise, f"pair {low} {high}")
        measured = measured if first < second else measured.T
        likely = shrink(measured.astype(np.float64), expected, self.scale)
        sides = (((0,), self.margins[first]), ((1,), self.margins[second]))
        return fit_margins(likely, sides)

    def join(self, parent: int, child: int) -> None:
        """One more attribute, with its parent."""
        expected = np.outer(self.margins[parent], self.margins[child]) / self.table.n
        self._keep(parent, child, self.measure(parent, child, expected))
        self.order.append(child)
        self.parents[child] = (parent,)

    def predict(self, triangle: Triangle) -> Table:
        """The table of second parent and child if they meet in the parent only."""
        child, parent, second = triangle
        law = self.pairs[parent, child] / self.margins[parent][:, None]
        table: Table = np.einsum("ps,pc->sc", self.pairs[parent, second], law)
        return table

    def close(self, triangle: Triangle) -> None:
        """Give the child its second parent."""
        child, parent, second = triangle
        side = self.measure(second, child, self.predict(triangle))
        low = self.pairs[parent, second] / self.margins[parent][:, None]
        start = low[:, :, None] * self.pairs[parent, child][:, None, :]
        sides = (
            ((0, 2), self.pairs[parent, child]),
            ((1, 2), side),
            ((0, 1), self.pairs[parent, second]),
        )
        self.triples[child] = fit_margins(start, sides)
        self.parents[child] = (parent, second)
        self._keep(second, child, self.triples[child].sum(axis=0))

    def triangles(self) -> Iterable[Triangle]:
        """Children with one parent, and who could be the second: joined to the first."""
        sizes = self.table.sizes
        for place, child in enumerate(self.order):
            if len(self.parents[child]) == 1:
                (parent,) = self.parents[child]
                for second in self.order[:place]:
                    cells = sizes[child] * sizes[parent] * sizes[second]
                    if (parent, second) in self.pairs and cells <= MAX_CELLS:
                        yield child, parent, second

    def model(self) -> NetworkModel:
        """The law of whole records."""
        count = len(self.table.sizes)
        order = (*self.order, *(a for a in range(count) if a not in self.parents))
        parents = [tuple(sorted(self.parents.get(a, ()))) for a in range(count)]
        tables = [self._table(attribute) for attribute in range(count)]
        return NetworkModel(BayesNet(order, tuple(parents)), tuple(tables))

    def _table(self, child: int) -> Table:
        found = self.parents.get(child, ())
        if not found:
            return self.margins[child]
        if len(found) == 1:
            return self.pairs[found[0], child]
        is_ascending = found[0] < found[1]
        return self.triples[child] if is_ascending else self.triples[child].swapaxes(0, 1)

    def _keep(self, first: int, second: int, table: Table) -> None:
        self.pairs[first, second], self.pairs[second, first] = table, table.T


def fit_pair_network(
    source: TableSource, budget: NetworkBudget, noise: CentralNoise, pool: TaskPool
) -> NetworkModel:
    """Measure margins, grow a tree, close triangles.

    Spends at most the budget's sum, ε of pure privacy if one record is replaced; n and the
    sizes are public. Candidates are ranked by permute-and-flip, never worse than PrivBayes's
    exponential mechanism.
    """
    table = source.open()
    margins = measure_margins(table, budget.margins, noise)
    work = effort(table.sizes, table.n, budget.tables)
    if not work.steps:
        order = tuple(range(len(margins)))
        return NetworkModel(BayesNet(order, ((),) * len(order)), margins)
    laplace = DiscreteLaplace(budget.tables / work.steps, WHOLE_TABLE)
    flip = PermuteAndFlip(budget.structure / work.steps, 1)
    growth = _Growth(table, margins, noise, laplace, flip)
    _grow_tree(growth, source, pool)
    _close_triangles(growth, work.second_parents)
    return growth.model()


def _grow_tree(growth: _Growth, source: TableSource, pool: TaskPool) -> None:
    """Join attributes by the pairs selected, the first pair's lower one being the root."""
    sizes = growth.table.sizes
    wide = [attribute for attribute, size in enumerate(sizes) if size > 1]
    pairs = [(a, b) for a, b in combinations(wide, 2) if sizes[a] * sizes[b] <= MAX_CELLS]
    if not pairs:
        return
    part = -(-len(pairs) // (_TASKS_PER_WORKER * pool.workers))
    parts = [pairs[first : first + part] for first in range(0, len(pairs), part)]
    shared = _PairScores(source, growth.margins, growth.scale)
    scores = np.concatenate(list(pool.map(_score_pairs, shared, parts)))
    ends = np.array(pairs)
    inside = np.zeros(len(sizes), np.bool_)
    while True:
        joins = inside[ends[:, 0]] != inside[ends[:, 1]] if growth.order else scores >= 0
        if not joins.any():
            return
        first, second = pairs[growth.select(scores, joins)]
        if not growth.order:
            growth.order.append(first)
            growth.parents[first] = ()
        growth.join(*((second, first) if inside[second] else (first, second)))
        inside[[first, second]] = True


def _close_triangles(growth: _Growth, most: int) -> None:
    """Give second parents to as many children."""
    scores: dict[Triangle, float] = {}
    for _ in range(most):
        triangles = list(growth.triangles())
        if not triangles:
            return
        for triangle in triangles:
            if triangle not in scores:
                counts = joint_counts(growth.table, (triangle[2], triangle[0]))
                scores[triangle] = surplus(counts, growth.predict(triangle), growth.scale)
        known = np.array([scores[triangle] for triangle in triangles])
        growth.close(triangles[growth.select(known, known >= 0)])
