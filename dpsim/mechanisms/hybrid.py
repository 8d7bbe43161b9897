"""The Hybrid mechanism for the mean of numbers in [-1, 1]: a mixture of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import Purpose, UserNoise
from dpsim.mechanisms._mean_kernels import hybrid_codes
from dpsim.mechanisms._philox import quick_draws
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.piecewise import Piecewise
from dpsim.mechanisms.unit_interval import Numbers, shares_of

_BRANCHES = 1 << 32
_SIGNS = 2
"""Codes of the two signs; the points of the grid follow."""

DUCHI_UP_TO = Fraction("0.60935249")
"""ε* = ln((-5 + 2∛(6353 - 405√241) + 2∛(6353 + 405√241)) / 27): up to it Duchi's is best."""


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Report by Duchi's mechanism or by Piecewise, drawn without looking at the number.

    For ε above ε* = 0.60935249 Duchi's with probability 1/e^(ε/2), rounded to atoms of 2^-32,
    and Piecewise otherwise; up to ε* always Duchi's. The report says which one it was::

        estimate = (C (2 n₊ - n_Duchi) + Σy) / n
        variance of one report = (s + 3)/(3s(s - 1)) + (e^ε + 1)²/(s (e^ε - 1)²), s = e^(ε/2)

    which hardly depends on x, and is less than the worst case of either part.

    Guarantees ε under replacement of one user's number: both parts do, and the choice between
    them does not depend on it. See `Duchi` and `Piecewise` for their integers.

    References:
        Wang, Xiao, Yang, et al. Collecting and analyzing multidimensional data with local
        differential privacy. ICDE 2019.
    """

    epsilon: Fraction
    points: int

    def __init__(self, epsilon: object, points: int = 1 << 16) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        object.__setattr__(self, "points", points)
        Piecewise(1, points)  # refuses a bad grid, whatever ε is
        if self.is_mixed:
            Piecewise(self.epsilon, points)
        Duchi(self.epsilon)

    @property
    def is_mixed(self) -> bool:
        """Whether Piecewise has a part in it."""
        return self.epsilon > DUCHI_UP_TO

    @property
    def duchi_atoms(self) -> int:
        """Draws, of 2^32, that choose Duchi's mechanism."""
        if not self.is_mixed:
            return _BRANCHES
        return round(_BRANCHES / exp_of(self.epsilon / 2))

    @property
    def duchi(self) -> Duchi:
        """One part."""
        return Duchi(self.epsilon)

    @property
    def piecewise(self) -> Piecewise:
        """The other part, if the mechanism is mixed."""
        return Piecewise(self.epsilon, self.points)

    @property
    def bound(self) -> float:
        """The largest absolute value that a report stands for."""
        if not self.is_mixed:
            return self.duchi.bound
        return max(self.duchi.bound, self.piecewise.bound)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: the larger of both parts, at most ε."""
        if not self.is_mixed:
            return self.duchi.real_epsilon
        return max(self.duchi.real_epsilon, self.piecewise.real_epsilon)

    @property
    def parameters(self) -> Parameters:
        """ε, the grid and the atoms of the choice and of both parts."""
        parts = [("duchi_", self.duchi.parameters)]
        if self.is_mixed:
            parts.append(("piecewise_", self.piecewise.parameters))
        inner = [
            (prefix + name, value)
            for prefix, parameters in parts
            for name, value in parameters
            if name not in {"epsilon", "points"}
        ]
        return (*parameters_of(self), ("duchi_atoms", self.duchi_atoms), *inner)

    @property
    def tally_size(self) -> int:
        """n₊ and n of Duchi's, ΣJ and n of Piecewise."""
        return 4

    @property
    def report_bytes(self) -> float:
        """One of two signs or N points."""
        return (self.points + _SIGNS - 1).bit_length() / 8

    def perturb(self, inputs: Numbers, noise: UserNoise) -> NDArray[np.uint32]:
        """One code per number: 0 for minus, 1 for plus, 2 + J for point J."""
        if not self.is_mixed:
            return self.duchi.perturb(inputs, noise).astype(np.uint32)
        duchi = self.duchi
        shares = shares_of(inputs, noise.users.size)
        branches = quick_draws(noise.stream(Purpose.SAMPLE), 32)
        draws = quick_draws(noise.stream(), 64)
        signs = (self.duchi_atoms, duchi.draw_bits, duchi.lie_atoms, duchi.gap_atoms)
        first, second, third, fourth = (np.uint64(number) for number in signs)
        layout = self.piecewise.kernel_layout
        codes: NDArray[np.uint32] = hybrid_codes(
            shares, branches, draws, (first, second, third, fourth), layout
        )
        return codes

    def tally(self, reports: NDArray[np.uint32]) -> Counts:
        """``(n₊, n_Duchi, ΣJ, n_Piecewise)``."""
        n_plus = np.count_nonzero(reports == 1)
        n_duchi = np.count_nonzero(reports < _SIGNS)
        n_piecewise = reports.size - n_duchi
        places = int(reports.sum(dtype=np.int64)) - n_plus - _SIGNS * n_piecewise
        return np.array([n_plus, n_duchi, places, n_piecewise], np.int64)

    def estimate(self, tally: Counts, n: int) -> float:
        """The unbiased mean of both kinds of reports."""
        require_at_least(1, n=n)
        n_plus, n_duchi, places, n_piecewise = tally
        total = (2 * n_plus - n_duchi) * self.duchi.bound
        if self.is_mixed:
            total += self.piecewise.total(places, n_piecewise)
        return float(total / n)

    def variance(self, n: int, mean: float = 0.0, mean_square: float = 0.0) -> float:  # noqa: ARG002 - one signature for all means
        """``(mean of E[y²] - mean of x²) / n``: fixed population."""
        require_at_least(1, n=n)
        moment = self.duchi.bound**2
        if self.is_mixed:
            share = self.duchi_atoms / _BRANCHES
            other = self.piecewise.second_moment(mean_square)
            moment = share * moment + (1 - share) * other
        return (moment - mean_square) / n

    def channel(self, inputs: Sequence[float] = (-1.0, 1.0)) -> NDArray[np.float64]:
        """The exact law: a row per input, the probability of each code in it."""
        share = self.duchi_atoms / _BRANCHES
        signs = share * self.duchi.channel(inputs)
        if not self.is_mixed:
            return signs
        return np.hstack([signs, (1 - share) * self.piecewise.channel(inputs)])
