"""Counting binary attributes 64 users at a time: common ones, inclusion-exclusion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpsim.synthesis._table_kernels import term_in


@intrinsic
def _ones(typingctx: Any, word: Any) -> Any:  # noqa: ANN401, ARG001
    """How many bits of a word are set."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401, ARG001
        return builder.ctpop(arguments[0])

    return word(word), build


@njit(cache=True, nogil=True)
def pack_bits(codes: NDArray[Any], attributes: NDArray[np.int16]) -> NDArray[np.uint64]:
    """The codes of binary attributes, 64 users per word; other attributes stay empty."""
    n = codes.shape[1]
    words = np.zeros((codes.shape[0], (n + 63) // 64), np.uint64)
    for attribute in attributes:
        column, packed = codes[attribute], words[attribute]
        for i in range(n):
            packed[i >> 6] |= np.uint64(column[i]) << np.uint64(i & 63)
    return words


@njit(nogil=True)
def _common_ones(words: Any, row: Any, mask: Any) -> Any:  # noqa: ANN401
    """How many users have a one in all attributes that the mask names."""
    chosen = np.empty(4, np.int64)
    n = 0
    for place in range(row.size):
        if mask >> place & 1:
            chosen[n] = row[place]
            n += 1
    for place in range(n, 4):
        chosen[place] = chosen[0]
    first, second = words[chosen[0]], words[chosen[1]]
    total = np.uint64(0)
    if n <= 2:  # noqa: PLR2004
        for i in range(first.size):
            total += _ones(first[i] & second[i])
    else:
        third, fourth = words[chosen[2]], words[chosen[3]]
        for i in range(first.size):
            total += _ones(first[i] & second[i] & third[i] & fourth[i])
    return np.int64(total)


@njit(cache=True, nogil=True)
def binary_sums(
    words: NDArray[np.uint64], n: int, rows: NDArray[np.int16], work: tuple[Any, Any, float]
) -> NDArray[np.int64]:
    """`term_sums` of up to four binary attributes: common ones, then inclusion-exclusion."""
    _, terms, scale = work
    width = rows.shape[1]
    sums = np.zeros(rows.shape[0], np.int64)
    counts = np.zeros(1 << width, np.int64)
    for place in range(rows.shape[0]):
        counts[0] = n
        for mask in range(1, counts.size):
            counts[mask] = _common_ones(words, rows[place], mask)
        for bit in range(width):
            for mask in range(counts.size):
                if not mask >> bit & 1:
                    counts[mask] -= counts[mask | 1 << bit]
        for count in counts:
            sums[place] += term_in(count, terms, scale)
    return sums
