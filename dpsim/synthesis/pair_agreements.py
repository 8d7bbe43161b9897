"""Tables of yes and no from noisy shares of ones and of agreement between attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import isqrt

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import TaskPool
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.binary_classes import (
    BinaryClasses,
    Shares,
    agreements_of,
    fit_classes,
    pair_tables,
    starts,
)
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.table import TableSource

CLASSES = (1, 2, 3, 4, 5, 6, 8, 10)
"""The numbers of classes that are tried."""

_STARTS = 2
_TASKS_PER_WORKER = 4
_BINARY = 2


def agreement_mechanisms(
    epsilon: Fraction, attributes: int
) -> tuple[DiscreteLaplace, DiscreteLaplace]:
    """The noise of each count of ones, and of each pair's agreement.

    A replaced record that differs in h of d attributes moves h counts of ones by 1, and the
    agreements of the h(d - h) pairs of which it differs in one. An attribute is in many pairs,
    so its ones get r = ⌊√(d - 1)⌋ times a pair's part of ε::

        pair: ε/U     ones: r ε/U     U = max over h of h (r + d - h)

    All counts together cost ε: about half of what d ones and d(d - 1)/2 pairs would by
    themselves.
    """
    root = max(1, isqrt(attributes - 1))
    units = max(h * (root + attributes - h) for h in range(1, attributes + 1))
    return DiscreteLaplace(root * epsilon / units, 1), DiscreteLaplace(epsilon / units, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Agreements:
    """What was measured, in counts with noise, and the noise's scales."""

    n: int
    ones: Counts
    """By attribute: records with code 1."""
    pairs: Counts
    """By pair in lexicographic order: records in which both have the same code."""
    ones_scale: float
    pairs_scale: float

    @property
    def square(self) -> Shares:
        """The pair tables that fit, see `pair_tables`."""
        ones = np.clip(self.ones / self.n, 1 / self.n, 1 - 1 / self.n)
        agreed = np.ones((ones.size, ones.size))
        agreed[np.triu_indices(ones.size, 1)] = self.pairs / self.n
        agreed = np.triu(agreed) + np.triu(agreed, 1).T
        return pair_tables(ones, agreed)

    def cost(self, model: BinaryClasses) -> float:
        """Akaike's, halved: minus the log-likelihood of the measurements, plus parameters."""
        ones = (model.weights[:, None] * model.ones).sum(axis=0) / model.weights.sum()
        agreed = agreements_of(model)[np.triu_indices(ones.size, 1)]
        misses = float(np.abs(self.ones - self.n * ones).sum()) / self.ones_scale
        misses += float(np.abs(self.pairs - self.n * agreed).sum()) / max(
            self.pairs_scale, 1e-9
        )
        return misses + int(model.weights.size) * (int(ones.size) + 1)


def _count_agreements(source: TableSource, pairs: Sequence[tuple[int, int]]) -> Counts:
    table = source.open()
    return np.array([np.trace(joint_counts(table, pair)) for pair in pairs], np.int64)


def measure_agreements(
    source: TableSource, epsilon: Fraction, noise: CentralNoise, pool: TaskPool
) -> Agreements:
    """Noisy counts of ones per attribute and of agreement per pair.

    Given its margins a pair of binary attributes has one number left, and its agreement tells
    it with half the noise of a cell. Guarantees ε when one record is replaced.
    """
    table = source.open()
    d = len(table.sizes)
    if d < _BINARY or any(size != _BINARY for size in table.sizes):
        raise InputError("agreements need two attributes or more, of two values each")
    pairs = list(combinations(range(d), 2))
    part = -(-len(pairs) // (_TASKS_PER_WORKER * pool.workers))
    parts = [pairs[first : first + part] for first in range(0, len(pairs), part)]
    agreed = np.concatenate(list(pool.map(_count_agreements, source, parts)))
    ones = np.array([joint_counts(table, (attribute,))[1] for attribute in range(d)])
    for_ones, for_pairs = agreement_mechanisms(epsilon, d)
    return Agreements(
        table.n,
        for_ones.measure(ones, noise, "ones"),
        for_pairs.measure(agreed, noise, "agreements"),
        float(for_ones.scale),
        float(for_pairs.scale),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """What a task needs to fit classes: released numbers only."""

    agreements: Agreements
    noise: CentralNoise


def _fit_one(shared: _Fit, item: tuple[int, int]) -> tuple[float, BinaryClasses]:
    classes, start = item
    square = shared.agreements.square
    draws = starts(shared.noise, classes, start, shared.agreements.ones.size)
    model = fit_classes(square, classes, draws)
    return shared.agreements.cost(model), model


def fit_agreements(
    agreements: Agreements, noise: CentralNoise, pool: TaskPool
) -> BinaryClasses:
    """The classes with the least cost, over their number and two starts each: free."""
    items = [(classes, start) for classes in CLASSES for start in range(_STARTS)]
    fits = pool.map(_fit_one, _Fit(agreements, noise), items)
    return min(fits, key=lambda fit: fit[0])[1]
