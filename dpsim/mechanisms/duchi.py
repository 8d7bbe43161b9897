"""Duchi's mechanism for the mean of numbers in [-1, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Draws
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._mean_kernels import duchi_signs
from dpsim.mechanisms._philox import quick_draws
from dpsim.mechanisms.atoms import response_atoms
from dpsim.mechanisms.rounding import real_loss
from dpsim.mechanisms.unit_interval import SHARE_BITS, Numbers, share_of, shares_of


@dataclass(frozen=True, slots=True)
class Duchi:
    """Report one sign, plus the likelier the larger the number x is.

    Probabilities are counted in atoms, the A = 2^32 values of one draw (2^64 where 32 bits
    would waste more than 1e-5 of ε). The number is its share h = ⌊(1 + x) 2^30 + 1/2⌋::

        Q = ⌈A / (e^ε + 1)⌉     P[+] = (Q + ⌊h (A - 2Q) / 2^31 + 1/2⌋) / A = (1 + x/C) / 2
        C = A / (A - 2Q), about coth(ε/2)     ±C is unbiased, with variance C² - x²

    Rounding Q up makes (A - Q)/Q ≤ e^ε: the real loss never exceeds the ε that is charged.

    Guarantees ε under replacement of one user's number.

    References:
        Duchi, Jordan, Wainwright. Minimax optimal procedures for locally private
        estimation. JASA 2018.
    """

    epsilon: Fraction

    def __init__(self, epsilon: object) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        if self.gap_atoms <= 0:
            raise InputError("epsilon is too small: no draw would tell two numbers apart")

    @property
    def draw_bits(self) -> int:
        """Bits per draw: 32, or 64 for extreme ε."""
        return response_atoms(2, self.epsilon)[0]

    @property
    def lie_atoms(self) -> int:
        """Draws that report plus even for -1: Q."""
        return response_atoms(2, self.epsilon)[2]

    @property
    def gap_atoms(self) -> int:
        """Draws whose sign depends on the number: A - 2Q."""
        return (1 << self.draw_bits) - 2 * self.lie_atoms

    @property
    def bound(self) -> float:
        """The absolute value that a report stands for: C."""
        return (1 << self.draw_bits) / self.gap_atoms

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: ln((A - Q)/Q), at most ε."""
        return real_loss(1 + Fraction(self.gap_atoms, self.lie_atoms))

    @property
    def parameters(self) -> Parameters:
        """ε and the atoms made of it."""
        atoms = (("draw_bits", self.draw_bits), ("lie_atoms", self.lie_atoms))
        return (*parameters_of(self), *atoms)

    @property
    def tally_size(self) -> int:
        """One count: of plus."""
        return 1

    @property
    def report_bytes(self) -> float:
        """One bit."""
        return 1 / 8

    def perturb(self, inputs: Numbers, noise: UserNoise) -> NDArray[np.bool_]:
        """One sign per number, True for plus."""
        shares = shares_of(inputs, noise.users.size)
        return self.respond(shares, quick_draws(noise.stream(), self.draw_bits))

    def respond(self, shares: NDArray[np.uint32], draws: Draws) -> NDArray[np.bool_]:
        """One sign per share, from one draw each, in integers only."""
        if draws.dtype.itemsize * 8 != self.draw_bits or draws.size != shares.size:
            raise InputError(f"draws must have {self.draw_bits} bits, one per share")
        lie, gap = np.uint64(self.lie_atoms), np.uint64(self.gap_atoms)
        signs: NDArray[np.bool_] = duchi_signs(shares, draws, lie, gap)
        return signs

    def tally(self, reports: NDArray[np.bool_]) -> Counts:
        """How many reports are plus."""
        return np.array([np.count_nonzero(reports)], np.int64)

    def estimate(self, tally: Counts, n: int) -> float:
        """The unbiased mean ``C (2 n₊ - n) / n``."""
        require_at_least(1, n=n)
        return float((2 * tally[0] - n) / n * self.bound)

    def variance(self, n: int, mean: float = 0.0, mean_square: float = 0.0) -> float:  # noqa: ARG002 - one signature for all means
        """``(C² - mean of x²) / n``: fixed population."""
        require_at_least(1, n=n)
        return (self.bound**2 - mean_square) / n

    def plus_atoms(self, share: int) -> int:
        """Draws that report plus for this share of 2^31."""
        half = 1 << (SHARE_BITS - 1)
        return self.lie_atoms + ((share * self.gap_atoms + half) >> SHARE_BITS)

    def channel(self, inputs: Sequence[float] = (-1.0, 1.0)) -> NDArray[np.float64]:
        """The exact law: a row per input, the probabilities of minus and plus in it."""
        atoms = 1 << self.draw_bits
        plus = [self.plus_atoms(share_of(number)) for number in inputs]
        return np.array([((atoms - count) / atoms, count / atoms) for count in plus])
