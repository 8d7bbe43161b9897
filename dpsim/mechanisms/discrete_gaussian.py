"""Whole numbers with discrete Gaussian noise: the central mechanism for large vectors."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import exp, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import CentralNoise, Purpose, key_of
from dpsim.mechanisms._noise_kernels import gaussian_entries
from dpsim.mechanisms.exact_gaussian import entry_at, whole_law

MARGIN = 2.0**-44
"""How near to a probability a float may not decide: 500 times the error of exp."""

_LARGEST_PART = 1 << 48
_TABLED = 10
_FLAT_SIGMA = 8


@lru_cache(maxsize=1)
def borders() -> NDArray[np.uint64]:
    """``⌊2^63 P[K ≤ k]⌋`` for k = 0..9 whole σ, P[K = k] ∝ exp(-k²/2)."""
    with localcontext(prec=80):
        law = whole_law(_TABLED, 70)
        ends = [int(sum(law[: k + 1], Decimal(0)) * 2**63) for k in range(_TABLED)]
    table = np.array(ends, np.uint64)
    table.setflags(write=False)
    return table


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Add independent whole noise to each entry of a vector of whole numbers.

    ``y = c + Z`` with, for vectors that change by at most Δ in L2::

        P[Z = z] = exp(-z²/(2σ²)) / Σ_y exp(-y²/(2σ²))

    The noise is drawn without any error. An entry is ±(kσ + xσ): whole σ with probability
    ∝ exp(-k²/2), a uniform place x in the next σ, kept with probability exp(-x(2k + x)/2)
    (Karney). Floats settle a comparison only where they cannot err; the rest, one in 10^13,
    is settled by decimal arithmetic with as many digits and random bits as it needs.

    Guarantees ρ = Δ²/(2σ²) of zero-concentrated privacy, exactly (Canonne et al.), under the
    relation that Δ is stated for. How it converts to (ε, δ): `dpsim.recommend.
    gaussian_accounting`.

    References:
        Karney. Sampling exactly from the normal distribution. ACM TOMS 2016.
        Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
        NeurIPS 2020.
    """

    sigma: Fraction
    sensitivity: Fraction

    def __init__(self, sigma: object, sensitivity: object) -> None:
        object.__setattr__(self, "sigma", exact(sigma, "sigma"))
        object.__setattr__(self, "sensitivity", exact(sensitivity, "sensitivity"))
        if self.sigma <= 0 or max(self.sigma.as_integer_ratio()) > _LARGEST_PART:
            raise InputError(
                "sigma must be a fraction > 0 of numbers up to 2^48, "
                f"got {float(self.sigma):.6g}; use a coarser grid"
            )
        if self.sensitivity <= 0:
            raise InputError(f"sensitivity must be > 0, got {sensitivity}")

    @property
    def rho(self) -> Fraction:
        """The loss in zero-concentrated privacy: Δ²/(2σ²)."""
        return self.sensitivity**2 / (2 * self.sigma**2)

    @property
    def parameters(self) -> Parameters:
        """σ and Δ."""
        return parameters_of(self)

    @property
    def variance(self) -> float:
        """Of one entry: σ², and less where σ is a few units only."""
        sigma = float(self.sigma)
        if sigma >= _FLAT_SIGMA:
            return sigma**2
        values = np.arange(-100, 101)
        return float(self.probabilities(values) @ values.astype(np.float64) ** 2)

    def probabilities(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """The law: P[Z = z] for each z."""
        sigma = float(self.sigma)
        total = sqrt(2 * pi) * sigma
        if sigma < _FLAT_SIGMA:
            total = sum(exp(-0.5 * (z / sigma) ** 2) for z in range(-100, 101))
        law: NDArray[np.float64] = np.exp(-0.5 * (noise / sigma) ** 2) / total
        return law

    def draw(
        self, n: int, noise: CentralNoise, subject: str, start: int = 0, margin: float = MARGIN
    ) -> Counts:
        """The noise of the entries ``start .. start + n - 1`` of a subject.

        A wider margin leaves more to exact arithmetic, and changes no bit.
        """
        first = require_at_least(0, start=start)
        key = key_of((noise.seed, Purpose.MEASURE.value, noise.plan_hash, subject))
        sigma = np.int64(self.sigma.numerator), np.int64(self.sigma.denominator)
        made: tuple[Counts, NDArray[np.bool_]] = gaussian_entries(
            first, require_at_least(0, n=n), key, sigma, borders(), margin
        )
        drawn, unsure = made
        for place in np.flatnonzero(unsure):
            drawn[place] = entry_at(first + int(place), key, self.sigma)
        return drawn

    def measure(
        self, values: NDArray[Any], noise: CentralNoise, subject: str, start: int = 0
    ) -> Counts:
        """The values with noise: that of the entries ``start``, ``start`` + 1, … of a subject.

        An entry owns its draws, so a vector may be measured in parts and in any order. The
        subject must name the question: two questions must never share their noise.
        """
        whole = np.asarray(values)
        if whole.dtype.kind not in "iu":
            raise InputError(f"values must be whole numbers, got {whole.dtype}")
        drawn = self.draw(whole.size, noise, subject, start)
        return whole.astype(np.int64) + drawn.reshape(whole.shape)
