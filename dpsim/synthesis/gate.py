"""Which pairs of attributes show more than noise: a test on the raw counts of reports.

Channels that work attribute by attribute keep independent attributes independent. So the test
needs no inversion, and its level holds whatever ε is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.tasks import OneProcess, TaskPool
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.candidates import pieces
from dpsim.synthesis.chi_square import quantile
from dpsim.synthesis.contingency import Subsets, joint_counts
from dpsim.synthesis.table import TableSource

USERS_PER_CELL = 5
"""Tables with fewer users per cell are not tested: no approximation holds for them."""


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two statistics of independence of one pair; both follow χ² if it is independent."""

    pair: tuple[int, int]
    n: int
    freedom: int
    """(rows - 1)(columns - 1), of those that are not empty."""
    likelihood_ratio: float
    """``G = 2 Σ T ln(T/N)``, T counts, N expected under independence."""
    chi_square: float
    """``X² = Σ (T-N)²/N``."""

    @property
    def statistic(self) -> float:
        """The smaller one: G alone is liberal, X² alone fails on skewed margins."""
        return min(self.likelihood_ratio, self.chi_square)

    def strength(self, level: float) -> float:
        """The statistic over the value that it exceeds by chance with probability ``level``."""
        return self.statistic / quantile(level, self.freedom) if self.freedom else 0.0


@dataclass(frozen=True, slots=True)
class Signal:
    """The facts for the people who read a result: is there anything besides noise?"""

    n: int
    pairs: int
    tested: int
    """Pairs whose table has at least five users per cell; the others count as independent."""
    passed: int
    strongest: tuple[int, int] | None
    strength: float
    """The strongest pair's statistic over its threshold; above 1 it passes."""
    users_needed: int | None
    """About how many users would make the strongest pair pass; none if nobody can say.

    Counts only what the pair shows beyond the strongest of as many independent pairs (its
    median): without that a table of pure noise would promise to be clear at twice its size.
    """

    @property
    def is_below_noise(self) -> bool:
        """Whether no pair passed: all attributes are published as if independent."""
        return self.passed == 0


@dataclass(frozen=True, slots=True)
class Gate:
    """The tests of all pairs that have users enough, at one level for all of them together."""

    n: int
    attributes: int
    level: float
    """The probability that any pair passes although all are independent, at most."""
    tests: tuple[PairTest, ...]

    @property
    def pair_level(self) -> float:
        """Bonferroni: each pair tested gets the same part of the level."""
        return self.level / max(1, len(self.tests))

    @property
    def passed(self) -> tuple[tuple[int, int], ...]:
        """The pairs that show more than noise, in order."""
        return tuple(test.pair for test in self.tests if test.strength(self.pair_level) > 1)

    @property
    def signal(self) -> Signal:
        """What to tell people."""
        level = self.pair_level
        best = max(self.tests, key=lambda test: test.strength(level), default=None)
        pairs = self.attributes * (self.attributes - 1) // 2
        if best is None or not best.freedom:
            return Signal(self.n, pairs, len(self.tests), 0, None, 0.0, None)
        lucky = quantile(1 - 0.5 ** (1 / len(self.tests)), best.freedom)
        excess = best.statistic - lucky
        needed = round(self.n * quantile(level, best.freedom) / excess) if excess > 0 else None
        passed, strength = len(self.passed), best.strength(level)
        return Signal(self.n, pairs, len(self.tests), passed, best.pair, strength, needed)


def independence_test(counts: Counts, pair: tuple[int, int] = (0, 1)) -> PairTest:
    """G and X² of a table of counts with two axes."""
    table = np.asarray(counts, np.float64)
    if table.ndim != 2 or not (table >= 0).all() or not table.sum() > 0:  # noqa: PLR2004
        raise InputError("counts must be >= 0 on two axes, with one user at least")
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n = float(table.sum())
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / n
    held = table > 0
    ratio = 2 * float((table[held] * np.log(table[held] / expected[held])).sum())
    square = float(((table - expected) ** 2 / expected).sum())
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return PairTest(pair, int(n), freedom, max(0.0, ratio), square)


def examine_pairs(
    source: TableSource, level: float = 0.01, pool: TaskPool | None = None
) -> Gate:
    """Test every pair of attributes of a table of reports that has users enough.

    Which pairs are tested follows from public numbers only, n and the domain sizes: the level
    may be divided among them alone.
    """
    if not 0 < level < 1:
        raise InputError(f"level must be > 0 and < 1, got {level}")
    pool = OneProcess() if pool is None else pool
    pairs = np.array(list(_pairs(source)), np.int16).reshape(-1, 2)
    found = pool.map(_test_pairs, source, pieces(pairs, source.n, pool.workers))
    tests = tuple(test for part in found for test in part)
    return Gate(source.n, len(source.sizes), level, tests)


def pairs_that_pass(source: TableSource, level: float = 0.01) -> tuple[tuple[int, int], ...]:
    """The pairs whose min(G, X²) exceeds the χ² quantile at the level over the pairs tested."""
    return examine_pairs(source, level).passed


def users_needed(information: float, first: GRR, second: GRR, level: float) -> float:
    """About how many users make a pair with this mutual information pass at a pair's level.

    GRR shrinks an interaction by p - q per attribute and so, about, the information I by
    both squares::

        n = χ²-quantile / (2 I (p-q)² (p'-q')²)
    """
    if not information > 0:
        raise InputError(f"information must be > 0, got {information}")
    freedom = (first.domain_size - 1) * (second.domain_size - 1)
    if not freedom:
        raise InputError("a pair needs two attributes with two codes each at least")
    shrunk = information * first.gap**2 * second.gap**2
    return quantile(level, freedom) / (2 * shrunk)


def _pairs(source: TableSource) -> Iterator[tuple[int, int]]:
    sizes = source.sizes
    for pair in combinations(range(len(sizes)), 2):
        rows, columns = sizes[pair[0]], sizes[pair[1]]
        if min(rows, columns) > 1 and USERS_PER_CELL * rows * columns <= source.n:
            yield pair


def _test_pairs(source: TableSource, pairs: Subsets) -> list[PairTest]:
    table = source.open()
    return [
        independence_test(joint_counts(table, (one, other)), (one, other))
        for one, other in pairs.tolist()
    ]
