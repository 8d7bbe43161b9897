"""Loops of the mechanisms for means, in integers: shares of 2^31 in, reports out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import high_word, words_of

_ZERO, _ONE, _TWO, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_SHARES, _SHARE_BITS, _HALF_SHARE, _SHARE_MASK = (
    np.uint64(2**31),
    np.uint64(31),
    np.uint64(2**30),
    np.uint64(2**31 - 1),
)
_HALF_WORD, _LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)
_FILL = 12
_ROUND, _SIZE, _KEEP, _GROW, _SIGN, _DONE = range(6)
_PAIRS, _QUADS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_NIBBLES, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
_MANTISSA = np.uint64(11)

Words = NDArray[np.uint64]
Shares = NDArray[np.uint32]
Users = NDArray[np.int64]


@njit(cache=True, nogil=True)
def to_shares(numbers: NDArray[np.float64]) -> tuple[Shares, int]:
    """``⌊(1 + x) 2^30 + 1/2⌋`` for each number, and how many are outside [-1, 1] or nan."""
    shares = np.empty(numbers.size, np.uint32)
    outside = 0
    for place in range(numbers.size):
        number = numbers[place]
        outside += not (-1.0 <= number <= 1.0)
        shares[place] = np.uint32(np.int64((number + 1.0) * 1073741824.0 + 0.5))
    return shares, outside


@njit(inline="always")
def _plus_atoms(share: np.uint64, lie: np.uint64, gap: np.uint64) -> np.uint64:
    """``lie + ⌊share · gap / 2^31 + 1/2⌋``; the product may have 95 bits, so in two parts."""
    low = (share * (gap & _SHARE_MASK) + _HALF_SHARE) >> _SHARE_BITS
    return lie + share * (gap >> _SHARE_BITS) + low


@njit(cache=True, nogil=True)
def duchi_signs(
    shares: Shares, draws: NDArray[Any], lie: np.uint64, gap: np.uint64
) -> NDArray[np.bool_]:
    """Whether each report is plus: its draw lies below the atoms of plus."""
    signs = np.empty(shares.size, np.bool_)
    for place in range(shares.size):
        atoms = _plus_atoms(np.uint64(shares[place]), lie, gap)
        signs[place] = np.uint64(draws[place]) < atoms
    return signs


@njit(inline="always")
def _place(
    share: np.uint64,
    draw: np.uint64,
    anywhere: np.uint64,
    stretch: np.uint64,
    room: np.uint64,
    points: np.uint64,
) -> np.uint64:
    """Anywhere on the grid by the draw's low bits, or ``⌊share · room + position⌋``."""
    position = high_word(draw - anywhere, stretch)
    near = (share * room + position) >> _SHARE_BITS
    return draw & (points - _ONE) if draw < anywhere else near


@njit(cache=True, nogil=True)
def piecewise_places(
    shares: Shares,
    draws: Words,
    anywhere: np.uint64,
    stretch: np.uint64,
    room: np.uint64,
    points: np.uint64,
) -> NDArray[np.uint16]:
    """The reported point of the grid, for each share and draw."""
    places = np.empty(shares.size, np.uint16)
    for place in range(shares.size):
        share = np.uint64(shares[place])
        places[place] = _place(share, draws[place], anywhere, stretch, room, points)
    return places


@njit(cache=True, nogil=True)
def hybrid_codes(
    shares: Shares,
    branches: NDArray[np.uint32],
    draws: Words,
    duchi: tuple[np.uint64, np.uint64, np.uint64, np.uint64],
    piecewise: tuple[np.uint64, np.uint64, np.uint64, np.uint64],
) -> NDArray[np.uint32]:
    """0 and 1 for the signs of Duchi, 2 + place for Piecewise.

    ``duchi``: atoms of its branch out of 2^32, width of its draw, lie, gap.
    ``piecewise``: as for `piecewise_places`.
    """
    codes = np.empty(shares.size, np.uint32)
    branch_atoms, bits, lie, gap = duchi
    anywhere, stretch, room, points = piecewise
    unused = np.uint64(64) - bits
    for place in range(shares.size):
        share = np.uint64(shares[place])
        draw = draws[place]
        if np.uint64(branches[place]) < branch_atoms:
            codes[place] = np.uint64((draw >> unused) < _plus_atoms(share, lie, gap))
        else:
            codes[place] = _TWO + _place(share, draw, anywhere, stretch, room, points)
    return codes


@njit(cache=True, nogil=True)
def float_piecewise(
    numbers: NDArray[np.float64], users: Users, key: Words, bound: float, near: float
) -> NDArray[np.float64]:
    """The density form in floats: near the number with probability ``near``, else anywhere."""
    reports = np.empty(numbers.size, np.float64)
    for place in range(numbers.size):
        first, second, _, _ = words_of(np.uint64(users[place]), _ZERO, key[0], key[1])
        uniform = float(second >> _MANTISSA) * 2.0**-53
        if float(first >> _MANTISSA) * 2.0**-53 < near:
            left = (bound + 1.0) / 2.0 * numbers[place] - (bound - 1.0) / 2.0
            reports[place] = left + (bound - 1.0) * uniform
        else:
            reports[place] = -bound + 2.0 * bound * uniform
    return reports


@njit
def lean(signs: np.uint64, truth: np.uint64, dimensions: int) -> np.int64:
    """The inner product of two vectors of signs, given as bits."""
    spread = signs ^ truth
    spread -= (spread >> _ONE) & _PAIRS
    spread = (spread & _QUADS) + ((spread >> _TWO) & _QUADS)
    spread = (spread + (spread >> _FOUR)) & _NIBBLES
    return np.int64(dimensions) - 2 * np.int64((spread * _BYTES) >> np.uint64(56))


@njit(cache=True, nogil=True)
def joint_signs(
    shares: Shares, dimensions: int, users: Users, key: Words, cube_atoms: np.uint64
) -> Words:
    """Bit j of a report is its sign in dimension j; rows of shares follow each other.

    A user's step 0 holds the branch and the first signs; the next ones half a word for each
    number; those behind them the signs to draw while they tie.
    """
    reports = np.empty(users.size, np.uint64)
    words = np.empty(4, np.uint64)
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - dimensions)
    for place in range(users.size):
        user = np.uint64(users[place])
        branch, signs, _, _ = words_of(user, _ZERO, key[0], key[1])
        truth, step = _ZERO, _ONE
        for dimension in range(dimensions):
            if dimension % 8 == 0:
                words[0], words[1], words[2], words[3] = words_of(user, step, key[0], key[1])
                step += _ONE
            half = words[dimension // 2 % 4] >> (np.uint64(dimension % 2) * _HALF_WORD)
            is_plus = (half & _LOW_HALF) >> _ONE < shares[place * dimensions + dimension]
            truth |= np.uint64(is_plus) << np.uint64(dimension)
        signs &= mask
        if branch >= cube_atoms:
            side = lean(signs, truth, dimensions)
            while side == 0:
                signs = words_of(user, step, key[0], key[1])[0] & mask
                side = lean(signs, truth, dimensions)
                step += _ONE
            if side < 0:
                signs ^= mask
        reports[place] = signs
    return reports


@njit(cache=True, nogil=True)
def plus_counts(reports: Words, dimensions: int) -> NDArray[np.int64]:
    """How many reports are plus in each dimension."""
    counts = np.zeros(dimensions, np.uint64)
    for report in reports:
        for dimension in range(dimensions):
            counts[dimension] += (report >> np.uint64(dimension)) & _ONE
    return counts.astype(np.int64)


@njit(inline="always")
def _turn(  # noqa: PLR0911 - one per transition
    state: int, number: np.uint64, size: np.uint64, trial: np.uint64, above: np.uint64
) -> tuple[int, np.uint64, np.uint64, np.uint64]:
    """The next state, the limit of its number, size and trial of the noise.

    Trial j succeeds with probability a/(bj); the first failure is at an odd one with
    probability exp(-a/b). For 1/e the first trial cannot fail.
    """
    if state == _SIZE:
        return _KEEP, above, number, _ONE
    if state == _KEEP:
        if number < size:
            return _KEEP, above * (trial + _ONE), size, trial + _ONE
        if trial & _ONE:
            return _GROW, _TWO, size, _TWO
        return _SIZE, above, size, trial
    if number == _ZERO:
        return _GROW, trial + _ONE, size, trial + _ONE
    if trial & _ONE:
        return _GROW, _TWO, size + above, _TWO
    return _SIGN, _TWO, size, trial


@njit(cache=True, nogil=True)
def laplace_places(
    shares: Shares,
    users: Users,
    key: Words,
    room: np.uint64,
    scale: tuple[np.uint64, np.uint64],
) -> NDArray[np.int64]:
    """A point of the grid, rounded at random, plus discrete Laplace noise of scale t/s.

    Algorithm 2 of Canonne, Kamath and Steinke, as a machine that asks for one number below a
    limit at a time, uniform without any error (Lemire 2019): where to round; a size below t;
    trials that keep it with probability exp(-size/t); trials that add t with probability 1/e;
    a sign. Words are kept in a local array: helpers that take one are slower than Philox.
    """
    places = np.empty(shares.size, np.int64)
    words = np.empty(_FILL, np.uint64)
    above, below = scale
    for place in range(shares.size):
        user = np.uint64(users[place])
        at, step = _FILL, _ZERO
        state, limit = _ROUND, _SHARES
        start = size = number = trial = _ZERO
        while state != _DONE:
            if at == _FILL:
                at = 0
                for lane in range(0, _FILL, 4):
                    first, second, third, fourth = words_of(user, step, key[0], key[1])
                    words[lane], words[lane + 1] = first, second
                    words[lane + 2], words[lane + 3] = third, fourth
                    step += _ONE
            word = words[at]
            at += 1
            if word * limit < limit and word * limit < (_ZERO - limit) % limit:
                continue
            number = high_word(word, limit)
            if state == _ROUND:
                start = (np.uint64(shares[place]) * room + number) >> _SHARE_BITS
                state, limit = _SIZE, above
            elif state == _SIGN:
                size //= below
                is_twice_zero = number == _ONE and size == _ZERO
                state, limit = (_SIZE, above) if is_twice_zero else (_DONE, limit)
            else:
                state, limit, size, trial = _turn(state, number, size, trial, above)
        noise = np.int64(size)
        places[place] = np.int64(start) + (noise if number == _ZERO else -noise)
    return places
