"""Junction trees: which small tables are enough to compute with a law of many attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TypeAlias

from dpsim.core.errors import InputError

Clique: TypeAlias = tuple[int, ...]
"""Attributes whose joint table is kept, ascending."""


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in a tree such that each attribute's cliques are connected.

    Clique 0 is the root, and parents come before their children. What a clique shares with its
    parent is its separator; it may be empty, between parts that are independent.
    """

    sizes: tuple[int, ...]
    """Domain sizes of all attributes; each is in some clique."""
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    """By clique; the root has -1."""

    @property
    def cells(self) -> int:
        """How many cells the tables of all cliques have together."""
        return sum(cells_in(clique, self.sizes) for clique in self.cliques)

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent, ascending."""
        found: list[Clique] = [()]
        for clique, parent in zip(self.cliques[1:], self.parents[1:], strict=True):
            found.append(tuple(a for a in clique if a in self.cliques[parent]))
        return tuple(found)

    @cached_property
    def layouts(self) -> tuple[Clique, ...]:
        """The axes of each clique's table: its separator first, then what is new in it."""
        return tuple(
            (*shared, *(a for a in clique if a not in shared))
            for clique, shared in zip(self.cliques, self.separators, strict=True)
        )

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """By attribute: the clique in which it is new, the one nearest to the root."""
        found: dict[int, int] = {}
        for place, clique in enumerate(self.cliques):
            for attribute in clique:
                found.setdefault(attribute, place)
        return tuple(found[attribute] for attribute in range(len(self.sizes)))

    def home_of(self, scope: Iterable[int]) -> int | None:
        """The smallest clique that holds all of a scope, the first of equal ones; or none."""
        wanted = set(scope)
        holding = [
            (cells_in(clique, self.sizes), place)
            for place, clique in enumerate(self.cliques)
            if wanted.issubset(clique)
        ]
        return min(holding)[1] if holding else None

    def require_at_most(self, limit: int) -> None:
        """Refuse tables with more cells than the limit, naming the largest ones."""
        if self.cells <= limit:
            return
        largest = sorted(((cells_in(c, self.sizes), c) for c in self.cliques), reverse=True)
        named = "; ".join(f"{list(clique)}: {cells:,}" for cells, clique in largest[:3])
        raise InputError(
            f"the model needs tables of {self.cells:,} cells, and {limit:,} is the most; the "
            f"largest are over the attributes {named}. Give fewer or smaller cliques, or raise "
            "the limit"
        )


def cells_in(scope: Iterable[int], sizes: tuple[int, ...]) -> int:
    """How many cells a joint table of some attributes has."""
    return prod(sizes[attribute] for attribute in scope)


@lru_cache(maxsize=4096)
def junction_tree(sizes: tuple[int, ...], scopes: tuple[Clique, ...]) -> JunctionTree:
    """A junction tree in which every scope is inside a clique.

    Attributes are eliminated greedily by two rules, the fewest new edges and the smallest
    table; the tree with fewer cells is kept, the first if they are equal. Ties within a rule
    go to the other one, then to the lowest attribute.

    References:
        Koller, Friedman. Probabilistic graphical models, chapters 9 and 10. MIT Press 2009.
    """
    for scope in scopes:
        if any(not 0 <= attribute < len(sizes) for attribute in scope):
            raise InputError(f"clique {scope} must name attributes 0..{len(sizes) - 1}")
    graph = _neighbors(len(sizes), scopes)
    trees = [
        _connect(sizes, _eliminate(graph, rule))
        for rule in (
            lambda rest, a: (_fill(rest, a), _table(rest, a, sizes), a),
            lambda rest, a: (_table(rest, a, sizes), _fill(rest, a), a),
        )
    ]
    return min(trees, key=lambda tree: tree.cells)


_Graph: TypeAlias = dict[int, int]
"""By attribute: its neighbors, one bit each."""


def _neighbors(n: int, scopes: tuple[Clique, ...]) -> _Graph:
    graph = dict.fromkeys(range(n), 0)
    for scope in scopes:
        bits = sum(1 << attribute for attribute in set(scope))
        for attribute in scope:
            graph[attribute] |= bits & ~(1 << attribute)
    return graph


def _members(bits: int) -> Clique:
    found = []
    while bits:
        found.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return tuple(found)


def _fill(graph: _Graph, attribute: int) -> int:
    """Twice the number of edges that its elimination adds."""
    around = graph[attribute]
    return sum((around & ~graph[other]).bit_count() - 1 for other in _members(around))


def _table(graph: _Graph, attribute: int, sizes: tuple[int, ...]) -> int:
    return sizes[attribute] * cells_in(_members(graph[attribute]), sizes)


def _eliminate(
    graph: _Graph, rule: Callable[[_Graph, int], tuple[int, int, int]]
) -> list[Clique]:
    """The maximal cliques met on the way, in the order of their attributes."""
    rest, found = dict(graph), []
    costs = {attribute: rule(rest, attribute) for attribute in rest}
    while rest:
        leaving = min(costs, key=costs.__getitem__)
        around = rest.pop(leaving)
        del costs[leaving]
        found.append(around | 1 << leaving)
        touched = around
        for other in _members(around):
            rest[other] = (rest[other] | around) & ~(1 << other | 1 << leaving)
            touched |= rest[other]
        for other in _members(touched):
            costs[other] = rule(rest, other)
    maximal = [c for c in found if not any(c != other and c & other == c for other in found)]
    return sorted(_members(bits) for bits in set(maximal))


def _connect(sizes: tuple[int, ...], cliques: list[Clique]) -> JunctionTree:
    """The spanning tree with the largest separators, grown from the largest clique.

    For the cliques of an elimination it is a junction tree. A large root keeps paths short.
    """
    waiting = set(range(len(cliques)))
    root = min(waiting, key=lambda place: (-len(cliques[place]), place))
    order, parents = [root], [-1]
    waiting.remove(root)
    sets = [set(clique) for clique in cliques]
    best = {place: (-len(sets[root] & sets[place]), 0) for place in waiting}
    while waiting:
        coming = min(waiting, key=lambda place: (best[place], place))
        waiting.remove(coming)
        order.append(coming)
        parents.append(best[coming][1])
        for place in waiting:
            shared = (-len(sets[coming] & sets[place]), len(order) - 1)
            best[place] = min(best[place], shared)
    return JunctionTree(sizes, tuple(cliques[place] for place in order), tuple(parents))
