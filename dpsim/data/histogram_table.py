"""Users known by the counts of their cells: a published histogram as a record source."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from math import prod

import numpy as np

from dpsim.core.arrays import Codes
from dpsim.core.errors import InputError
from dpsim.core.records import Block, PrivateRecords
from dpsim.core.schema import Schema


@dataclass(frozen=True)
class HistogramTable:
    """As many records as the counts say, in the order of the cells."""

    schema: Schema
    counts: tuple[int, ...]
    """One per cell: mixed radix, the first attribute leads."""
    block_size: int
    description: str

    def __post_init__(self) -> None:
        if len(self.counts) != prod(attribute.size for attribute in self.schema):
            raise InputError("a histogram needs one count for every cell of its schema")

    @property
    def n(self) -> int:
        """How many users there are."""
        return sum(self.counts)

    @property
    def fingerprint(self) -> str:
        """A name for the data: the schema and the counts."""
        text = f"{self.schema.fingerprint} {self.counts}"
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def read(self, block: Block) -> PrivateRecords:
        """The block's users."""
        return PrivateRecords(block, self._columns)

    def _columns(self, block: Block) -> _Columns:
        return _Columns(self, block)


@dataclass(frozen=True, slots=True)
class _Columns:
    table: HistogramTable
    block: Block

    def __call__(self, attribute: str) -> Codes:
        ends = np.cumsum(self.table.counts)
        users = np.arange(self.block.start, self.block.stop)
        cells = np.searchsorted(ends, users, side="right")
        schema = self.table.schema
        place = schema.names.index(schema[attribute].name)
        after = prod(each.size for each in schema.attributes[place + 1 :])
        size = schema.attributes[place].size
        return (cells // after % size).astype(schema[attribute].code_type)
