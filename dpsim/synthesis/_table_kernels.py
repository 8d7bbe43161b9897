"""Counting cells of many subsets of attributes: sums of c ln c, distances, joint counts.

Sums are made in whole numbers: every way to count gives the same bits, in any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROOT_HALF = 0.70710678118654752440
_BANKED = 2048  # cells of which four copies stay in the first cache
_SPARSE = 4  # users per cell below which lonely users are dropped


@njit(cache=True, nogil=True)
def natural_log(value: float) -> float:
    """The natural logarithm, from basic arithmetic alone: the same bits on every machine."""
    part, power = math.frexp(value)
    if part < _ROOT_HALF:
        part, power = 2.0 * part, power - 1
    z = (part - 1.0) / (part + 1.0)
    square, series = z * z, 0.0
    for term in range(12, 0, -1):
        series = (series + 1.0 / (2 * term + 1)) * square
    return power * _LN2_HIGH + (power * _LN2_LOW + 2.0 * (z + z * series))


@njit(cache=True, nogil=True)
def term_of(count: int, scale: float) -> int:
    """The term c ln c as a whole number of 1/scale."""
    if count <= 1:
        return 0
    return int(np.rint(count * natural_log(np.float64(count)) * scale))


@njit(cache=True, nogil=True)
def terms_up_to(limit: int, scale: float) -> NDArray[np.int64]:
    """`term_of` for 0..limit."""
    terms = np.empty(limit + 1, np.int64)
    for count in range(limit + 1):
        terms[count] = term_of(count, scale)
    return terms


@njit(inline="always")
def term_in(count: Any, terms: Any, scale: Any) -> Any:  # noqa: ANN401
    """`term_of`, from a list as far as it goes."""
    return terms[count] if count < terms.size else term_of(count, scale)


@njit(cache=True, nogil=True)
def compound(
    codes: NDArray[Any], sizes: NDArray[np.int64], row: NDArray[np.int16]
) -> NDArray[np.int64]:
    """One cell per user: mixed radix, the first attribute leads."""
    cells = np.zeros(codes.shape[1], np.int64)
    for attribute in row:
        size, column = sizes[attribute], codes[attribute]
        for i in range(cells.size):
            cells[i] = cells[i] * size + column[i]
    return cells


@njit(cache=True, nogil=True)
def count_cells(cells: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """How many users are in each cell."""
    counts = np.zeros(size, np.int64)
    for cell in cells:
        counts[cell] += 1
    return counts


@njit(nogil=True)
def _dense_sum(labels: Any, column: Any, size: Any, cells: Any, work: Any) -> Any:  # noqa: ANN401
    """Σ of terms over all cells, where every user has a label: count, then see each cell."""
    histogram, terms, scale = work
    n = labels.size
    banks = 4 if cells <= _BANKED else 1
    if banks == 4:  # noqa: PLR2004 - one counter four times in a row would wait for itself
        second, third, fourth = cells, 2 * cells, 3 * cells
        whole = n - n % 4
        for i in range(0, whole, 4):
            histogram[labels[i] * size + column[i]] += 1
            histogram[second + labels[i + 1] * size + column[i + 1]] += 1
            histogram[third + labels[i + 2] * size + column[i + 2]] += 1
            histogram[fourth + labels[i + 3] * size + column[i + 3]] += 1
        for i in range(whole, n):
            histogram[labels[i] * size + column[i]] += 1
    else:
        for i in range(n):
            histogram[labels[i] * size + column[i]] += 1
    total = 0
    for cell in range(cells):
        count = 0
        for bank in range(banks):
            count += histogram[bank * cells + cell]
            histogram[bank * cells + cell] = 0
        total += term_in(count, terms, scale)
    return total


@njit(nogil=True)
def _sparse_sum(users: Any, labels: Any, column: Any, size: Any, work: Any) -> Any:  # noqa: ANN401
    """The same for some users among many cells: only cells that were touched are seen."""
    histogram, terms, scale = work
    for i in range(users.size):
        histogram[labels[i] * size + column[users[i]]] += 1
    total = 0
    for i in range(users.size):
        cell = labels[i] * size + column[users[i]]
        total += term_in(histogram[cell], terms, scale)
        histogram[cell] = 0
    return total


@njit(nogil=True)
def _sorted_sum(users: Any, labels: Any, column: Any, size: Any, work: Any) -> Any:  # noqa: ANN401
    """The same where the cells are too many to be counted in memory: runs of sorted cells."""
    _, terms, scale = work
    keys = np.empty(users.size, np.int64)
    for i in range(users.size):
        keys[i] = labels[i] * size + column[users[i]]
    keys.sort()
    total, start = 0, 0
    for i in range(1, keys.size + 1):
        if i == keys.size or keys[i] != keys[start]:
            total += term_in(i - start, terms, scale)
            start = i
    return total


@njit(nogil=True)
def _few_sum(users: Any, labels: Any, column: Any, size: Any, cells: Any, work: Any) -> Any:  # noqa: ANN401
    """The same, whichever way the cells allow."""
    if cells <= work[0].size:
        return _sparse_sum(users, labels, column, size, work)
    return _sorted_sum(users, labels, column, size, work)


@njit(nogil=True)
def _full_sum(users: Any, labels: Any, column: Any, size: Any, cells: Any, work: Any) -> Any:  # noqa: ANN401
    """The same for all users."""
    if cells <= min(users.size, work[0].size // 4):
        return _dense_sum(labels, column, size, cells, work)
    return _few_sum(users, labels, column, size, cells, work)


@njit(nogil=True)
def _regroup(users: Any, labels: Any, column: Any, size: Any, histogram: Any) -> Any:  # noqa: ANN401
    """Users who share their cell with another, with new labels 0..groups-1, and the groups.

    Who is alone in a cell is alone in every finer one and adds 1 ln 1 = 0: the stripped
    partitions of TANE (Huhtala, Kärkkäinen, Porkka, Toivonen 1999).
    """
    kept, names = np.empty(users.size, np.int32), np.empty(users.size, np.int64)
    for i in range(users.size):
        histogram[labels[i] * size + column[users[i]]] += 1
    groups, n = 0, 0
    for i in range(users.size):
        cell = labels[i] * size + column[users[i]]
        count = histogram[cell]
        if count > 1:
            groups += 1
            histogram[cell] = -groups
        if histogram[cell] < 0:
            kept[n], names[n] = users[i], -histogram[cell] - 1
            n += 1
    for i in range(users.size):
        histogram[labels[i] * size + column[users[i]]] = 0
    return kept[:n].copy(), names[:n].copy(), groups


@njit(nogil=True)
def _regroup_sorted(users: Any, labels: Any, column: Any, size: Any) -> Any:  # noqa: ANN401
    """The same where the cells are too many to be counted in memory."""
    keys = np.empty(users.size, np.int64)
    for i in range(users.size):
        keys[i] = labels[i] * size + column[users[i]]
    order = np.argsort(keys)
    kept, names = np.empty(users.size, np.int32), np.empty(users.size, np.int64)
    groups, n, start = 0, 0, 0
    for i in range(1, keys.size + 1):
        if i == keys.size or keys[order[i]] != keys[order[start]]:
            if i - start > 1:
                for place in range(start, i):
                    kept[n], names[n] = users[order[place]], groups
                    n += 1
                groups += 1
            start = i
    return kept[:n].copy(), names[:n].copy(), groups


@njit(nogil=True)
def _shared(rows: Any, place: Any) -> Any:  # noqa: ANN401
    """How many leading attributes a row shares with the one before, its last one aside."""
    shared, most = 0, rows.shape[1] - 1 if place > 0 else 0
    while shared < most and rows[place, shared] == rows[place - 1, shared]:
        shared += 1
    return shared


@njit(cache=True, nogil=True)
def term_sums(
    codes: NDArray[Any],
    sizes: NDArray[np.int64],
    rows: NDArray[np.int16],
    work: tuple[NDArray[np.int32], NDArray[np.int64], float],
) -> NDArray[np.int64]:
    """Σ of c ln c over the cells of each subset (rows of equal length, sorted for speed).

    Neighboring rows share all but their last attribute: the users' cells by the shared ones
    are made once. Work is an empty histogram, the terms and their scale.
    """
    histogram = work[0]
    n, width = codes.shape[1], rows.shape[1]
    sums = np.zeros(rows.shape[0], np.int64)
    everybody = np.arange(n).astype(np.int32)
    nobody = np.zeros(0, np.int64)
    all_labels = np.zeros((width, n), np.uint16)
    users, labels = [everybody] * width, [nobody] * width  # by level, once users are dropped
    groups, is_full = np.ones(width, np.int64), np.ones(width, np.bool_)
    for place in range(rows.shape[0]):
        row = rows[place]
        for level in range(
            _shared(rows, place) + 1, width
        ):  # level l: cells of the first l attributes
            column, size = codes[row[level - 1]], sizes[row[level - 1]]
            cells = groups[level - 1] * size
            if is_full[level - 1] and cells * _SPARSE <= n and cells <= 1 << 16:
                before, after = all_labels[level - 1], all_labels[level]
                for i in range(n):
                    after[i] = before[i] * size + column[i]
                groups[level], is_full[level] = cells, True
                continue
            old_users, old_labels = users[level - 1], labels[level - 1]
            if is_full[level - 1]:
                old_users, old_labels = everybody, all_labels[level - 1].astype(np.int64)
            if cells <= histogram.size:
                found = _regroup(old_users, old_labels, column, size, histogram)
            else:
                found = _regroup_sorted(old_users, old_labels, column, size)
            users[level], labels[level], groups[level] = found
            is_full[level] = False
        last = width - 1
        column, size = codes[row[last]], sizes[row[last]]
        cells = groups[last] * size
        if is_full[last]:
            sums[place] = _full_sum(everybody, all_labels[last], column, size, cells, work)
        else:
            sums[place] = _few_sum(users[last], labels[last], column, size, cells, work)
    return sums


@njit(nogil=True)
def _gap(counts: Any, n: Any) -> Any:  # noqa: ANN401
    """Σ |n c(x,π) - c(x) c(π)|: x is the middle axis, π the two around it."""
    child, parents = counts.sum(axis=2).sum(axis=0), counts.sum(axis=1)
    total = 0
    for o in range(counts.shape[0]):
        for x in range(counts.shape[1]):
            for i in range(counts.shape[2]):
                total += abs(n * counts[o, x, i] - child[x] * parents[o, i])
    return total


@njit(cache=True, nogil=True)
def independence_gaps(
    codes: NDArray[Any], sizes: NDArray[np.int64], rows: NDArray[np.int16]
) -> NDArray[np.int64]:
    """Σ |n c(x,π) - c(x) c(π)| over all cells, for each member of a subset as the child x."""
    n, width = codes.shape[1], rows.shape[1]
    gaps = np.zeros(rows.shape, np.int64)
    for place in range(rows.shape[0]):
        row = rows[place]
        cells = 1
        for attribute in row:
            cells *= sizes[attribute]
        counts = count_cells(compound(codes, sizes, row), cells)
        inner = cells
        for member in range(width):
            size = sizes[row[member]]
            inner //= size
            outer = cells // (size * inner)
            gaps[place, member] = _gap(counts.reshape((outer, size, inner)), n)
    return gaps
