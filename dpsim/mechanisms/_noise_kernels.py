"""Loops of central noise: one entry, one counter, as many trials as it needs."""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import high_word, words_of

TAKEN, REJECTED, UNSURE = 0, 1, 2
"""What became of a trial; an unsure one needs more bits than its words have."""

_ZERO, _ONE, _MANTISSA = np.uint64(0), np.uint64(1), np.uint64(11)

Words = NDArray[np.uint64]


@njit(inline="always")
def gaussian_trial(
    words: tuple[np.uint64, np.uint64, np.uint64],
    sigma: tuple[np.int64, np.int64],
    borders: Words,
    margin: float,
) -> tuple[int, np.int64]:
    """Whether three words give an entry of the discrete Gaussian of σ = top/bottom, and which.

    The first word holds a sign and, against the borders of 2^63, how many whole σ; the second
    a place within the next σ; the third decides whether it is kept. Floats decide only where
    they are sure: a number within ``margin`` of the probability is left to exact arithmetic.
    """
    top, bottom = sigma
    high = words[0] >> _ONE
    k = 0
    while k < borders.size and high > borders[k]:
        k += 1
    if k == borders.size or high == borders[k]:
        return UNSURE, np.int64(0)
    width = np.uint64((top + bottom - 1) // bottom)
    low = words[1] * width
    if low < width and low < (_ZERO - width) % width:
        return REJECTED, np.int64(0)
    size = (k * top + bottom - 1) // bottom + np.int64(high_word(words[1], width))
    above = bottom * size - k * top
    is_negative = words[0] & _ONE == _ONE
    if above >= top or (is_negative and size == 0):
        return REJECTED, np.int64(0)
    x = above / top
    gap = float(words[2] >> _MANTISSA) * 2.0**-53 - exp(-x * (2.0 * k + x) / 2.0)
    if abs(gap) <= margin:
        return UNSURE, np.int64(0)
    return (TAKEN if gap < 0.0 else REJECTED), (-size if is_negative else size)


@njit(cache=True, nogil=True)
def gaussian_entries(
    first: int,
    n: int,
    key: Words,
    sigma: tuple[np.int64, np.int64],
    borders: Words,
    margin: float,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The noise of the entries from ``first`` on, and which of them could not be settled."""
    noise = np.zeros(n, np.int64)
    unsure = np.zeros(n, np.bool_)
    for place in range(n):
        entry, step, outcome = np.uint64(first + place), _ZERO, REJECTED
        while outcome == REJECTED:
            word0, word1, word2, _ = words_of(entry, step, key[0], key[1])
            step += _ONE
            outcome, value = gaussian_trial((word0, word1, word2), sigma, borders, margin)
            noise[place] = value
        if outcome == UNSURE:
            unsure[place] = True
            noise[place] = 0
    return noise, unsure


@njit(cache=True, nogil=True)
def words_at_counter(
    entry: np.uint64, step: np.uint64, key: Words
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four words of one step of an entry."""
    words: tuple[np.uint64, np.uint64, np.uint64, np.uint64] = words_of(
        entry, step, key[0], key[1]
    )
    return words
