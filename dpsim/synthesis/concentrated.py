"""Zero-concentrated privacy ρ: what (ε, δ) allows of it, rounded safely."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, isqrt, log, log1p

from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import exact

_GRID = 1 << 40
_SIGMA_BITS = 20
_HALVINGS = 200
_SAFETY = 1e-9


def concentrated_delta(rho: float, epsilon: float) -> float:
    """The δ at ε of anything with ρ: ``min_a exp((a - 1)(aρ - ε)) (1 - 1/a)^a / (a - 1)``.

    Every a > 1 gives a valid δ. The best one is where the logarithm's slope
    ``(2a - 1)ρ - ε + ln(1 - 1/a)`` is 0; it increases with a.

    References:
        Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
        NeurIPS 2020, proposition 12.
    """
    low, high = 1.0, (epsilon + 1) / (2 * rho) + 2
    for _ in range(_HALVINGS):
        a = (low + high) / 2
        if a == 1 or (2 * a - 1) * rho - epsilon + log1p(-1 / a) < 0:
            low = a
        else:
            high = a
    a = high
    return min(1.0, exp((a - 1) * (a * rho - epsilon) + a * log1p(-1 / a) - log(a - 1)))


def concentrated_rho(epsilon: object, delta: object) -> Fraction:
    """The largest ρ that costs at most (ε, δ), rounded down."""
    loss, chance = require_epsilon(epsilon), exact(delta, "delta")
    if not 0 < chance < 1:
        raise InputError(f"delta must be > 0 and < 1, got {delta}")
    wanted = float(chance) * (1 - _SAFETY)
    low, high = 0.0, float(loss) + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if concentrated_delta(middle, float(loss)) <= wanted:
            low = middle
        else:
            high = middle
    rho = Fraction(int(low * _GRID), _GRID)
    if not rho:
        raise InputError("epsilon and delta leave no noise that fits; raise one of them")
    return rho


def sigma_for(rho: Fraction) -> Fraction:
    """The σ with which a whole marginal costs ρ = 1/σ², rounded up.

    Replacing one record changes two of its counts by 1: a sensitivity of √2 in L2.
    """
    if rho <= 0:
        raise InputError("rho must be > 0: without it there is no measurement")
    square = ceil((1 << (2 * _SIGMA_BITS)) / rho)
    root = isqrt(square)
    return Fraction(root + (root * root < square), 1 << _SIGMA_BITS)


def select_epsilon_for(rho: Fraction) -> Fraction:
    """The ε with which an exponential selection costs ρ = ε²/8, rounded down."""
    return Fraction(isqrt(int(8 * rho * _GRID * _GRID)), _GRID)
