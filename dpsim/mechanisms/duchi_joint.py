"""Duchi's mechanism for the means of several numbers at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._mean_kernels import joint_signs, plus_counts
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.rounding import real_loss
from dpsim.mechanisms.unit_interval import SHARE_BITS, Numbers, shares_of

_ATOMS = 1 << 64
_MAX_DIMENSIONS = 64
_MAX_CHANNEL_DIMENSIONS = 10
_EPSILON_PER_MEAN = Fraction(5, 2)


@dataclass(frozen=True, slots=True)
class JointDuchi:
    """Report one vector of d signs that leans towards the user's numbers.

    Each number becomes a sign: v_j = ±1 with probability (1 ± x_j)/2. Of the 2^d vectors t
    of signs, the N with t·v > 0 are e^ε times as likely as each of the others::

        N = 2^(d-1) for odd d, 2^(d-1) - C(d, d/2)/2 for even d     D = (e^ε - 1) N + 2^d
        L = ⌈2^64 · 2^d / D⌉ atoms of 2^64: t uniform on all vectors; else uniform on t·v > 0
        b = C(d-1, (d-1)/2) or C(d-1, d/2)     B = 2^64 N / ((2^64 - L) b)
        B t is unbiased, with variance B² - x_j² in dimension j

    A vector uniform on t·v > 0 is a uniform one, negated where it leans away; ties, which
    only an even d has, are drawn again. So all 2^d probabilities are exact. Ties belong to
    the unlikely side only: with ties on both sides, as in print, an even d costs ln(e^ε + 1).

    Guarantees ε under replacement of one user's d numbers.

    References:
        Duchi, Jordan, Wainwright. Minimax optimal procedures for locally private
        estimation. JASA 2018.
    """

    dimensions: int
    epsilon: Fraction

    def __init__(self, dimensions: int, epsilon: object) -> None:
        object.__setattr__(self, "dimensions", require_at_least(1, dimensions=dimensions))
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        if dimensions > _MAX_DIMENSIONS:
            raise InputError(f"dimensions must be <= {_MAX_DIMENSIONS}, got {dimensions}")
        if self.cube_atoms >= _ATOMS:
            raise InputError("epsilon is too small: no draw would tell two numbers apart")

    @property
    def cube_atoms(self) -> int:
        """Draws, of 2^64, whose report does not depend on the numbers: L."""
        return _cube_atoms(self.dimensions, self.epsilon)

    @property
    def bound(self) -> float:
        """The absolute value that each sign of a report stands for: B."""
        d = self.dimensions
        pull = comb(d - 1, d // 2)
        return _ATOMS * _open_size(d) / ((_ATOMS - self.cube_atoms) * pull)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: ``ln(1 + (2^64 - L) 2^d / (L N))``, at most ε."""
        lean = (_ATOMS - self.cube_atoms) << self.dimensions
        return real_loss(1 + Fraction(lean, self.cube_atoms * _open_size(self.dimensions)))

    @property
    def parameters(self) -> Parameters:
        """Dimensions, ε and the atoms made of them."""
        return (*parameters_of(self), ("cube_atoms", self.cube_atoms))

    @property
    def tally_size(self) -> int:
        """One count of plus per dimension."""
        return self.dimensions

    @property
    def report_bytes(self) -> float:
        """One bit per dimension."""
        return self.dimensions / 8

    def perturb(self, inputs: Numbers, noise: UserNoise) -> NDArray[np.uint64]:
        """One word per row of numbers: bit j is the sign of dimension j, 1 for plus."""
        if inputs.ndim != 2 and self.dimensions == 1:  # noqa: PLR2004 - rows and columns
            inputs = inputs.reshape(-1, 1)
        if inputs.ndim != 2 or inputs.shape[1] != self.dimensions:  # noqa: PLR2004
            raise InputError(f"inputs must have {self.dimensions} columns")
        stream = noise.stream()
        shares = shares_of(inputs, stream.users.size)
        cube_atoms = np.uint64(self.cube_atoms)
        signs: NDArray[np.uint64]
        signs = joint_signs(shares, self.dimensions, stream.users, stream.key, cube_atoms)
        return signs

    def tally(self, reports: NDArray[np.uint64]) -> Counts:
        """How many reports are plus in each dimension."""
        counts: Counts = plus_counts(reports, self.dimensions)
        return counts

    def estimate(self, tally: Counts, n: int) -> NDArray[np.float64]:
        """The unbiased means ``B (2 n₊ - n) / n``, one per dimension."""
        require_at_least(1, n=n)
        return (2 * tally - n) / n * self.bound

    def variance(
        self, n: int, mean_squares: NDArray[np.float64] | float = 0.0
    ) -> NDArray[np.float64]:
        """``(B² - mean of x_j²) / n`` per dimension: fixed population."""
        require_at_least(1, n=n)
        squares = np.broadcast_to(np.asarray(mean_squares, np.float64), self.dimensions)
        return (self.bound**2 - squares) / n

    def agreement_law(self) -> NDArray[np.float64]:
        """The probability of one vector t given v, by the number 0..d of signs they share."""
        cube = Fraction(self.cube_atoms, _ATOMS * 2**self.dimensions)
        lean = Fraction(_ATOMS - self.cube_atoms, _ATOMS * _open_size(self.dimensions))
        shared = range(self.dimensions + 1)
        return np.array([float(cube + lean * (2 * a > self.dimensions)) for a in shared])

    def channel(self, inputs: Numbers | None = None) -> NDArray[np.float64]:
        """The exact law: a row per row of numbers, by default all corners, of all reports."""
        d = self.dimensions
        if d > _MAX_CHANNEL_DIMENSIONS:
            raise InputError(
                f"a channel needs dimensions <= {_MAX_CHANNEL_DIMENSIONS}, got {d}"
            )
        bits = np.arange(1 << d)[:, None] >> np.arange(d) & 1
        agreements = bits @ bits.T + (1 - bits) @ (1 - bits).T
        law: NDArray[np.float64] = self.agreement_law()[agreements]
        if inputs is None:
            return law
        plus = shares_of(inputs, len(inputs)).reshape(-1, 1, d) / (1 << SHARE_BITS)
        corners = np.where(bits, plus, 1 - plus).prod(axis=2)
        mixed: NDArray[np.float64] = corners @ law
        return mixed


def _open_size(dimensions: int) -> int:
    ties = comb(dimensions, dimensions // 2) if dimensions % 2 == 0 else 0
    return ((1 << dimensions) - ties) // 2


@lru_cache(maxsize=4096)
def _cube_atoms(dimensions: int, epsilon: Fraction) -> int:
    with localcontext(prec=60):
        odds = (exp_of(epsilon) - 1) * _open_size(dimensions) / 2**dimensions
        share = Decimal(_ATOMS) / (1 + odds)
        return int(share.to_integral_value(rounding=ROUND_CEILING))
