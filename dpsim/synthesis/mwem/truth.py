"""What the host knows and nobody else: true answers, from a histogram or from records."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.privacy import Neighbors
from dpsim.synthesis.mwem._query_kernels import count_inside
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.workloads import BoxWorkload, Integers, domain_of

Outside = Literal["refuse", "clip", "drop"]
_SMALL_GRID = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The number of records, and the true answer of every part of a workload."""

    total: int
    answers: NDArray[Any]

    @classmethod
    def of(cls, workload: BoxWorkload | LinearWorkload, histogram: NDArray[Any]) -> Truth:
        """From whole counts per cell; the counts themselves are not kept."""
        counts = np.asarray(histogram)
        if counts.dtype.kind not in "iu" or counts.min(initial=0) < 0:
            raise InputError("a true histogram must hold whole counts >= 0, as integers")
        return cls(int(counts.sum()), workload.answers(counts))

    @classmethod
    def of_codes(cls, workload: BoxWorkload, codes: NDArray[Any]) -> Truth:
        """From codes inside the domain, one row per attribute, one column per record.

        Only the places where boxes end matter: the domain may be larger than any memory.
        """
        inside = codes_inside(codes, workload.shape)
        grid, lower, upper = [], [], []
        cells = np.zeros(inside.shape[1], np.int64)
        for axis, size in enumerate(workload.shape):
            low, high = workload.lower[:, axis], workload.upper[:, axis]
            cuts = np.unique(np.concatenate([[0, size], low, high]))
            grid.append(cuts.size - 1)
            lower.append(np.searchsorted(cuts, low))
            upper.append(np.searchsorted(cuts, high))
            cells = cells * grid[-1] + np.searchsorted(cuts, inside[axis], side="right") - 1
        if prod(grid) > max(_SMALL_GRID, 4 * inside.shape[1]):
            counts: Counts = count_inside(inside, workload.lower, workload.upper)
            return cls(inside.shape[1], counts)
        coarse = BoxWorkload(
            tuple(grid), np.stack(lower, axis=1), np.stack(upper, axis=1), workload.groups
        )
        return cls.of(coarse, np.bincount(cells, minlength=prod(grid)))


def codes_inside(
    codes: NDArray[Any],
    shape: tuple[int, ...],
    outside: Outside = "refuse",
    neighbors: Neighbors = "replace",
) -> Integers:
    """The records' codes, none outside the public domain, by a policy fixed beforehand.

    Refuse the table; clip a code to the nearest of the domain; or drop its record, which
    changes n and so needs neighbors that add or remove one.
    """
    sizes = np.array(domain_of(shape))[:, None]
    values = np.asarray(codes)
    if values.dtype.kind not in "iu" or values.ndim != 2 or len(values) != len(sizes):  # noqa: PLR2004
        raise InputError(
            f"codes must be whole numbers in {len(sizes)} rows, one per attribute, "
            f"got {values.dtype} of shape {values.shape}"
        )
    values = values.astype(np.int64)
    if outside not in get_args(Outside):
        raise InputError(f"outside must be one of {get_args(Outside)}, got {outside!r}")
    if outside == "clip":
        return np.asarray(np.clip(values, 0, sizes - 1))
    if outside == "drop" and neighbors != "add_remove":
        raise InputError("outside='drop' changes n, which is public here; write 'clip'")
    is_inside = ((values >= 0) & (values < sizes)).all(axis=0)
    if outside == "refuse" and not is_inside.all():
        raise InputError("some records lie outside the domain; declare it larger, or clip")
    return values[:, is_inside]


def count_cells(codes: Integers, shape: tuple[int, ...]) -> Counts:
    """How many records are in each cell of the domain."""
    cells = np.ravel_multi_index(tuple(codes), shape)
    return np.bincount(cells, minlength=prod(shape)).reshape(shape)
