"""The likeliest mixture of classes, by expectation maximization on the reports themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis._class_kernels import Evidence, likelihood_gradient, log_likelihood
from dpsim.synthesis.classes import ClassModel, pack, scratch
from dpsim.synthesis.group_reports import GroupReports, require_groups
from dpsim.synthesis.margins import pooled_margins, projected_margin, require_margins

Floats = NDArray[np.float64]

_STEPS, _GAIN, _SPREAD, _PSEUDO_COUNT, _LEAST = 300, 1e-7, 0.5, 1.0, 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class LikelyClasses:
    """A fitted mixture: its model, its log-likelihood and what AIC makes of it."""

    model: ClassModel
    log_likelihood: float
    aic: float
    """Log-likelihood less the number of free parameters: the larger the better."""


def fit_classes(
    reports: Sequence[GroupReports],
    sizes: tuple[int, ...],
    noise: CentralNoise,
    most: int = 6,
    starts: int = 3,
) -> LikelyClasses:
    """The best of 1 to ``most`` classes by AIC; of several starts the likeliest.

    `fit_posterior` errs less; this one is the method as first described, and faster. Reports
    that support several cells enter by the Poisson quasi-likelihood: the fit is consistent,
    and AIC approximate. Ties go to fewer classes, then to the earlier start.
    """
    require_at_least(1, most=most)
    require_at_least(1, starts=starts)
    found = [
        likely_classes(reports, sizes, classes, noise, starts if classes > 1 else 1)
        for classes in range(1, most + 1)
    ]
    return max(found, key=lambda each: each.aic)


def likely_classes(
    reports: Sequence[GroupReports],
    sizes: tuple[int, ...],
    classes: int,
    noise: CentralNoise,
    starts: int = 3,
) -> LikelyClasses:
    """The likeliest mixture of so many classes: EM of 300 steps from each start.

    With G = (p-q) C / λ and M the model's law of a group's cells, a step is
    ``w_z ∝ w_z ∂L/∂w_z`` and ``θ_za ∝ θ_za ∂L/∂θ_za + π_a``, for the log-likelihood
    L = Σ C log λ, λ = q + (p-q) M; the margins π weigh as one report.
    """
    require_groups(reports, sizes)
    require_at_least(1, classes=classes)
    margins = require_margins(pooled_margins(reports, sizes))
    base = np.concatenate([np.maximum(projected_margin(each), _LEAST) for each in margins])
    evidence = pack(reports, sizes)
    exact = evidence._replace(freedom=np.zeros(evidence.n.size))
    best: tuple[float, Floats, Floats] | None = None
    for start in range(starts):
        laws = _first_laws(base, sizes, classes, (noise, start))
        found = _climb(exact, sizes, laws, base)
        if best is None or found[0] > best[0]:
            best = found
    if best is None:
        best = _climb(exact, sizes, base[None], base)
    height, weights, laws = best
    free = classes * (sum(sizes) - len(sizes)) + classes - 1
    return LikelyClasses(ClassModel.of(weights, laws, sizes), height, height - free)


def _first_laws(
    base: Floats, sizes: tuple[int, ...], classes: int, address: tuple[CentralNoise, int]
) -> Floats:
    noise, start = address
    size = classes * base.size
    uniforms = noise.uniforms(Purpose.START, f"classes {classes} start {start}", 2 * size)
    normals = np.sqrt(-2 * np.log(uniforms[:size])) * np.cos(2 * np.pi * uniforms[size:])
    laws = base * np.exp(_SPREAD * normals.reshape(classes, -1))
    return _normalized(laws, sizes)


def _climb(
    evidence: Evidence, sizes: tuple[int, ...], laws: Floats, base: Floats
) -> tuple[float, Floats, Floats]:
    """EM until it gains less than 1e-7 of the log-likelihood in a step."""
    classes = laws.shape[0]
    weights = np.full(classes, 1 / classes)
    work = scratch(evidence, classes)
    by_weight, by_law = np.empty(classes), np.empty(laws.shape)
    height = log_likelihood(weights, laws, evidence, work)
    for _ in range(_STEPS):
        likelihood_gradient(weights, laws, evidence, work, by_weight, by_law)
        weights = weights * by_weight
        weights /= weights.sum()
        laws = _normalized(laws * by_law + _PSEUDO_COUNT * base, sizes)
        last, height = height, log_likelihood(weights, laws, evidence, work)
        if height - last < _GAIN * abs(height):
            break
    return height, weights, laws


def _normalized(laws: Floats, sizes: tuple[int, ...]) -> Floats:
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    totals = np.add.reduceat(laws, starts, axis=1)
    return np.asarray(laws / np.repeat(totals, sizes, axis=1), np.float64)
