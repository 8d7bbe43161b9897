"""Tables of counts made plausible after noise: it costs no privacy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.mechanisms.postprocess import norm_sub

Table = NDArray[np.float64]
"""Estimated counts, one axis per attribute: no longer whole, never negative."""

_RATIOS = (0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.18, 1.43, 2.0, 2.9, 5.0)
_GROWTH = 1.7
_LEAST_SHARE = 1e-9
_NARROW = 1e-6  # in units of the noise's scale: a density does not change within it


def clip_and_scale(measured: Table, total: float) -> Table:
    """Negative counts become 0, the others are scaled to the total: PrivBayes's own way.

    Lifts the empty cells of wide tables: each keeps half of its noise, on average.
    """
    positive = np.maximum(measured, 0.0)
    whole = float(positive.sum())
    return positive * (total / whole) if whole > 0 else _uniform(measured, total)


def project(measured: Table, total: float) -> Table:
    """The nearest table of counts ≥ 0 with the total: one number off each, cut at 0."""
    shares = norm_sub(np.asarray(measured, np.float64).ravel() / total)
    return (shares * total).reshape(measured.shape)


def lift(counts: Table, share: float) -> Table:
    """The counts mixed with the uniform law at a small share: no value is impossible."""
    return (1 - share) * counts + share * _uniform(counts, float(counts.sum()))


def shrink(
    measured: Table, expected: Table, scale: float, *, strength: float = 2.0, steps: int = 60
) -> Table:
    """The mean of each count given its measurement and what was expected of it.

    A count is its expectation times a ratio; ratios come from one unknown law, the same for
    all cells of the table, constant on intervals around 1. Its weights are fitted to the
    measurements by EM (nonparametric empirical Bayes), with a prior of ``strength`` cells; the
    noise is Laplace with the given scale. So cells that noise hides stay near what was
    expected, and large ones near what was measured: no threshold, and no value merged.

    References:
        Kiefer, Wolfowitz. Consistency of the maximum likelihood estimator in the presence of
        infinitely many incidental parameters. Annals of Mathematical Statistics 1956.
    """
    if measured.shape != expected.shape:
        raise InputError(f"a table of {measured.shape} cells is not one of {expected.shape}")
    total = float(expected.sum())
    means = np.maximum(np.asarray(expected, np.float64).ravel(), total * _LEAST_SHARE)
    # Below 0 and above the total every law explains a measurement as the border does.
    seen = np.clip(np.asarray(measured, np.float64).ravel(), 0.0, total)
    ratios = _ratios_to(total / float(means.min()))
    borders = (np.minimum(np.outer(means, ratios), total) - seen[:, None]) / scale
    density, center = _laplace_on(borders[:, :-1], borders[:, 1:])
    prior = _prior(ratios)
    weights = prior
    for _ in range(steps):
        shares = density * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = shares.sum(axis=0) + strength * prior
        weights /= weights.sum()
    shares = density * weights
    shares /= shares.sum(axis=1, keepdims=True)
    result: Table = seen + scale * (shares * center).sum(axis=1)
    return np.maximum(result, 0.0).reshape(measured.shape)


def fit_margins(
    table: Table, margins: Sequence[tuple[tuple[int, ...], Table]], sweeps: int = 40
) -> Table:
    """The table nearest in relative entropy that has the margins, by scaling in turn.

    A margin is (its axes in ascending order, its counts). The last one holds exactly.
    """
    floor = float(table.sum()) * 1e-15
    result = np.maximum(table, floor)
    for _ in range(sweeps):
        for axes, margin in margins:
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            sums = result.sum(axis=others, keepdims=True)
            result = result * (np.expand_dims(margin, others) / np.maximum(sums, 1e-300))
    return result


def _uniform(counts: Table, total: float) -> Table:
    return np.full(counts.shape, total / counts.size)


def _ratios_to(largest: float) -> Table:
    ratios = list(_RATIOS)
    while ratios[-1] < largest:
        ratios.append(ratios[-1] * _GROWTH)
    return np.array(ratios)


def _prior(ratios: Table) -> Table:
    """Weights of the intervals that fall with their distance from 1, in logarithms."""
    middles = np.sqrt(ratios[1:] * np.maximum(ratios[:-1], ratios[1:] / 4))
    weights: Table = np.exp(-np.abs(np.log(middles)))
    return weights / float(weights.sum())


def _laplace_on(low: Table, high: Table) -> tuple[Table, Table]:
    """The mean density of Laplace(1) on intervals, and its mean there; 0 if they are empty."""
    far, near = np.exp(-np.maximum(high, 0.0)), np.exp(-np.maximum(low, 0.0))
    right, left = np.exp(np.minimum(high, 0.0)), np.exp(np.minimum(low, 0.0))
    mass = 0.5 * (near - far + right - left)
    above = (np.maximum(low, 0.0) + 1) * near - (np.maximum(high, 0.0) + 1) * far
    below = (np.minimum(high, 0.0) - 1) * right - (np.minimum(low, 0.0) - 1) * left
    width, middle = high - low, (high + low) / 2
    is_wide = (width > _NARROW) & (mass > 0)
    density = np.where(
        is_wide, mass / np.where(is_wide, width, 1.0), 0.5 * np.exp(-abs(middle))
    )
    center = np.where(is_wide, 0.5 * (above + below) / np.where(is_wide, mass, 1.0), middle)
    return np.where(width > 0, density, 0.0), center
