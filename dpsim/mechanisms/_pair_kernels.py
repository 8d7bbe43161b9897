"""Compiled loops of the key-value mechanisms, in integers but for the value's threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.mechanisms._philox import words_of
from dpsim.mechanisms._words import COIN_STEPS, coins, lanes_used, levels_of, place_of

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_HALF = np.uint64(1 << 63)


@njit(cache=True, nogil=True)
def count_outside(values: NDArray[np.float64]) -> int:
    """How many values of a vector are neither in [-1, 1] nor nan."""
    outside = 0
    for value in values:
        outside += (value < -1.0) | (value > 1.0)
    return outside


@njit(inline="always")
def threshold(value: float, low: np.uint64, span: np.uint64) -> np.uint64:
    """``low + round((1+v)/2 · span)``: at the ends exactly ``low`` and ``low + span``."""
    if value >= 1.0:
        return low + span
    return low + min(np.uint64(np.rint((1.0 + value) * 0.5 * np.float64(span))), span)


@njit(cache=True, nogil=True)
def respond_states(
    values: NDArray[np.float64], draws: NDArray[Any], atoms: NDArray[np.uint64]
) -> NDArray[np.uint8]:
    """1, 2 or 0 for present and positive, present and negative, absent; one draw each.

    ``atoms``: of the flipped sign and its distance to the kept one, of either sign if the key
    is present, then of a fake positive and of either fake.
    """
    flipped, span, present, fake_plus, fake = atoms
    reports = np.empty(values.size, np.uint8)
    for i in range(values.size):
        draw, value = np.uint64(draws[i]), values[i]
        absent = np.isnan(value)
        plus = fake_plus if absent else threshold(value, flipped, span)
        either = fake if absent else present
        reports[i] = 1 if draw < plus else (2 if draw < either else 0)
    return reports


@njit(cache=True, nogil=True)
def respond_both(
    values: NDArray[np.float64], draws: NDArray[Any], atoms: NDArray[np.uint64], fill: float
) -> NDArray[np.uint8]:
    """Twice the key's bit plus the value's bit, each perturbed; one draw for both.

    ``atoms``: of a true key; then for a true and for a false one the atoms of a flipped value
    and their distance to those of a kept one. ``fill`` is the value of an absent key.
    """
    true_key, flipped_true, span_true, flipped_false, span_false = atoms
    reports = np.empty(values.size, np.uint8)
    for i in range(values.size):
        draw, value = np.uint64(draws[i]), values[i]
        key = not np.isnan(value)
        if not key:
            value = fill
        if draw < true_key:
            plus = draw < threshold(value, flipped_true, span_true)
        else:
            plus = draw - true_key < threshold(value, flipped_false, span_false)
            key = not key
        reports[i] = 2 * key + plus
    return reports


@njit(inline="always")
def _sampled(row: NDArray[np.float64], pad_length: np.int64, word: np.uint64) -> np.int64:
    """The key that a user samples from the padded set; from ``row.size`` on, a dummy."""
    held = np.int64(0)
    for value in row:
        held += not np.isnan(value)
    place = np.int64(place_of(word, np.uint64(max(held, pad_length))))
    if place >= held:
        return row.size + place - held
    key, seen = np.int64(0), np.int64(not np.isnan(row[0]))
    while seen <= place:
        key += 1
        seen += not np.isnan(row[key])
    return key


@njit(cache=True, nogil=True)
def respond_sampled(
    values: NDArray[np.float64],
    pad_length: np.int64,
    atoms: tuple[np.uint64, np.uint64],
    users: NDArray[np.int64],
    key: NDArray[np.uint64],
) -> NDArray[np.uint32]:
    """One code per user: twice a key or dummy, plus one if the sign is negative.

    ``atoms``: of one false code, and the distance to those of the true one.
    """
    lie, span = atoms
    n, keys = values.shape
    own = span + lie + lie
    reports = np.empty(n, np.uint32)
    for i in range(n):
        words = words_of(np.uint64(users[i]), _ZERO, key[0], key[1])
        sampled = _sampled(values[i], pad_length, words[0])
        if words[1] < own:
            value = values[i, sampled] if sampled < keys else 0.0
            reports[i] = 2 * sampled + (words[1] >= threshold(value, lie, span))
        else:
            other = np.int64((words[1] - own) // lie)
            reports[i] = other + 2 * (other >= 2 * sampled)
    return reports


@njit(cache=True, nogil=True)
def respond_each(
    values: NDArray[np.float64],
    pad_length: np.int64,
    atoms: tuple[np.uint64, np.uint64, np.uint64],
    users: NDArray[np.int64],
    key: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Two rows of bits per user, one after the other: positive keys, negative keys.

    ``atoms``: of the flipped sign of the sampled key and the distance to the kept one, which
    together are half of all; and of a key that was not sampled, either sign.
    """
    flipped, span, other = atoms
    n, keys = values.shape
    width, levels = (keys + 63) // 64, levels_of(other, other)
    reports = np.empty((n, 2 * width), np.uint64)
    for i in range(n):
        user = np.uint64(users[i])
        words = words_of(user, _ZERO, key[0], key[1])
        sampled = _sampled(values[i], pad_length, words[0])
        for block in range(width):
            step = np.uint64(1 + (1 + COIN_STEPS) * block)
            # The first two words of signs are left over from the user's own step.
            signs = words[2 + block] if block < 2 else words_of(user, step, key[0], key[1])[0]  # noqa: PLR2004
            place = (user, step + _ONE, key[0], key[1])
            told = coins(levels, _ZERO, lanes_used(keys, block), place)
            reports[i, block] = told & signs
            reports[i, width + block] = told & ~signs
        if sampled < keys:
            block, lane = sampled // 64, _ONE << np.uint64(sampled % 64)
            plus = words[1] < threshold(values[i, sampled], flipped, span)
            minus = not plus and words[1] < _HALF
            reports[i, block] = (reports[i, block] & ~lane) | (lane if plus else _ZERO)
            block += width
            reports[i, block] = (reports[i, block] & ~lane) | (lane if minus else _ZERO)
    return reports
