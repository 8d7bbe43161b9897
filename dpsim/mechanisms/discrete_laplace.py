"""Whole counts with discrete Laplace noise: the central mechanism for tables and queries."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, sinh

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CentralNoise, Purpose, key_of
from dpsim.mechanisms._mean_kernels import laplace_places

_SCALE_BITS = 47
_LARGEST_SCALE = 1 << 40


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Add independent whole noise to each count of a vector, a table, or one query.

    ``y = c + Z`` with, for counts that change by at most Δ in sum (L1)::

        P[Z = z] = (1 - r)/(1 + r) · r^|z|     r = exp(-1/b)     b = Δ/ε

    The noise is drawn without any error, by rejection, from whole numbers (Canonne et al.,
    algorithm 2): nobody sees the low bits of a float. A scale b that does not fit into 48 bits
    is rounded up to 47 of them: `real_epsilon` is at most ε, and less by 2^-46 of it.

    Guarantees ε if one user's replacement changes the counts by at most Δ in L1: 1 for one
    count, 2 for the disjoint cells of a whole table (its total n is public).

    References:
        Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
        STOC 2009.
        Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
        NeurIPS 2020.
    """

    epsilon: Fraction
    sensitivity: int

    def __init__(self, epsilon: object, sensitivity: int) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        object.__setattr__(self, "sensitivity", require_at_least(1, sensitivity=sensitivity))
        if self.scale > _LARGEST_SCALE:
            raise InputError(
                f"epsilon is too small for counts of 64 bits: the noise's scale "
                f"{self.sensitivity}/{self.epsilon} must be <= 2^40"
            )

    @property
    def scale(self) -> Fraction:
        """The b of the noise: Δ/ε, rounded up if it does not fit."""
        scale = self.sensitivity / self.epsilon
        if max(scale.numerator, scale.denominator) < 1 << (_SCALE_BITS + 1):
            return scale
        grid = Fraction(2) ** (_SCALE_BITS - int(scale).bit_length())
        return ceil(scale * grid) / grid

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What the counts really cost: Δ over the rounded scale."""
        return float(self.sensitivity / self.scale)

    @property
    def parameters(self) -> Parameters:
        """ε, Δ and the scale made of them."""
        top, bottom = self.scale.numerator, self.scale.denominator
        return (*parameters_of(self), ("scale_top", top), ("scale_bottom", bottom))

    @property
    def variance(self) -> float:
        """Of one count: ``2r/(1 - r)²``."""
        return 0.5 / sinh(1 / (2 * float(self.scale))) ** 2

    @property
    def mean_error(self) -> float:
        """The expected absolute noise of one count: ``2r/(1 - r²)``."""
        return 1 / sinh(1 / float(self.scale))

    def probabilities(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """The exact law: P[Z = z] for each z."""
        ratio = exp(-1 / float(self.scale))
        peak = -expm1(-1 / float(self.scale)) / (1 + ratio)
        return peak * np.exp(-np.abs(noise) / float(self.scale))

    def measure(
        self, counts: Counts, noise: CentralNoise, subject: str, start: int = 0
    ) -> Counts:
        """The counts with noise: that of the cells ``start``, ``start`` + 1, … of the subject.

        A cell owns its draws, so a table may be measured in parts and in any order. The subject
        must name the question: two different questions must never share their noise.
        """
        exact_counts = np.asarray(counts)
        if exact_counts.dtype.kind not in "iu":
            raise InputError(f"counts must be whole numbers, got {exact_counts.dtype}")
        first = require_at_least(0, start=start)
        key = key_of((noise.seed, Purpose.MEASURE.value, noise.plan_hash, subject))
        cells = np.arange(first, first + exact_counts.size)
        scale = np.uint64(self.scale.numerator), np.uint64(self.scale.denominator)
        # On a grid of one point nothing is rounded: what is left is the noise.
        drawn: Counts = laplace_places(
            np.zeros(cells.size, np.uint32), cells, key, np.uint64(0), scale
        )
        return exact_counts.astype(np.int64) + drawn.reshape(exact_counts.shape)
