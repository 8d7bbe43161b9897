"""A network that a person gives: it costs no loss, and is checked before anything happens."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dpsim.core.errors import InputError
from dpsim.synthesis.bayes_net import BayesNet

MOST_CELLS = 1 << 20
"""Cells of a child with its parents, where no other limit is given."""


def parse_network(
    pairs: Sequence[tuple[str | int, Sequence[str | int]]],
    names: Sequence[str],
    sizes: Sequence[int],
    cell_limit: int = MOST_CELLS,
) -> BayesNet:
    """The network of ``(child, parents)``, each named or given by its place.

    Attributes that are no child have no parents. Refused: unknown names, a child twice, a
    parent twice, cycles, and tables of more cells than the limit.
    """
    parents: dict[int, tuple[int, ...]] = {}
    for child_name, parent_names in pairs:
        child = _place(child_name, names)
        if isinstance(parent_names, str):
            raise InputError(f"parents of {names[child]!r} must be a list, got one text")
        if child in parents:
            raise InputError(f"{names[child]!r} is a child twice: list its parents together")
        found = [_place(name, names) for name in parent_names]
        if len(set(found)) != len(found):
            raise InputError(f"{names[child]!r} has a parent twice: name each parent once")
        _require_cells((child, *found), names, sizes, cell_limit)
        parents[child] = tuple(sorted(found))
    complete = [parents.get(attribute, ()) for attribute in range(len(names))]
    return BayesNet(_ancestral(complete, names), tuple(complete))


def _place(name: str | int, names: Sequence[str]) -> int:
    if isinstance(name, str):
        if name not in names:
            raise InputError(f"no attribute {name!r}; there are: {', '.join(names)}")
        return list(names).index(name)
    if isinstance(name, bool) or not 0 <= name < len(names):
        raise InputError(f"no attribute {name}: places go from 0 to {len(names) - 1}")
    return int(name)


def _require_cells(
    family: tuple[int, ...], names: Sequence[str], sizes: Sequence[int], limit: int
) -> None:
    cells = prod(sizes[attribute] for attribute in family)
    if cells > limit:
        parents = ", ".join(names[attribute] for attribute in family[1:])
        raise InputError(
            f"{names[family[0]]!r} with its parents {parents} has {cells:,} cells, and "
            f"{limit:,} is the most: give it fewer parents, or raise the limit of cells"
        )


def _ancestral(parents: Sequence[tuple[int, ...]], names: Sequence[str]) -> tuple[int, ...]:
    """Parents before children; of those that may come next, the first."""
    order: list[int] = []
    while len(order) < len(parents):
        ready = [
            attribute
            for attribute, found in enumerate(parents)
            if attribute not in order and set(order).issuperset(found)
        ]
        if not ready:
            raise InputError(f"the network has a cycle: {_cycle(parents, order, names)}")
        order.append(ready[0])
    return tuple(order)


def _cycle(parents: Sequence[tuple[int, ...]], order: list[int], names: Sequence[str]) -> str:
    """Whoever cannot come next has a parent that cannot: walk up until one comes again."""
    left = [attribute for attribute in range(len(parents)) if attribute not in order]
    path = [left[0]]
    while path[-1] not in path[:-1]:
        path.append(next(parent for parent in parents[path[-1]] if parent in left))
    walk = path[path.index(path[-1]) :]
    return " <- ".join(names[attribute] for attribute in walk)
