"""Marginals of whole tables: which subsets of attributes, and sums over all their cells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.evaluation._table_kernels import (
    compare_cells,
    count_cells,
    extend_cells,
    sum_deviations,
)
from dpsim.evaluation.comparable import require_comparable
from dpsim.synthesis.table import CodeTable, code_type

MAX_SUBSETS = 10_000
"""Up to so many subsets all are compared, else a fixed sample of so many."""
EVALUATION = CentralNoise(0, "evaluation")
"""What evaluation draws from: the same for every method, run and machine."""

_MAX_DENSE_CELLS = 1 << 22
_MAX_CELLS = 1 << 62
_MAX_PRODUCT = 1 << 61  # of two numbers of rows: differences of counts are exact below it

Subset = tuple[int, ...]


@lru_cache(maxsize=32)
def subsets_of(d: int, alpha: int) -> tuple[Subset, ...]:
    """The subsets of ``alpha`` of d attributes that are compared, in lexicographic order.

    All of them up to 10,000; else a uniform sample of 10,000 without repeats (Floyd), the same
    at every call: samples of different methods would differ more than the methods.
    """
    require_at_least(1, alpha=alpha)
    if alpha > d:
        raise InputError(f"alpha must be at most the number of attributes, {d}, got {alpha}")
    total = comb(d, alpha)
    if total <= MAX_SUBSETS:
        return tuple(combinations(range(d), alpha))
    words = EVALUATION.words(Purpose.START, f"{alpha} of {d} attributes", 2 * MAX_SUBSETS)
    ranks: set[int] = set()
    for high, low, last in zip(
        words[::2].tolist(),
        words[1::2].tolist(),
        range(total - MAX_SUBSETS, total),
        strict=True,
    ):
        rank = ((high << 64 | low) * (last + 1)) >> 128
        ranks.add(last if rank in ranks else rank)
    return tuple(sorted(_subset_at(rank, d, alpha) for rank in ranks))


def _subset_at(rank: int, d: int, alpha: int) -> Subset:
    """The subset of a rank in the combinatorial number system: rank = Σ C(member_i, i)."""
    members = []
    for place in range(alpha, 0, -1):
        member = bisect_right(range(d), rank, key=lambda m, i=place: comb(m, i)) - 1  # type: ignore[misc]
        members.append(member)
        rank -= comb(member, place)
    return tuple(reversed(members))


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Sums over the cells of each subset's marginals, of a truth and of other tables.

    The sums of differences and squares are whole numbers, so that no order of users or cells
    can change a distance. Column 0 of ``squares`` and ``entropies`` is the truth's.
    """

    d: int
    """Attributes of a table."""
    alpha: int
    """Attributes of a subset."""
    subsets: tuple[Subset, ...]
    cells: tuple[int, ...]
    """The size of each marginal's domain."""
    n: int
    """Users of the truth."""
    rows: int
    """Users of each other table."""
    apart: NDArray[np.int64]
    """Σ|c n' - c' n|, a row per subset, a column per other table."""
    products: NDArray[np.int64]
    """Σ c c'."""
    squares: NDArray[np.int64]
    """Σ c²."""
    entropies: NDArray[np.float64]
    """H = ln n - Σ c ln c / n, in nats."""
    spreads: NDArray[np.float64]
    """Σ √(π (1 - π)) of the truth's shares π."""
    deviations: NDArray[np.float64]
    """Σ E|X/n' - π| of the truth's shares π, for X out of n' rows drawn from the truth."""


def survey(truth: CodeTable, others: Sequence[CodeTable], alpha: int, rows: int) -> Survey:
    """Compare all marginals of ``alpha`` attributes with those of tables of ``rows`` users.

    Each marginal is counted once per table, in memory for its cells; where they outnumber the
    users by far, only those in use are numbered and counted. Both ways give the same bits.
    """
    require_at_least(1, rows=rows)
    given = (truth, *others)
    require_comparable(given)
    tables = [CodeTable(each.sizes, np.ascontiguousarray(each.codes)) for each in given]
    if any(other.n != rows for other in others):
        raise InputError(f"every table beside the truth must have {rows:,} rows")
    if truth.n * rows > _MAX_PRODUCT:
        raise InputError(f"tables of {truth.n:,} and {rows:,} rows are too long to compare")
    subsets = subsets_of(len(truth.sizes), alpha)
    cells = tuple(prod(truth.sizes[a] for a in subset) for subset in subsets)
    if max(cells) > _MAX_CELLS:
        raise InputError(f"marginals of {alpha} attributes are too large: choose a lower alpha")
    totals = np.array([table.n for table in tables])
    whole = np.zeros((len(subsets), len(tables), 3), np.int64)
    real = np.zeros((len(subsets), len(tables), 2))
    deviations = np.zeros(len(subsets))
    known = np.full(truth.n + 1, -1.0)
    for at, counts in enumerate(_all_counts(tables, subsets, cells)):
        compare_cells(counts, totals, whole[at], real[at])
        deviations[at] = sum_deviations(counts[0], truth.n, rows, known)
    return Survey(
        d=len(truth.sizes),
        alpha=alpha,
        subsets=subsets,
        cells=cells,
        n=truth.n,
        rows=rows,
        apart=whole[:, 1:, 0],
        products=whole[:, 1:, 1],
        squares=whole[:, :, 2],
        entropies=np.maximum(np.log(totals) - real[:, :, 0] / totals, 0.0),
        spreads=real[:, 0, 1] / truth.n,
        deviations=deviations / rows,
    )


def _all_counts(
    tables: Sequence[CodeTable], subsets: Sequence[Subset], cells: Sequence[int]
) -> Iterator[NDArray[np.int64]]:
    """Counts of each subset's cells in turn, one row per table; the array is used again."""
    rows = sum(table.n for table in tables)
    dense = min(_MAX_DENSE_CELLS, 16 * rows + 4_096)
    room = np.empty(len(tables) * max((c for c in cells if c <= dense), default=0), np.int64)
    sizes = dict(zip(subsets, cells, strict=True))
    for head, group in groupby(subsets, key=lambda subset: subset[:-1]):
        heads = [_compound(table, head) for table in tables]
        for subset in group:
            last, total = subset[-1], sizes[subset]
            parts = [
                (h, t.codes[last], t.sizes[last]) for h, t in zip(heads, tables, strict=True)
            ]
            if total > dense:
                yield _counts_in_use([extend_cells(*part) for part in parts])
                continue
            counts = room[: len(tables) * total].reshape(len(tables), total)
            counts.fill(0)
            for row, part in zip(counts, parts, strict=True):
                count_cells(*part, row)
            yield counts


def _compound(table: CodeTable, attributes: Subset) -> NDArray[np.integer[Any]]:
    """One compound code per user: mixed radix, the first attribute leads.

    In the smallest type that holds them: counting waits for memory, not for arithmetic.
    """
    cells = np.zeros(table.n, np.int64)
    total = 1
    for attribute in attributes:
        total *= table.sizes[attribute]
        cells = extend_cells(cells, table.codes[attribute], table.sizes[attribute])
    return cells if total > _MAX_DENSE_CELLS else cells.astype(code_type((total,)))


def _counts_in_use(cells: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Counts of the cells that any table uses, in ascending order, one row per table."""
    used, places = np.unique(np.concatenate(cells), return_inverse=True)
    parts = np.split(places, np.cumsum([part.size for part in cells])[:-1])
    return np.stack([np.bincount(part, minlength=used.size) for part in parts])
