"""The same users over many rounds: a permanent answer, perturbed again in every round.

The permanent answer to a value is drawn once per user, attribute and value: at the address of
its own parameters, without plan or round, at the place (user, value). Every round perturbs it
with draws of its own plan. So all rounds on one value together cost at most ε∞, the loss of the
permanent step, which is charged when a value is first used; averaging over rounds reveals the
permanent answer and nothing behind it. A second value of the same user costs ε∞ again.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from decimal import localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts
from dpsim.core.checks import require_at_least, require_codes, require_share
from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._permanent_kernels import respond_twice
from dpsim.mechanisms.memoized import (
    ATOMS,
    MAX_BITS,
    BitsTwice,
    TwoStepOracle,
    TwoSteps,
    bit_steps,
    code_steps,
    flip_of,
)
from dpsim.mechanisms.pairs import require_one_each
from dpsim.mechanisms.rounding import DIGITS, decimal_of, log_of, loss_up, real_loss


@dataclass(frozen=True, slots=True)
class LGRR(TwoStepOracle):
    """Generalized randomized response twice: once for good, once per round.

    The permanent step is GRR(ε∞). GRR keeps a code with probability λ = p - q and else names
    any uniformly; two steps multiply their λ. The fresh one gets λ₂ = λ(ε₁)/λ(ε∞), so that
    the first report is GRR(ε₁)::

        λ(ε) = (e^ε - 1)/(e^ε + k - 1)      p₂ = λ₂ + (1 - λ₂)/k      q₂ = (1 - λ₂)/k

    Lies are rounded up to atoms of 2^-64 in both steps.

    Guarantees ε∞ for all rounds on one value and ε₁ for the first one alone, under
    replacement of one user's value.

    References:
        Arcolezi, Couchot, Al Bouna, Xiao. Improving the utility of locally differentially
        private protocols for longitudinal and multidimensional frequency estimates. Digital
        Communications and Networks 2022. Implementations exist whose fresh step forgets k - 2
        of the paths between two codes, which makes the first report noisier than asked.
    """

    domain_size: int
    epsilon: Fraction
    first_epsilon: Fraction

    _family = "GRR"

    def __init__(self, domain_size: int, epsilon: object, first_epsilon: object) -> None:
        self._set(domain_size, epsilon)
        self._set_first(first_epsilon)

    @property
    def steps(self) -> TwoSteps:
        """The atoms of both steps."""
        return code_steps(self.domain_size, self.epsilon, self.first_epsilon)

    @property
    def real_epsilon(self) -> float:
        """What any number of reports on one value really cost: ln(p₁/q₁)."""
        p1, q1 = self.steps.permanent
        return real_loss(p1 / q1) if self.domain_size > 1 else 0.0

    @property
    def first_report_epsilon(self) -> float:
        """What the first report alone really costs: ln(p/q)."""
        p, q = self.steps.support
        return real_loss(p / q) if self.domain_size > 1 else 0.0

    @property
    def report_bytes(self) -> float:
        """One code."""
        return np.min_scalar_type(self.domain_size - 1).itemsize

    def loss_after(self, reports: int) -> float:
        """What T reports on one value have cost together: at most ε∞.

        ``ln[(p₁r + (k-1)q₁)/(q₁r + p₁ + (k-2)q₁)]`` with ``r = (p₂/q₂)^T``: T equal reports.
        """
        if require_at_least(0, reports=reports) == 0 or self.domain_size == 1:
            return 0.0
        with localcontext(prec=DIGITS):
            p, q = map(decimal_of, self.steps.permanent)
            p2, q2 = map(decimal_of, self.steps.fresh)
            rest, others = (q2 / p2) ** reports, self.domain_size - 2
            ratio = (p + (others + 1) * q * rest) / (q + (p + others * q) * rest)
        return real_loss(ratio)

    def perturb(self, inputs: Codes, noise: UserNoise) -> Codes:
        """One report per code."""
        require_codes(inputs, self.domain_size)
        if self.domain_size == 1:
            return inputs.copy()
        permanent, fresh = noise.permanent(self.permanent_parameters), noise.stream()
        require_one_each(inputs.size, permanent.users.size)
        reports: Codes = respond_twice(
            np.ascontiguousarray(inputs),
            permanent.users,
            np.array(astuple(self.steps), np.uint64),
            permanent.key,
            fresh.draws(64),
        )
        return reports

    def tally(self, reports: Codes) -> Counts:
        """How often each code was reported."""
        return np.bincount(reports, minlength=self.domain_size).astype(np.int64, copy=False)

    def channel(self) -> NDArray[np.float64]:
        """The exact law of one report: row v holds its probabilities given code v."""
        if self.domain_size == 1:
            return np.ones((1, 1))
        return np.where(np.eye(self.domain_size, dtype=bool), self.p, self.q)


@dataclass(frozen=True, slots=True)
class LOSUE(BitsTwice):
    """Optimized bits for good, symmetric bits per round: the best of its kind.

    The permanent step is OUE(ε∞); the fresh one flips with probability 1 - p₂, so that the
    first report is OUE(ε₁)::

        p₁ = 1/2      q₁ = 1/(e^ε∞ + 1)      p₂ = (1 + tanh(ε₁/2)/tanh(ε∞/2))/2

    Guarantees ε∞ for all rounds on one value and ε₁ for the first one alone, under
    replacement of one user's value.

    References:
        Arcolezi, Couchot, Al Bouna, Xiao. Improving the utility of locally differentially
        private protocols for longitudinal and multidimensional frequency estimates. Digital
        Communications and Networks 2022.
    """

    domain_size: int
    epsilon: Fraction
    first_epsilon: Fraction

    _family = "OUE"

    def __init__(self, domain_size: int, epsilon: object, first_epsilon: object) -> None:
        self._set(domain_size, epsilon, MAX_BITS)
        self._set_first(first_epsilon)

    @property
    def steps(self) -> TwoSteps:
        """The atoms of both steps."""
        return bit_steps(flip_of(self.epsilon), flip_of(self.first_epsilon), ATOMS // 2)


@dataclass(frozen=True, slots=True)
class LSUE(BitsTwice):
    """Symmetric bits for good, symmetric bits per round: basic RAPPOR by its two losses.

    With SUE(ε∞) for good, the first report is SUE(ε₁)::

        q₁ = 1/(e^(ε∞/2) + 1) = 1 - p₁      p₂ = (1 + tanh(ε₁/4)/tanh(ε∞/4))/2

    Guarantees ε∞ for all rounds on one value and ε₁ for the first one alone, under
    replacement of one user's value.

    References:
        Erlingsson, Pihur, Korolova. RAPPOR: randomized aggregatable privacy-preserving
        ordinal response. CCS 2014.
    """

    domain_size: int
    epsilon: Fraction
    first_epsilon: Fraction

    _family = "SUE"

    def __init__(self, domain_size: int, epsilon: object, first_epsilon: object) -> None:
        self._set(domain_size, epsilon, MAX_BITS)
        self._set_first(first_epsilon)

    @property
    def steps(self) -> TwoSteps:
        """The atoms of both steps."""
        return bit_steps(flip_of(self.epsilon / 2), flip_of(self.first_epsilon / 2))


@dataclass(frozen=True, slots=True)
class RAPPOR(BitsTwice):
    """Symmetric bits for good, two free rates per round: RAPPOR with one hash.

    The permanent step replaces a bit by a fair coin with probability f; a round reports 1
    with probability ``one_rate`` for a permanent 1 and ``zero_rate`` for a permanent 0, q and
    p of the paper::

        f = 2/(1 + e^(ε∞/2))      p₁ = 1 - f/2      q₁ = f/2

    The domain is known and each code has its bit: no Bloom filter. `with_flip` takes f
    instead of ε∞.

    Guarantees ε∞ for all rounds on one value, under replacement of one user's value.

    References:
        Erlingsson, Pihur, Korolova. RAPPOR: randomized aggregatable privacy-preserving
        ordinal response. CCS 2014.
    """

    domain_size: int
    epsilon: Fraction
    zero_rate: Fraction
    one_rate: Fraction

    _family = "SUE"

    def __init__(
        self,
        domain_size: int,
        epsilon: object,
        zero_rate: object = "1/2",
        one_rate: object = "3/4",
    ) -> None:
        self._set(domain_size, epsilon, MAX_BITS)
        object.__setattr__(self, "zero_rate", require_share(zero_rate, "zero_rate"))
        object.__setattr__(self, "one_rate", require_share(one_rate, "one_rate"))
        if not 0 < self.zero_rate < self.one_rate:
            raise InputError(
                f"zero_rate must be > 0 and < one_rate = {one_rate}, got {zero_rate}"
            )
        self._require_gap()

    @classmethod
    def with_flip(
        cls,
        domain_size: int,
        flip: object,
        zero_rate: object = "1/2",
        one_rate: object = "3/4",
    ) -> RAPPOR:
        """By the paper's f; ε∞ = 2 ln((1 - f/2)/(f/2)), in twelve places, rounded up."""
        share = require_share(flip, "flip")
        if share == 0:
            raise InputError(f"flip must be > 0 and < 1, got {flip}")
        with localcontext(prec=DIGITS):
            epsilon = 2 * log_of((2 - share) / share)
        return cls(domain_size, loss_up(epsilon), zero_rate, one_rate)

    @property
    def steps(self) -> TwoSteps:
        """The atoms of both steps; the rates to the nearest atom."""
        always = bit_steps(flip_of(self.epsilon / 2), flip_of(self.epsilon / 2))
        rates = round(self.one_rate * ATOMS), round(self.zero_rate * ATOMS)
        return TwoSteps(always.permanent_true, always.permanent_false, *rates)
