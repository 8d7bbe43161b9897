"""Compiled loops of the memoized mechanisms: permanent draws by user and value."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Draws
from dpsim.mechanisms._philox import words_of
from dpsim.mechanisms._words import COIN_STEPS, coins, lanes_used, levels_of, respond_one

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, nogil=True)
def respond_twice(
    codes: Codes,
    users: NDArray[np.int64],
    atoms: NDArray[np.uint64],
    permanent_key: NDArray[np.uint64],
    draws: Draws,
) -> Codes:
    """A permanent answer of the user to this code, answered again with a fresh draw.

    ``atoms``: of truth and of one lie, for the permanent answer, then for the fresh one.
    """
    key0, key1 = permanent_key
    truth, lie, fresh_truth, fresh_lie = atoms
    words = np.empty(codes.size, np.uint64)
    for i in range(codes.size):
        words[i] = words_of(np.uint64(users[i]), np.uint64(codes[i]), key0, key1)[0]
    # A loop of its own: without the counter's multiplications it is vectorized.
    reports = np.empty_like(codes)
    for i in range(codes.size):
        permanent = respond_one(np.uint64(codes[i]), words[i], truth, lie)
        reports[i] = respond_one(permanent, draws[i], fresh_truth, fresh_lie)
    return reports


@njit(cache=True, nogil=True)
def bits_twice(
    codes: Codes,
    size: int,
    users: NDArray[np.int64],
    atoms: NDArray[np.uint64],
    keys: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Rows of bits: the code's bit among ``size``, perturbed for good, then perturbed again.

    ``atoms``: of a 1 from a true and from a false bit, permanent, then fresh. ``keys``: two
    words of the permanent key, two of the fresh one.
    """
    width = (size + 63) // 64
    always, fresh = levels_of(atoms[0], atoms[1]), levels_of(atoms[2], atoms[3])
    reports = np.empty((codes.size, width), np.uint64)
    for i in range(codes.size):
        user, code = np.uint64(users[i]), np.int64(codes[i])
        for block in range(width):
            used = lanes_used(size, block)
            own = _ONE << np.uint64(code % 64) if code // 64 == block else _ZERO
            step = np.uint64(COIN_STEPS * (code * width + block))
            place = (user, step, keys[0], keys[1])
            permanent = coins(always, own, used, place)
            place = (user, np.uint64(COIN_STEPS * block), keys[2], keys[3])
            reports[i, block] = coins(fresh, permanent, used, place)
    return reports
