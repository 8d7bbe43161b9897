"""Laws of whole records with a potential per clique of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.bayes_net import BayesNet, NetworkModel
from dpsim.synthesis.beliefs import Beliefs, Floats, calibrate, margin, spread
from dpsim.synthesis.junction import Clique, JunctionTree, junction_tree
from dpsim.synthesis.table import CodeMatrix

MAX_MODEL_CELLS = 1 << 22
"""The most cells that the tables of a model may have together, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """The law ``Pr[x] ∝ exp(Σ_c θ_c(x_c))`` of whole records, one potential θ per clique c.

    A potential is a table of finite logarithms, one axis per attribute of its clique, in the
    clique's order. Attributes without a clique are uniform. Marginals are exact; the work is
    that of a junction tree, whose tables may have ``limit`` cells together.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    potentials: tuple[Floats, ...]
    limit: int = MAX_MODEL_CELLS

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise InputError("sizes must be whole numbers >= 1, one per attribute")
        if len(self.cliques) != len(self.potentials):
            raise InputError(
                f"{len(self.cliques)} cliques need as many potentials, got "
                f"{len(self.potentials)}"
            )
        for clique, potential in zip(self.cliques, self.potentials, strict=True):
            require_scope(clique, self.sizes)
            if potential.shape != tuple(self.sizes[a] for a in clique):
                raise InputError(
                    f"the potential of clique {clique} must have one axis per attribute, with "
                    f"their sizes; got the shape {potential.shape}"
                )
            if not np.isfinite(potential).all():
                raise InputError(f"the potential of clique {clique} must be finite")
        self.tree.require_at_most(self.limit)

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree of the cliques."""
        return tree_of(self.sizes, self.cliques)

    @cached_property
    def beliefs(self) -> Beliefs:
        """The exact laws of the tree's cliques."""
        return calibrate(self.tree, gather(self.tree, self.cliques, self.potentials))

    @cached_property
    def network(self) -> NetworkModel:
        """The same law as a Bayes network: each attribute given those before it in its home.

        Where its parents' cell cannot happen, an attribute has its margin over the table.
        """
        order: list[int] = []
        parents: dict[int, tuple[int, ...]] = {}
        tables: dict[int, Frequencies] = {}
        for place, layout in enumerate(self.tree.layouts):
            n_shared = len(self.tree.separators[place])
            for end in range(n_shared, len(layout)):
                child, found = layout[end], tuple(sorted(layout[:end]))
                order.append(child)
                parents[child] = found
                tables[child] = margin(self.beliefs.laws[place], layout, (*found, child))
        attributes = range(len(self.sizes))
        net = BayesNet(tuple(order), tuple(parents[a] for a in attributes))
        return NetworkModel(net, tuple(tables[a] for a in attributes))

    def marginal(self, attributes: tuple[int, ...]) -> Frequencies:
        """The exact law of some attributes, one axis each, in the order given."""
        require_scope(attributes, self.sizes)
        return self.beliefs.marginal(attributes)

    def sample(self, n: int, noise: CentralNoise, start: int = 0) -> CodeMatrix:
        """Records ``start .. start + n - 1``, each attribute by one uniform of its own."""
        return self.network.sample(n, noise, start)


def require_scope(scope: Clique, sizes: tuple[int, ...]) -> None:
    """Refuse attributes that do not exist or come twice."""
    if len(set(scope)) != len(scope):
        raise InputError(f"attributes must be distinct, got {scope}")
    for attribute in scope:
        if not 0 <= attribute < len(sizes):
            raise InputError(f"no attribute {attribute}: there are {len(sizes)}")


def tree_of(sizes: tuple[int, ...], scopes: Sequence[Clique]) -> JunctionTree:
    """The junction tree of some scopes, whatever their order and the order within them."""
    return junction_tree(sizes, tuple(sorted({tuple(sorted(scope)) for scope in scopes})))


def gather(
    tree: JunctionTree, scopes: Sequence[Clique], potentials: Sequence[Floats]
) -> tuple[Floats, ...]:
    """Potentials added up in cliques that hold them: one table per clique, in its layout."""
    logs = [np.zeros([tree.sizes[a] for a in layout]) for layout in tree.layouts]
    for scope, potential in zip(scopes, potentials, strict=True):
        home = tree.home_of(scope)
        if home is None:
            raise InputError(f"no clique of the tree holds the attributes {scope}")
        logs[home] += spread(potential, scope, tree.layouts[home])
    return tuple(logs)
