"""Compiled loops of random sampling with fake data."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.core.arrays import Codes
from dpsim.mechanisms._philox import words_of
from dpsim.mechanisms._words import place_of, respond_one

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, nogil=True)
def respond_or_fake(
    codes: Codes,
    table: NDArray[np.uint64],
    sampled: NDArray[np.int64],
    users: NDArray[np.int64],
    key: NDArray[np.uint64],
) -> Codes:
    """One code per user and attribute: one of them a response, all others uniform.

    A row of ``table``: domain size, atoms of the truth, atoms of one lie. Of a user's words the
    first chooses one of the sampled attributes, and each attribute has one of its own.
    """
    n, attributes = codes.shape
    reports = np.empty_like(codes)
    for i in range(n):
        user, step = np.uint64(users[i]), _ZERO
        choice, first, second, third = words_of(user, step, key[0], key[1])
        own, fourth, left = _ZERO, _ZERO, 3
        chosen = sampled[np.int64(place_of(choice, np.uint64(sampled.size)))]
        for j in range(attributes):
            if left == 0:
                step += _ONE
                first, second, third, fourth = words_of(user, step, key[0], key[1])
                left = 4
            reports[i, j] = place_of(first, table[j, 0])
            own = first if j == chosen else own
            first, second, third = second, third, fourth
            left -= 1
        code = np.uint64(codes[i, chosen])
        reports[i, chosen] = respond_one(code, own, table[chosen, 1], table[chosen, 2])
    return reports


@njit(cache=True, nogil=True)
def count_columns(reports: Codes, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each code was reported, one column's counts after the other's.

    They begin at the column's start; the last start is the number of all counts.
    """
    n, attributes = reports.shape
    counts = np.zeros(starts[-1], np.int64)
    for i in range(n):
        for j in range(attributes):
            counts[starts[j] + np.int64(reports[i, j])] += 1
    return counts
