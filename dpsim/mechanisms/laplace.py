"""The Laplace mechanism for the mean of numbers in [-1, 1], as a baseline: on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, sinh

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._mean_kernels import laplace_places
from dpsim.mechanisms.unit_interval import SHARE_BITS, Numbers, share_of, shares_of

_MAX_POINTS = 1 << 16
_RATE_PARTS = 1 << 32
_LEAST_RATE = Fraction(1, 1 << 16)


@dataclass(frozen=True, slots=True)
class LocalLaplace:
    """Report the number's point on a grid of N, plus discrete Laplace noise.

    ``J = S + Z``, where S is (1 + x)/2 · (N - 1) rounded at random to a point next to it, so
    that its mean is kept. Two users differ by at most N - 1 points, and::

        P[Z = z] = (1 - r)/(1 + r) · r^|z|     r = exp(-ε / (N - 1))
        y = (2J - (N - 1)) / (N - 1) is unbiased, with variance near 8/ε²

    The noise is drawn without any error, by rejection, from whole numbers (Canonne et al.,
    algorithm 2): nobody sees the low bits of a float. Its ε is rounded down to a multiple of
    2^-32. As a baseline it is dominated by `Hybrid` for every ε.

    Guarantees ε under replacement of one user's number.

    References:
        Dwork, McSherry, Nissim, Smith. Calibrating noise to sensitivity in private data
        analysis. TCC 2006.
        Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
        NeurIPS 2020.
    """

    epsilon: Fraction
    points: int

    def __init__(self, epsilon: object, points: int = _MAX_POINTS) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        object.__setattr__(self, "points", require_at_least(2, points=points))
        if points > _MAX_POINTS:
            raise InputError(f"points must be <= {_MAX_POINTS}, got {points}")
        if self.rate < _LEAST_RATE:
            raise InputError(f"epsilon must be >= {_LEAST_RATE}, got {epsilon}")

    @property
    def rate(self) -> Fraction:
        """The ε of the noise: ε rounded down to a multiple of 2^-32."""
        return Fraction(int(self.epsilon * _RATE_PARTS), _RATE_PARTS)

    @property
    def scale(self) -> Fraction:
        """Of the noise, in points: (N - 1)/ε."""
        return (self.points - 1) / self.rate

    @property
    def bound(self) -> float:
        """The largest absolute value that a report stands for: there is none."""
        return inf

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: the rounded ε."""
        return float(self.rate)

    @property
    def parameters(self) -> Parameters:
        """ε, the grid and the scale made of them."""
        top, bottom = self.scale.numerator, self.scale.denominator
        return (*parameters_of(self), ("scale_top", top), ("scale_bottom", bottom))

    @property
    def tally_size(self) -> int:
        """One sum of points."""
        return 1

    @property
    def report_bytes(self) -> float:
        """One whole number."""
        return 8

    def perturb(self, inputs: Numbers, noise: UserNoise) -> NDArray[np.int64]:
        """One whole number J per number, on the grid or beyond it."""
        stream = noise.stream()
        shares = shares_of(inputs, stream.users.size)
        scale = np.uint64(self.scale.numerator), np.uint64(self.scale.denominator)
        room = np.uint64(self.points - 1)
        places: NDArray[np.int64]
        places = laplace_places(shares, stream.users, stream.key, room, scale)
        return places

    def tally(self, reports: NDArray[np.int64]) -> Counts:
        """The sum of the whole numbers."""
        return np.array([reports.sum(dtype=np.int64)], np.int64)

    def estimate(self, tally: Counts, n: int) -> float:
        """The unbiased mean: the mean of y."""
        require_at_least(1, n=n)
        room = self.points - 1
        return float((2 * tally[0] - n * room) / (n * room))

    def variance(self, n: int, mean: float = 0.0, mean_square: float = 0.0) -> float:  # noqa: ARG002 - one signature for all means
        """``(2r/(1 - r)² + 1/4) · 4/(N - 1)² / n``: fixed population.

        Rounding adds f(1-f) for a number that lies the fraction f behind a point: 1/4 is the
        most it can be.
        """
        require_at_least(1, n=n)
        noise = 0.5 / sinh(1 / (2 * float(self.scale))) ** 2
        return (noise + 1 / 4) * 4 / (self.points - 1) ** 2 / n

    def channel(self, inputs: Sequence[float] = (-1.0, 1.0)) -> NDArray[np.float64]:
        """The exact law of reports clamped to the grid: a row per input.

        Clamping is postprocessing, and keeps the worst ratio: it is reached at both ends.
        """
        places = np.arange(self.points)
        rate = 1 / float(self.scale)
        laws = []
        for number in inputs:
            start, rest = divmod(share_of(number) * (self.points - 1), 1 << SHARE_BITS)
            share = rest / (1 << SHARE_BITS)
            up = self._clamped(places - min(start + 1, self.points - 1), rate)
            laws.append((1 - share) * self._clamped(places - start, rate) + share * up)
        return np.array(laws)

    def _clamped(self, noise: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
        law: NDArray[np.float64] = np.exp(-rate * np.abs(noise)) / (1 + exp(-rate))
        law[1:-1] *= -np.expm1(-rate)
        return law
