"""Attribute clusters: attributes that are perturbed and redrawn together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose

Parents = Sequence[Sequence[int]]
"""The parents of each attribute of a Bayes network."""

MAX_MEMBERS = 3
MAX_CELLS = 20_000
_USERS_PER_CELL = 5
_TIE_GRID = 2.0**40
"""Scores that agree on this grid are equal: their last bits depend on the order of sums."""


@dataclass(frozen=True, slots=True)
class AttributeClustering:
    """A partition of the attributes 0..d-1: each is in one cluster, and in one only."""

    attributes: int
    clusters: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        require_at_least(1, attributes=self.attributes)
        members = [attribute for cluster in self.clusters for attribute in cluster]
        twice = sorted({each for each in members if members.count(each) > 1})
        missing = sorted(set(range(self.attributes)) - set(members))
        unknown = sorted(set(members) - set(range(self.attributes)))
        for fault, which in (("twice", twice), ("missing", missing), ("unknown", unknown)):
            if which:
                raise InputError(
                    f"clusters must hold each of {self.attributes} attributes once; "
                    f"{fault}: {', '.join(map(str, which))}"
                )
        if () in self.clusters:
            raise InputError("clusters must have one attribute at least")

    def __len__(self) -> int:
        return len(self.clusters)

    @classmethod
    def singletons(cls, attributes: int) -> Self:
        """Each attribute by itself."""
        return cls(attributes, tuple((attribute,) for attribute in range(attributes)))


@dataclass(frozen=True, slots=True)
class ClusterCaps:
    """How large a cluster may become; a single attribute is always allowed."""

    cells: int
    members: int = MAX_MEMBERS

    @classmethod
    def for_users(cls, n: int, members: int = MAX_MEMBERS) -> Self:
        """At least five users per cell, 20,000 cells at most."""
        return cls(min(MAX_CELLS, n // _USERS_PER_CELL), members)

    def allow(self, sizes: Sequence[int]) -> bool:
        """Whether attributes with these domain sizes may be one cluster."""
        return len(sizes) <= self.members and prod(sizes) <= self.cells


def children_of(parents: Parents, attribute: int) -> tuple[int, ...]:
    """The attributes that have this one as a parent, in index order."""
    return tuple(child for child, of_child in enumerate(parents) if attribute in of_child)


def relatives_of(parents: Parents, attribute: int) -> tuple[int, ...]:
    """Parents, children, and the children's other parents, in this order, without repeats.

    Given them, the attribute is independent of all others.
    """
    children = children_of(parents, attribute)
    others = [parent for child in children for parent in parents[child]]
    relatives = (*sorted(parents[attribute]), *children, *sorted(others))
    return tuple(each for each in dict.fromkeys(relatives) if each != attribute)


def cluster_by_entropy(
    parents: Parents,
    entropies: Sequence[float],
    sizes: Sequence[int],
    caps: ClusterCaps,
    information: NDArray[np.float64] | None = None,
) -> AttributeClustering:
    """Clusters around the attribute of largest entropy that is left, the first of equal ones.

    A cluster is the head and its Markov blanket, without attributes that have one already.
    Members enter by decreasing mutual information with the head, or without it in the
    blanket's order, and one that the caps do not allow is passed over.

    Entropies and information must come from reports, or from a release.
    """
    _require_one_each(entropies, sizes)
    ranks = [round(entropy * _TIE_GRID) for entropy in entropies]

    def head(_step: int, left: Sequence[int]) -> int:
        return max(left, key=lambda attribute: (ranks[attribute], -attribute))

    return _cluster(parents, head, sizes, caps, information)


def cluster_at_random(
    parents: Parents,
    noise: CentralNoise,
    sizes: Sequence[int],
    caps: ClusterCaps,
    information: NDArray[np.float64] | None = None,
) -> AttributeClustering:
    """The same around heads drawn uniformly: nothing but the network is looked at."""
    return _cluster(parents, partial(drawn_head, noise), sizes, caps, information)


def drawn_head(noise: CentralNoise, step: int, left: Sequence[int]) -> int:
    """A uniform choice among the attributes that are left; draw i is for cluster i."""
    word = int(noise.words(Purpose.START, "cluster heads", 1, step)[0])
    return left[word * len(left) >> 64]


def _cluster(
    parents: Parents,
    head: Callable[[int, Sequence[int]], int],
    sizes: Sequence[int],
    caps: ClusterCaps,
    information: NDArray[np.float64] | None,
) -> AttributeClustering:
    _require_one_each(parents, sizes)
    left = list(range(len(sizes)))
    clusters: list[tuple[int, ...]] = []
    while left:
        first = head(len(clusters), left)
        cluster = [first]
        for member in _by_information(relatives_of(parents, first), first, information):
            wider = [*cluster, member]
            if member in left and caps.allow([sizes[each] for each in wider]):
                cluster = wider
        clusters.append(tuple(sorted(cluster)))
        left = [attribute for attribute in left if attribute not in cluster]
    return AttributeClustering(len(sizes), tuple(clusters))


def _by_information(
    members: tuple[int, ...], head: int, information: NDArray[np.float64] | None
) -> Sequence[int]:
    if information is None:
        return members
    return sorted(
        members, key=lambda each: (-round(float(information[head, each]) * _TIE_GRID), each)
    )


def _require_one_each(values: Sequence[object], sizes: Sequence[int]) -> None:
    if len(values) != len(sizes):
        raise InputError(
            f"{len(sizes)} attributes need as many entropies and parent sets, got {len(values)}"
        )
