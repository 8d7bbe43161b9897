"""Reports of one bit per code: how they are packed, counted and kept within the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.mechanisms._unary_kernels import count_bits

_WORD = 64
_MOST_BYTES = 1 << 30
"""The largest array of reports that is made at once."""
_MOST_CODES = 12
"""The largest domain whose 2^k reports are listed one by one."""


def word_type(domain_size: int) -> np.dtype[Any]:
    """The narrowest unsigned integers that hold one bit per code, or 64 of them each."""
    return np.min_scalar_type(2 ** min(domain_size, _WORD) - 1)


def row_bytes(domain_size: int) -> int:
    """Bytes of one report."""
    return word_type(domain_size).itemsize * -(-domain_size // _WORD)


def require_room(n: int, domain_size: int) -> None:
    """Refuse reports that would not fit, before anything is allocated."""
    needed = n * row_bytes(domain_size)
    if needed > _MOST_BYTES:
        raise InputError(
            f"{n:,} reports of {domain_size:,} bits need {needed:,} bytes at once, and at most "
            f"{_MOST_BYTES:,} are made; OLH sends a few bytes per user"
        )


def require_enumerable(domain_size: int) -> None:
    """Refuse to list the reports of a domain that has too many."""
    if domain_size > _MOST_CODES:
        raise InputError(f"channel lists 2^k reports: k must be <= {_MOST_CODES}")


def packed(words: NDArray[np.uint64], domain_size: int) -> NDArray[Any]:
    """Rows of 64-bit words as reports: small domains get narrow words."""
    return words.astype(word_type(domain_size), copy=False)


def count_packed(reports: NDArray[Any], domain_size: int) -> Counts:
    """How many reports have each bit."""
    width = -(-domain_size // _WORD)
    if reports.ndim != 2 or reports.shape[1] != width:  # noqa: PLR2004 - users and words
        raise InputError(f"reports must have {width} words each, got shape {reports.shape}")
    counts: Counts = count_bits(np.ascontiguousarray(reports, np.uint64), domain_size)
    return counts
