"""Shares of each attribute's codes, from the reports of all groups that hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError
from dpsim.mechanisms.postprocess import norm_sub
from dpsim.synthesis.group_reports import GroupReports

CONCENTRATIONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Of the symmetric Dirichlet priors that are averaged: from few codes in use to all alike."""

MOST_CELLS = 1 << 22
"""Codes times grid points of one average; above it margins are projected."""

_STEPS_PER_ERROR = 4
_LEAST_STEPS, _MOST_STEPS = 200, 4000


@dataclass(frozen=True, slots=True)
class Margin:
    """An unbiased estimate of one attribute's shares, and the variance of one of them."""

    estimate: Frequencies
    variance: float


def margin_of(group: GroupReports, axis: int, sizes: tuple[int, ...]) -> Margin:
    """What one group says about one of its attributes.

    The sum of r cells has the variance ``r q(1 - r q) / (n(p-q)²)`` where a report names one
    cell, else ``r q(1-q) / (n(p-q)²)``; drawing the users adds up to ``1 / (s n)``.
    """
    shape = [sizes[attribute] for attribute in group.attributes]
    others = tuple(other for other in range(len(shape)) if other != axis)
    size = shape[axis]
    rest = group.cells // size
    q, gap = group.mechanism.q, group.mechanism.gap
    silent = 1 - rest * q if group.names_one_cell else 1 - q
    noise = rest * q * silent / (group.n * gap**2)
    estimate = group.estimate().reshape(shape).sum(axis=others)
    return Margin(estimate, noise + 1 / (size * group.n))


def pooled_margins(
    reports: Sequence[GroupReports], sizes: tuple[int, ...]
) -> tuple[Margin | None, ...]:
    """By attribute: the mean over all groups that hold it, weighted by inverse variances.

    None where no group with a report holds it and it has more than one code.
    """
    sums = [np.zeros(size) for size in sizes]
    weights = [0.0 for _ in sizes]
    for group in reports:
        if group.n == 0 or group.cells == 1:
            continue
        for axis, attribute in enumerate(group.attributes):
            found = margin_of(group, axis, sizes)
            sums[attribute] += found.estimate / found.variance
            weights[attribute] += 1 / found.variance
    return tuple(
        Margin(np.ones(1), 0.0)
        if size == 1
        else Margin(total / weight, 1 / weight)
        if weight
        else None
        for size, total, weight in zip(sizes, sums, weights, strict=True)
    )


def projected_margin(margin: Margin) -> Frequencies:
    """The nearest distribution to the estimate."""
    return norm_sub(margin.estimate)


def posterior_margin(
    margin: Margin, concentrations: tuple[float, ...] = CONCENTRATIONS
) -> Frequencies:
    """The mean of the shares given the estimate, averaged over symmetric Dirichlet priors.

    The estimate t is normal around the shares with variance v in each code. For each α the
    posterior ``∝ Π_x θ_x^(α-1) exp(-(t_x - θ_x)² / 2v)`` on the simplex is summed on a grid,
    exactly: the other codes' shares are convolved, and must make up the rest to 1. Each α
    counts by its evidence. Few codes in use are so told from many, by the data alone; the
    error is about a tenth below that of projecting on the simplex (Adult, ε = 1), and no
    setting is to be chosen.
    """
    size, error = margin.estimate.size, sqrt(margin.variance)
    if size == 1 or error == 0:
        return projected_margin(margin)
    steps = int(min(max(_STEPS_PER_ERROR / error, _LEAST_STEPS), _MOST_STEPS))
    if size * steps > MOST_CELLS or error * steps < 1:
        return projected_margin(margin)
    # Sums of all codes carry no information on their shares: noise has size - 1 dimensions.
    level = margin.estimate + (1 - margin.estimate.sum()) / size
    spread = margin.variance * size / (size - 1)
    found = [_posterior(level, spread, alpha, steps) for alpha in concentrations]
    evidence = np.array([each[1] for each in found])
    weights = np.exp(evidence - evidence.max())
    mean = np.einsum("a,ax->x", weights / weights.sum(), np.array([each[0] for each in found]))
    return np.asarray(mean / mean.sum(), np.float64)


def _posterior(
    estimate: Frequencies, variance: float, alpha: float, steps: int
) -> tuple[Frequencies, float]:
    """The mean of the shares under one prior, and the log of its evidence."""
    size = estimate.size
    grid = np.arange(steps + 1) / steps
    borders = np.concatenate(([0.0], (np.arange(steps) + 0.5) / steps, [1.0]))
    logs = np.log(np.diff(borders**alpha)) - (grid - estimate[:, None]) ** 2 / (2 * variance)
    tilt = _tilt(logs, grid)
    logs -= tilt * grid
    tops = logs.max(axis=1, keepdims=True)
    laws = np.exp(logs - tops)
    totals = laws.sum(axis=1, keepdims=True)
    laws /= totals
    means, chance = _given_their_sum(laws)
    evidence = log(chance) + tilt + float((np.log(totals) + tops).sum())
    # A cell of the grid holds α times its prior mass; the Dirichlet's constant does the rest.
    return means, evidence + lgamma(size * alpha) - size * (lgamma(alpha) + log(alpha))


def _tilt(logs: NDArray[np.float64], grid: Frequencies) -> float:
    """The κ for which codes weighted by e^(-κx) have shares that sum to 1 on average.

    It changes nothing given that they do sum to 1, and keeps that event from being so rare
    that rounding would decide.
    """
    low, high = -1.0, 1.0
    while _total(logs, grid, low) < 1:
        low *= 2
    while _total(logs, grid, high) > 1:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        if _total(logs, grid, middle) > 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _total(logs: NDArray[np.float64], grid: Frequencies, tilt: float) -> float:
    tilted = logs - tilt * grid
    laws = np.exp(tilted - tilted.max(axis=1, keepdims=True))
    return float(((laws * grid).sum(axis=1) / laws.sum(axis=1)).sum())


def _given_their_sum(laws: NDArray[np.float64]) -> tuple[Frequencies, float]:
    """Means of independent numbers given that they sum to 1, and how likely that is."""
    size, points = laws.shape
    length = 2 * points
    waves = np.fft.rfft(laws, length, axis=1)
    start = np.zeros(points)
    start[0] = 1.0
    before, after = [start], [start]
    for code in range(size - 1):
        before.append(_add(before[-1], waves[code], length))
        after.append(_add(after[-1], waves[size - 1 - code], length))
    means = np.empty(size)
    chance = 0.0
    for code in range(size):
        rest = _add(before[code], np.fft.rfft(after[size - 1 - code], length), length)
        law = laws[code] * rest[::-1]
        chance = float(law.sum())
        means[code] = law @ np.arange(points) / (chance * (points - 1))
    return means, max(chance, np.finfo(np.float64).tiny)


def _add(law: Frequencies, wave: NDArray[np.complex128], length: int) -> Frequencies:
    """The law of a sum, as far as it is at most 1."""
    total = np.fft.irfft(np.fft.rfft(law, length) * wave, length)[: law.size]
    return np.maximum(total, 0.0)


def require_margins(margins: Sequence[Margin | None]) -> tuple[Margin, ...]:
    """The margins, where each attribute has one."""
    missing = [place for place, margin in enumerate(margins) if margin is None]
    if missing:
        raise InputError(
            f"no reports on attributes {missing}: put each into a group that has users"
        )
    return tuple(margin for margin in margins if margin is not None)
