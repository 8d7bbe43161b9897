"""Sampled audits: guess secret bits from reports, and see what the hits prove.

Black box: only reports are looked at. A passed audit is no proof, so it names the smallest
excess that it would have found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from fractions import Fraction
from operator import add
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.data.secret_bits import secret_bits
from dpsim.evaluation.audit_bounds import (
    guess_epsilon,
    guess_p_value,
    smallest_excess,
    two_arm_epsilon,
)
from dpsim.mechanisms.interfaces import Reports

Score: TypeAlias = Callable[[Reports], NDArray[np.int8]]
"""From reports to guesses: 1 for input 1, -1 for input 0, 0 to abstain."""

_CHUNK = 1 << 16  # users whose inputs and reports stay in the processor's cache


class Perturbs(Protocol):
    """All that an audit needs of a mechanism."""

    def perturb(self, inputs: NDArray[Any], noise: UserNoise) -> Reports:
        """One report per user."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditCase:
    """A mechanism, two inputs that it must hide, and how to tell their reports apart.

    The score is fixed before anything is sampled: from theory, or on a separate pilot. A wrong
    event has no power, whatever the mechanism leaks.
    """

    name: str
    mechanism: Perturbs
    input0: Any
    input1: Any
    score: Score
    claim: Fraction | float
    exact: float | None = None
    """The true log-ratio of the scored reports, where theory knows it."""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How many trials, the risk of a false alarm per audit, and the seed of the trials."""

    trials: int = 1_000_000
    alpha: float = 1e-8
    seed: int = 0

    def __post_init__(self) -> None:
        require_at_least(1, trials=self.trials)
        require_at_least(0, seed=self.seed)
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be > 0 and < 1, got {self.alpha}")


@dataclass(frozen=True, slots=True)
class Hits:
    """Guesses for input 1 and for input 0, by the input that was perturbed. They add up."""

    n1: int = 0
    ones1: int = 0
    zeros1: int = 0
    n0: int = 0
    ones0: int = 0
    zeros0: int = 0

    def __add__(self, other: Hits) -> Hits:
        return Hits(*map(add, astuple(self), astuple(other)))

    @property
    def guesses(self) -> int:
        """All that did not abstain."""
        return self.ones1 + self.zeros1 + self.ones0 + self.zeros0

    @property
    def correct(self) -> int:
        """Guesses of the input that it was."""
        return self.ones1 + self.zeros0


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What one audit found: lower bounds of the real loss, and whether they pass the claim."""

    name: str
    claim: float
    exact: float | None
    guess_epsilon: float
    two_arm_epsilon: float
    guesses: int
    correct: int
    p_value: float
    alpha: float

    @property
    def is_violation(self) -> bool:
        """Whether so many right guesses contradict the claim, at risk α."""
        return self.p_value < self.alpha

    @property
    def excess(self) -> float:
        """The least violation of the claim that as many guesses would have found."""
        return smallest_excess(self.claim, lambda _: self.guesses, self.alpha)

    @property
    def verdict(self) -> str:
        """In words: what was found, never that a mechanism is private."""
        if self.is_violation:
            return "VIOLATION"
        return f"no violation found; smallest detectable excess {self.excess:.3g}"


def audit(case: AuditCase, settings: AuditSettings) -> AuditResult:
    """Perturb one of two inputs per trial, by a secret fair bit, and guess the bit."""
    subject = f"{case.name} {case.claim}"
    bits = secret_bits(settings.seed, subject, settings.trials)
    pair = np.stack([np.asarray(case.input0), np.asarray(case.input1)])
    hits = Hits()
    for start in range(0, settings.trials, _CHUNK):
        own = bits[start : start + _CHUNK]
        users = np.arange(start, start + own.size)
        noise = UserNoise(settings.seed, "audit", subject, users)
        reports = case.mechanism.perturb(pair.take(own, axis=0), noise)
        hits += count_hits(own, case.score(reports))
    return judge(case.name, hits, case.claim, settings.alpha, exact=case.exact)


def count_hits(bits: NDArray[np.uint8], guesses: NDArray[np.int8]) -> Hits:
    """The guesses of each arm."""
    is_one, for_one, for_zero = bits.astype(np.bool_), guesses > 0, guesses < 0
    n1, ones, zeros, ones1, zeros1 = (
        int(np.count_nonzero(each))
        for each in (is_one, for_one, for_zero, for_one & is_one, for_zero & is_one)
    )
    return Hits(n1, ones1, zeros1, bits.size - n1, ones - ones1, zeros - zeros1)


def judge(
    name: str, hits: Hits, claim: Fraction | float, alpha: float, *, exact: float | None = None
) -> AuditResult:
    """The bounds that the hits of an audit give."""
    guesses, correct = hits.guesses, hits.correct
    return AuditResult(
        name=name,
        claim=float(claim),
        exact=exact,
        guess_epsilon=guess_epsilon(correct, guesses, alpha),
        two_arm_epsilon=two_arm_epsilon(hits.ones1, hits.n1, hits.ones0, hits.n0, alpha),
        guesses=guesses,
        correct=correct,
        p_value=guess_p_value(correct, guesses, float(claim)),
        alpha=alpha,
    )
