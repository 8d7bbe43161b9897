"""Joint counts and entropies of some attributes of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log, log2, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_codes
from dpsim.core.errors import InputError
from dpsim.synthesis import _bit_kernels as bits
from dpsim.synthesis import _table_kernels as kernels
from dpsim.synthesis.table import CodeTable

Subsets: TypeAlias = NDArray[np.int16]
"""One row per subset of attributes, all of one size; each row ascending, rows sorted."""

MAX_CELLS = 1 << 26
"""The largest table of counts that is made: half a gigabyte."""

_BINARY_WIDTH = 4
_KEPT_TERMS = 1 << 17
_LEAST_ROOM, _ROOM_PER_USER = 1 << 18, 32


def cells_of(table: CodeTable, attributes: tuple[int, ...]) -> NDArray[np.int64]:
    """One compound code per user: mixed radix, the first attribute leads."""
    _require_fit(table, attributes)
    if prod(table.sizes[attribute] for attribute in attributes) > np.iinfo(np.int64).max:
        raise InputError(f"attributes {attributes} have too many cells together: name fewer")
    row = np.array(attributes, np.int16)
    cells: NDArray[np.int64] = kernels.compound(
        table.codes, np.array(table.sizes, np.int64), row
    )
    return cells


def joint_counts(table: CodeTable, attributes: tuple[int, ...]) -> Counts:
    """How many users are in each cell, one axis per attribute, in the order given."""
    _require_known(table, attributes)
    shape = tuple(table.sizes[attribute] for attribute in attributes)
    if prod(shape) > MAX_CELLS:
        raise InputError(
            f"attributes {attributes} have {prod(shape):,} cells together, and a table holds "
            f"{MAX_CELLS:,} at most: name fewer attributes"
        )
    counts: Counts = kernels.count_cells(cells_of(table, attributes), prod(shape))
    return counts.reshape(shape)


@dataclass(frozen=True, slots=True)
class Grid:
    """The whole numbers in which Σ c ln c is summed for n users: exact in any order."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InputError("a table needs at least one user to have entropies")

    @property
    def scale(self) -> float:
        """Units per nat: a power of two, with n ln n below 2^62 units."""
        return 2.0 ** (61 - max(0, int(log2(max(1.0, self.n * log(self.n)))) + 1))

    @property
    def error(self) -> float:
        """How far an entropy may be from its real value, in nats.

        Each of at most n cells is rounded by half a unit, and Σ/n; floats add some 2^-50 of
        ln n.
        """
        return 0.5 / self.scale + 2.0**-50 * max(1.0, log(self.n))

    def entropies(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """H = ln n - Σ/n."""
        return float(kernels.natural_log(float(self.n))) - sums / (self.scale * self.n)


def subset_entropies(table: CodeTable, subsets: Subsets) -> NDArray[np.float64]:
    """The plug-in entropy of each subset of attributes, in nats.

    H = ln n - (1/n) Σ c ln c over the cells. The terms are rounded once to whole numbers, so
    that sums are exact: histograms, sorted cells and packed bits give the same bits on every
    machine, and so does any order of cells: copies of a column have equal entropies.
    """
    _require_fit(table, tuple(int(attribute) for attribute in np.unique(subsets)))
    grid, sizes = Grid(table.n), np.array(table.sizes, np.int64)
    sums = np.zeros(len(subsets), np.int64)
    is_binary = (sizes[subsets] == 2).all(axis=1) & (subsets.shape[1] <= _BINARY_WIDTH)  # noqa: PLR2004
    terms = _terms(min(table.n, _KEPT_TERMS), grid.scale)
    if is_binary.any():
        words = bits.pack_bits(table.codes, np.unique(subsets[is_binary]))
        work = (_NO_ROOM, terms, grid.scale)
        sums[is_binary] = bits.binary_sums(words, table.n, subsets[is_binary], work)
    if not is_binary.all():
        rest = subsets[~is_binary]
        largest = np.prod(sizes[rest].astype(np.float64), axis=1).max()
        most = max(_LEAST_ROOM, _ROOM_PER_USER * table.n)
        room = int(min(most, max(4.0 * largest, 1.0)))
        work = (np.zeros(room, np.int32), terms, grid.scale)
        sums[~is_binary] = kernels.term_sums(table.codes, sizes, rest, work)
    return grid.entropies(sums)


def independence_distances(table: CodeTable, subsets: Subsets) -> NDArray[np.float64]:
    """R = ½ Σ |P(x,π) - P(x)P(π)|, one column per member of a subset as the child x.

    The sum is made of whole numbers and divided once, by 2n².
    """
    _require_fit(table, tuple(int(attribute) for attribute in np.unique(subsets)))
    sizes = np.array(table.sizes, np.int64)
    cells = np.prod(sizes[subsets].astype(np.float64), axis=1).max(initial=1.0)
    if cells > MAX_CELLS:
        raise InputError(
            f"a subset has {cells:,.0f} cells, and a table holds {MAX_CELLS:,} at most: "
            "lower the cell limit"
        )
    gaps: NDArray[np.int64] = kernels.independence_gaps(table.codes, sizes, subsets)
    return gaps / (2.0 * table.n * table.n)


_NO_ROOM = np.zeros(0, np.int32)


@lru_cache(maxsize=4)
def _terms(limit: int, scale: float) -> NDArray[np.int64]:
    terms: NDArray[np.int64] = kernels.terms_up_to(limit, scale)
    return terms


def _require_fit(table: CodeTable, attributes: tuple[int, ...]) -> None:
    """Refuse codes outside their domains: a kernel would count them elsewhere in memory."""
    _require_known(table, attributes)
    for attribute in attributes:
        try:
            require_codes(table.codes[attribute], table.sizes[attribute])
        except InputError as error:
            raise InputError(f"attribute {attribute}: {error}") from None


def _require_known(table: CodeTable, attributes: tuple[int, ...]) -> None:
    for attribute in attributes:
        if not 0 <= attribute < len(table.sizes):
            raise InputError(f"no attribute {attribute}: there are {len(table.sizes)}")
