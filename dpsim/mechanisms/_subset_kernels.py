"""Random subsets of a fixed size, as packed bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import words_of

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_SIX, _LAST, _HALF = np.uint64(6), np.uint64(63), np.uint64(32)
_TWO, _THREE = np.uint64(2), np.uint64(3)
_LOW = np.uint64(2**32 - 1)


@njit(inline="always")
def _below(word: Any, size: Any) -> Any:  # noqa: ANN401
    """``⌊word · size / 2^64⌋`` for sizes below 2^32, without a 128-bit product."""
    return ((word >> _HALF) * size + (((word & _LOW) * size) >> _HALF)) >> _HALF


@njit(cache=True, nogil=True)
def random_subsets(
    codes: NDArray[np.uint32],
    users: NDArray[np.int64],
    key: tuple[np.uint64, np.uint64],
    threshold: np.uint64,
    domain_size: int,
    subset_size: int,
) -> NDArray[np.uint64]:
    """One subset per user: its code if the first word is below the threshold, and others.

    The others are drawn by Floyd's method from the k - 1 places that skip the user's code: the
    step that may name the places 0..j takes a uniform one, or j itself if that is taken. Word
    t of a user is word t mod 4 of step t // 4.
    """
    n, groups = codes.size, (domain_size + 63) // 64
    reports = np.zeros((n, groups), np.uint64)
    block = np.empty(4, np.uint64)
    for i in range(n):
        user, own = np.uint64(users[i]), np.uint64(codes[i])
        words = words_of(user, _ZERO, key[0], key[1])
        others = subset_size
        if words[0] < threshold:
            others -= 1
            reports[i, own >> _SIX] |= _ONE << (own & _LAST)
        block[1], block[2], block[3] = words[1], words[2], words[3]
        used = _ONE
        for j in range(domain_size - 1 - others, domain_size - 1):
            lane = used & _THREE
            if lane == _ZERO:
                words = words_of(user, used >> _TWO, key[0], key[1])
                block[0], block[1], block[2], block[3] = words
            used += _ONE
            last = np.uint64(j)
            place = _below(block[lane], last + _ONE)
            code, spare = place + np.uint64(place >= own), last + np.uint64(last >= own)
            is_taken = (reports[i, code >> _SIX] >> (code & _LAST)) & _ONE
            # By arithmetic, since no processor could guess the branch.
            code ^= (code ^ spare) & (_ZERO - is_taken)
            reports[i, code >> _SIX] |= _ONE << (code & _LAST)
    return reports
