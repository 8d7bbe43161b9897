"""Philox4x64-10 for kernels: any user's words at once, the same bits as numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ROUNDS = 10


@intrinsic
def _high(_context: Any, _left: Any, _right: Any) -> Any:  # noqa: ANN401 - numba's own types
    """The upper half of a product of two words: one instruction, which numba does not offer."""

    def generate(_context: Any, builder: Any, _signature: Any, words: Any) -> Any:  # noqa: ANN401
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(builder.zext(words[0], wide), builder.zext(words[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)

    return types.uint64(types.uint64, types.uint64), generate


@njit(inline="always")
def words_of(
    user: np.uint64, step: np.uint64, key0: np.uint64, key1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four words of one user: the counter ``(user, step, 1, 0)`` under a key."""
    x0, x1, x2, x3 = user, step, _ONE, _ZERO
    for _ in range(_ROUNDS):
        high0, low0 = _high(_M0, x0), _M0 * x0
        high1, low1 = _high(_M1, x2), _M1 * x2
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
        key0 += _W0
        key1 += _W1
    return x0, x1, x2, x3
