"""Reports about groups of attributes: each user tells about one group, at the whole loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import FrequencyOracle
from dpsim.mechanisms.subset import SubsetSelection


class GroupOracle(FrequencyOracle, Protocol):
    """A frequency oracle that supports the true code with p and any other with q."""

    @property
    def p(self) -> float:
        """Probability that a report supports the true code."""

    @property
    def q(self) -> float:
        """Probability that a report supports one given other code."""

    @property
    def gap(self) -> float:
        """The difference p - q."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupReports:
    """The sum of some users' reports about one group, with the mechanism that made them.

    Each of the n users perturbed the compound code of the group's attributes: mixed radix, the
    first attribute leads. Tallies of disjoint users add up.
    """

    attributes: tuple[int, ...]
    mechanism: GroupOracle
    n: int
    tally: Counts

    def __post_init__(self) -> None:
        if not self.attributes or len(set(self.attributes)) != len(self.attributes):
            raise InputError(
                f"a group must name one attribute or several, each once: {self.attributes}"
            )
        require_at_least(0, n=self.n)
        size = self.mechanism.tally_size
        if self.tally.shape != (size,) or self.tally.dtype.kind != "i":
            raise InputError(
                f"the tally of group {self.attributes} must hold {size:,} whole counts, got "
                f"{self.tally.dtype} of shape {self.tally.shape}"
            )

    @property
    def cells(self) -> int:
        """The number of compound codes."""
        return self.mechanism.domain_size

    @property
    def names_one_cell(self) -> bool:
        """Whether every report supports exactly one cell, as GRR's do."""
        one = isinstance(self.mechanism, SubsetSelection) and self.mechanism.subset_size == 1
        return one or isinstance(self.mechanism, GRR)

    @property
    def freedom(self) -> float:
        """The share of independent noise in one cell: less than 1 where supports are fixed.

        The supports of one subset always sum to its size, so that the noise of m cells has
        m - 1 dimensions.
        """
        if isinstance(self.mechanism, (GRR, SubsetSelection)):
            return 1 - 1 / self.cells
        return 1.0

    def estimate(self) -> Frequencies:
        """Unbiased shares of the users in each cell; negative values are kept."""
        return self.mechanism.estimate(self.tally, self.n)

    def supports(self) -> Frequencies:
        """How many reports support each cell: n(q + (p - q) estimate)."""
        if self.tally.size == self.cells:
            return self.tally.astype(np.float64)
        return self.n * (self.mechanism.q + self.mechanism.gap * self.estimate())


def require_groups(reports: Sequence[GroupReports], sizes: tuple[int, ...]) -> None:
    """Refuse reports of other attributes or domains than the table's, and no reports at all."""
    if not sizes or min(sizes) < 1:
        raise InputError(f"sizes must be whole numbers >= 1, one per attribute, got {sizes}")
    for group in reports:
        if max(group.attributes) >= len(sizes) or min(group.attributes) < 0:
            raise InputError(
                f"group {group.attributes} names an attribute outside 0..{len(sizes) - 1}"
            )
        cells = prod(sizes[attribute] for attribute in group.attributes)
        if cells != group.cells:
            raise InputError(
                f"group {group.attributes} has {cells:,} cells, and its mechanism knows "
                f"{group.cells:,}: make it for the product of the domain sizes"
            )
    if not any(group.n for group in reports):
        raise InputError("there are no reports: a model needs one user at least")
