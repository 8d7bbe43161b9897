"""The packed Gram: Σ over users of x xᵀ above the diagonal, in whole numbers.

Entry (i, j), i < j, of m items lies at ``i(2m - i - 1)/2 + (j - i - 1)``. So
rows that follow each other are one slice, and a block of them can be asked, summed, measured
and dropped by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.recommend._pair_kernels import add_pairs
from dpsim.recommend.residuals import ResidualRows

_CHUNK = 4_096
"""Users multiplied at once: 2^12 products below 2^40 stay below 2^53, so floats are exact."""
_DENSE_GAIN = 90
"""Multiplications that a dense product makes while the loop makes one."""


def packed_start(row: int, size: int) -> int:
    """Where a row of the packed triangle begins."""
    return row * (2 * size - row - 1) // 2


def row_blocks(size: int, entries: int) -> tuple[tuple[int, int], ...]:
    """Rows ``(first, stop)`` in blocks of about so many entries; together all m - 1 rows."""
    require_at_least(2, size=size)
    require_at_least(1, entries=entries)
    last = size - 1
    whole = packed_start(last, size)
    number = -(-whole // entries)
    borders = [
        bisect_left(
            range(last), whole * part // number, key=lambda row: packed_start(row, size)
        )
        for part in range(number)
    ]
    starts = sorted({*borders, last})
    return tuple(pairwise(starts))


def triangle(rows: ResidualRows, size: int, block: tuple[int, int] | None = None) -> Counts:
    """The users' packed Gram, or some rows of it; exact, whatever way it is made.

    Few ratings: a loop over pairs. Many: a dense product of floats that hold whole numbers.
    """
    first, stop = block or (0, size - 1)
    if not 0 <= first <= stop <= size - 1:
        raise InputError(f"rows must lie in 0..{size - 1}, got {first} to {stop}")
    origin = packed_start(first, size)
    packed = np.zeros(packed_start(stop, size) - origin, np.int64)
    for start in range(0, rows.n, _CHUNK):
        ends = rows.indptr[start : start + _CHUNK + 1]
        low, high = int(ends[0]), int(ends[-1])
        part = ResidualRows(ends - low, rows.places[low:high], rows.values[low:high])
        if _is_dense(part, size, first, stop):
            packed += _dense(part, size, first, stop)
        else:
            add_pairs(part.indptr, part.places, part.values, (first, stop), size, packed)
    return packed


def _is_dense(rows: ResidualRows, size: int, first: int, stop: int) -> bool:
    counts = np.diff(rows.indptr)
    share = (stop - first) / size
    pairs = share * float((counts * counts).sum()) / 2
    return rows.n * (stop - first) * (size - first) < _DENSE_GAIN * pairs


def _dense(rows: ResidualRows, size: int, first: int, stop: int) -> Counts:
    matrix = np.zeros((rows.n, size))
    users = np.repeat(np.arange(rows.n), np.diff(rows.indptr))
    matrix[users, rows.places] = rows.values
    product = matrix[:, first:stop].T @ matrix[:, first:]
    above = np.arange(size - first) > np.arange(stop - first)[:, None]
    return product[above].astype(np.int64)


def unpack(packed: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The symmetric matrix of a whole packed triangle; its diagonal is 0."""
    if packed.shape != (packed_start(size - 1, size),):
        raise InputError(
            f"a triangle of {size} items has {packed_start(size - 1, size)} entries"
        )
    matrix = np.zeros((size, size))
    matrix[np.triu(np.ones((size, size), np.bool_), 1)] = packed
    matrix += matrix.T
    return matrix
