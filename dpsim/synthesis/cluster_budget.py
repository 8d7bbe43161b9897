"""How a loss is divided among clusters of attributes, and among their members."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum, isfinite, log

from dpsim.core.budget import split
from dpsim.core.errors import InputError
from dpsim.synthesis.attribute_clustering import AttributeClustering

_GRID = 10**9
"""Shares are whole multiples of 1/10^9: exact, and short enough to be read in a plan."""


def public_entropy(size: int) -> float:
    """``ln s``: the largest entropy of s codes, known without a look at the data."""
    return log(size)


def cif(clusters: Sequence[Sequence[int]], entropies: Sequence[float]) -> tuple[float, ...]:
    """Importance factors of clusters: entropy of the members over entropy of all attributes."""
    if not all(isfinite(entropy) and entropy >= 0 for entropy in entropies):
        raise InputError("entropies must be finite and >= 0")
    total = fsum(entropies)
    if total == 0:
        raise InputError("no attribute has two codes: there is nothing to divide a loss for")
    return tuple(
        fsum(entropies[attribute] for attribute in cluster) / total for cluster in clusters
    )


def pbc(importances: Sequence[float]) -> tuple[float, ...]:
    """Budget coefficients ``(1/CIF_i) / Σ_j (1/CIF_j)``; a cluster of constants gets 0."""
    inverse = [1 / importance if importance else 0.0 for importance in importances]
    total = fsum(inverse)
    if total == 0:
        raise InputError("no cluster has an attribute with two codes")
    return tuple(each / total for each in inverse)


def exact_shares(coefficients: Sequence[float]) -> tuple[Fraction, ...]:
    """The coefficients on a grid of 10^-9, so that they sum to exactly 1.

    Each is rounded down, and what is missing goes to the largest remainders; of equal ones to
    the first.
    """
    total = sum(map(Fraction, coefficients), Fraction(0))
    if not coefficients or min(coefficients) < 0 or not total:
        raise InputError("coefficients must be >= 0 and not all zero")
    scaled = [Fraction(each) * _GRID / total for each in coefficients]
    units = [int(each) for each in scaled]
    by_remainder = sorted(range(len(units)), key=lambda place: units[place] - scaled[place])
    for place in by_remainder[: _GRID - sum(units)]:
        units[place] += 1
    return tuple(Fraction(unit, _GRID) for unit in units)


def budgets_by_importance(
    clustering: AttributeClustering, entropies: Sequence[float], epsilon: Fraction
) -> tuple[Fraction, ...]:
    """One loss per attribute, ``ε PBC / |CL|`` of its cluster; they sum to exactly ε.

    An attribute of entropy 0 has one code only: it is not counted, and gets 0. The entropies
    must be public, as `public_entropy`, or come from a release: the losses show them.
    """
    if len(entropies) != clustering.attributes:
        raise InputError(
            f"{clustering.attributes} attributes need one entropy each, got {len(entropies)}"
        )
    shares = exact_shares(pbc(cif(clustering.clusters, entropies)))
    budgets = [Fraction(0)] * clustering.attributes
    for cluster, share in zip(clustering.clusters, shares, strict=True):
        members = [attribute for attribute in cluster if entropies[attribute] > 0]
        for attribute in members:
            budgets[attribute] = epsilon * share / len(members)
    return tuple(budgets)


def budgets_evenly(sizes: Sequence[int], epsilon: Fraction) -> tuple[Fraction, ...]:
    """``ε/d`` for each of the d attributes with two codes at least, 0 for the others."""
    return split(epsilon, [int(size > 1) for size in sizes])
