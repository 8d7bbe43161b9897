"""The guess nearest to uniform that fits all measurements: Newton's method on the dual."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsim.synthesis.mwem._query_kernels import (
    box_corners,
    fill_table,
    overlaps,
    row_moments,
    solve_positive,
    spread,
)
from dpsim.synthesis.mwem.workloads import Integers

Floats = NDArray[np.float64]
GRADIENT = 1e-9
"""The fit ends when no answer misses by more than this share of n."""
_STEPS, _HALVINGS = 200, 50
_ARMIJO, _JITTER, _ROUNDING = 1e-4, 1e-13, 1e-14


class Queries(Protocol):
    """Measured queries over a grid of cells, seen as a matrix M with a row for each."""

    def exponents(self, multipliers: Floats) -> Floats:
        """Mᵀθ: one number per cell."""

    def moments(self, law: Floats) -> tuple[Floats, Floats]:
        """Mp and M diag(p) Mᵀ."""


@dataclass(frozen=True, eq=False)
class BoxQueries:
    """Boxes on a grid. Two overlap in a box, so all moments come from one table of sums."""

    lower: Integers
    upper: Integers
    shape: tuple[int, ...]

    @cached_property
    def _sizes(self) -> Integers:
        return np.array(self.shape, np.int64)

    @cached_property
    def _corners(self) -> tuple[Integers, Integers, NDArray[np.int8]]:
        corners: tuple[Integers, Integers, NDArray[np.int8]]
        corners = box_corners(self.lower, self.upper, self._sizes)
        return corners

    def exponents(self, multipliers: Floats) -> Floats:
        """θ of a box goes to its corners; what lies behind a cell adds up."""
        padded = [size + 1 for size in self.shape]
        table = spread(multipliers, *self._corners, prod(padded)).reshape(padded)
        for axis in range(len(padded)):
            table = np.flip(np.cumsum(np.flip(table, axis), axis), axis)
        return np.ascontiguousarray(table[(slice(1, None),) * len(padded)]).reshape(-1)

    def moments(self, law: Floats) -> tuple[Floats, Floats]:
        """Sums of p over each box, and over the overlap of each pair."""
        table = np.empty(prod(size + 1 for size in self.shape))
        fill_table(law, self._sizes, table)
        products = overlaps(table, self.lower, self.upper, self._sizes)
        return products.diagonal().copy(), products


@dataclass(frozen=True, eq=False)
class RowQueries:
    """Queries with any weights, as rows over all cells."""

    weights: Floats

    def exponents(self, multipliers: Floats) -> Floats:
        """Row by row, in their order."""
        total = np.zeros(self.weights.shape[1])
        for amount, row in zip(multipliers, self.weights, strict=True):
            total += amount * row
        return total

    def moments(self, law: Floats) -> tuple[Floats, Floats]:
        """Weighted sums of p for each row and each pair."""
        moments: tuple[Floats, Floats] = row_moments(self.weights, law)
        return moments


def project(
    queries: Queries, targets: Floats, volumes: Floats, ridge: float, start: Floats
) -> tuple[Floats, Floats]:
    """The law p and the multipliers θ that fit targets y = m/n, from a start for θ.

    Minimizes ``KL(p ‖ uniform) + Σ (y - Mp)²/(2r)`` by its dual::

        F(θ) = ln Σ v(x) exp((Mᵀθ)(x)) - θ·y + r |θ|²/2     p ∝ v exp(Mᵀθ)
        gradient Mp - y + rθ     Hessian M diag(p) Mᵀ - (Mp)(Mp)ᵀ + rI

    v are the cells' volumes. With r = σ²/n², σ² the variance of the noise, the prior weighs as
    much as one record. Steps are halved until F falls enough (Armijo).
    """
    point = _dual(queries, start, targets, volumes, ridge)
    for _ in range(_STEPS):
        means, products = queries.moments(point.law)
        gradient = means - targets + ridge * point.theta
        if np.abs(gradient).max(initial=0.0) < GRADIENT:
            break
        step = _newton_step(products - np.outer(means, means), gradient, ridge)
        slope = float((gradient * step).sum())
        length = 1.0
        for _ in range(_HALVINGS):
            ahead = _dual(queries, point.theta + length * step, targets, volumes, ridge)
            if ahead.value <= point.value + _ARMIJO * length * slope + point.rounding:
                break
            length /= 2
        point = ahead
    return point.law, point.theta


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    theta: Floats
    law: Floats
    value: float
    rounding: float
    """How far rounding may have moved the value: a fall below it cannot be seen."""


def _newton_step(hessian: Floats, gradient: Floats, ridge: float) -> Floats:
    """The step; a ridge that floats cannot see is made larger, for the direction only."""
    extra = max(ridge, _JITTER)
    while True:
        step, is_positive = solve_positive(hessian + np.diag([extra] * gradient.size), gradient)
        if is_positive:
            return -np.asarray(step)
        extra *= 100


def _dual(
    queries: Queries, theta: Floats, targets: Floats, volumes: Floats, ridge: float
) -> _Point:
    exponents = queries.exponents(theta)
    largest = float(exponents.max())
    law = volumes * np.exp(exponents - largest)
    total = float(law.sum())
    terms = theta * targets, ridge * theta * theta / 2
    value = largest + log(total) - float(terms[0].sum()) + float(terms[1].sum())
    rounding = _ROUNDING * (1 + float(np.abs(terms[0]).sum()) + float(terms[1].sum()))
    return _Point(theta, law / total, value, rounding)
