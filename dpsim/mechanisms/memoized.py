"""Two steps of randomness, one for good and one per round: what both sides make of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import astuple, dataclass, fields
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts, Frequencies
from dpsim.core.checks import require_at_least, require_codes, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.core.schema import MAX_DOMAIN_SIZE
from dpsim.mechanisms._permanent_kernels import bits_twice
from dpsim.mechanisms._unary_kernels import count_bits
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.pairs import require_one_each
from dpsim.mechanisms.rounding import DIGITS, atoms_up, decimal_of, real_loss

ATOMS = 1 << 64
MAX_BITS = 1024
"""The largest domain that is reported as bits: all of them are drawn for every user."""


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """Atoms of 2^64 with which a true and a false code are supported, in both steps."""

    permanent_true: int
    permanent_false: int
    fresh_true: int
    fresh_false: int

    @property
    def permanent(self) -> tuple[Fraction, Fraction]:
        """p₁ and q₁."""
        return Fraction(self.permanent_true, ATOMS), Fraction(self.permanent_false, ATOMS)

    @property
    def fresh(self) -> tuple[Fraction, Fraction]:
        """p₂ and q₂."""
        return Fraction(self.fresh_true, ATOMS), Fraction(self.fresh_false, ATOMS)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """Of one report: ``p = q₂ + p₁(p₂ - q₂)`` and ``q = q₂ + q₁(p₂ - q₂)``."""
        (p1, q1), (p2, q2) = self.permanent, self.fresh
        return q2 + p1 * (p2 - q2), q2 + q1 * (p2 - q2)


class TwoStepOracle:
    """What the mechanisms share, for codes 0..k-1 and the two steps' atoms."""

    __slots__ = ()
    domain_size: int
    epsilon: Fraction
    first_epsilon: Fraction
    _family: str

    def _set(self, domain_size: int, epsilon: object, largest: int = MAX_DOMAIN_SIZE) -> None:
        size = require_at_least(1, domain_size=domain_size)
        if size > largest:
            raise InputError(f"domain_size must be <= {largest:,}, got {size:,}")
        object.__setattr__(self, "domain_size", size)
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))

    def _set_first(self, first_epsilon: object) -> None:
        first = require_epsilon(first_epsilon, "first_epsilon")
        if first >= self.epsilon:
            raise InputError(
                f"first_epsilon must be > 0 and < epsilon = {text_of(self.epsilon)}, "
                f"got {first_epsilon}"
            )
        object.__setattr__(self, "first_epsilon", first)
        self._require_gap()

    def _require_gap(self) -> None:
        (p1, q1), (p2, q2) = self.steps.permanent, self.steps.fresh
        if self.domain_size > 1 and not (p1 > q1 and p2 > q2):
            raise InputError("the losses are too small: all codes would be reported alike")

    @property
    @abstractmethod
    def steps(self) -> TwoSteps:
        """The atoms of both steps."""

    @property
    def p(self) -> float:
        """Probability that one report supports the true code."""
        return float(self.steps.support[0])

    @property
    def q(self) -> float:
        """Probability that one report supports one given other code."""
        return float(self.steps.support[1])

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for the first report on a value, and for all later ones."""
        return PrivacyLoss(self.epsilon if self.domain_size > 1 else Fraction(0))

    @property
    def parameters(self) -> Parameters:
        """The fields, and the atoms made of them."""
        names = [item.name for item in fields(TwoSteps)]
        return (*parameters_of(self), *zip(names, astuple(self.steps), strict=True))

    @property
    def permanent_parameters(self) -> str:
        """What determines a permanent answer, besides seed, attribute, user and value."""
        return f"{self._family} {self.domain_size} {text_of(self.epsilon)}"

    @property
    def tally_size(self) -> int:
        """One count per code."""
        return self.domain_size

    def estimate(self, tally: Counts, n: int) -> Frequencies:
        """Unbiased frequencies from one round, ``(c/n - q)/(p - q)``; negatives are kept."""
        require_at_least(1, n=n)
        if self.domain_size == 1:
            return np.ones(1)
        p, q = self.steps.support
        return (tally / n - float(q)) / float(p - q)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Of one round's estimate: fixed population, true frequency f."""
        return self.average_variance(1, n, frequency)

    def average_variance(self, rounds: int, n: int, frequency: float = 0.0) -> float:
        """Of the average of T rounds' estimates on unchanged values, for a fixed population.

        ``[f·v(p, p₁) + (1-f)·v(q, q₁)] / (n(p-q)²)`` with ``v(x, y) = x(1-x)/T +
        (1 - 1/T)(p₂-q₂)² y(1-y)``: the second part is the permanent step, which no number of
        rounds averages out. Users drawn independently add f(1-f)/n.
        """
        require_at_least(1, rounds=rounds)
        require_at_least(1, n=n)
        if self.domain_size == 1:
            return 0.0
        steps = self.steps
        (p1, q1), (p2, q2), (p, q) = steps.permanent, steps.fresh, steps.support

        def spread(once: Fraction, always: Fraction) -> float:
            lasting = (p2 - q2) ** 2 * always * (1 - always)
            return float(lasting + (once * (1 - once) - lasting) / rounds)

        parts = frequency * spread(p, p1) + (1 - frequency) * spread(q, q1)
        return parts / (n * float(p - q) ** 2)


class BitsTwice(TwoStepOracle):
    """One bit per code, perturbed for good and again in every round; at most 1024 codes."""

    __slots__ = ()

    @property
    def real_epsilon(self) -> float:
        """What any number of reports on one value really cost: ln[p₁(1-q₁)/((1-p₁)q₁)]."""
        return self._bit_loss(*self.steps.permanent)

    @property
    def first_report_epsilon(self) -> float:
        """What the first report alone really costs: ln[p(1-q)/((1-p)q)]."""
        return self._bit_loss(*self.steps.support)

    def _bit_loss(self, p: Fraction, q: Fraction) -> float:
        return real_loss(p * (1 - q) / ((1 - p) * q)) if self.domain_size > 1 else 0.0

    @property
    def report_bytes(self) -> float:
        """One bit per code."""
        return self.domain_size / 8

    def loss_after(self, reports: int) -> float:
        """What T reports on one value have cost together: at most ε∞.

        ``ln[(p₁ + (1-p₁)x)(q₁y + 1-q₁) / ((q₁ + (1-q₁)x)(p₁y + 1-p₁))]``, ``x = (q₂/p₂)^T``,
        ``y = ((1-p₂)/(1-q₂))^T``: the one bit was 1 in all reports, the other one 0.
        """
        if require_at_least(0, reports=reports) == 0 or self.domain_size == 1:
            return 0.0
        with localcontext(prec=DIGITS):
            p, q = map(decimal_of, self.steps.permanent)
            p2, q2 = map(decimal_of, self.steps.fresh)
            x, y = (q2 / p2) ** reports, ((1 - p2) / (1 - q2)) ** reports
            set_bit = (p + (1 - p) * x) / (q + (1 - q) * x)
            ratio = set_bit * (q * y + 1 - q) / (p * y + 1 - p)
        return real_loss(ratio)

    def perturb(self, inputs: Codes, noise: UserNoise) -> NDArray[np.uint64]:
        """One row of bits per user, 64 per word, the lowest bit for the lowest code."""
        require_codes(inputs, self.domain_size)
        if self.domain_size == 1:
            return np.ones((inputs.size, 1), np.uint64)
        permanent, fresh = noise.permanent(self.permanent_parameters), noise.stream()
        require_one_each(inputs.size, permanent.users.size)
        reports: NDArray[np.uint64] = bits_twice(
            np.ascontiguousarray(inputs),
            self.domain_size,
            permanent.users,
            np.array(astuple(self.steps), np.uint64),
            np.concatenate([permanent.key, fresh.key]),
        )
        return reports

    def tally(self, reports: NDArray[np.uint64]) -> Counts:
        """How often each bit was set."""
        counts: Counts = count_bits(reports, self.domain_size)
        return counts


@lru_cache(maxsize=1024)
def code_steps(domain_size: int, epsilon: Fraction, first_epsilon: Fraction) -> TwoSteps:
    """GRR(ε∞), then what makes the first report GRR(ε₁); lies rounded up."""
    k = domain_size
    with localcontext(prec=DIGITS):
        lie = atoms_up(1 / (exp_of(epsilon) + k - 1), 64)
        always = 1 - k * Decimal(lie) / ATOMS
        odds = exp_of(first_epsilon)
        first = (odds - 1) / (odds + k - 1)
        fresh_lie = atoms_up((1 - first / always) / k, 64) if always > first else ATOMS
    return TwoSteps(ATOMS - (k - 1) * lie, lie, ATOMS - (k - 1) * fresh_lie, fresh_lie)


@lru_cache(maxsize=1024)
def bit_steps(lie: Decimal, first_lie: Decimal, truth: int | None = None) -> TwoSteps:
    """Bits with q₁ rounded up from ``lie`` and p₁ = ``truth`` or 1 - q₁, then symmetric flips.

    The fresh flips make q of the first report ``first_lie``, rounded up.
    """
    false = atoms_up(lie, 64)
    with localcontext(prec=DIGITS):
        exact = Decimal(false) / ATOMS
        flip = atoms_up((first_lie - exact) / (1 - 2 * exact), 64) if exact < first_lie else 0
    return TwoSteps(truth or ATOMS - false, false, ATOMS - flip, flip)


@lru_cache(maxsize=1024)
def flip_of(epsilon: Fraction) -> Decimal:
    """``1/(e^ε + 1)``."""
    with localcontext(prec=DIGITS):
        return 1 / (exp_of(epsilon) + 1)
