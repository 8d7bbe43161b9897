"""Compiled loops over sparse ratings: by item, rows of pairs, the best of many."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_ROUNDED_UP = 1 + 1e-9
"""More than the rounding errors of any sum."""

Floats = NDArray[np.float64]
Ends = NDArray[np.int64]
Items = NDArray[np.int32]


@njit(cache=True, nogil=True)
def by_item(
    n_items: int, indptr: Ends, items: Items, units: Floats
) -> tuple[Ends, Items, Floats, Ends, Floats, Floats]:
    """The ratings by item, users ascending; counts, sums and sums of squares per item."""
    counts = np.zeros(n_items, np.int64)
    sums, squares = np.zeros(n_items), np.zeros(n_items)
    for place in range(items.size):
        item = items[place]
        counts[item] += 1
        sums[item] += units[place]
        squares[item] += units[place] * units[place]
    ends = np.zeros(n_items + 1, np.int64)
    ends[1:] = np.cumsum(counts)
    free = ends[:-1].copy()
    users, values = np.empty(items.size, np.int32), np.empty(items.size)
    for user in range(indptr.size - 1):
        for place in range(indptr[user], indptr[user + 1]):
            item = items[place]
            users[free[item]] = user
            values[free[item]] = units[place]
            free[item] += 1
    return ends, users, values, counts, sums, squares


@njit(cache=True, nogil=True)
def inverse_norms(units: Floats, items: Items, squares: Floats) -> Floats:
    """Per rating 1/√(‖r_i‖² - r²): the item's norm without this rating, inverted."""
    inverses = np.empty(units.size)
    for place in range(units.size):
        left = squares[items[place]] - units[place] * units[place]
        inverses[place] = 1.0 / sqrt(left) if left > 0.0 else inf
    return inverses


@njit(cache=True, nogil=True)
def dot_row(item: int, columns: Any, rows: Any, row: Floats) -> None:  # noqa: ANN401
    """Fill the first column with the products r_i·r_j of one item with all items."""
    ends, users, values = columns
    indptr, items, units = rows
    row[:] = 0.0
    for place in range(ends[item], ends[item + 1]):
        value = values[place]
        for other in range(indptr[users[place]], indptr[users[place] + 1]):
            row[items[other], 0] += value * units[other]


@njit(cache=True, nogil=True)
def sensitivity_row(item: int, columns: Any, rows: Any, inverses: Any, row: Floats) -> None:  # noqa: ANN401
    """Fill three columns: r_i·r_j and, over co-raters, the largest r_xi r_xj/N' and 1/N'."""
    ends, users, values = columns
    indptr, items, units = rows
    by_rating, by_item_place = inverses
    row[:] = 0.0
    for place in range(ends[item], ends[item + 1]):
        value, inverse = values[place], by_item_place[place]
        for other in range(indptr[users[place]], indptr[users[place] + 1]):
            j = items[other]
            product, factor = value * units[other], inverse * by_rating[other]
            row[j, 0] += product
            if product * factor > row[j, 1]:  # noqa: PLR1730 - false for 0 · ∞, which is no number
                row[j, 1] = product * factor
            row[j, 2] = max(row[j, 2], factor)


@njit(inline="always")
def similarity_of(i: Any, j: Any, dot: Any, facts: Any) -> Any:  # noqa: ANN401
    """``(c · r_i·r_j - a_i a_j) / (b_i b_j)``, at most 1; 0 if an item does not vary."""
    factor, shifts, scales = facts[0], facts[1], facts[2]
    below = scales[i] * scales[j]
    return min(1.0, (factor * dot - shifts[i] * shifts[j]) / below) if below > 0.0 else 0.0


@njit(inline="always")
def sensitivity_of(dot: Any, first: Any, second: Any, norm: Any) -> Any:  # noqa: ANN401
    """RS of a pair from its row's three columns and N = ‖r_i‖ ‖r_j‖; 1 where an N' is 0."""
    if second == inf:
        return 1.0
    return min(1.0, max(first, dot * (second - 1.0 / norm))) if second > 0.0 else 0.0


@njit(inline="always")
def is_worse(keys: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    """Whether a place comes later: by a smaller key or, of equal keys, as the higher place."""
    return keys[left] < keys[right] or (keys[left] == keys[right] and left > right)


@njit(cache=True, nogil=True)
def _sift(keys: Floats, heap: Items, place: int, size: int) -> None:
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and is_worse(keys, heap[child + 1], heap[child]):
            child += 1
        if not is_worse(keys, heap[child], heap[place]):
            return
        heap[child], heap[place] = heap[place], heap[child]
        place = child


@njit(cache=True, nogil=True)
def kth_best(keys: Floats, n: int, k: int, heap: Items) -> int:
    """The place of the k-th largest of the first n keys; of equal ones the lower is larger."""
    for place in range(k):
        heap[place] = place
    for place in range(k // 2 - 1, -1, -1):
        _sift(keys, heap, place, k)
    for place in range(k, n):
        if is_worse(keys, heap[0], place):
            heap[0] = place
            _sift(keys, heap, 0, k)
    return int(heap[0])


@njit(cache=True, nogil=True)
def fill_row(item: int, model: Any, row: Floats) -> None:  # noqa: ANN401
    """The row of one item: with sensitivities if there is room for them."""
    if row.shape[1] == 1:
        dot_row(item, model[0], model[1], row)
    else:
        sensitivity_row(item, model[0], model[1], model[2], row)


@njit(cache=True, nogil=True)
def similarity_rows(first: int, rows: NDArray[np.float32], model: Any) -> None:  # noqa: ANN401
    """The similarities of the items from ``first`` on with all items; 1 with themselves."""
    row = np.empty((rows.shape[1], 1))
    for place in range(rows.shape[0]):
        fill_row(first + place, model, row)
        for other in range(rows.shape[1]):
            rows[place, other] = similarity_of(first + place, other, row[other, 0], model[3])
        rows[place, first + place] = 1.0


@njit(cache=True, nogil=True)
def sensitivity_rows(first: int, rows: NDArray[np.float32], model: Any) -> None:  # noqa: ANN401
    """RS of the items from ``first`` on with all items; 0 without co-raters and with itself."""
    row = np.empty((rows.shape[1], 3))
    norms = model[3][3]
    for place in range(rows.shape[0]):
        item = first + place
        fill_row(item, model, row)
        for other in range(rows.shape[1]):
            rows[place, other] = sensitivity_of(
                row[other, 0], row[other, 1], row[other, 2], norms[item] * norms[other]
            )
        rows[place, item] = 0.0


@njit(inline="always")
def _insert(score: Any, item: Any, scores: Any, items: Any) -> None:  # noqa: ANN401
    """Put an item into a list of falling scores, behind equal ones, if it belongs there."""
    place = items.size - 1
    if score <= scores[place]:
        return
    while place > 0 and score > scores[place - 1]:
        scores[place], items[place] = scores[place - 1], items[place - 1]
        place -= 1
    scores[place], items[place] = score, item


@njit(cache=True, nogil=True)
def rank_unseen(scores: Floats, indptr: Ends, seen: Items, n: int) -> Items:
    """Per user the n unseen items of the largest scores, the lower item if equal; else -1.

    ``scores`` has a row per user, or a single one for all.
    """
    users = indptr.size - 1
    ranked, best = np.full((users, n), -1, np.int32), np.full((users, n), -inf)
    for user in range(users):
        mine, place, end = (
            scores[min(user, scores.shape[0] - 1)],
            indptr[user],
            indptr[user + 1],
        )
        for item in range(scores.shape[1]):
            if place < end and seen[place] == item:
                place += 1
            else:
                _insert(mine[item], item, best[user], ranked[user])
    return ranked


@njit(cache=True, nogil=True)
def rank_by_cosine(k: int, n: int, columns: Any, rows: Any, history: Any) -> Items:  # noqa: ANN401
    """Per user the n unseen items with the largest sum of k cosines to what the user rated.

    One item after the other, for all users: a row of pairs at a time, and no matrix.
    """
    indptr, items = history
    ends, n_items = columns[0], columns[0].size - 1
    roots = np.sqrt((ends[1:] - ends[:-1]).astype(np.float64))
    users = indptr.size - 1
    ranked, best = np.full((users, n), -1, np.int32), np.full((users, n), -inf)
    row, near, heap = np.empty((n_items, 1)), np.empty(n_items), np.empty(n_items, np.int32)
    for item in range(n_items):
        dot_row(item, columns, rows, row)
        for other in range(n_items):
            if row[other, 0] > 0.0:
                row[other, 0] /= roots[item] * roots[other]
        for user in range(users):
            rated = items[indptr[user] : indptr[user + 1]]
            score = _best_sum(item, rated, (k, best[user, n - 1]), row, (near, heap))
            if score >= 0.0:
                _insert(score, item, best[user], ranked[user])
    return ranked


@njit(cache=True, nogil=True)
def _best_sum(item: int, rated: Items, needed: Any, row: Floats, space: Any) -> float:  # noqa: ANN401
    """The sum of the k largest entries of the row among rated items.

    -1 if the item itself is rated, or if the sum cannot exceed what is needed.
    """
    k, least = needed
    near, heap = space
    found, largest, total = 0, 0.0, 0.0
    for place in range(rated.size):
        if rated[place] == item:
            return -1.0
        value = row[rated[place], 0]
        near[found] = value
        found += value > 0.0
        largest = max(largest, value)
        total += value
    if min(total, k * largest * _ROUNDED_UP) <= least:
        return -1.0
    if found <= k:
        return total
    last, total = kth_best(near, found, k, heap), 0.0
    for place in range(found):
        if not is_worse(near, place, last):
            total += near[place]
    return total
