"""Users made by index from a known law: nothing is stored, nothing is shipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts, Frequencies
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.records import Block, PrivateRecords
from dpsim.core.rng import AGGREGATE_UNIT, Purpose, draws_at, generator_at
from dpsim.core.schema import Attribute, CodeRange, Schema

_ATOMS = 2**32


@dataclass(frozen=True)
class Node:
    """One attribute of a planted network: its parents and, per parent code, a law in atoms.

    ``thresholds[c]`` holds the upper ends of each code's interval of draws, given the joint
    parent code ``c``; the last code takes what is left.
    """

    name: str
    size: int
    parents: tuple[str, ...]
    thresholds: NDArray[np.uint64] = field(repr=False)
    may_be_missing: bool = False
    """Whether the last code stands for a missing value."""

    @property
    def attribute(self) -> Attribute:
        """The node as a schema knows it."""
        if self.may_be_missing:
            return Attribute(self.name, CodeRange(self.size - 1), "category")
        return Attribute(self.name, CodeRange(self.size))

    @property
    def law(self) -> Frequencies:
        """Exact conditional probabilities, one row per joint parent code."""
        ends = np.column_stack([self.thresholds, np.full(len(self.thresholds), _ATOMS)])
        return np.diff(ends.astype(np.float64), axis=1, prepend=0.0) / _ATOMS


@dataclass(frozen=True)
class GeneratedTable:
    """``n`` records drawn from a Bayes network whose truth is known.

    A record is a function of the seed and the user's index alone, so any shard can make any
    user, and the table is the same for every block size.
    """

    nodes: tuple[Node, ...]
    n: int
    seed: int
    description: str
    block_size: int

    @property
    def schema(self) -> Schema:
        """The attributes: codes, declared by the generator."""
        return Schema(tuple(node.attribute for node in self.nodes), origin="generated")

    @property
    def fingerprint(self) -> str:
        """A name for the data: what they were made from."""
        digest = blake2b(f"{self.n}\n{self.seed}".encode(), digest_size=16)
        for node in self.nodes:
            digest.update(f"{node.name}\n{node.parents}\n".encode())
            digest.update(node.thresholds.astype("<u8").tobytes())
        return digest.hexdigest()

    def read(self, block: Block) -> PrivateRecords:
        """Make the block's users; an attribute is made when it is opened."""
        if block.stop > self.n:
            raise InputError(f"there are {self.n} users, not {block.stop}")
        return PrivateRecords(block, self._columns, self._count_of(block))

    def _columns(self, block: Block) -> Callable[[str], Codes]:
        by_name = {node.name: node for node in self.nodes}
        parents = {name for node in self.nodes for name in node.parents}
        kept: dict[str, Codes] = {}

        def column(name: str) -> Codes:
            if name in kept:
                return kept[name]
            node = by_name[name]
            address = (self.seed, Purpose.DATA.value, "", node.name)
            draws = draws_at(address, block.start, block.n)
            codes = _codes(node, draws, [column(parent) for parent in node.parents], by_name)
            if name in parents:  # it will be asked for again; all of them would be too many
                kept[name] = codes
            return codes

        return column

    def _count_of(self, block: Block) -> Callable[[str, Block], Counts] | None:
        """Counts drawn from the law itself, where attributes are independent.

        Another table of the same law than the records make, for as many users as one likes.
        """
        if block.start % AGGREGATE_UNIT or any(node.parents for node in self.nodes):
            return None
        laws = {node.name: node.law[0] for node in self.nodes}

        def count(name: str, part: Block) -> Counts:
            address = (self.seed, Purpose.AGGREGATE.value, "data", name)
            generator = generator_at(address, part.start // AGGREGATE_UNIT)
            return generator.multinomial(part.n, laws[name])

        return count

    def marginal(self, names: tuple[str, ...], cap: int = 1 << 22) -> Frequencies:
        """The true joint law of some attributes, summed over their ancestors exactly."""
        by_name = {node.name: node for node in self.nodes}
        needed = _ancestors(names, by_name)
        order = [node for node in self.nodes if node.name in needed]
        table, axes = np.ones(()), list[str]()
        for place, node in enumerate(order):
            table, axes = _extend(table, axes, node, by_name)
            if table.size > cap:
                raise InputError(f"the joint law of {', '.join(names)} has over {cap:,} cells")
            later = {parent for child in order[place + 1 :] for parent in child.parents}
            gone = tuple(i for i, name in enumerate(axes) if name not in later | set(names))
            table = table.sum(axis=gone)
            axes = [name for i, name in enumerate(axes) if i not in gone]
        return np.transpose(table, [axes.index(name) for name in names])


def _codes(
    node: Node, draws: NDArray[np.uint32], parents: list[Codes], by_name: dict[str, Node]
) -> Codes:
    code_type = np.min_scalar_type(node.size - 1)
    if not parents and _is_uniform(node):
        return ((draws * np.uint64(node.size)) >> np.uint64(32)).astype(code_type)
    if not parents:
        return np.searchsorted(node.thresholds[0], draws, side="right").astype(code_type)
    joint = np.zeros(draws.size, np.int64)
    for name, codes in zip(node.parents, parents, strict=True):
        joint = joint * by_name[name].size + codes
    codes = np.zeros(draws.size, code_type)
    for threshold in node.thresholds.T:
        codes += draws >= threshold[joint]
    return codes


def _is_uniform(node: Node) -> bool:
    return np.array_equal(node.thresholds, uniform_thresholds(node.size))


def uniform_thresholds(size: int) -> NDArray[np.uint64]:
    """Equal intervals: code c begins at draw ⌈c 2^32 / k⌉, which is what mulhi computes."""
    require_at_least(1, size=size)
    return np.array([[-(-code * _ATOMS // size) for code in range(1, size)]], np.uint64)


def thresholds_of(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Upper ends of the intervals of draws proportional to each row of weights."""
    ends = np.cumsum(weights, axis=1)
    return np.floor(ends[:, :-1] / ends[:, -1:] * _ATOMS).astype(np.uint64)


def _ancestors(names: tuple[str, ...], by_name: dict[str, Node]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(by_name[name].parents)
    return found


def _extend(
    table: Frequencies, axes: list[str], node: Node, by_name: dict[str, Node]
) -> tuple[Frequencies, list[str]]:
    """The joint law with one more attribute as its last axis."""
    sizes = [by_name[parent].size for parent in node.parents]
    law = node.law.reshape(*sizes, node.size)
    letters = {name: chr(ord("a") + i) for i, name in enumerate((*axes, node.name))}
    old = "".join(letters[name] for name in axes)
    new = "".join(letters[name] for name in (*node.parents, node.name))
    joint: Frequencies = np.einsum(f"{old},{new}->{''.join(letters.values())}", table, law)
    return joint, [*axes, node.name]
