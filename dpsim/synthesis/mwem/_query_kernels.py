"""Loops that answer queries: tables of sums, boxes, overlaps of boxes, linear systems.

A *part* is one 0/1 query, or one cell of a marginal; a *box* has lower and upper ends.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def fill_table(values: NDArray[Any], shape: Integers, table: NDArray[Any]) -> None:
    """Sums over all cells before a corner: one zero more than cells along every axis."""
    table[:] = 0
    axes = shape.size
    inner = shape[axes - 1]
    rows = values.size // inner
    for row in range(rows):
        place, rest, stride = 1, row, inner + 1
        for axis in range(axes - 2, -1, -1):
            place += (rest % shape[axis] + 1) * stride
            rest //= shape[axis]
            stride *= shape[axis] + 1
        table[place : place + inner] = values[row * inner : (row + 1) * inner]
    stride = 1
    for axis in range(axes - 1, -1, -1):
        extent = shape[axis] + 1
        for first in range(0, table.size, extent * stride):
            for place in range(first + stride, first + extent * stride):
                table[place] += table[place - stride]
        stride *= extent


@njit(cache=True, nogil=True)
def box_corners(
    lower: Integers, upper: Integers, shape: Integers
) -> tuple[Integers, Integers, NDArray[np.int8]]:
    """Which places of the table of sums, with which signs, add up to each box.

    Corners on a lower side at 0 are left out: the table is zero there.
    """
    parts, axes = lower.shape
    pointers = np.zeros(parts + 1, np.int64)
    for part in range(parts):
        free = 0
        for axis in range(axes):
            free += lower[part, axis] > 0
        pointers[part + 1] = pointers[part] + (1 << free)
    places = np.zeros(pointers[parts], np.int64)
    signs = np.ones(pointers[parts], np.int8)
    for part in range(parts):
        first, found, stride = pointers[part], 1, 1
        for axis in range(axes - 1, -1, -1):
            for corner in range(first, first + found):
                if lower[part, axis] > 0:
                    places[corner + found] = places[corner] + lower[part, axis] * stride
                    signs[corner + found] = -signs[corner]
                places[corner] += upper[part, axis] * stride
            found *= 2 if lower[part, axis] > 0 else 1
            stride *= shape[axis] + 1
    return pointers, places, signs


@njit(cache=True, nogil=True)
def add_up(
    values: NDArray[Any],
    pointers: Integers,
    places: Integers,
    weights: NDArray[Any],
    answers: NDArray[Any],
) -> None:
    """``Σ weight · value`` over the places of each part, in their order."""
    for part in range(pointers.size - 1):
        total = answers.dtype.type(0)
        for entry in range(pointers[part], pointers[part + 1]):
            total += weights[entry] * values[places[entry]]
        answers[part] = total


@njit(cache=True, nogil=True)
def box_runs(
    lower: Integers, upper: Integers, shape: Integers
) -> tuple[Integers, Integers, Integers]:
    """Pointers, starts and stops of the runs of cells that make up each box."""
    parts, axes = lower.shape
    pointers = np.zeros(parts + 1, np.int64)
    splits = np.zeros(parts, np.int64)
    for part in range(parts):
        split, runs = axes - 1, 1
        while split > 0 and lower[part, split] == 0 and upper[part, split] == shape[split]:
            split -= 1
        for axis in range(split):
            runs *= upper[part, axis] - lower[part, axis]
        splits[part] = split
        pointers[part + 1] = pointers[part] + runs
    starts = np.empty(pointers[parts], np.int64)
    stops = np.empty(pointers[parts], np.int64)
    for part in range(parts):
        split, inner = splits[part], 1
        for axis in range(split + 1, axes):
            inner *= shape[axis]
        for run in range(pointers[part + 1] - pointers[part]):
            rest, base, stride = run, 0, inner * shape[split]
            for axis in range(split - 1, -1, -1):
                extent = upper[part, axis] - lower[part, axis]
                base += (lower[part, axis] + rest % extent) * stride
                rest //= extent
                stride *= shape[axis]
            place = pointers[part] + run
            starts[place] = base + lower[part, split] * inner
            stops[place] = base + upper[part, split] * inner
    return pointers, starts, stops


@njit(inline="always")
def _cross(
    places: Integers,
    weights: Floats,
    found: int,
    sides: tuple[int, float, int, float],
    stride: int,
) -> int:
    """Cross the corners found so far with both sides of one more axis; how many there are."""
    high, high_share, low, low_share = sides
    grown = found
    for known in range(found):
        place, weight = places[known], weights[known]
        places[known], weights[known] = place + high, weight * (1.0 - high_share)
        if high_share > 0.0:
            places[grown], weights[grown] = place + high + stride, weight * high_share
            grown += 1
        if low > 0:
            places[grown], weights[grown] = place + low, -weight * (1.0 - low_share)
            grown += 1
        if low_share > 0.0:
            places[grown], weights[grown] = place + low + stride, -weight * low_share
            grown += 1
    return grown


@njit(cache=True, nogil=True)
def atom_answers(
    table: Floats,
    shape: Integers,
    ranks: tuple[Integers, Integers],
    offsets: Integers,
    cuts: tuple[Integers, Floats],
) -> Floats:
    """Sums over boxes whose sides may run through atoms, where mass is spread evenly.

    ``table`` holds sums before the atoms' corners. ``cuts`` gives the slab of every place where
    a box may end and how far into the slab it lies, all axes one after the other from
    ``offsets``; ``ranks`` are the boxes' ends as indices of these places. A side is a mean of
    two corners of its slab, so a box is a sum of 4^d corners; those of weight 0 are left out.
    """
    lower, upper = ranks
    slabs, shares = cuts
    parts, axes = lower.shape
    answers = np.empty(parts, np.float64)
    places = np.empty(4**axes, np.int64)
    weights = np.empty(4**axes, np.float64)
    strides = np.ones(axes, np.int64)
    for axis in range(axes - 2, -1, -1):
        strides[axis] = strides[axis + 1] * (shape[axis + 1] + 1)
    for part in range(parts):
        found = 1
        places[0], weights[0] = 0, 1.0
        for axis in range(axes):
            stride = strides[axis]
            low = offsets[axis] + lower[part, axis]
            high = offsets[axis] + upper[part, axis]
            low_place, low_share = slabs[low] * stride, shares[low]
            high_place, high_share = slabs[high] * stride, shares[high]
            sides = (high_place, high_share, low_place, low_share)
            found = _cross(places, weights, found, sides, stride)
        total = 0.0
        for known in range(found):
            total += weights[known] * table[places[known]]
        answers[part] = total
    return answers


@njit(cache=True, nogil=True)
def spread(
    amounts: Floats, pointers: Integers, places: Integers, signs: NDArray[np.int8], size: int
) -> Floats:
    """Amounts at the corners of boxes: sums from behind give each cell those of its boxes."""
    table = np.zeros(size, np.float64)
    for part in range(amounts.size):
        for entry in range(pointers[part], pointers[part + 1]):
            table[places[entry]] += signs[entry] * amounts[part]
    return table


@njit(inline="always")
def _box_sum(table: Floats, lower: Integers, upper: Integers, shape: Integers) -> float:
    """The sum over one box, from the table of sums."""
    total = 0.0
    for corner in range(1 << shape.size):
        place, stride, sign = 0, 1, 1.0
        for axis in range(shape.size - 1, -1, -1):
            is_low = corner >> axis & 1
            place += (lower[axis] if is_low else upper[axis]) * stride
            sign = -sign if is_low else sign
            stride *= shape[axis] + 1
        total += sign * table[place]
    return total


@njit(cache=True, nogil=True)
def overlaps(table: Floats, lower: Integers, upper: Integers, shape: Integers) -> Floats:
    """The sum over the overlap of each pair of boxes; on the diagonal that of the box."""
    parts, axes = lower.shape
    sums = np.zeros((parts, parts), np.float64)
    low, high = np.empty(axes, np.int64), np.empty(axes, np.int64)
    for left in range(parts):
        for right in range(left + 1):
            is_empty = False
            for axis in range(axes):
                low[axis] = max(lower[left, axis], lower[right, axis])
                high[axis] = min(upper[left, axis], upper[right, axis])
                is_empty |= low[axis] >= high[axis]
            if not is_empty:
                sums[left, right] = _box_sum(table, low, high, shape)
                sums[right, left] = sums[left, right]
    return sums


@njit(cache=True, nogil=True)
def row_moments(weights: Floats, law: Floats) -> tuple[Floats, Floats]:
    """``Σ w(x) p(x)`` for each row of weights, and ``Σ w(x) v(x) p(x)`` for each pair."""
    rows, cells = weights.shape
    means = np.zeros(rows, np.float64)
    products = np.zeros((rows, rows), np.float64)
    for left in range(rows):
        for cell in range(cells):
            means[left] += weights[left, cell] * law[cell]
        for right in range(left + 1):
            total = 0.0
            for cell in range(cells):
                total += weights[left, cell] * weights[right, cell] * law[cell]
            products[left, right] = total
            products[right, left] = total
    return means, products


@njit(cache=True, nogil=True)
def solve_positive(matrix: Floats, vector: Floats) -> tuple[Floats, bool]:
    """The solution of a positive definite system by Cholesky; False if it is not one.

    Columns are eliminated one after the other: the same bits on every machine and for any
    number of threads, which a library of linear algebra does not promise.
    """
    size = vector.size
    lower = matrix.copy()
    solution = vector.copy()
    column = np.empty(size, np.float64)
    for pivot in range(size):
        if not lower[pivot, pivot] > 0.0:
            return solution, False
        root = sqrt(lower[pivot, pivot])
        lower[pivot, pivot] = root
        solution[pivot] /= root
        for row in range(pivot + 1, size):
            lower[row, pivot] /= root
            column[row] = lower[row, pivot]
            solution[row] -= column[row] * solution[pivot]
        for row in range(pivot + 1, size):
            factor = column[row]
            for other in range(pivot + 1, row + 1):
                lower[row, other] -= factor * column[other]
    for row in range(size - 1, -1, -1):
        solution[row] /= lower[row, row]
        for other in range(row):
            solution[other] -= lower[row, other] * solution[row]
    return solution, True


@njit(cache=True, nogil=True)
def count_inside(codes: NDArray[Any], lower: Integers, upper: Integers) -> Integers:
    """How many records, one per column of codes, lie inside each box."""
    parts, axes = lower.shape
    counts = np.zeros(parts, np.int64)
    for part in range(parts):
        for record in range(codes.shape[1]):
            is_inside = True
            for axis in range(axes):
                code = np.int64(codes[axis, record])
                is_inside &= lower[part, axis] <= code < upper[part, axis]
            counts[part] += is_inside
    return counts
