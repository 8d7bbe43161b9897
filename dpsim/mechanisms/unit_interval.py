"""Numbers in [-1, 1] as whole shares of 2^31: from here on clients compute in integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.mechanisms._mean_kernels import to_shares

SHARE_BITS = 31

Numbers = NDArray[np.float64]
"""One number in [-1, 1] per user, or one row of them."""


def share_of(number: float) -> int:
    """The share ``⌊(1 + x) 2^30 + 1/2⌋`` of one number: 0 for -1, 2^31 for 1."""
    return int(shares_of(np.array([number], np.float64), 1)[0])


def shares_of(numbers: Numbers, n: int) -> NDArray[np.uint32]:
    """The shares of the numbers of n users, row by row: each within 2^-31 of its number.

    Numbers outside [-1, 1] and nan are refused: by counts, never by value.
    """
    if numbers.dtype != np.float64:
        raise InputError(f"numbers must be float64, got {numbers.dtype}")
    if numbers.shape[0] != n:
        raise InputError(f"there must be one input per user, got {numbers.shape[0]} for {n}")
    shares: NDArray[np.uint32]
    shares, outside = to_shares(np.ascontiguousarray(numbers).reshape(-1))
    if outside:
        raise InputError(f"{outside} of {numbers.size} numbers lie outside [-1, 1]")
    return shares
