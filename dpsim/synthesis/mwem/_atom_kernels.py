"""Loops over atoms, the cells of a grid with their masses: replays, and whole iterations.

A *part* is one 0/1 query, or one cell of a marginal. Its atoms are runs ``start .. stop - 1``
of the flat masses. A *group* is a query: one part, or all cells of a marginal.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._mean_kernels import laplace_places
from dpsim.synthesis.mwem._query_kernels import add_up, fill_table

_LONG_RUN = 16
_STEEPEST = 30.0
_SMALL_STEP = 2.0**-7
_RESCALE = 1e100
LEAST = 1e-200
"""The least share of the total that a cell keeps: from zero none would come back."""
_HALF_WORD = np.uint64(32)

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Layout = tuple[Integers, Integers, Integers, Integers]
Cells = tuple[Integers, Integers, Integers]


@njit(inline="always")
def _run_sum(guess: Floats, start: int, stop: int) -> float:
    """The sum of a run: four sums side by side where it is long, always in the same way."""
    total = 0.0
    if stop - start >= _LONG_RUN:
        first = second = third = fourth = 0.0
        while stop - start >= 4:  # noqa: PLR2004
            first += guess[start]
            second += guess[start + 1]
            third += guess[start + 2]
            fourth += guess[start + 3]
            start += 4
        total = (first + second) + (third + fourth)
    for cell in range(start, stop):
        total += guess[cell]
    return total


@njit(inline="always")
def _shuffle(order: Integers, words: Words, start: int) -> None:
    """A random order of the first places, one word for each (inside-out shuffle)."""
    for place in range(order.size):
        size = np.uint64(place + 1)
        other = ((words[start + place] >> _HALF_WORD) * size) >> _HALF_WORD
        order[place] = order[other]
        order[other] = place


@njit(inline="always")
def _gain(step: float) -> float:
    """``exp(step) - 1``, finite for any measurement; by its series where the step is small.

    Most updates are: the series is exact to the last bit there, and four times as fast.
    """
    if abs(step) < _SMALL_STEP:
        tail = 1.0 + step * (1.0 / 5.0 + step * (1.0 / 30.0))
        return step * (1.0 + step * (0.5 + step * (1.0 / 6.0) * (1.0 + step * 0.25 * tail)))
    return exp(min(max(step, -_STEEPEST), _STEEPEST)) - 1.0


@njit(inline="always")
def _part_sum(guess: Floats, part: int, layout: Layout) -> float:
    """The mass of one part."""
    total = 0.0
    for run in range(layout[1][part], layout[1][part + 1]):
        total += _run_sum(guess, layout[2][run], layout[3][run])
    return total


@njit(inline="always")
def _grow(guess: Floats, part: int, layout: Layout, growth: float) -> None:
    """Multiply the masses of one part."""
    for run in range(layout[1][part], layout[1][part + 1]):
        for cell in range(layout[2][run], layout[3][run]):
            guess[cell] *= growth


@njit(inline="always")
def _in_scale(guess: Floats, scale: float, total: float) -> float:
    """The masses' sum; they are divided by it before it leaves the range of floats."""
    if 1.0 / _RESCALE < scale / total < _RESCALE:
        return scale
    guess /= _run_sum(guess, 0, guess.size) / total
    rescaled: float = _run_sum(guess, 0, guess.size)
    return rescaled


@njit(inline="always")
def _normalize(guess: Floats, total: float) -> None:
    """Masses that sum to the total, none of them zero."""
    factor = total / _run_sum(guess, 0, guess.size)
    for cell in range(guess.size):
        guess[cell] = max(guess[cell] * factor, total * LEAST)


@njit(cache=True, nogil=True)
def replay(
    guess: Floats,
    total: float,
    passes: int,
    words: Words,
    measured: tuple[Integers, Integers, Floats],
    layout: Layout,
) -> None:
    """Multiplicative updates for every measurement, pass by pass, in place.

    ``measured``: groups, pointers to their targets, targets. ``layout``: pointers from groups
    to parts, from parts to runs, starts and stops. Cells stay unnormalized between updates:
    their sum is carried along and divided out at the end. Without words the order is that of
    the measurements.
    """
    groups, slots, targets = measured
    order = np.arange(groups.size)
    sums, half = np.empty(targets.size, np.float64), 0.5 / total
    scale = _run_sum(guess, 0, guess.size)
    for turn in range(passes):
        if words.size > 0:
            _shuffle(order, words, turn * order.size)
        for item in order:
            first, gain = layout[0][groups[item]] - slots[item], 0.0
            for slot in range(slots[item], slots[item + 1]):
                sums[slot] = _part_sum(guess, first + slot, layout)
            for slot in range(slots[item], slots[item + 1]):
                growth = _gain((targets[slot] - sums[slot] * (total / scale)) * half)
                _grow(guess, first + slot, layout, 1.0 + growth)
                gain += growth * sums[slot]
            scale = _in_scale(guess, scale + gain, total)
    _normalize(guess, total)


@njit(cache=True, nogil=True)
def replay_cells(
    guess: Floats,
    total: float,
    passes: int,
    words: Words,
    measured: tuple[Integers, Integers, Floats],
    cells: Cells,
) -> None:
    """As `replay`, with the cells of each part one by one: faster where runs are short."""
    groups, slots, targets = measured
    parts, pointers, places = cells
    order = np.arange(groups.size)
    sums, half = np.empty(targets.size, np.float64), 0.5 / total
    scale = _run_sum(guess, 0, guess.size)
    for turn in range(passes):
        if words.size > 0:
            _shuffle(order, words, turn * order.size)
        for item in order:
            first, gain = parts[groups[item]] - slots[item], 0.0
            for slot in range(slots[item], slots[item + 1]):
                part_sum = 0.0
                for entry in range(pointers[first + slot], pointers[first + slot + 1]):
                    part_sum += guess[places[entry]]
                sums[slot] = part_sum
            for slot in range(slots[item], slots[item + 1]):
                growth = _gain((targets[slot] - sums[slot] * (total / scale)) * half)
                for entry in range(pointers[first + slot], pointers[first + slot + 1]):
                    guess[places[entry]] *= 1.0 + growth
                gain += growth * sums[slot]
            scale = _in_scale(guess, scale + gain, total)
    _normalize(guess, total)


@njit(cache=True, nogil=True)
def replay_weighted(
    guess: Floats,
    total: float,
    passes: int,
    words: Words,
    measured: tuple[Integers, Integers, Floats],
    rows: tuple[Integers, Integers, Floats],
) -> None:
    """As `replay`, for queries with any weights: pointers, cells and weights of each."""
    groups, _, targets = measured
    pointers, cells, weights = rows
    order = np.arange(groups.size)
    scale = _run_sum(guess, 0, guess.size)
    for turn in range(passes):
        if words.size > 0:
            _shuffle(order, words, turn * order.size)
        for item in order:
            answer, gain = 0.0, 0.0
            first, last = pointers[groups[item]], pointers[groups[item] + 1]
            for entry in range(first, last):
                answer += weights[entry] * guess[cells[entry]]
            step = (targets[item] - answer * (total / scale)) / (2.0 * total)
            step = min(max(step, -_STEEPEST), _STEEPEST)
            for entry in range(first, last):
                before = guess[cells[entry]]
                guess[cells[entry]] = before * exp(weights[entry] * step)
                gain += guess[cells[entry]] - before
            scale = _in_scale(guess, scale + gain, total)
    _normalize(guess, total)


@njit(inline="always")
def _clip(measured: Floats, slots: Integers, limits: tuple[float, float], out: Floats) -> None:
    """The measurements of some slots, none beyond the limits."""
    for slot in range(slots[0], slots[-1]):
        out[slot] = min(max(measured[slot], limits[0]), limits[1])


@njit(inline="always")
def _best_query(
    misses: Floats, groups: Integers, penalties: Floats, keys: Floats, rate: float
) -> int:
    """The query with the largest key: its scaled score plus its noise; the lowest of equals."""
    best, largest = -1, -np.inf
    for query in range(groups.size - 1):
        score = 0.0
        for part in range(groups[query], groups[query + 1]):
            score += misses[part]
        key = rate * (score - penalties[query]) + keys[query]
        if key > largest:
            best, largest = query, key
    return best


@njit(cache=True, nogil=True)
def iterate(
    start: tuple[Floats, float, int, tuple[float, float]],
    done: tuple[Integers, Integers, Floats],
    problem: tuple[Integers, Integers, Integers, NDArray[np.int8], NDArray[np.int64], Cells],
    choosing: tuple[Floats, Floats, float],
    measuring: tuple[Words, tuple[np.uint64, np.uint64], Floats],
    replaying: tuple[int, Words],
) -> None:
    """Iterations of whole runs on boxes: select, measure and replay, in place.

    ``start``: masses, their sum, the first iteration, limits of measurements. ``done``:
    queries, pointers to their measurements, measurements; those of the iterations to come are
    filled in. ``problem``: shape, corners of the boxes, true answers, cells. ``choosing``:
    keys of all iterations, penalties, rate of the scores. ``measuring``: key and scale of
    discrete noise, or else the noise of every part in every iteration. ``replaying``: passes,
    words of all iterations.
    """
    guess, total, first, limits = start
    queries, slots, measured = done
    shape, pointers, places, signs, truth, cells = problem
    keys, penalties, rate = choosing
    key, scale, floats = measuring
    passes, words = replaying
    groups = cells[0]
    parts, last = truth.size, groups.size - 1
    targets, misses = np.empty(measured.size, np.float64), np.empty(parts, np.float64)
    table = np.empty((shape + 1).prod(), np.float64)
    _clip(measured, slots[: first + 1], limits, targets)
    used = 0
    for turn in range(first, queries.size):
        fill_table(guess, shape, table)
        add_up(table, pointers, places, signs, misses)
        misses[:] = np.abs(misses - truth)
        mine = keys[(turn - first) * last : (turn - first + 1) * last]
        for query in queries[:turn]:
            mine[query] = -np.inf
        query = _best_query(misses, groups, penalties, mine, rate)
        low, high, slot = groups[query], groups[query + 1], slots[turn]
        queries[turn], slots[turn + 1] = query, slot + high - low
        measured[slot : slot + high - low] = truth[low:high]
        if floats.size == 0:
            owners, zeros = turn * parts + np.arange(low, high), np.zeros(high - low, np.uint32)
            noise = laplace_places(zeros, owners, key, np.uint64(0), scale)
            measured[slot : slot + high - low] += noise
        else:
            skipped = (turn - first) * parts
            measured[slot : slot + high - low] += floats[skipped + low : skipped + high]
        _clip(measured, slots[turn : turn + 2], limits, targets)
        measurements = queries[: turn + 1], slots[: turn + 2], targets[: slots[turn + 1]]
        stop = used + passes * (turn + 1) if words.size > 0 else used
        replay_cells(guess, total, passes, words[used:stop], measurements, cells)
        used = stop
