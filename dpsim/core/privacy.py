"""Privacy loss as a value with algebra."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Self

from dpsim.core.errors import InputError
from dpsim.core.exact import Number, exact, text_of

Unit = Literal["user", "record", "rating", "attribute"]
Neighbors = Literal["replace", "add_remove"]


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """An (ε, δ) guarantee: what one release costs one unit, under one neighbor relation.

    Both numbers are exact fractions, so that fourteen fourteenths are one and not a bit more.
    The relation is part of the value: losses under different relations do not add up.

    ``a + b`` composes releases about the *same* users (basic composition);
    ``a | b`` composes releases about *disjoint* users (parallel composition).
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    unit: Unit = field(default="user", kw_only=True)
    neighbors: Neighbors = field(default="replace", kw_only=True)

    def __post_init__(self) -> None:
        epsilon, delta = exact(self.epsilon, "epsilon"), exact(self.delta, "delta")
        if epsilon < 0:
            raise InputError(f"epsilon must be >= 0, got {self.epsilon}")
        if not 0 <= delta < 1:
            raise InputError(f"delta must be >= 0 and < 1, got {self.delta}")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    @classmethod
    def of(cls, epsilon: Number, delta: Number = 0) -> Self:
        """A loss from anything that `exact` reads."""
        return cls(exact(epsilon, "epsilon"), exact(delta, "delta"))

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        self._require_same_relation(other)
        # A δ of 1 or more says nothing; the largest one that still is a δ stands for it.
        delta = min(self.delta + other.delta, 1 - Fraction(1, 2**64))
        return self._like(self.epsilon + other.epsilon, delta)

    def __or__(self, other: PrivacyLoss) -> PrivacyLoss:
        self._require_same_relation(other)
        return self._like(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def within(self, limit: PrivacyLoss) -> bool:
        """Whether the limit allows this loss, compared exactly."""
        self._require_same_relation(limit)
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta

    def __str__(self) -> str:
        delta = f", δ={text_of(self.delta)}" if self.delta else ""
        return f"ε={text_of(self.epsilon)}{delta}"

    def _like(self, epsilon: Fraction, delta: Fraction) -> PrivacyLoss:
        return PrivacyLoss(epsilon, delta, unit=self.unit, neighbors=self.neighbors)

    def _require_same_relation(self, other: PrivacyLoss) -> None:
        if (self.unit, self.neighbors) != (other.unit, other.neighbors):
            raise InputError(
                "losses must be under one neighbor relation, got "
                f"{self.neighbors} {self.unit} and {other.neighbors} {other.unit}"
            )
