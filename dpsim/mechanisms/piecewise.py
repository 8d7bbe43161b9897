"""The Piecewise mechanism for the mean of numbers in [-1, 1]: on a grid, and in floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Draws
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._mean_kernels import float_piecewise, piecewise_places
from dpsim.mechanisms._philox import quick_draws
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.piecewise_atoms import WORD, Layout, piecewise_layout
from dpsim.mechanisms.rounding import real_loss
from dpsim.mechanisms.unit_interval import Numbers, share_of, shares_of

_MAX_POINTS = 1 << 16
_FIXED_POINT = 2.0**24


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Report a point of a grid, from W neighbors near the number or else from all N points.

    With s = e^(ε/2) and A = 2^32 atoms (2^64/N where that would waste more than 1e-5 of ε)::

        W = max(1, round(N / (s + 1)))     B = ⌈A / (1 + (e^ε - 1) W/N)⌉     β = B/A
        J uniform on 0..N-1 with probability β, else J = ⌊(1 + x)/2 · (N - W) + W·U⌋
        y = (2J - (N - 1)) / ((1 - β)(N - W)) is unbiased; real loss ln(1 + (1 - β)N / (βW))

    One 64-bit draw decides both: below B it is uniform on the grid, above it is U, exact to
    2^-31 of a point. The floor of a sum with a uniform number is the randomized rounding that
    keeps the mean. Every probability is a whole number of atoms, B is chosen from these, and
    reports on a grid have no low bits in which the number could hide, unlike `FloatPiecewise`.

    Guarantees ε under replacement of one user's number.

    References:
        Wang, Xiao, Yang, et al. Collecting and analyzing multidimensional data with local
        differential privacy. ICDE 2019.
        Mironov. On significance of the least significant bits for differential privacy.
        CCS 2012.
    """

    epsilon: Fraction
    points: int

    def __init__(self, epsilon: object, points: int = _MAX_POINTS) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        object.__setattr__(self, "points", require_at_least(2, points=points))
        if points > _MAX_POINTS or points & (points - 1):
            raise InputError(f"points must be a power of 2 up to {_MAX_POINTS}, got {points}")
        piecewise_layout(self.epsilon, points)

    @property
    def layout(self) -> Layout:
        """What each draw does."""
        return piecewise_layout(self.epsilon, self.points)

    @property
    def bound(self) -> float:
        """The largest absolute value that a report stands for."""
        return (self.points - 1) * self._scale / 2

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: the worst ratio, of point 0 between -1 and 1."""
        return real_loss(1 + self.layout.excess)

    @property
    def parameters(self) -> Parameters:
        """ε, the grid and the atoms made of them."""
        _, width, bits, anywhere = self.layout
        atoms = (("width", width), ("atom_bits", bits), ("anywhere_atoms", anywhere))
        return (*parameters_of(self), *atoms)

    @property
    def tally_size(self) -> int:
        """One sum of points."""
        return 1

    @property
    def report_bytes(self) -> float:
        """One point."""
        return (self.points - 1).bit_length() / 8

    def perturb(self, inputs: Numbers, noise: UserNoise) -> NDArray[np.uint16]:
        """One point J per number."""
        return self.respond(
            shares_of(inputs, noise.users.size), quick_draws(noise.stream(), 64)
        )

    def respond(self, shares: NDArray[np.uint32], draws: Draws) -> NDArray[np.uint16]:
        """One point per share, from one 64-bit draw each, in integers only."""
        if draws.dtype != np.uint64 or draws.size != shares.size:
            raise InputError("draws must have 64 bits, one per share")
        places: NDArray[np.uint16] = piecewise_places(shares, draws, *self.kernel_layout)
        return places

    @property
    def kernel_layout(self) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
        """What the kernel needs: draws that go anywhere, stretch, N - W, N."""
        layout = self.layout
        anywhere, stretch = np.uint64(layout.anywhere), np.uint64(layout.stretch)
        return anywhere, stretch, np.uint64(self._room), np.uint64(self.points)

    def tally(self, reports: NDArray[np.uint16]) -> Counts:
        """The sum of the points."""
        return np.array([reports.sum(dtype=np.int64)], np.int64)

    def estimate(self, tally: Counts, n: int) -> float:
        """The unbiased mean: the mean of y."""
        require_at_least(1, n=n)
        return self.total(tally[0], n) / n

    def total(self, places: int, n: int) -> float:
        """The sum of y over n reports whose points add up to ``places``."""
        return float((2 * places - n * (self.points - 1)) * self._scale / 2)

    def variance(self, n: int, mean: float = 0.0, mean_square: float = 0.0) -> float:  # noqa: ARG002 - one signature for all means
        """``(mean of E[y²] - mean of x²) / n``: fixed population; see `second_moment`."""
        require_at_least(1, n=n)
        return (self.second_moment(mean_square) - mean_square) / n

    def second_moment(self, mean_square: float) -> float:
        """The mean of E[y²] over users whose mean of x² is this.

        ``β (N²-1)/12 + (1-β) ((W²-1)/12 + 1/4 + (N-W)² x²/4)`` in squared points. Rounding
        adds f(1-f) to it for a number that lies the fraction f behind a point: 1/4 is the
        most it can be, and for N = 2^16 and ε ≤ 8 a millionth of the whole.
        """
        layout = self.layout
        near = (layout.width**2 - 1) / 12 + 1 / 4 + self._room**2 * mean_square / 4
        anywhere = (self.points**2 - 1) / 12
        mean = (layout.anywhere * anywhere + layout.near * near) / WORD
        return mean * self._scale**2

    def channel(self, inputs: Sequence[float] = (-1.0, 1.0)) -> NDArray[np.float64]:
        """The exact law: a row per input, the probability of each point in it."""
        rows = [self.layout.place_atoms(share_of(number)) for number in inputs]
        return np.array([[atoms / WORD for atoms in row] for row in rows])

    @property
    def _room(self) -> int:
        return self.points - self.layout.width

    @property
    def _scale(self) -> float:
        """The step of y between two points: ``2 / ((1 - β)(N - W))``."""
        return 2 * WORD / (self.layout.near * self._room)


@dataclass(frozen=True, slots=True)
class FloatPiecewise:
    """The Piecewise mechanism as printed, in floats: for study, because it is not private.

    With s = e^(ε/2) and C = (s + 1)/(s - 1), y is uniform on [l, l + C - 1] with probability
    1 - 1/s, where l = (C + 1) x/2 - (C - 1)/2, and else uniform on [-C, C]::

        E[y] = x     Var[y] = x²/(s - 1) + (s + 3)/(3 (s - 1)²)

    The density costs ε under replacement of one user's number. Its floats do not: the low
    bits of y depend on where l lies, and some reports exclude some numbers for certain. So
    `is_sound` is False, `real_epsilon` is infinite, and `loss` states the nominal ε.

    References:
        Wang, Xiao, Yang, et al. Collecting and analyzing multidimensional data with local
        differential privacy. ICDE 2019.
    """

    is_sound: ClassVar[bool] = False
    """The stated loss is nominal: floats leak more."""

    epsilon: Fraction

    def __init__(self, epsilon: object) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))

    @property
    def bound(self) -> float:
        """The largest absolute value of a report: C."""
        with localcontext(prec=60):
            root = exp_of(self.epsilon / 2)
            return float((root + 1) / (root - 1))

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges: ε, which holds for the density and not for its floats."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """Infinite: some floats are reported for some numbers only."""
        return inf

    @property
    def parameters(self) -> Parameters:
        """ε only."""
        return parameters_of(self)

    @property
    def tally_size(self) -> int:
        """One sum of reports."""
        return 1

    @property
    def report_bytes(self) -> float:
        """One float."""
        return 8

    def perturb(self, inputs: Numbers, noise: UserNoise) -> NDArray[np.float64]:
        """One float per number."""
        stream = noise.stream()
        shares_of(inputs, stream.users.size)  # refuses what lies outside
        numbers, near = np.ascontiguousarray(inputs), float(1 - 1 / exp_of(self.epsilon / 2))
        reports: NDArray[np.float64]
        reports = float_piecewise(numbers, stream.users, stream.key, self.bound, near)
        return reports

    def tally(self, reports: NDArray[np.float64]) -> Counts:
        """The sum of the reports, each rounded to 2^-24: integers add up in any order."""
        return np.array([np.rint(reports * _FIXED_POINT).sum(dtype=np.int64)], np.int64)

    def estimate(self, tally: Counts, n: int) -> float:
        """The unbiased mean: the mean of y."""
        require_at_least(1, n=n)
        return float(tally[0] / n / _FIXED_POINT)

    def variance(self, n: int, mean: float = 0.0, mean_square: float = 0.0) -> float:  # noqa: ARG002 - one signature for all means
        """``(mean of x² / (s - 1) + (s + 3)/(3 (s - 1)²)) / n``: fixed population."""
        require_at_least(1, n=n)
        root = float(exp_of(self.epsilon / 2))
        return (mean_square / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)) / n
