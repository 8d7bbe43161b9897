"""Probabilities counted in atoms: the 2^32 or 2^64 values of one draw.

Thresholds are whole numbers computed in 60 decimal digits: the same on every machine, and
rounded so that the real loss never exceeds the one asked for.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

_DIGITS = 60
_TOLERATED_DEFICIT = Decimal("1e-5")
"""The part of ε that rounding to 32 bits may cost; beyond it 64 bits are used."""


def exp_of(epsilon: Fraction) -> Decimal:
    """e^ε in 60 digits."""
    with localcontext(prec=_DIGITS):
        return (Decimal(epsilon.numerator) / epsilon.denominator).exp()


@lru_cache(maxsize=4096)
def response_atoms(domain_size: int, epsilon: Fraction) -> tuple[int, int, int]:
    """Bits per draw, atoms of the truth T, atoms of one lie m, for k-ary response.

    ``m = ⌈A / (e^ε + k - 1)⌉`` and ``T = A - (k - 1) m`` on ``A = 2^bits`` atoms: rounding m
    up makes T/m ≤ e^ε.
    """
    for bits in (32, 64):
        truth, lie = _cut(bits, domain_size, epsilon)
        with localcontext(prec=_DIGITS):
            asked = Decimal(epsilon.numerator) / epsilon.denominator
            if (
                truth > lie
                and asked - (Decimal(truth) / lie).ln() <= _TOLERATED_DEFICIT * asked
            ):
                return bits, truth, lie
    return bits, truth, lie


def _cut(bits: int, domain_size: int, epsilon: Fraction) -> tuple[int, int]:
    with localcontext(prec=_DIGITS):
        share = Decimal(2**bits) / (exp_of(epsilon) + domain_size - 1)
        lie = int(share.to_integral_value(rounding=ROUND_CEILING))
    return 2**bits - (domain_size - 1) * lie, lie
