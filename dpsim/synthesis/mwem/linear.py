"""Workloads of arbitrary linear queries: a weight between 0 and 1 for every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.privacy import Neighbors
from dpsim.synthesis.mwem._query_kernels import add_up
from dpsim.synthesis.mwem.workloads import Cells, Integers, digest_of, domain_of, flat_cells

Rows = tuple[Integers, Integers, NDArray[np.float64]]
"""Compressed rows: pointers, cells, weights. Cells ascend within a row."""


@dataclass(frozen=True, eq=False)
class LinearWorkload:
    """Sums of weights over records: q(B) = Σ q(x) B(x), with q(x) between 0 and 1.

    Weights are kept as compressed rows, so that a query costs its cells that are not zero.
    ``is_signed`` allows weights down to -1, which doubles the sensitivity under replacement.
    """

    shape: tuple[int, ...]
    rows: Rows
    is_signed: bool = False

    def __post_init__(self) -> None:
        shape = domain_of(self.shape)
        pointers, cells, weights = self.rows
        rows = (
            np.ascontiguousarray(pointers, np.int64),
            np.ascontiguousarray(cells, np.int64),
            np.ascontiguousarray(weights, np.float64),
        )
        _require_rows(rows, prod(shape))
        _require_weights(rows, -1.0 if self.is_signed else 0.0)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "rows", rows)

    @classmethod
    def of(
        cls, shape: Sequence[int], matrix: NDArray[Any], *, is_signed: bool = False
    ) -> LinearWorkload:
        """One query per row of a matrix, one column per cell in row-major order."""
        sizes = domain_of(shape)
        values = np.asarray(matrix)
        if values.ndim != 2 or values.shape[1] != prod(sizes):  # noqa: PLR2004
            raise InputError(
                f"matrix must have {prod(sizes)} columns, one per cell of {sizes}, "
                f"got shape {values.shape}"
            )
        at, cells = np.nonzero(values)
        pointers = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(values)))])
        return cls(sizes, (pointers, cells, values[at, cells]), is_signed)

    @cached_property
    def groups(self) -> Integers:
        """Every query is one number."""
        return np.arange(self.rows[0].size, dtype=np.int64)

    @cached_property
    def is_counting(self) -> bool:
        """Whether every weight is 0 or 1."""
        return bool(np.isin(self.rows[2], (0.0, 1.0)).all())

    @cached_property
    def digest(self) -> str:
        """A name for the workload's content."""
        return digest_of(f"linear {self.shape} {self.is_signed}", *self.rows)

    def sensitivity(self, neighbors: Neighbors) -> int:
        """1; or 2 for weights in [-1, 1] when a record is replaced."""
        return 2 if self.is_signed and neighbors == "replace" else 1

    def answers(self, histogram: NDArray[Any]) -> NDArray[Any]:
        """One number per query: exact in int64 for whole counts and 0/1 weights."""
        values = flat_cells(histogram, self.shape)
        pointers, cells, weights = self.rows
        if values.dtype.kind == "i" and self.is_counting:
            weights = weights.astype(np.int8)
        kind = np.int64 if weights.dtype.kind == "i" else np.float64
        answers = np.empty(pointers.size - 1, kind)
        add_up(values, pointers, cells, weights, answers)
        return answers

    def rows_of(self, queries: Sequence[int]) -> Rows:
        """The compressed rows of some queries."""
        pointers, cells, weights = self.rows
        slices = [slice(pointers[query], pointers[query + 1]) for query in queries]
        sizes = [part.stop - part.start for part in slices]
        return (
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]),
            np.concatenate([cells[:0], *(cells[part] for part in slices)]),
            np.concatenate([weights[:0], *(weights[part] for part in slices)]),
        )

    @cached_property
    def cells(self) -> Cells:
        """The cells of all 0/1 queries."""
        pointers, cells, weights = self.rows
        kept = weights != 0
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return self.groups, running[pointers], cells[kept]


def _require_rows(rows: Rows, size: int) -> None:
    pointers, cells, weights = rows
    if pointers.size < 2 or pointers[0] != 0:  # noqa: PLR2004
        raise InputError("a workload needs one query at least, got none")
    if (np.diff(pointers) < 0).any() or not pointers[-1] == cells.size == weights.size:
        raise InputError("pointers must ascend from 0 to the number of cells and of weights")
    at = np.repeat(np.arange(pointers.size - 1), np.diff(pointers))
    outside = np.flatnonzero((cells < 0) | (cells >= size))
    if outside.size:
        raise InputError(f"query {at[outside[0]]} must have cells inside 0..{size - 1}")
    falling = np.flatnonzero((np.diff(cells) <= 0) & (np.diff(at) == 0))
    if falling.size:
        raise InputError(f"query {at[falling[0]]} must name each cell once, in ascending order")


def _require_weights(rows: Rows, least: float) -> None:
    pointers, _, weights = rows
    wrong = np.flatnonzero(~((weights >= least) & (weights <= 1)))
    if wrong.size:
        query = int(np.searchsorted(pointers, wrong[0], side="right")) - 1
        hint = "" if least else "; for weights down to -1 write is_signed=True"
        raise InputError(f"query {query} must have weights in [{least:g}, 1]{hint}")
