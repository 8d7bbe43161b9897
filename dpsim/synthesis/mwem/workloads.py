"""Workloads: the linear queries that a synthetic histogram is meant to answer well."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise, product
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.privacy import Neighbors
from dpsim.synthesis.mwem._query_kernels import add_up, box_corners, box_runs, fill_table

Integers: TypeAlias = NDArray[np.int64]
Layout: TypeAlias = tuple[Integers, Integers, Integers, Integers]
"""Pointers from queries to parts and from parts to runs of cells; starts and stops of runs."""
Cells: TypeAlias = tuple[Integers, Integers, Integers]
"""Pointers from queries to parts and from parts to cells; the cells."""

_SMALL_DOMAIN = 1 << 12
_MOST_CELLS = 1 << 24


class Workload(Protocol):
    """Linear queries over the cells of a public domain.

    A query has one *part*, the number it asks for, or several: the cells of a whole marginal.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The domain: how many values each attribute has."""

    @property
    def groups(self) -> Integers:
        """Query i has the parts ``groups[i] .. groups[i + 1] - 1``."""

    @property
    def is_counting(self) -> bool:
        """Whether every weight is 0 or 1, so that true answers are whole numbers."""

    @property
    def digest(self) -> str:
        """A name for the workload's content, for the plan."""

    def sensitivity(self, neighbors: Neighbors) -> int:
        """The most one record changes a query's answer and its score, in L1."""

    def answers(self, histogram: NDArray[Any]) -> NDArray[Any]:
        """One number per part: int64 from whole counts and weights, else float64."""


def domain_of(shape: Iterable[object]) -> tuple[int, ...]:
    """The checked sizes of a public domain: whole numbers, one attribute at least."""
    sizes = tuple(require_at_least(1, shape=size) for size in shape)
    if not sizes:
        raise InputError("shape must name the size of one attribute at least, got ()")
    return sizes


def flat_cells(histogram: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The histogram's cells in one row, as int64 or float64."""
    values = np.asarray(histogram)
    if values.shape not in (shape, (prod(shape),)):
        raise InputError(f"a histogram over {shape} is needed, got shape {values.shape}")
    kind = np.int64 if values.dtype.kind in "iu" else np.float64
    return np.ascontiguousarray(values, kind).reshape(-1)


def digest_of(name: str, *arrays: NDArray[Any]) -> str:
    """A digest of arrays, whatever machine they lie on."""
    total = blake2b(name.encode(), digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return total.hexdigest()


@dataclass(frozen=True, eq=False)
class BoxWorkload:
    """Counts of records inside boxes: ``lower ≤ code < upper`` in every attribute.

    Intervals are boxes in one attribute, rectangles in two; a cell of a marginal is a box that
    is whole in the other attributes. All answers come from one table of sums: 2^d look-ups
    for each box, fewer where it starts at 0.
    """

    shape: tuple[int, ...]
    lower: Integers
    upper: Integers
    groups: Integers

    is_counting = True

    @classmethod
    def of(cls, shape: Sequence[int], boxes: Sequence[Sequence[int]]) -> BoxWorkload:
        """One query per box, given as ``lo, hi`` of each attribute, both ends included."""
        sizes = domain_of(shape)
        rows = [tuple(box) for box in boxes]
        if not rows:
            raise InputError("a workload needs one query at least, got none")
        for index, row in enumerate(rows):
            _require_box(index, row, sizes)
        ends = np.array(rows, np.int64)
        return cls._checked(sizes, ends[:, 0::2], ends[:, 1::2] + 1)

    @classmethod
    def _checked(cls, shape: tuple[int, ...], lower: Integers, upper: Integers) -> BoxWorkload:
        n = len(lower)
        distinct = len(np.unique(np.concatenate([lower, upper], axis=1), axis=0))
        if distinct < n:
            warnings.warn(
                f"{n - distinct} of {n} queries repeat another one: they are kept, and may be "
                "chosen twice",
                stacklevel=3,
            )
        corners = np.ascontiguousarray(lower), np.ascontiguousarray(upper)
        return cls(shape, *corners, np.arange(n + 1, dtype=np.int64))

    @classmethod
    def marginal_cells(
        cls, shape: Sequence[int], marginals: Sequence[Sequence[int]]
    ) -> BoxWorkload:
        """One query per cell of each marginal, given as the attributes it keeps."""
        whole = cls.marginals(shape, marginals)
        return cls._checked(whole.shape, whole.lower, whole.upper)

    @classmethod
    def marginals(cls, shape: Sequence[int], marginals: Sequence[Sequence[int]]) -> BoxWorkload:
        """One query per marginal: all its cells are measured at once, for one price."""
        sizes = domain_of(shape)
        if not marginals:
            raise InputError("a workload needs one query at least, got none")
        lower, upper, groups = [], [], [0]
        for index, attributes in enumerate(marginals):
            kept = _require_attributes(index, attributes, len(sizes))
            for cell in product(*(range(sizes[attribute]) for attribute in kept)):
                codes = dict(zip(kept, cell, strict=True))
                lower.append([codes.get(axis, 0) for axis in range(len(sizes))])
                upper.append([codes.get(axis, size - 1) + 1 for axis, size in enumerate(sizes)])
            groups.append(len(lower))
        corners = np.array(lower, np.int64), np.array(upper, np.int64)
        return cls(sizes, *corners, np.array(groups, np.int64))

    @property
    def is_whole(self) -> bool:
        """Whether queries are whole marginals rather than single counts."""
        return self.groups.size - 1 < len(self.lower)

    @cached_property
    def digest(self) -> str:
        """A name for the workload's content."""
        return digest_of(f"boxes {self.shape}", self.lower, self.upper, self.groups)

    def sensitivity(self, neighbors: Neighbors) -> int:
        """1; or 2 for a whole marginal if a record is replaced: it changes two cells."""
        return 2 if self.is_whole and neighbors == "replace" else 1

    def answers(self, histogram: NDArray[Any]) -> NDArray[Any]:
        """One sum per part: exact in int64 for whole counts."""
        values = flat_cells(histogram, self.shape)
        table = np.empty(prod(size + 1 for size in self.shape), values.dtype)
        fill_table(values, np.array(self.shape, np.int64), table)
        answers = np.empty(len(self.lower), values.dtype)
        add_up(table, *self.corners, answers)
        return answers

    @cached_property
    def corners(self) -> tuple[Integers, Integers, NDArray[np.int8]]:
        """Places and signs in the table of sums, per part."""
        corners: tuple[Integers, Integers, NDArray[np.int8]]
        corners = box_corners(self.lower, self.upper, np.array(self.shape, np.int64))
        return corners

    def parts_of(self, queries: Sequence[int]) -> tuple[Integers, Integers]:
        """The parts of some queries, one after the other, and pointers to them."""
        return parts_of(self.groups, queries)

    def layout(self, queries: Sequence[int]) -> Layout:
        """The cells of some queries, as runs."""
        parts, groups = self.parts_of(queries)
        shape = np.array(self.shape, np.int64)
        runs: tuple[Integers, Integers, Integers]
        runs = box_runs(self.lower[parts], self.upper[parts], shape)
        return (groups, *runs)

    @cached_property
    def cells(self) -> Cells | None:
        """The cells of all queries one by one; None where domain or workload is too large."""
        sizes = np.prod(self.upper - self.lower, axis=1, dtype=np.float64)
        if prod(self.shape) > _SMALL_DOMAIN or sizes.sum() > _MOST_CELLS:
            return None
        groups, runs, starts, stops = self.layout(range(self.groups.size - 1))
        lengths = stops - starts
        ends = np.cumsum(lengths)
        places = np.arange(int(lengths.sum())) - np.repeat(ends - lengths - starts, lengths)
        pointers = np.concatenate([np.zeros(1, np.int64), ends])[runs]
        return groups, pointers, places


def parts_of(groups: Integers, queries: Sequence[int]) -> tuple[Integers, Integers]:
    """The parts of some queries, one after the other, and pointers to them."""
    chosen = np.asarray(queries, np.int64)
    sizes = groups[chosen + 1] - groups[chosen]
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    inside = np.arange(pointers[-1]) - np.repeat(pointers[:-1], sizes)
    return np.repeat(groups[chosen], sizes) + inside, pointers


def _require_box(index: int, row: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(row) != 2 * len(shape):
        raise InputError(
            f"query {index} must give lo and hi of each of {len(shape)} attributes, "
            f"got {len(row)} numbers"
        )
    for axis, (size, lo, hi) in enumerate(zip(shape, row[0::2], row[1::2], strict=True)):
        for end in (lo, hi):
            if isinstance(end, bool) or not isinstance(end, (int, np.integer)):
                raise InputError(f"query {index} must have whole numbers as ends, got {end!r}")
        if lo > hi:
            raise InputError(
                f"query {index} must have lo <= hi in attribute {axis}, got {lo} > {hi}"
            )
        if lo < 0 or hi >= size:
            raise InputError(
                f"query {index} must lie inside 0..{size - 1} in attribute {axis}, "
                f"got {lo}..{hi}"
            )


def _require_attributes(index: int, attributes: Sequence[int], n: int) -> tuple[int, ...]:
    kept = tuple(sorted(attributes))
    if not kept or kept[0] < 0 or kept[-1] >= n or any(a == b for a, b in pairwise(kept)):
        raise InputError(
            f"marginal {index} must keep different attributes of 0..{n - 1}, "
            f"got {tuple(attributes)}"
        )
    return kept
