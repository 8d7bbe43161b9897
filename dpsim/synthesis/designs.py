"""Who is asked about what: a public list of groups of attributes with shares of the users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from math import prod
from operator import or_

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.synthesis.group_reports import GroupOracle

CELL_CAP = 1 << 16
"""The most cells of one group: a report of subset selection has one bit per cell."""


@dataclass(frozen=True, slots=True)
class Group:
    """Some attributes, the mechanism for their compound code, and a share of the users."""

    attributes: tuple[int, ...]
    share: Fraction
    mechanism: GroupOracle


@dataclass(frozen=True, slots=True)
class Design:
    """Every user draws one group by the public shares, and sends one report about it.

    The draw does not look at the record and a user reports once: so the whole record is
    protected by the loss of one report, under replacement of one user's record.
    """

    sizes: tuple[int, ...]
    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        total = sum((group.share for group in self.groups), Fraction(0))
        if total != 1:
            raise InputError(f"shares of the groups must sum to 1, got {text_of(total)}")
        for group in self.groups:
            self._require_group(group)
        asked = {attribute for group in self.groups for attribute in group.attributes}
        silent = [a for a, size in enumerate(self.sizes) if size > 1 and a not in asked]
        if silent:
            raise InputError(f"attributes {silent} are in no group: nobody would tell of them")

    def _require_group(self, group: Group) -> None:
        names = group.attributes
        if not names or len(set(names)) != len(names):
            raise InputError(f"a group must name attributes, each once, got {names}")
        if min(names) < 0 or max(names) >= len(self.sizes):
            raise InputError(f"group {names} goes outside 0..{len(self.sizes) - 1}")
        if not 0 < group.share <= 1:
            raise InputError(
                f"the share of group {names} must be > 0 and <= 1, got {text_of(group.share)}"
            )
        cells = cells_of_group(self.sizes, names)
        if group.mechanism.domain_size != cells:
            raise InputError(
                f"group {names} has {cells:,} cells, and its mechanism knows "
                f"{group.mechanism.domain_size:,}"
            )

    @property
    def loss(self) -> PrivacyLoss:
        """What one user pays: the largest loss of one report, as groups share no user."""
        return reduce(or_, (group.mechanism.loss for group in self.groups))

    def choose(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """One group's place per 64-bit draw: as often as its share, to within 2^-64."""
        ends = list(accumulate(group.share for group in self.groups))[:-1]
        limits = np.array([int(end * 2**64) for end in ends], np.uint64)
        return np.searchsorted(limits, words, side="right").astype(np.int64)

    def expected_users(self, n: int) -> tuple[float, ...]:
        """By group: how many of n users will tell about it, on average."""
        return tuple(float(group.share * n) for group in self.groups)


def cells_of_group(sizes: tuple[int, ...], attributes: tuple[int, ...]) -> int:
    """The number of compound codes; refused above the cap, with the sizes that make it."""
    each = [sizes[attribute] for attribute in attributes]
    cells = prod(each)
    if cells > CELL_CAP:
        sides = " x ".join(str(size) for size in each)
        raise InputError(
            f"group {attributes} has {sides} = {cells:,} cells, and {CELL_CAP:,} is the most: "
            "take fewer attributes into one group"
        )
    return cells


def design_of(
    sizes: tuple[int, ...],
    groups: Sequence[tuple[int, ...]],
    epsilon: object,
    weights: Sequence[int | Fraction] | None = None,
) -> Design:
    """The given groups, by subset selection; shares ∝ the cube root of their cells.

    A table of m cells errs by about m / √users in total variation, and noise beyond its
    signal is cut off; cube roots of m came out best between equal shares and m^(2/3), which
    uncut errors would ask for. Weights, where given, replace them. Subset selection of the
    best size has the smallest variance of all pure mechanisms, and is GRR where that is best.
    """
    if not groups:
        raise InputError("a design needs one group at least")
    cells = [cells_of_group(sizes, tuple(group)) for group in groups]
    parts = [Fraction(cube_root(size)) for size in cells]
    if weights is not None:
        parts = [Fraction(weight) for weight in weights]
    if len(parts) != len(groups) or min(parts) <= 0:
        raise InputError(
            f"weights must be > 0, one for each of {len(groups)} groups, got {len(parts)}"
        )
    total = sum(parts, Fraction(0))
    oracles = {size: SubsetSelection(size, epsilon) for size in sorted(set(cells))}
    made = (
        Group(tuple(group), part / total, oracles[size])
        for group, part, size in zip(groups, parts, cells, strict=True)
    )
    return Design(sizes, tuple(made))


def mixed_design(parts: Sequence[tuple[Design, Fraction]]) -> Design:
    """Several designs, each for its share of the users."""
    if not parts:
        raise InputError("a mixture needs one design at least")
    if len({design.sizes for design, _ in parts}) != 1:
        raise InputError("designs of one mixture must be about the same attributes")
    groups = (
        Group(group.attributes, group.share * share, group.mechanism)
        for design, share in parts
        for group in design.groups
    )
    return Design(parts[0][0].sizes, tuple(groups))


def cube_root(value: int) -> int:
    """⌊1000 ∛value⌋, by halving in whole numbers: the same on every machine."""
    low, high = 0, 1000 * value + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= value * 10**9 else (low, middle)
    return low
