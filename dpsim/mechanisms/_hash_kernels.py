"""A keyed hash of codes, and how many reports support each code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import words_of

_SPREAD = np.uint32(0x9E3779B9)
_FIRST, _SECOND = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)
_FIFTEEN, _SIXTEEN = np.uint32(15), np.uint32(16)
_HALF = np.uint64(32)
_TILE = 512  # users whose keys stay in the first cache while the codes pass by


@njit(inline="always")
def _mix(low: Any, high: Any, code: Any) -> Any:  # noqa: ANN401
    """32 hashed bits of a code under the two halves of a key.

    Every step can be undone, and ``high`` enters by xor: for each code and each ``low`` the
    hash is exactly uniform over ``high``. Casts keep numba from widening to 64 bits.
    """
    x = np.uint32(low ^ np.uint32(code * _SPREAD))
    x = np.uint32(x ^ (x >> _SIXTEEN))
    x = np.uint32(x * _FIRST)
    x = np.uint32(x ^ (x >> _FIFTEEN))
    x = np.uint32(x ^ high)
    x = np.uint32(x * _SECOND)
    return np.uint32(x ^ (x >> _SIXTEEN))


@njit(cache=True, nogil=True)
def two_words(
    users: NDArray[np.int64], key: tuple[np.uint64, np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first two words of each user."""
    n = users.size
    firsts, seconds = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for i in range(n):
        first, second, _, _ = words_of(np.uint64(users[i]), np.uint64(0), key[0], key[1])
        firsts[i], seconds[i] = first, second
    return firsts, seconds


@njit(cache=True, nogil=True)
def hashed(
    keys: NDArray[np.uint64], codes: NDArray[np.uint32], buckets: int
) -> NDArray[np.uint16]:
    """The bucket of each user's code under the user's key: ``⌊hash · buckets / 2^32⌋``."""
    n = keys.size
    places = np.empty(n, np.uint16)
    for i in range(n):
        mixed = _mix(np.uint32(keys[i]), np.uint32(keys[i] >> _HALF), codes[i])
        places[i] = np.uint16((np.uint64(mixed) * np.uint64(buckets)) >> _HALF)
    return places


@njit(cache=True, nogil=True)
def count_supports(
    keys: NDArray[np.uint64], reported: NDArray[np.uint16], buckets: int, domain_size: int
) -> NDArray[np.int64]:
    """For each code, how many reports name the bucket that it falls into under their key.

    A hash falls into a bucket if it lies between the bucket's first hash and the next one's:
    one subtraction and one comparison, where the product would need 64 bits.
    """
    n, wide = keys.size, np.uint64(buckets)
    edges = np.empty(buckets + 1, np.uint64)
    for place in range(buckets + 1):
        edges[place] = ((np.uint64(place) << _HALF) + wide - np.uint64(1)) // wide
    lows, highs = np.empty(_TILE, np.uint32), np.empty(_TILE, np.uint32)
    starts, widths = np.empty(_TILE, np.uint32), np.empty(_TILE, np.uint32)
    counts = np.zeros(domain_size, np.int64)
    for begin in range(0, n, _TILE):
        size = min(_TILE, n - begin)
        for i in range(size):
            key, place = keys[begin + i], reported[begin + i]
            lows[i], highs[i] = np.uint32(key), np.uint32(key >> _HALF)
            starts[i] = np.uint32(edges[place])
            widths[i] = np.uint32(edges[place + 1] - edges[place])
        for code in range(domain_size):
            supports = np.uint32(0)
            for i in range(size):
                mixed = _mix(lows[i], highs[i], np.uint32(code))
                supports += np.uint32(np.uint32(mixed - starts[i]) < widths[i])
            counts[code] += np.int64(supports)
    return counts
