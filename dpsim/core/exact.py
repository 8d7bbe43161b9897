"""Exact numbers: an ε of 0.1 is one tenth, and ten of them are one."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import SupportsFloat

from dpsim.core.errors import InputError

Number = int | float | str | Decimal | Fraction


def exact(value: object, name: str = "value") -> Fraction:
    """The fraction a person means: ``0.1``, ``"0.1"`` and ``"1/10"`` are all one tenth."""
    try:
        return _fraction(value)
    except (ValueError, ArithmeticError, InvalidOperation, TypeError):
        raise InputError(f"{name} must be a finite number, got {value!r}") from None


def _fraction(value: object) -> Fraction:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if isinstance(value, (str, Decimal)):
        return _from_text(str(value))
    if isinstance(value, SupportsFloat) and not hasattr(value, "__len__"):
        return Fraction(repr(float(value)))
    raise TypeError


def _from_text(text: str) -> Fraction:
    above, slash, below = text.partition("/")
    if slash:
        return Fraction(int(above), int(below))
    number = Decimal(text)
    if abs(number.adjusted()) > 50:  # noqa: PLR2004 - 1e999999999 would fill the memory
        raise ValueError
    return Fraction(number)


def text_of(value: Fraction) -> str:
    """The canonical text: ``1``, ``0.1`` where ten divides it out, else ``1/14``."""
    below = value.denominator
    twos = fives = 0
    while below % 2 == 0:
        below, twos = below // 2, twos + 1
    while below % 5 == 0:
        below, fives = below // 5, fives + 1
    places = max(twos, fives)
    if below != 1 or places > 12:  # noqa: PLR2004 - longer is not easier to read
        return str(value)
    if places == 0:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    whole, rest = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
    return f"{sign}{whole}.{rest:0{places}d}"
