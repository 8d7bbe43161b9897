"""One round of whole rows: every user sends a perturbed value of every attribute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import PrivateRecords
from dpsim.core.rng import ClientNoise
from dpsim.protocols.collect import CHUNK, Item
from dpsim.protocols.participation import EVERYBODY, Participation
from dpsim.protocols.shapes import ReportShape
from dpsim.synthesis.table import CodeTable, code_type

_COUNTED, _LATE = 1, 2


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Ask every user for one perturbed code per attribute; the losses add up.

    Reports stay with the aggregator, whose steps learn from them. They are private already,
    and travel with the mechanisms that made them: the items.
    """

    experiment: str
    round_id: int
    question: str
    items: tuple[Item, ...]
    participation: Participation = EVERYBODY

    @property
    def plan(self) -> Plan:
        return Plan(
            experiment=self.experiment,
            round_id=self.round_id,
            question=self.question,
            uses=tuple(item.use for item in self.items),
            collect="rows",
            participation=self.participation.parameters,
        )

    @property
    def loss(self) -> PrivacyLoss:
        return reduce(add, (item.mechanism.loss for item in self.items))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        return tuple(item.attributes[0].size for item in self.items)

    @property
    def shape(self) -> ReportShape:
        return ReportShape(len(self.items), np.dtype(code_type(self.sizes)).name)

    def answer(self, records: PrivateRecords, noise: ClientNoise) -> NDArray[Any]:
        """Who took part, then each attribute's reports; zeros for whoever did not."""
        block = records.block
        rows = self.shape.empty(block.n)
        for part in block.parts(CHUNK):
            chunk = noise.part(part)
            place = slice(part.start - block.start, part.stop - block.start)
            sent, in_time = self._sent(chunk)
            rows[0, place] = np.where(in_time, _COUNTED, np.where(sent, _LATE, 0))
            inside = records.part(part)
            for line, item in enumerate(self.items, start=1):
                reports = item.mechanism.perturb(item.inputs(inside), chunk.of(item.name))
                rows[line, place] = np.where(in_time, reports, 0)
        return rows

    def _sent(self, noise: ClientNoise) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        if self.participation.is_certain:
            everybody = np.ones(noise.block.n, np.bool_)
            return everybody, everybody
        return self.participation.draw(noise)


def report_table(sizes: tuple[int, ...], rows: NDArray[Any]) -> CodeTable:
    """The reports of whoever was counted."""
    counted = rows[0] == _COUNTED
    codes = rows[1:] if counted.all() else rows[1:, counted]
    return CodeTable(sizes, codes)
