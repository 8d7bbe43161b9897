"""Unary encoding: one noisy bit per code."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts
from dpsim.core.checks import require_codes
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CountGenerator, UserNoise
from dpsim.mechanisms._unary_kernels import noisy_bits
from dpsim.mechanisms.atoms import exp_of, response_atoms
from dpsim.mechanisms.packed import (
    count_packed,
    packed,
    require_enumerable,
    require_room,
    row_bytes,
)
from dpsim.mechanisms.pure import PureOracle
from dpsim.mechanisms.rounding import DIGITS, is_precise, loss_up


@dataclass(frozen=True, slots=True, init=False)
class UnaryEncoding(PureOracle):
    """Send one bit per code: 1 with probability p at the true code, with q elsewhere.

    Each bit has a uniform number of its own, compared with P of A = 2^32 atoms at the true
    code and with Q elsewhere (2^64 where 32 bits would waste more than 1e-5 of ε)::

        p = P/A     q = Q/A     real ε = |ln[p(1-q) / ((1-p)q)]|

    Two codes differ in two bits, which is why both odds enter. Bits of different codes are
    independent. Reports are packed: bit v mod 64 of word v // 64.

    Guarantees `loss` under replacement of one user's value.
    """

    def __init__(self, domain_size: int, epsilon: object) -> None:
        self._declare(domain_size, epsilon)
        self._require_gap()

    @property
    @abstractmethod
    def atoms(self) -> tuple[int, int, int]:
        """Bits per draw, atoms P of a 1 at the true code, atoms Q of a 1 elsewhere."""

    @property
    def p(self) -> float:
        """Probability of a 1 at the true code."""
        bits, high, _ = self.atoms
        return 1.0 if self.domain_size == 1 else high / (1 << bits)

    @property
    def q(self) -> float:
        """Probability of a 1 at any other code."""
        bits, _, low = self.atoms
        return low / (1 << bits)

    @property
    def gap(self) -> float:
        """The difference p - q, from whole atoms."""
        bits, high, low = self.atoms
        return (high - low) / (1 << bits)

    @property
    def odds(self) -> tuple[int, int]:
        """``P(A - Q)`` and ``(A - P)Q``."""
        bits, high, low = self.atoms
        return high * ((1 << bits) - low), ((1 << bits) - high) * low

    @property
    def parameters(self) -> Parameters:
        """Domain, ε and the atoms made of them."""
        atoms = zip(("draw_bits", "p_atoms", "q_atoms"), self.atoms, strict=True)
        return (*parameters_of(self), *atoms)

    @property
    def report_bytes(self) -> float:
        """One bit per code, in whole words."""
        return row_bytes(self.domain_size)

    def perturb(self, inputs: Codes, noise: UserNoise) -> NDArray[Any]:
        """One row of packed bits per code."""
        require_codes(inputs, self.domain_size)
        require_room(inputs.size, self.domain_size)
        if self.domain_size == 1:
            return packed(np.ones((inputs.size, 1), np.uint64), 1)
        stream = noise.stream()
        words = noisy_bits(
            inputs.astype(np.uint32),
            stream.users,
            (stream.key[0], stream.key[1]),
            _threshold_levels(*self.atoms),
            self.domain_size,
        )
        return packed(words, self.domain_size)

    def tally(self, reports: NDArray[Any]) -> Counts:
        """How many reports have each bit."""
        return count_packed(reports, self.domain_size)

    def simulate(self, histogram: Counts, generator: CountGenerator) -> Counts:
        """The exact law of the tally: two binomials per code, independent of all others."""
        if self.domain_size == 1:
            return histogram.copy()
        others = histogram.sum() - histogram
        kept, lent = generator.binomial(histogram, self.p), generator.binomial(others, self.q)
        return np.asarray(kept + lent, np.int64)

    def channel(self) -> NDArray[np.float64]:
        """The exact law: row v holds the probabilities of the 2^k reports given code v."""
        if self.domain_size == 1:
            return np.array([[0.0, 1.0]])
        require_enumerable(self.domain_size)
        size = self.domain_size
        ones = (np.arange(2**size)[:, None] >> np.arange(size)) & 1 == 1
        chance = np.where(np.eye(size, dtype=bool), self.p, self.q)[:, None, :]
        law: NDArray[np.float64] = np.where(ones, chance, 1 - chance).prod(axis=2)
        return law


@dataclass(frozen=True, slots=True, init=False)
class SUE(UnaryEncoding):
    """Symmetric unary encoding: a 1 survives as often as a 0 does.

    ``Q = ⌈A / (e^(ε/2) + 1)⌉`` and ``P = A - Q``: each of the two bits that differ costs half
    of ε. Rounding Q up keeps the real loss at or below ε.

    Guarantees ε under replacement of one user's value.

    References:
        Erlingsson, Pihur, Korolova. RAPPOR. CCS 2014.
    """

    @property
    def atoms(self) -> tuple[int, int, int]:
        """32 or 64 bits, A - Q, Q."""
        return response_atoms(2, self.epsilon / 2)


@dataclass(frozen=True, slots=True, init=False)
class OUE(UnaryEncoding):
    """Optimized unary encoding: the true bit is a fair coin, all others are rarely 1.

    ``P = A/2`` and ``Q = ⌈A / (e^ε + 1)⌉``: the choice with the smallest variance for rare
    codes, ``4e^ε / (n(e^ε - 1)²)``. Rounding Q up keeps the real loss at or below ε.

    Guarantees ε under replacement of one user's value.

    References:
        Wang, Blocki, Li, Jha. Locally differentially private protocols for frequency
        estimation. USENIX Security 2017.
    """

    @property
    def atoms(self) -> tuple[int, int, int]:
        """32 or 64 bits, A/2, Q."""
        bits, _, lie = response_atoms(2, self.epsilon)
        return bits, 1 << (bits - 1), lie


@dataclass(frozen=True, slots=True, init=False)
class _Faithful(UnaryEncoding):
    """Unary encoding as once released, with a probability where e^ε was meant.

    The bits come out inverted (p < q) and the real loss is another one than the ε asked for:
    larger for small ε, and next to nothing for large ε. The estimate still inverts them.
    """

    @property
    def odds(self) -> tuple[int, int]:
        """``(A - P)Q`` and ``P(A - Q)``: inverted, like the bits."""
        bits, high, low = self.atoms
        return ((1 << bits) - high) * low, high * ((1 << bits) - low)

    @property
    def _tells_codes_apart(self) -> bool:
        return self.gap < 0

    @property
    @abstractmethod
    def true_loss(self) -> Decimal:
        """What the released formulas cost, on unrounded probabilities."""

    @property
    def loss(self) -> PrivacyLoss:
        """The true loss, rounded up to a fraction; not the ε that was asked for."""
        return PrivacyLoss(loss_up(self.true_loss) if self.domain_size > 1 else Fraction(0))


@dataclass(frozen=True, slots=True, init=False)
class FaithfulSUE(_Faithful):
    """SUE as once released: σ(ε/2) stands where e^(ε/2) is meant.

    With h = 1 / (1 + e^(-ε/2)): ``p = h/(h+1)``, ``q = 1/(h+1)``, real loss -2 ln h, which is
    what `loss` states. For comparison with published results only.

    Guarantees `loss`, not ε, under replacement of one user's value.
    """

    @property
    def atoms(self) -> tuple[int, int, int]:
        """32 or 64 bits, A - Q, ``Q = ⌊A / (h+1)⌋``."""
        bits, lie = _inverted_atoms(self.epsilon / 2)
        return bits, (1 << bits) - lie, lie

    @property
    def true_loss(self) -> Decimal:
        """-2 ln h."""
        return 2 * _minus_log_sigmoid(self.epsilon / 2)


@dataclass(frozen=True, slots=True, init=False)
class FaithfulOUE(_Faithful):
    """OUE as once released: σ(ε) stands where e^ε is meant.

    With h = 1 / (1 + e^(-ε)): ``p = 1/2``, ``q = 1/(h+1)``, real loss -ln h, which is what
    `loss` states. For comparison with published results only.

    Guarantees `loss`, not ε, under replacement of one user's value.
    """

    @property
    def atoms(self) -> tuple[int, int, int]:
        """32 or 64 bits, A/2, ``Q = ⌊A / (h+1)⌋``."""
        bits, lie = _inverted_atoms(self.epsilon)
        return bits, 1 << (bits - 1), lie

    @property
    def true_loss(self) -> Decimal:
        """-ln h."""
        return _minus_log_sigmoid(self.epsilon)


@lru_cache(maxsize=1024)
def _threshold_levels(bits: int, high: int, low: int) -> NDArray[np.uint64]:
    """Per level, most significant first: q's bit on all lanes, and p's difference from it."""
    rows = [
        (-(low >> place & 1), -((high ^ low) >> place & 1)) for place in reversed(range(bits))
    ]
    return np.array(rows, np.int64).view(np.uint64)


def _minus_log_sigmoid(exponent: Fraction) -> Decimal:
    with localcontext(prec=DIGITS):
        return (1 + 1 / exp_of(exponent)).ln()


@lru_cache(maxsize=1024)
def _inverted_atoms(exponent: Fraction) -> tuple[int, int]:
    """Bits per draw and ``⌊A / (σ + 1)⌋``: rounded towards A/2, and so towards privacy."""
    with localcontext(prec=DIGITS):
        share = 1 / (1 + 1 / (1 + 1 / exp_of(exponent)))
        lie = int(share * 2**32)
        if is_precise(Fraction(lie, 2**32 - lie), _minus_log_sigmoid(exponent)):
            return 32, lie
        return 64, int(share * 2**64)
