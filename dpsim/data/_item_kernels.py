"""Compiled loops that make the ratings of generated users."""

from __future__ import annotations

from math import cos, floor, log, pi, sin, sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_MANTISSA = np.uint64(12)


@njit(inline="always")
def _uniform(word: Any) -> Any:  # noqa: ANN401
    """``(k + ½)/2^52`` for the upper 52 bits k of a word: never 0, never 1."""
    return (np.float64(word >> _MANTISSA) + 0.5) * 2.0**-52


@njit(cache=True, nogil=True)
def normals(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Standard normals along the last of two axes, of even length: two of every two words."""
    made = np.empty(words.shape, np.float64)
    for row in range(words.shape[0]):
        for place in range(0, words.shape[1], 2):
            radius = sqrt(-2.0 * log(_uniform(words[row, place])))
            angle = 2.0 * pi * _uniform(words[row, place + 1])
            made[row, place], made[row, place + 1] = radius * cos(angle), radius * sin(angle)
    return made


@njit(cache=True, nogil=True)
def choose_items(
    words: NDArray[np.uint64], rates: NDArray[np.float64], indptr: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Each user's items, ascending: the smallest of Eᵢ / rateᵢ, the lower item if equal.

    E is exponential, of one word per item: the law of drawing one after the other, without
    replacement, with probabilities in proportion to the rates of what is left.
    """
    items = np.empty(indptr[-1], np.int32)
    times = np.empty(rates.size, np.float64)
    for user in range(indptr.size - 1):
        place, end = indptr[user], indptr[user + 1]
        if place == end:
            continue
        for item in range(rates.size):
            times[item] = -log(_uniform(words[user, item])) / rates[item]
        last = np.partition(times, end - place - 1)[end - place - 1]
        equal = end - place - np.sum(times < last)
        for item in range(rates.size):
            if times[item] == last:
                equal -= 1
            if times[item] < last or (times[item] == last and equal >= 0):
                items[place] = item
                place += 1
    return items


@njit(cache=True, nogil=True)
def rate_items(
    planted: NDArray[np.float64], noise: NDArray[np.float64], indptr: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Codes of the ratings 1 to 5: the planted value plus the user's noise, rounded."""
    codes = np.empty(planted.size, np.uint8)
    for user in range(indptr.size - 1):
        for place in range(indptr[user], indptr[user + 1]):
            rating = floor(planted[place] + noise[user, place - indptr[user]] + 0.5)
            codes[place] = np.uint8(min(max(rating, 1.0), 5.0) - 1.0)
    return codes
