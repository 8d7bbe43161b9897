"""Exact counts of cells, for a curator the users trust: they stay with the host."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.plan import Plan, Use
from dpsim.core.privacy import Neighbors, PrivacyLoss
from dpsim.core.records import Block, PrivateRecords
from dpsim.core.rng import ClientNoise
from dpsim.core.schema import Attribute
from dpsim.protocols.shapes import TallyShape


@dataclass(frozen=True, slots=True)
class KeptTally(TallyShape):
    """A tally that stays where it is summed: the coordinator sees its total alone."""

    @property
    def text(self) -> str:
        return f"the kept int64 tally of {self.size} cells"

    def shown(self, total: Counts) -> Counts:
        """How many users were counted."""
        return np.array([total.sum()])


@dataclass(frozen=True, slots=True)
class HistogramRequest:
    """Ask entrusted users for their cell. Nothing is released, so it costs nothing."""

    experiment: str
    attributes: tuple[Attribute, ...]
    neighbors: Neighbors = "replace"

    @property
    def plan(self) -> Plan:
        names = tuple(attribute.name for attribute in self.attributes)
        question = f"exact counts of {len(names)} attributes, kept by the curator"
        return Plan(self.experiment, 0, question, (Use(names, "count", ()),), collect="curator")

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(Fraction(0), neighbors=self.neighbors)

    @property
    def shape(self) -> KeptTally:
        return KeptTally(prod(attribute.size for attribute in self.attributes))

    def answer(self, records: PrivateRecords, noise: ClientNoise) -> Counts:  # noqa: ARG002
        """The block's users in each cell: mixed radix, the first attribute leads."""
        block: Block = records.block
        cells = np.zeros(block.n, np.int64)
        for attribute in self.attributes:
            cells = cells * attribute.size + records.open(attribute.name)
        return np.bincount(cells, minlength=self.shape.size)
