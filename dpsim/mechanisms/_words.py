"""What kernels make of random words: uniform places, responses, 64 coins at a time."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import words_of

COIN_STEPS = 16
"""Counter steps that belong to one call of `coins`: at least four of its 64 levels each."""

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_FEW = np.uint64(16)
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@njit(inline="always")
def place_of(word: np.uint64, size: np.uint64) -> np.uint64:
    """``⌊word · size / 2^64⌋``, size below 2^32: a place has ⌊2^64/size⌋ words or one more."""
    low = ((word & _LOW_HALF) * size) >> _HALF
    return ((word >> _HALF) * size + low) >> _HALF


@njit(inline="always")
def respond_one(
    code: np.uint64, word: np.uint64, truth: np.uint64, lie: np.uint64
) -> np.uint64:
    """The code below ``truth``; above it each other code owns ``lie`` words.

    The division is made in floats, which miss by one at most, and then corrected in integers:
    without branches and without the slow instruction.
    """
    told = word < truth
    rest = _ZERO if told else word - truth
    other = np.uint64(np.float64(rest) * (1.0 / np.float64(lie)))
    over = np.int64(rest - other * lie)
    other = other + np.uint64(over >= np.int64(lie)) - np.uint64(over < 0)
    other += np.uint64(other >= code)
    return code if told else other


@njit
def levels_of(high: np.uint64, low: np.uint64) -> NDArray[np.uint64]:
    """Per bit of two thresholds, the highest first: the bit of low, and whether high differs.

    Spread over all lanes of a word: all ones or none.
    """
    levels = np.empty((64, 2), np.uint64)
    for level in range(64):
        place = np.uint64(63 - level)
        levels[level, 0] = _ZERO - ((low >> place) & _ONE)
        levels[level, 1] = _ZERO - (((high ^ low) >> place) & _ONE)
    return levels


@njit(inline="always")
def _few_coins(
    levels: NDArray[np.uint64],
    lanes: np.uint64,
    used: np.uint64,
    place: tuple[np.uint64, np.uint64, np.uint64, np.uint64],
) -> np.uint64:
    """As `coins`, for up to 16 lanes: a word serves four levels."""
    user, step, key0, key1 = place
    ones, undecided, level = _ZERO, used, 0
    while level < 64:  # noqa: PLR2004
        words = words_of(user, step, key0, key1)
        step += _ONE
        for pair in range(2):
            for turn in range(8):
                bits = words[2 * pair + turn // 4] >> np.uint64(16 * (turn % 4))
                threshold = levels[level, 0] ^ (levels[level, 1] & lanes)
                ones |= undecided & threshold & ~bits
                undecided &= ~(threshold ^ bits)
                level += 1
            if undecided == _ZERO:
                return ones
    return ones


@njit
def coins(
    levels: NDArray[np.uint64],
    lanes: np.uint64,
    used: np.uint64,
    place: tuple[np.uint64, np.uint64, np.uint64, np.uint64],
) -> np.uint64:
    """Independent bits for used lanes: 1 with high atoms of 2^64 in lanes, low elsewhere.

    Each lane compares a draw of 64 bits with its threshold, from the highest bit down, all
    lanes at once; most are decided after two levels and all 64 after eight or so. For up to
    16 lanes a word serves four levels.
    """
    if used >> _FEW == _ZERO:
        few: np.uint64 = _few_coins(levels, lanes, used, place)
        return few
    user, step, key0, key1 = place
    ones, undecided = _ZERO, used
    for start in range(0, 64, 4):
        words = words_of(user, step, key0, key1)
        step += _ONE
        for part in range(4):
            threshold = levels[start + part, 0] ^ (levels[start + part, 1] & lanes)
            ones |= undecided & threshold & ~words[part]
            undecided &= ~(threshold ^ words[part])
        if start > 0 and undecided == _ZERO:
            break
    return ones


@njit(inline="always")
def lanes_used(size: int, block: int) -> np.uint64:
    """The lanes of the block's word that a row of ``size`` bits uses."""
    left = size - 64 * block
    return ~_ZERO if left >= 64 else (_ONE << np.uint64(left)) - _ONE  # noqa: PLR2004
