"""Compiled loops that choose neighbors and predict ratings from them."""

from __future__ import annotations

from math import e, inf, log
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import words_of
from dpsim.recommend._item_kernels import (
    fill_row,
    is_worse,
    kth_best,
    sensitivity_of,
)

_MANTISSA = np.uint64(12)
_LEAST_WEIGHT = 1e-12
RS_BINS = 20

Floats = NDArray[np.float64]


@njit(inline="always")
def _uniform(word: Any) -> Any:  # noqa: ANN401
    """``(k + ½)/2^52`` for the upper 52 bits k of a word: never 0, never 1."""
    return (np.float64(word >> _MANTISSA) + 0.5) * 2.0**-52


@njit(inline="always")
def _gumbel(place: Any, item: Any, key: Any) -> Any:  # noqa: ANN401
    word = words_of(np.uint64(place), np.uint64(item), key[0], key[1])[0]
    return -log(-log(_uniform(word)))


@njit(inline="always")
def _laplace(place: Any, item: Any, key: Any) -> Any:  # noqa: ANN401
    """Standard Laplace noise: the sign of u - ½, and -ln of twice the distance to the end."""
    u = _uniform(words_of(np.uint64(place), np.uint64(item), key[0], key[1])[0])
    return log(2.0 * u) if u < 0.5 else -log(2.0 * (1.0 - u))  # noqa: PLR2004


@njit(cache=True, nogil=True)
def set_logits(n: int, k: int, settings: Any, found: Any) -> bool:  # noqa: ANN401
    """Selection log-weights ε ŝ/(4k B) of n candidates, B their sensitivities; is ω < s_k?"""
    epsilon, rho, size = settings[0], settings[2], settings[3]
    _, similarities, sensitivities, keys, heap, _ = found[:6]
    bar = similarities[kth_best(similarities, n, k, heap)]
    largest = 0.0
    for place in range(n):
        largest = max(largest, sensitivities[place])
    odds = k * ((size if size > 0.0 else n) - k) / rho
    omega = 4.0 * k * largest / epsilon * log(max(odds, e))
    floor = bar - min(bar, omega)
    for place in range(n):
        similarity = max(similarities[place], floor)
        keys[place] = epsilon * similarity / (4.0 * k * sensitivities[place])
    return bool(omega < bar)


@njit(cache=True, nogil=True)
def choose(n: int, place: int, settings: Any, noise: Any, found: Any) -> bool:  # noqa: ANN401
    """Give weights to the chosen among n candidates, and nan to the others; whether ω < s_k.

    With finite ε: the k largest of log-weight + Gumbel, and s + Laplace(2B/ε) as weights.
    Else the k most similar, and s itself.
    """
    epsilon, k = settings[0], settings[4]
    items, similarities, sensitivities, keys, heap, weights = found[:6]
    k = max(1, n // 2) if k == 0 else min(k, n)
    is_private, is_active = epsilon < inf, False
    if is_private:
        sensitivities[:n] *= settings[1]
        is_active = set_logits(n, k, settings, found)
        for other in range(n):
            keys[other] += _gumbel(place, items[other], noise[0])
    else:
        keys[:n] = similarities[:n]
    last = kth_best(keys, n, k, heap)
    for other in range(n):
        weights[other] = np.nan
        if not is_worse(keys, other, last):
            weights[other] = similarities[other]
            if is_private:
                scale = 2.0 * sensitivities[other] / epsilon
                weights[other] += scale * _laplace(place, items[other], noise[1])
    return is_active


@njit(cache=True, nogil=True)
def gather(item: int, others: Any, bar: Any, model: Any, space: Any) -> int:  # noqa: ANN401
    """The candidates among other items: those with s > 0 that reach the bar; how many.

    ``space`` holds the item's row and room for items, similarities, sensitivities, …, and for
    the candidates' places among the others.
    """
    row, found = space
    items, similarities, sensitivities, places = found[0], found[1], found[2], found[6]
    facts = model[3]
    factor, shifts, scales, norms = facts
    shift, scale, norm, is_private = shifts[item], scales[item], norms[item], row.shape[1] > 1
    lowest, last = bar
    n = 0
    for place in range(others.size):
        j = others[place]
        above, below = factor * row[j, 0] - shift * shifts[j], scale * scales[j]
        if above <= 0.0 or below <= 0.0 or j == item:
            continue
        similarity = min(1.0, above / below)
        if similarity < lowest or (similarity == lowest and j > last):
            continue
        items[n], similarities[n], places[n] = j, similarity, place
        if is_private:
            sensitivities[n] = sensitivity_of(row[j, 0], row[j, 1], row[j, 2], norm * norms[j])
        n += 1
    return n


@njit(cache=True, nogil=True)
def entry_bar(item: int, catalog: Any, limit: int, model: Any, space: Any) -> Any:  # noqa: ANN401
    """The similarity and item that a candidate must reach to be among the best ``limit``."""
    lowest = (0.0, catalog.size)
    if limit >= catalog.size:
        return lowest
    n = gather(item, catalog, lowest, model, space)
    if n <= limit:
        return lowest
    found = space[1]
    last = kth_best(found[1], n, limit, found[4])
    return found[1][last], int(found[0][last])


@njit(cache=True, nogil=True)
def _space_for(n_items: int, width: int) -> Any:  # noqa: ANN401
    """A row; items, similarities, sensitivities, keys, a heap, weights, places."""
    items, heap = np.empty(n_items, np.int32), np.empty(n_items, np.int32)
    floats, places = np.empty((4, n_items)), np.empty(n_items, np.int32)
    found = (items, floats[0], floats[1], floats[2], heap, floats[3], places)
    return np.empty((n_items, width)), found


@njit(cache=True, nogil=True)
def _count(n: int, sensitivities: Floats, bins: NDArray[np.int64]) -> None:
    """Add n values between 0 and 1 to a histogram of equal bins."""
    for place in range(n):
        bins[min(int(sensitivities[place] * bins.size), bins.size - 1)] += 1


@njit(cache=True, nogil=True)
def _choose_if_enough(n: int, place: int, settings: Any, noise: Any, more: Any) -> bool:  # noqa: ANN401
    """`choose` among n candidates, or nobody if they are too few; whether ω < s_k."""
    found, bins = more
    if n == 0 or n < settings[5]:
        found[5][:n] = np.nan
        return False
    if settings[0] < inf:
        _count(n, found[2], bins)
    return bool(choose(n, place, settings, noise, found))


@njit(cache=True, nogil=True)
def _combine(weights: Floats, deviations: Floats, is_absolute: bool) -> tuple[float, int]:
    """The weighted mean deviation of those that have a weight, and how many have one."""
    above, below, used = 0.0, 0.0, 0
    for place in range(weights.size):
        weight = weights[place]
        if weight == weight:  # noqa: PLR0124 - the others have nan
            above += weight * deviations[place]
            below += abs(weight) if is_absolute else weight
            used += 1
    return (above / below if abs(below) >= _LEAST_WEIGHT else 0.0), used


@njit(cache=True, nogil=True)
def predict_rated(queries: Any, model: Any, history: Any, settings: Any, noise: Any) -> Any:  # noqa: ANN401
    """Ratings from neighbors that are chosen, for each query, among what its user rated.

    Returns predictions in units and, per query, how many neighbors were used, how many
    candidates there were and whether ω < s_k; and the histogram of RS over candidates.
    """
    order, rows_of, subjects, targets = queries
    indptr, items, units = history
    means = model[4]
    ratings, active = np.empty(order.size), np.zeros(order.size, np.bool_)
    counts, bins = np.zeros((2, order.size), np.int64), np.zeros(RS_BINS, np.int64)
    space, catalog = _space_for(means.size, settings[7]), np.arange(means.size).astype(np.int32)
    row, found = space
    weights, places, deviations = found[5], found[6], np.empty(means.size)
    now, bar = -1, (0.0, means.size)
    for query in order:
        item, start, end = targets[query], indptr[rows_of[query]], indptr[rows_of[query] + 1]
        if item != now:
            now = item
            fill_row(item, model, row)
            bar = entry_bar(item, catalog, settings[6], model, space)
        n = gather(item, items[start:end], bar, model, space)
        for place in range(n):
            rated = start + places[place]
            deviations[place] = units[rated] - means[items[rated]]
        active[query] = _choose_if_enough(n, subjects[query], settings, noise, (found, bins))
        deviation, used = _combine(weights[:n], deviations[:n], settings[8])
        ratings[query] = means[item] + deviation
        counts[0, query], counts[1, query] = used, n
    return ratings, counts, active, bins


@njit(cache=True, nogil=True)
def predict_catalog(queries: Any, model: Any, history: Any, settings: Any, noise: Any) -> Any:  # noqa: ANN401
    """Ratings from neighbors that are chosen once per item, among all items."""
    order, rows_of, _, targets = queries
    indptr, items, units = history
    means = model[4]
    ratings, active = np.empty(order.size), np.zeros(order.size, np.bool_)
    counts, bins = np.zeros((2, order.size), np.int64), np.zeros(RS_BINS, np.int64)
    space, catalog = _space_for(means.size, settings[7]), np.arange(means.size).astype(np.int32)
    row, found = space
    chosen, weights, deviations = np.empty((3, means.size))
    now, n, is_active = -1, 0, False
    for query in order:
        item, start, end = targets[query], indptr[rows_of[query]], indptr[rows_of[query] + 1]
        if item != now:
            now = item
            fill_row(item, model, row)
            bar = entry_bar(item, catalog, settings[6], model, space)
            n = gather(item, catalog, bar, model, space)
            is_active = _choose_if_enough(n, item, settings, noise, (found, bins))
            chosen[:] = np.nan
            chosen[found[0][:n]] = found[5][:n]
        for place in range(start, end):
            weights[place - start] = chosen[items[place]]
            deviations[place - start] = units[place] - means[items[place]]
        deviation, used = _combine(weights[: end - start], deviations, settings[8])
        ratings[query] = means[item] + deviation
        counts[0, query], counts[1, query], active[query] = used, n, is_active
    return ratings, counts, active, bins
