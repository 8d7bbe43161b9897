"""How much one rating, or one user, moves the sums and the Gram: proven bounds, rounded up.

**Gram of residuals, one user added or removed** (weight 1/n, |x| ≤ B). The strict upper
triangle carries at most 1/√2 of ‖x xᵀ‖/n ≤ B². Replaced: two such matrices have an inner
product ≥ 0, so √2 times as much.

**Gram of residuals, one rating added or removed** (weight 1/√n). Let z be the other n - 1
residuals without it and y with it. The bias moves by s = |t - b'|/(n + β), t the rating's
clipped deviation, |t| ≤ span/2 and |b'| ≤ (n-1)/(n-1+β) · span/2::

    s ≤ span/2 · (1 + (n-1)/(n-1+β)) / (n+β)

Clipping is 1-Lipschitz, so d = |y - z| ≤ s in each entry, and |y + z| ≤ 2B - d since both lie
in [-B, B]. From y yᵀ - z zᵀ = ½((y-z)(y+z)ᵀ + (y+z)(y-z)ᵀ), its norm is at most ‖y-z‖‖y+z‖.
With A = ‖y-z‖² ≤ (n-1)s² and Σ d ≥ A/s, ‖y+z‖² ≤ 4B²(n-1) - A(4B/s - 1). The largest product
of their roots is::

    (n-1) g(s)     g(s) = s(2B - s)  for s ≤ (2 - √2)B,  else 2B²/√(4B/s - 1)

The old block, n^-½ y yᵀ - (n-1)^-½ z zᵀ, and the grid of 2^-q (a whole unit per entry) give::

    o = (n-1)/√n · g(s) + (1/√(n-1) - 1/√n)(n-1)B² + 4B 2^-q n^¾

The new row has norm ≤ B²√((n-1)/n) and shares no entry with the block:
Δ² = B⁴(n-1)/n + o²/2, the largest over n ≤ m. For B = 1, span 4, β = 10 it is 1.2045².

**Gram of co-counts** (x = 1). Every pair of a user with n ratings has the same entry y_n². So
one rating moves n - 1 entries by y_n² and (n-1)(n-2)/2 by y_{n-1}² - y_n²: whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dpsim.recommend.gram_settings import GramSettings, Protected

_ROOT_BITS = 40
_GRID = 10**9
_FLOAT_SLACK = 1 + 1e-9
_GRID_UNIT = 1 + 2.0**-20
"""What truncation loses per entry, in units; a little more than one for floats' errors."""


def root_above(square: Fraction) -> Fraction:
    """The square root, rounded up to a multiple of 2^-40."""
    scaled = square * 4**_ROOT_BITS
    return Fraction(isqrt(-(-scaled.numerator // scaled.denominator) - 1) + 1, 2**_ROOT_BITS)


@lru_cache(maxsize=16)
def weight_caps(
    protects: Protected, bits: int, bound: Fraction, most: int
) -> NDArray[np.int64]:
    """``⌊2^q B √w⌋`` for n = 0..most ratings, exactly: no residual on the grid exceeds it.

    The weight w is 1/n where users are protected, and 1/√n where ratings are.
    """
    square = bound**2 * 4**bits
    caps = [0]
    for n in range(1, most + 1):
        if protects == "user":
            caps.append(isqrt(int(square / n)))
        else:
            caps.append(isqrt(isqrt(int(square**2 / n))))
    table = np.array(caps, np.int64)
    table.setflags(write=False)
    return table


def gram_sensitivity(settings: GramSettings) -> Fraction:
    """Δ of the packed Gram in L2, in whole-number units of 2^-2q."""
    unit = Fraction(4**settings.bits)
    bound = Fraction(1) if settings.head == "top_n" else settings.bound
    if settings.neighbors == "replace":
        return bound**2 * unit
    if settings.protects == "user":
        return bound**2 * root_above(Fraction(1, 2)) * unit
    if settings.head == "top_n":
        return co_count_sensitivity(settings.popular, settings.bits)
    return residual_sensitivity(settings) * unit


def co_count_sensitivity(most: int, bits: int) -> Fraction:
    """The exact Δ of co-counts if one of up to ``most`` ratings is added, in units."""
    squares = [int(cap) ** 2 for cap in weight_caps("rating", bits, Fraction(1), most)]
    largest = max(
        (n - 1) * squares[n] ** 2 + (n - 1) * (n - 2) // 2 * (squares[n - 1] - squares[n]) ** 2
        for n in range(2, most + 1)
    )
    return root_above(Fraction(largest))


def residual_sensitivity(settings: GramSettings) -> Fraction:
    """Δ of the Gram of residuals if one rating is added, as a number (not in units)."""
    bound, damping, half = (
        float(settings.bound),
        float(settings.damping),
        settings.scale.span / 2,
    )
    n = np.arange(2, settings.popular + 1, dtype=np.float64)
    shift = half * (1 + (n - 1) / (n - 1 + damping)) / (n + damping)
    drop = (1 / np.sqrt(n - 1) - 1 / np.sqrt(n)) * (n - 1) * bound**2
    grid = 4 * bound * _GRID_UNIT * 2.0**-settings.bits * n**0.75
    block = (n - 1) / np.sqrt(n) * _block_norm(shift, bound) + drop + grid
    largest = float(np.sqrt(bound**4 * (n - 1) / n + block**2 / 2).max())
    return Fraction(int(largest * _FLOAT_SLACK * _GRID) + 1, _GRID)


def _block_norm(shift: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """g(s) of the proof: ‖y yᵀ - z zᵀ‖ per old rating."""
    s = np.minimum(shift, 2 * bound)
    is_small = s <= (2 - np.sqrt(2)) * bound
    norm: NDArray[np.float64] = np.where(
        is_small, s * (2 * bound - s), 2 * bound**2 / np.sqrt(4 * bound / s - 1)
    )
    return norm


def item_sensitivity(settings: GramSettings) -> Fraction:
    """Δ of the items' sums in L2 (in L1 too, where ratings are protected), in units.

    The two parts of a rating are ≥ 0 and sum to one whole: L1 = 1, not 2. Users' weights are
    at most c/√n on each of n items. Two replaced vectors ≥ 0 differ by √2 times as much.
    """
    return Fraction(settings.totals_unit * _cap(settings)) * _replaced(settings)


def global_sensitivity(settings: GramSettings) -> Fraction:
    """Δ of the global pair, in L1 or, where users are replaced, in L2; in units."""
    return settings.totals_unit * _replaced(settings)


def _cap(settings: GramSettings) -> int:
    return settings.weight_cap if settings.protects == "user" else 1


def _replaced(settings: GramSettings) -> Fraction:
    return root_above(Fraction(2)) if settings.neighbors == "replace" else Fraction(1)
