"""Tables that any method must be compared with: what knows nothing, little, or everything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis.table import CodeTable, code_type

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_MAX_PLACES = 2**32 - 1


def uniform_table(sizes: tuple[int, ...], n: int, noise: CentralNoise) -> CodeTable:
    """Rows whose codes are all equally likely: what knows nothing but the domains."""
    require_at_least(1, n=n)
    codes = np.empty((len(sizes), n), code_type(sizes))
    for attribute, size in enumerate(sizes):
        codes[attribute] = _places(noise, f"uniform, attribute {attribute}", n, size)
    return CodeTable(sizes, codes)


def independent_table(truth: CodeTable, n: int, noise: CentralNoise) -> CodeTable:
    """Rows with the truth's margins and no dependence: each code from a user of its own."""
    _require_rows(truth, n)
    codes = np.empty((len(truth.sizes), n), truth.codes.dtype)
    for attribute, column in enumerate(truth.codes):
        users = _places(noise, f"independent, attribute {attribute}", n, truth.n)
        codes[attribute] = column[users]
    return CodeTable(truth.sizes, codes)


def bootstrap_table(truth: CodeTable, n: int, noise: CentralNoise) -> CodeTable:
    """Rows of the truth drawn with replacement: what knows everything, and hides nothing."""
    _require_rows(truth, n)
    return CodeTable(truth.sizes, truth.codes[:, _places(noise, "bootstrap", n, truth.n)])


def _places(noise: CentralNoise, subject: str, n: int, size: int) -> NDArray[np.intp]:
    """Row by row a uniform place in 0..size-1: the high word of ``draw · size``."""
    draws = noise.words(Purpose.PUBLISH, subject, n)
    factor = np.uint64(size)
    low = ((draws & _LOW) * factor) >> _HALF
    return (((draws >> _HALF) * factor + low) >> _HALF).astype(np.intp)


def _require_rows(truth: CodeTable, n: int) -> None:
    require_at_least(1, n=n)
    if not 1 <= truth.n <= _MAX_PLACES:
        raise InputError(
            f"rows are drawn from a table of 1 to {_MAX_PLACES:,} rows, got {truth.n:,}"
        )
