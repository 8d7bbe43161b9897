"""Checks that name the parameter, the rule and the value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsim.core.arrays import Codes
from dpsim.core.errors import InputError
from dpsim.core.exact import exact, text_of

MAX_EPSILON = Fraction(30)
"""The largest loss of one report: beyond it a report is as good as the truth."""


def require_at_least(least: int, **parameter: object) -> int:
    """The one named parameter as a whole number that is not below ``least``."""
    ((name, value),) = parameter.items()
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def require_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """The loss of one report, as an exact fraction above 0 and at most 30."""
    epsilon = exact(value, name)
    if not 0 < epsilon <= MAX_EPSILON:
        raise InputError(f"{name} must be > 0 and <= {text_of(MAX_EPSILON)}, got {value}")
    return epsilon


def require_share(value: object, name: str) -> Fraction:
    """An exact fraction from 0 up to, but not including, 1."""
    share = exact(value, name)
    if not 0 <= share < 1:
        raise InputError(f"{name} must be >= 0 and < 1, got {value}")
    return share


def require_codes(codes: Codes, domain_size: int) -> None:
    """Refuse codes outside the domain: a mechanism would echo them. Counts, never values."""
    if codes.dtype.kind != "u":
        raise InputError(f"codes must be unsigned integers, got {codes.dtype}")
    if np.iinfo(codes.dtype).max < domain_size - 1:
        raise InputError(f"{codes.dtype} cannot hold the codes 0..{domain_size - 1}")
    if codes.size and int(codes.max()) >= domain_size:
        outside = int(np.count_nonzero(codes >= domain_size))
        raise InputError(f"{outside} of {codes.size} codes lie outside 0..{domain_size - 1}")
