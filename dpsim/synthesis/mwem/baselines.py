"""What MWEM has to beat: noise on every cell, and queries chosen at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, lgamma, log, pi, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.privacy import Neighbors
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.workloads import BoxWorkload

MOST_CROWDED = 300
"""Above this nε/√cells MWEM lost in every case measured: a rule of thumb."""


def cell_mechanism(epsilon: object, neighbors: Neighbors) -> DiscreteLaplace:
    """Noise for all cells of a histogram: Δ is 2 if a record is replaced, else 1."""
    return DiscreteLaplace(epsilon, 2 if neighbors == "replace" else 1)


def laplace_histogram(
    histogram: Counts, epsilon: object, neighbors: Neighbors, noise: CentralNoise
) -> Counts:
    """Every cell's count with exact discrete noise: costs ε; counts may be negative."""
    return cell_mechanism(epsilon, neighbors).measure(histogram, noise, "histogram")


def mean_abs_sum(cells: int) -> float:
    """E|sum of k Laplace(1)| = 2k · C(2k, k)/4^k, which nears 2√(k/π)."""
    if cells < 1:
        return 0.0
    return 2 * exp(lgamma(cells + 0.5) - lgamma(cells) - log(pi) / 2)


def laplace_errors(
    workload: BoxWorkload | LinearWorkload, epsilon: object, neighbors: Neighbors
) -> tuple[float, float]:
    """Mean and mean square error of the Laplace histogram over 0/1 queries, in closed form.

    A query of k cells errs by b · 2k · C(2k, k)/4^k on average and by 2kb² in square, for
    continuous noise of scale b: that of whole numbers is smaller by a share of 1/b².
    """
    if not workload.is_counting:
        raise InputError("the closed form needs 0/1 queries")
    scale = float(cell_mechanism(epsilon, neighbors).scale)
    sizes, repeats = np.unique(_query_sizes(workload), return_counts=True)
    means: NDArray[np.float64] = np.array([mean_abs_sum(int(size)) for size in sizes])
    n = int(repeats.sum())
    mean_square = 2 * scale**2 * float((sizes * repeats).sum()) / n
    return scale * float((means * repeats).sum()) / n, mean_square


def _query_sizes(workload: BoxWorkload | LinearWorkload) -> Counts:
    """How many cells each 0/1 part has."""
    if isinstance(workload, BoxWorkload):
        return np.asarray(np.prod(workload.upper - workload.lower, axis=1))
    pointers, _, weights = workload.rows
    running = np.concatenate([[0], np.cumsum(weights != 0)])
    return np.diff(running[pointers])


def without_selection(settings: MWEMSettings, iterations: int | None = None) -> MWEMSettings:
    """The same run on queries chosen at random: all of ε goes to measuring."""
    return replace(
        settings,
        selection="random",
        measure_share=Fraction(1),
        iterations=settings.iterations if iterations is None else iterations,
    )


@dataclass(frozen=True, slots=True)
class Outlook:
    """Whether MWEM is likely to win, from public numbers only: known before any charge."""

    laplace_error: float | None
    """Mean error of the Laplace histogram; None for queries that are not 0/1."""
    noise_error: float
    """Mean error of one measurement of MWEM: what its answers can hardly get below."""
    crowding: float | None
    """nε/√cells; None where n is private and not yet measured."""

    @property
    def histogram_is_finer(self) -> bool:
        """Rule (a): noise on every cell errs less than one measurement does."""
        return self.laplace_error is not None and self.laplace_error < self.noise_error

    @property
    def is_crowded(self) -> bool:
        """Rule (b): so many records per cell that noise hardly hides them."""
        return self.crowding is not None and self.crowding > MOST_CROWDED

    @property
    def is_unlikely_to_win(self) -> bool:
        """Whether to warn, and to run the Laplace histogram instead."""
        return self.histogram_is_finer or self.is_crowded


def outlook(
    settings: MWEMSettings,
    workload: BoxWorkload | LinearWorkload,
    total: float | None = None,
) -> Outlook:
    """What to expect of a run; ``total`` is n where public, or its noisy estimate."""
    sensitivity = workload.sensitivity(settings.neighbors)
    laplace = None
    if workload.is_counting:
        laplace, _ = laplace_errors(workload, settings.epsilon, settings.neighbors)
    crowding = None
    if total is not None:
        crowding = total * float(settings.epsilon) / sqrt(prod(settings.shape))
    return Outlook(laplace, float(sensitivity / settings.measure_epsilon), crowding)
