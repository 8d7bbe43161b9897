"""The χ² law far out in its tail, where no approximation by the normal law will do."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, lgamma, log
from statistics import NormalDist

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError

_PRECISION = 1e-16
_TINY = 1e-300
_LEAST_LEVEL = 1e-280
_SETTLED = 4e-16


def upper_tail(value: float, freedom: int) -> float:
    """The probability that χ² with so many degrees of freedom exceeds the value.

    ``Q(a, x) = Γ(a, x) / Γ(a)`` at ``a = freedom/2``, ``x = value/2``: below a + 1 one minus
    the power series, above it the continued fraction, which keeps its relative precision.
    """
    require_at_least(1, freedom=freedom)
    if not value >= 0:
        raise InputError(f"value must be >= 0, got {value}")
    a, x = freedom / 2, value / 2
    if x == 0 or value == inf:
        return float(x == 0)
    front = exp(a * log(x) - x - lgamma(a))
    return 1 - front * _series(a, x) if x < a + 1 else front * _continued_fraction(a, x)


@lru_cache(maxsize=4096)
def quantile(level: float, freedom: int) -> float:
    """The value that χ² exceeds with probability ``level``, by Newton steps kept in a bracket.

    The steps are on ln Q, which is concave: they converge from far out in the tail too.
    """
    require_at_least(1, freedom=freedom)
    if not _LEAST_LEVEL <= level < 1:
        raise InputError(f"level must be >= {_LEAST_LEVEL:g} and < 1, got {level}")
    low, high = 0.0, 2.0 * freedom
    while upper_tail(high, freedom) > level:
        low, high = high, 2 * high
    value = min(max(_wilson_hilferty(level, freedom), low), high)
    for _ in range(200):
        tail = upper_tail(value, freedom)
        low, high = (value, high) if tail > level else (low, value)
        step = tail * log(tail / level) / _density(value, freedom) if 0 < tail < 1 else inf
        moved = value + step
        if not low < moved < high:
            moved = (low + high) / 2
        if abs(moved - value) <= _SETTLED * value:
            return moved
        value = moved
    return value


def _wilson_hilferty(level: float, freedom: int) -> float:
    spread = 2 / (9 * freedom)
    root = 1 - spread - NormalDist().inv_cdf(level) * spread**0.5
    return float(freedom * root**3)


def _density(value: float, freedom: int) -> float:
    a, x = freedom / 2, value / 2
    return exp((a - 1) * log(x) - x - lgamma(a)) / 2 if x > 0 else inf


def _series(a: float, x: float) -> float:
    """``Σ xⁿ / (a (a+1) … (a+n))``: the lower tail without its factor in front."""
    term = total = 1 / a
    while term > _PRECISION * total:
        a += 1
        term *= x / a
        total += term
    return total


def _continued_fraction(a: float, x: float) -> float:
    """``1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- …)))``, by the method of Lentz."""
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    value, change, i = d, 0.0, 0
    while abs(change - 1) > 2 * _PRECISION:
        i += 1
        factor = i * (a - i)
        b += 2
        d = factor * d + b
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = b + factor / c
        c = c if abs(c) > _TINY else _TINY
        change = c * d
        value *= change
        if i > 10_000 + 10 * a:
            break
    return value
