"""Exact marginals on a junction tree: one pass to the root, one back, messages between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError
from dpsim.synthesis.bayes_net import MAX_FACTOR_CELLS
from dpsim.synthesis.junction import Clique, JunctionTree, cells_in

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """The exact law of every clique of a junction tree, axes as in its layouts."""

    tree: JunctionTree
    conditionals: tuple[Floats, ...]
    """What is new in a clique given its separator; the root's whole law."""
    laws: tuple[Floats, ...]
    log_total: float
    """ln Σ exp(Σ potentials) over all records."""

    def marginal(self, attributes: Clique) -> Frequencies:
        """The exact law of some attributes, one axis each, in the order given."""
        home = self.tree.home_of(attributes)
        if home is not None:
            return margin(self.laws[home], self.tree.layouts[home], attributes)
        return self._across(attributes)

    def _across(self, attributes: Clique) -> Frequencies:
        """By messages from the cliques where attributes are new, up to where all paths meet."""
        tree, wanted = self.tree, set(attributes)
        needed, top = _paths(tree, attributes)
        waiting: dict[int, list[_Factor]] = {place: [] for place in needed}
        for place in sorted(needed - {top}, reverse=True):
            own = tree.layouts[place], self.conditionals[place]
            kept = wanted.union(tree.separators[place])
            message = _eliminate([own, *waiting[place]], kept, tree.sizes)
            waiting[tree.parents[place]].append(message)
        own = tree.layouts[top], self.laws[top]
        axes, law = _eliminate([own, *waiting[top]], wanted, tree.sizes)
        return margin(law, axes, attributes)


_Factor: TypeAlias = tuple[Clique, Floats]
"""A table and the attributes of its axes."""


def margin(table: Floats, axes: Clique, kept: Clique) -> Floats:
    """The sums of a table over all attributes that are not kept, in the order given."""
    away = tuple(axis for axis, attribute in enumerate(axes) if attribute not in kept)
    summed = table.sum(axis=away) if away else table
    left = [attribute for attribute in axes if attribute in kept]
    return np.asarray(summed).transpose([left.index(attribute) for attribute in kept])


def spread(table: Floats, axes: Clique, layout: Clique) -> Floats:
    """The table as a view that broadcasts over a layout's axes."""
    places = sorted(range(len(axes)), key=lambda axis: layout.index(axes[axis]))
    sizes = {attribute: table.shape[axis] for axis, attribute in enumerate(axes)}
    return table.transpose(places).reshape([sizes.get(a, 1) for a in layout])


def calibrate(tree: JunctionTree, logs: tuple[Floats, ...]) -> Beliefs:
    """The law ∝ exp(Σ logs), one table of logs per clique in its layout; finite numbers.

    One pass from the leaves to the root, one back. Messages are logarithms, shifted by the
    largest term of each row, so that potentials of any size are safe.
    """
    tables = [np.array(table, np.float64) for table in logs]
    conditionals: list[Floats] = [tables[0]] * len(tables)
    log_total = 0.0
    for place in range(len(tables) - 1, -1, -1):
        shared, layout = tree.separators[place], tree.layouts[place]
        rows = tables[place].reshape(cells_in(shared, tree.sizes), -1)
        peaks = rows.max(axis=1)
        odds = np.exp(rows - peaks[:, None])
        sums = odds.sum(axis=1)
        odds /= sums[:, None]
        conditionals[place] = odds.reshape(tables[place].shape)
        message = peaks + np.log(sums)
        if place:
            parent = tree.parents[place]
            shape = tuple(tree.sizes[a] for a in shared)
            tables[parent] += spread(message.reshape(shape), shared, tree.layouts[parent])
        else:
            log_total = float(message[0])
    laws = [conditionals[0]]
    for place in range(1, len(tables)):
        shared, layout = tree.separators[place], tree.layouts[place]
        parent = tree.parents[place]
        above = margin(laws[parent], tree.layouts[parent], shared)
        laws.append(conditionals[place] * spread(above, shared, layout))
    return Beliefs(tree, tuple(conditionals), tuple(laws), log_total)


def _paths(tree: JunctionTree, attributes: Clique) -> tuple[set[int], int]:
    """The cliques between the attributes' homes, and the one where their paths meet."""
    chains = []
    for attribute in attributes:
        chain = [tree.homes[attribute]]
        while chain[-1]:
            chain.append(tree.parents[chain[-1]])
        chains.append(chain)
    top = max(set(chains[0]).intersection(*chains[1:]))
    return {place for chain in chains for place in chain[: chain.index(top) + 1]}, top


def _eliminate(factors: list[_Factor], kept: set[int], sizes: tuple[int, ...]) -> _Factor:
    """The product of some tables, summed over what is not kept, one table after the other."""
    axes, table = factors[0]
    for number, (other, factor) in enumerate(factors[1:], start=2):
        needed = kept.union(*(scope for scope, _ in factors[number:]))
        everything = (*axes, *(a for a in other if a not in axes))
        scope = tuple(a for a in everything if a in needed)
        if cells_in(scope, sizes) > MAX_FACTOR_CELLS:
            raise InputError(
                f"the marginal needs a table of {cells_in(scope, sizes):,} cells over the "
                f"attributes {scope}, and {MAX_FACTOR_CELLS:,} is the most: ask for fewer "
                "attributes, or count them in sampled rows"
            )
        names = {attribute: place for place, attribute in enumerate(everything)}
        scopes = [[names[a] for a in part] for part in (axes, other, scope)]
        terms: list[Any] = [table, scopes[0], factor, scopes[1], scopes[2]]
        table = np.einsum(*terms)  # its own loops: no thread or machine library decides a bit
        axes = scope
    left = tuple(a for a in axes if a in kept)
    return left, margin(table, axes, left)
