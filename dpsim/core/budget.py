"""Ways to divide a loss exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsim.core.errors import InputError
from dpsim.core.exact import Number, exact


def split(epsilon: Fraction, weights: Sequence[Number]) -> tuple[Fraction, ...]:
    """Parts of ``epsilon`` proportional to the weights; they sum to it exactly."""
    exact_weights = [exact(weight, "weight") for weight in weights]
    if not exact_weights or min(exact_weights) < 0 or sum(exact_weights) == 0:
        raise InputError("weights must be >= 0 and not all zero")
    total = sum(exact_weights, Fraction(0))
    return tuple(epsilon * weight / total for weight in exact_weights)
