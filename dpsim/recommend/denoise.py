"""Directions of a noisy Gram that stand out of its noise: post-processing, at no loss."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh  # type: ignore[import-untyped]

from dpsim.core.checks import require_at_least
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.split_sums import ItemFacts, typical_weight

Floats = NDArray[np.float64]

EDGE = 2.04
"""In σ√m: where noise ends, at 2, and a little more."""
SEEN = 1.22
"""In σ√m: a true direction weaker than that does not pass the edge."""

_DENSE_SIZE = 400
ACTIVITY = 1.3
"""E[n^1.5]/(E n)^1.5, of users' numbers of ratings: a public guess."""
_FEW = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The kept directions, strongest first."""

    strengths: Floats
    """Each one's eigenvalue without the part that noise adds, shrunk by what noise turns."""
    directions: Floats = field(repr=False)
    """One column each."""
    edge: float
    """Eigenvalues up to here may be noise."""

    @property
    def rank(self) -> int:
        """How many were kept."""
        return self.strengths.size


def denoise(matrix: Floats, sd: float, kept: int) -> Spectrum:
    """The largest eigenvalues l > 2.04 σ√m, shrunk to √(l² - 4σ²m); none may be left.

    A direction of strength λ shows as l = λ + σ²m/λ, and its squared overlap with the truth is
    1 - σ²m/λ²; strength times overlap is the root. Without noise nothing is shrunk.

    References:
        Benaych-Georges, Nadakuditi. The eigenvalues and eigenvectors of finite, low rank
        perturbations of large random matrices. Advances in Mathematics 2011.
    """
    size = len(matrix)
    values, vectors = _largest(matrix, min(require_at_least(1, kept=kept), size))
    edge = EDGE * sd * np.sqrt(size)
    is_kept = values > edge
    strengths = np.sqrt(values[is_kept] ** 2 - 4 * sd**2 * size)
    return Spectrum(strengths, _signed(vectors[:, is_kept]), float(edge))


def _largest(matrix: Floats, n: int) -> tuple[Floats, Floats]:
    """The n largest eigenvalues, falling, and their vectors."""
    size = len(matrix)
    if size <= max(_DENSE_SIZE, 4 * n):
        values, vectors = np.linalg.eigh(matrix)
    else:
        # A start of our own: the library's would be random, and other bits each time.
        values, vectors = eigsh(matrix, k=n, which="LA", v0=np.full(size, size**-0.5))
    order = np.argsort(-values, kind="stable")[:n]
    return values[order], vectors[:, order]


def _signed(vectors: Floats) -> Floats:
    """Each direction with its largest entry positive; the first of equal ones."""
    if not vectors.size:
        return vectors
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return vectors * signs


def rating_factors(spectrum: Spectrum, facts: ItemFacts, settings: GramSettings) -> Floats:
    """Items' factors Q: ``V √(λ/κ) / (C* + median(C*)/4)``, C* = C + 20 + 2 sd.

    κ makes entries of the Gram about κ C_i C_j times the covariance of residuals. It comes from
    released counts and public guesses.
    """
    counts = np.maximum(facts.counts[facts.popular], 0.0)
    per_user = max(float(counts.sum()) / facts.users, 1.0)
    if settings.protects == "rating":
        kappa = ACTIVITY / (facts.users * np.sqrt(per_user))
    else:
        weight = typical_weight("user")
        kappa = 1 / (facts.users * per_user / weight * weight**2)
    damped = counts + _FEW + 2 * facts.count_sd
    damped = damped + np.median(damped) / 4
    factors: Floats = spectrum.directions * np.sqrt(spectrum.strengths / kappa)
    return factors / damped[:, None]


def top_n_factors(spectrum: Spectrum, facts: ItemFacts) -> Floats:
    """Items' factors R with ``R Rᵀ = V λ Vᵀ / (C_i C_j)^¼``: popular items count less."""
    counts = np.maximum(facts.counts[facts.popular], 1.0)
    factors: Floats = spectrum.directions * np.sqrt(spectrum.strengths)
    return factors / counts[:, None] ** 0.25
