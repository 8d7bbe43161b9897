"""From exact real numbers to whole atoms and charged losses: always to the safe side."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from math import nextafter

DIGITS = 60
_LOSS_PLACES = Decimal("1e-12")
_TOLERATED_DEFICIT = Decimal("1e-5")


def decimal_of(value: Fraction) -> Decimal:
    """A fraction in 60 digits."""
    with localcontext(prec=DIGITS):
        return Decimal(value.numerator) / value.denominator


def atoms_up(share: Decimal, bits: int) -> int:
    """The share of 2^bits atoms, rounded up."""
    with localcontext(prec=DIGITS):
        return int((share * 2**bits).to_integral_value(rounding=ROUND_CEILING))


def loss_up(epsilon: Decimal) -> Fraction:
    """A loss as a fraction that a ledger can charge: twelve places, rounded up."""
    with localcontext(prec=DIGITS):
        return Fraction(epsilon.quantize(_LOSS_PLACES, rounding=ROUND_CEILING))


def log_of(ratio: Fraction | Decimal) -> Decimal:
    """The logarithm in 60 digits."""
    with localcontext(prec=DIGITS):
        return (decimal_of(ratio) if isinstance(ratio, Fraction) else ratio).ln()


def real_loss(ratio: Fraction | Decimal) -> float:
    """ln(ratio) as the nearest float that is not above it: an exact comparison stays true."""
    exact = log_of(ratio)
    nearest = float(exact)
    return nextafter(nearest, 0.0) if Decimal(nearest) > exact else nearest


def is_precise(ratio: Fraction, epsilon: Decimal) -> bool:
    """Whether rounding cost at most 1e-5 of ε, and nothing beyond ε was given away."""
    if ratio <= 1:
        return False
    with localcontext(prec=DIGITS):
        return bool(0 <= epsilon - log_of(ratio) <= _TOLERATED_DEFICIT * epsilon)
