"""Overlapping clusters of the DP2-Pub notes, and the part of a loss that they use.

Kept for the presets that reproduce the notes. The corrected clusters are a partition, see
`attribute_clustering`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Literal

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.attribute_clustering import Parents, children_of, drawn_head
from dpsim.synthesis.cluster_budget import cif, exact_shares, pbc

SharedRule = Literal["first", "smallest"]
"""Whose share a member of several clusters gets: of the first, or of the smallest PBC."""


def one_term_entropy(size: int) -> float:
    """``ln(s)/s``: one term of the entropy of s equal codes, as the notes have it.

    It decreases for s ≥ 3, so that wide attributes count as unimportant.
    """
    return log(size) / size


@dataclass(frozen=True, slots=True)
class OverlappingClusters:
    """Lists of attributes that cover 0..d-1, in the order in which they were made.

    Shares are exact: CIF and PBC from one-term entropies, then on a grid that sums to 1. An
    attribute gets ``ε PBC / |CL|`` of one of its clusters, so that all attributes together
    get ``σ ε``, with σ ≤ 1 as the attributes served by a cluster are among its members.
    """

    sizes: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        held = {attribute for cluster in self.clusters for attribute in cluster}
        if held != set(range(len(self.sizes))):
            raise InputError(f"clusters must cover the {len(self.sizes)} attributes, no others")
        if any(len(set(cluster)) != len(cluster) for cluster in self.clusters):
            raise InputError("a cluster must hold an attribute once")

    @property
    def importances(self) -> tuple[float, ...]:
        """CIF of each cluster; shared members make them sum to more than 1."""
        return cif(self.clusters, [one_term_entropy(size) for size in self.sizes])

    @property
    def coefficients(self) -> tuple[float, ...]:
        """PBC of each cluster; they sum to 1."""
        return pbc(self.importances)

    def serving(self, rule: SharedRule) -> tuple[int, ...]:
        """The cluster that each attribute takes its loss from; the first of equal ones."""
        shares = exact_shares(self.coefficients)
        holding = [
            [place for place, cluster in enumerate(self.clusters) if attribute in cluster]
            for attribute in range(len(self.sizes))
        ]
        if rule == "first":
            return tuple(places[0] for places in holding)
        return tuple(min(places, key=lambda place: shares[place]) for places in holding)

    def budgets(self, epsilon: Fraction, rule: SharedRule) -> tuple[Fraction, ...]:
        """One loss per attribute; one with a single code spends nothing."""
        shares = exact_shares(self.coefficients)
        return tuple(
            epsilon * shares[place] / len(self.clusters[place]) if size > 1 else Fraction(0)
            for place, size in zip(self.serving(rule), self.sizes, strict=True)
        )

    def used_share(self, rule: SharedRule) -> Fraction:
        """σ: what a second report with these losses costs, over ε; at most 1."""
        return sum(self.budgets(Fraction(1), rule), Fraction(0))


def notes_clusters(
    parents: Parents, sizes: Sequence[int], noise: CentralNoise
) -> OverlappingClusters:
    """Clusters around heads drawn uniformly from the attributes that are in none yet.

    Each is the list of the head's parents, its children and their parents, without repeats;
    the head stands in front if it has no child. Members of earlier clusters are kept.
    """
    left = list(range(len(sizes)))
    clusters: list[tuple[int, ...]] = []
    while left:
        cluster = blanket_list(parents, drawn_head(noise, len(clusters), left))
        clusters.append(cluster)
        left = [attribute for attribute in left if attribute not in cluster]
    return OverlappingClusters(tuple(sizes), tuple(clusters))


def blanket_list(parents: Parents, head: int) -> tuple[int, ...]:
    """One cluster of the notes, in their order."""
    children = children_of(parents, head)
    relatives = [*parents[head], *children]
    for child in children:
        relatives.extend(parents[child])
    members = tuple(dict.fromkeys(relatives))
    return members if head in members else (head, *members)
