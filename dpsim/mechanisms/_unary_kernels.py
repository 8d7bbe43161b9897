"""Noise on 64 bits at a time, and sums of packed bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import words_of

Words = NDArray[np.uint64]

_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
_SIX, _LAST = np.uint64(6), np.uint64(63)
_AT_ONCE = 4  # words of one Philox block, and so levels that are sifted together


@njit(inline="always")
def _sift(word: Any, below: Any, ones: Any, pending: Any) -> Any:  # noqa: ANN401
    """Decide the pending lanes whose random bit differs from their threshold's bit."""
    decided = pending & (word ^ below)
    return ones | (decided & below), pending ^ decided


@njit(inline="always")
def _sift_block(words: Any, levels: Any, at: Any, own: Any, pending: Any) -> Any:  # noqa: ANN401
    """Sift by four words; lanes in ``own`` have the threshold p, all others q."""
    first, second, third, fourth = words
    ones = _ZERO
    ones, pending = _sift(first, levels[at, 0] ^ (levels[at, 1] & own), ones, pending)
    at += 1
    ones, pending = _sift(second, levels[at, 0] ^ (levels[at, 1] & own), ones, pending)
    at += 1
    ones, pending = _sift(third, levels[at, 0] ^ (levels[at, 1] & own), ones, pending)
    at += 1
    return _sift(fourth, levels[at, 0] ^ (levels[at, 1] & own), ones, pending)


@njit(inline="always")
def _rest(user: Any, step: Any, key: Any, levels: Any, own: Any, pending: Any) -> Any:  # noqa: ANN401
    """Decide what the first four levels left open; a lane that equals its threshold is 0."""
    ones = _ZERO
    at = _AT_ONCE
    while pending != _ZERO and at < levels.shape[0]:
        step += _ONE
        words = words_of(user, step, key[0], key[1])
        more, pending = _sift_block(words, levels, at, own, pending)
        ones |= more
        at += _AT_ONCE
    return ones


@njit(cache=True, nogil=True)
def noisy_bits(
    codes: NDArray[np.uint32],
    users: NDArray[np.int64],
    key: tuple[np.uint64, np.uint64],
    levels: Words,
    domain_size: int,
) -> Words:
    """One row of packed bits per user: bit v is 1 with probability p if v is the code, else q.

    A bit is 1 where a uniform number u is below its threshold. The numbers of 64 lanes are made
    together, most significant bit first, one random word per level: a lane is decided at the
    first level where its bit differs from the threshold's. ``levels`` holds q's bit at each
    level, spread over all lanes, and whether p's bit differs from it.

    The block of group w at levels 4s..4s+3 is step ``w · levels/4 + s`` of the user. Few lanes
    are open after four levels, so two groups share the words of the first one from there on:
    a bit belongs to the first group where its lane is open, else to the second. Lanes open in
    both go on with the second group's own words. No bit is ever used twice.
    """
    n, groups = codes.size, (domain_size + 63) // 64
    stride = np.uint64(levels.shape[0] // _AT_ONCE)
    tail = np.uint64(domain_size & 63)
    last = (_ONE << tail) - _ONE if tail else _ALL
    reports = np.empty((n, groups), np.uint64)
    for i in range(n):
        user, code = np.uint64(users[i]), np.uint64(codes[i])
        lane, home = _ONE << (code & _LAST), code >> _SIX
        for group in range(0, groups - 1, 2):
            own = lane if home == np.uint64(group) else _ZERO
            peer = lane if home == np.uint64(group + 1) else _ZERO
            step = np.uint64(group) * stride
            there = step + stride
            lanes = _ALL if group + 2 < groups else last
            words = words_of(user, step, key[0], key[1])
            left, left_open = _sift_block(words, levels, 0, own, _ALL)
            words = words_of(user, there, key[0], key[1])
            right, right_open = _sift_block(words, levels, 0, peer, lanes)
            shared = (own & left_open) | (peer & ~left_open)
            more = _rest(user, step, key, levels, shared, left_open | right_open)
            right |= more & right_open & ~left_open
            clash = left_open & right_open
            if clash != _ZERO:
                right |= _rest(user, there, key, levels, peer, clash)
            reports[i, group] = left | (more & left_open)
            reports[i, group + 1] = right
        if groups & 1:
            group = groups - 1
            own = lane if home == np.uint64(group) else _ZERO
            step = np.uint64(group) * stride
            words = words_of(user, step, key[0], key[1])
            left, left_open = _sift_block(words, levels, 0, own, last)
            reports[i, group] = left | _rest(user, step, key, levels, own, left_open)
    return reports


@njit(inline="always")
def _add_three(first: Any, second: Any, third: Any) -> Any:  # noqa: ANN401
    """A full adder in each of 64 lanes: sum and carry."""
    half = first ^ second
    return half ^ third, (first & second) | (half & third)


@njit(inline="always")
def _carry(planes: Any, place: Any, group: Any, bits: Any) -> Any:  # noqa: ANN401
    """Add bits of weight 2^place to the counters of one group."""
    while bits != _ZERO:
        before = planes[place, group]
        planes[place, group] = before ^ bits
        bits &= before
        place += 1


@njit(cache=True, nogil=True)
def count_bits(reports: Words, domain_size: int) -> NDArray[np.int64]:
    """How many rows have each bit.

    Counters stand upright: plane j holds bit j of 64 counters. Eight rows are added by seven
    full adders, and only their carry of weight eight moves on through the planes.
    """
    n, groups = reports.shape
    depth = 4
    while n >> depth:
        depth += 1
    planes = np.zeros((depth, groups), np.uint64)
    whole = n - n % 8
    for i in range(0, whole, 8):
        for g in range(groups):
            ones, twos, fours = planes[0, g], planes[1, g], planes[2, g]
            ones, left = _add_three(ones, reports[i, g], reports[i + 1, g])
            ones, right = _add_three(ones, reports[i + 2, g], reports[i + 3, g])
            twos, low = _add_three(twos, left, right)
            ones, left = _add_three(ones, reports[i + 4, g], reports[i + 5, g])
            ones, right = _add_three(ones, reports[i + 6, g], reports[i + 7, g])
            twos, high = _add_three(twos, left, right)
            fours, eights = _add_three(fours, low, high)
            planes[0, g], planes[1, g], planes[2, g] = ones, twos, fours
            _carry(planes, 3, g, eights)
    for i in range(whole, n):
        for g in range(groups):
            _carry(planes, 0, g, reports[i, g])
    counts = np.zeros(domain_size, np.int64)
    for v in range(domain_size):
        for place in range(depth):
            bit = (planes[place, v >> 6] >> np.uint64(v & 63)) & _ONE
            counts[v] += np.int64(bit) << place
    return counts
