"""Bayes networks of attributes, and the law of whole records that one describes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis.table import CodeMatrix, code_type

MAX_FACTOR_CELLS = 1 << 24
"""The largest table that a marginal may need on the way."""

_CHUNK = 1 << 16  # records drawn together: their uniforms stay in the second cache


@dataclass(frozen=True, slots=True)
class BayesNet:
    """Which attributes each attribute depends on: an acyclic graph with an ancestral order."""

    order: tuple[int, ...]
    """Every attribute once, parents before their children."""
    parents: tuple[tuple[int, ...], ...]
    """By attribute, ascending."""

    def __post_init__(self) -> None:
        if not self.order or sorted(self.order) != list(range(len(self.parents))):
            raise InputError(
                f"order must name each of {len(self.parents)} attributes once, got "
                f"{len(self.order)} entries"
            )
        seen: set[int] = set()
        for attribute in self.order:
            found = self.parents[attribute]
            if sorted(set(found)) != list(found):
                raise InputError(f"parents of attribute {attribute} must ascend, got {found}")
            if not seen.issuperset(found):
                raise InputError(f"attribute {attribute} must come after its parents {found}")
            seen.add(attribute)

    def children(self, attribute: int) -> tuple[int, ...]:
        """The attributes that have this one as a parent, ascending."""
        return tuple(child for child, found in enumerate(self.parents) if attribute in found)

    def markov_blanket(self, attribute: int) -> tuple[int, ...]:
        """Parents, children and the children's other parents, ascending."""
        children = self.children(attribute)
        blanket = {*self.parents[attribute], *children}
        blanket.update(other for child in children for other in self.parents[child])
        return tuple(sorted(blanket - {attribute}))

    def ancestors(self, attributes: Sequence[int]) -> tuple[int, ...]:
        """The attributes with all that they depend on, in the network's order."""
        wanted = set(attributes)
        for attribute in reversed(self.order):
            if attribute in wanted:
                wanted.update(self.parents[attribute])
        return tuple(attribute for attribute in self.order if attribute in wanted)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """(parent, child), in the network's order of children."""
        return tuple((parent, child) for child in self.order for parent in self.parents[child])

    @property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """By attribute: its parents, then itself, as the axes of its table."""
        return tuple((*found, child) for child, found in enumerate(self.parents))

    def to_lists(self) -> list[list[int | list[int]]]:
        """``[child, [parents]]`` in the network's order, for JSON."""
        return [[child, list(self.parents[child])] for child in self.order]

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int | Sequence[int]]]) -> Self:
        """What `to_lists` made."""
        try:
            found = {int(child): tuple(map(int, parents)) for child, parents in lists}  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise InputError("a network is a list of [child, [parents]] by index") from None
        if sorted(found) != list(range(len(lists))):
            raise InputError(f"a network of {len(lists)} entries must name 0..{len(lists) - 1}")
        return cls(tuple(found), tuple(found[child] for child in range(len(found))))


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """The law ``Pr[x] = Π Pr[x_a | x_parents(a)]`` of whole records.

    Tables are given by attribute as weights ≥ 0 (counts, shares or conditional laws), the
    parents' axes first and the attribute's own last, and kept as conditional laws. Where
    nothing is known about a cell of the parents, the child's margin over the whole table
    stands in for it, or the uniform law where the table is empty.
    """

    net: BayesNet
    tables: tuple[Frequencies, ...]

    def __post_init__(self) -> None:
        if len(self.tables) != len(self.net.order):
            raise InputError(
                f"a network of {len(self.net.order)} attributes needs as many tables, got "
                f"{len(self.tables)}"
            )
        for attribute, family in enumerate(self.net.families):
            shape = self.tables[attribute].shape
            if len(shape) != len(family) or shape != tuple(self.sizes[a] for a in family):
                raise InputError(
                    f"the table of attribute {attribute} must have one axis for each of "
                    f"{family}, with their sizes; got the shape {shape}"
                )
        laws = tuple(_conditional(table, a) for a, table in enumerate(self.tables))
        object.__setattr__(self, "tables", laws)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        return tuple(table.shape[-1] if table.ndim else 0 for table in self.tables)

    def sample(self, n: int, noise: CentralNoise, start: int = 0) -> CodeMatrix:
        """Records ``start .. start + n - 1``, each attribute by one uniform of its own."""
        from dpsim.synthesis._network_kernels import draw_codes  # noqa: PLC0415 - loads numba

        require_at_least(0, n=n)
        codes = np.zeros((len(self.sizes), n), code_type(self.sizes))
        laws = [self._sampler(attribute) for attribute in self.net.order]
        for first in range(0, n, _CHUNK):
            part = codes[:, first : first + _CHUNK]
            for attribute, (parents, ends) in zip(self.net.order, laws, strict=True):
                uniforms = noise.uniforms(
                    Purpose.PUBLISH, str(attribute), part.shape[1], start + first
                )
                draw_codes(part, attribute, parents, ends, uniforms)
        return codes

    def marginal(self, attributes: tuple[int, ...]) -> Frequencies:
        """The exact law of some attributes, by eliminating their other ancestors one by one.

        The attribute that leaves the smallest table goes first. Refused where a table on the
        way would have more than `MAX_FACTOR_CELLS`.
        """
        if len(set(attributes)) != len(attributes):
            raise InputError(f"attributes must be distinct, got {attributes}")
        for attribute in attributes:
            if not 0 <= attribute < len(self.sizes):
                raise InputError(f"no attribute {attribute}: there are {len(self.sizes)}")
        factors = [
            (self.net.families[a], self.tables[a]) for a in self.net.ancestors(attributes)
        ]
        others = set(self.net.ancestors(attributes)) - set(attributes)
        while others:
            _, leaving = min((self._cells_with(factors, a), a) for a in others)
            touched = [factor for factor in factors if leaving in factor[0]]
            factors = [factor for factor in factors if leaving not in factor[0]]
            rest = tuple(sorted({a for scope, _ in touched for a in scope} - {leaving}))
            joint = self._product(touched, (*rest, leaving))
            factors.append((rest, joint.sum(axis=-1)))
            others.remove(leaving)
        return self._product(factors, attributes)

    def _cells_with(
        self, factors: list[tuple[tuple[int, ...], Frequencies]], attribute: int
    ) -> int:
        scope = {a for family, _ in factors if attribute in family for a in family}
        return prod(self.sizes[a] for a in scope)

    def _product(
        self, factors: list[tuple[tuple[int, ...], Frequencies]], scope: tuple[int, ...]
    ) -> Frequencies:
        shape = tuple(self.sizes[attribute] for attribute in scope)
        if prod(shape) > MAX_FACTOR_CELLS:
            raise InputError(
                f"the marginal needs a table of {prod(shape):,} cells over the attributes "
                f"{scope}, and {MAX_FACTOR_CELLS:,} is the most: ask for fewer attributes, "
                "or count them in sampled rows"
            )
        result = np.ones(shape)
        for family, table in factors:
            axes = sorted(range(len(family)), key=lambda axis: scope.index(family[axis]))
            wide = [self.sizes[a] if a in family else 1 for a in scope]
            result *= table.transpose(axes).reshape(wide)
        return result

    def _sampler(
        self, attribute: int
    ) -> tuple[tuple[NDArray[np.int16], NDArray[np.int64]], Frequencies]:
        """The parents and their sizes; where each code's share of the uniforms ends."""
        parents = self.net.parents[attribute]
        law = self.tables[attribute].reshape(-1, self.sizes[attribute])
        ends = np.cumsum(law, axis=1)
        ends /= ends[:, -1:]
        # From the last possible code on nothing may be left over by rounding.
        is_last = np.cumsum(law[:, ::-1], axis=1)[:, ::-1] - law <= 0
        ends[is_last] = 2.0
        sizes = np.array([self.sizes[parent] for parent in parents], np.int64)
        return (np.array(parents, np.int16), sizes), ends


def _conditional(weights: Frequencies, attribute: int) -> Frequencies:
    table = np.asarray(weights, np.float64)
    if table.size == 0 or not np.isfinite(table).all() or table.min() < 0:
        raise InputError(f"the table of attribute {attribute} must hold finite weights >= 0")
    totals = table.sum(axis=-1, keepdims=True)
    margin = table.reshape(-1, table.shape[-1]).sum(axis=0)
    whole = float(margin.sum())
    spare = margin / whole if whole > 0 else np.full(margin.shape, 1 / margin.size)
    law = np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), spare)
    law.setflags(write=False)
    return law
