"""A trusted curator's view of the records: opened where it computes, never sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsim.core.errors import InputError
from dpsim.core.records import Block, PrivateRecords, RecordSource, blocks_of
from dpsim.core.schema import Schema
from dpsim.synthesis.table import CodeTable, code_type


@dataclass(frozen=True)
class Entrusted:
    """Users who entrust their records to a curator: said where the run begins, by its method.

    Without it, neither a curator's step nor a request for exact counts gets an answer.
    """

    source: RecordSource

    @property
    def schema(self) -> Schema:
        """The source's."""
        return self.source.schema

    @property
    def n(self) -> int:
        """The source's."""
        return self.source.n

    @property
    def block_size(self) -> int:
        """The source's."""
        return self.source.block_size

    @property
    def fingerprint(self) -> str:
        """The source's: trust does not change the data."""
        return self.source.fingerprint

    def read(self, block: Block) -> PrivateRecords:
        """The source's records."""
        return self.source.read(block)


def require_entrusted(source: RecordSource) -> None:
    """Refuse to act as the curator of users who trust nobody."""
    if not isinstance(source, Entrusted):
        raise InputError("these users entrust their records to nobody; a curator is refused")


@dataclass(frozen=True, slots=True)
class CuratorTable:
    """The true codes of all users, for methods that trust a curator.

    A small value: whoever computes opens the source in its own process, so that no record
    passes through the coordinator or a store that others can read.
    """

    source: RecordSource
    names: tuple[str, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        return tuple(self.source.schema[name].size for name in self.names)

    @property
    def n(self) -> int:
        """How many users there are."""
        return self.source.n

    def open(self) -> CodeTable:
        """The codes, in this process."""
        require_entrusted(self.source)
        return read_table(self.source, self.names)


def read_table(source: RecordSource, names: Sequence[str]) -> CodeTable:
    """The true codes of some attributes: for a curator, and for evaluation."""
    sizes = tuple(source.schema[name].size for name in names)
    codes = np.empty((len(sizes), source.n), code_type(sizes))
    for block in blocks_of(source.n, source.block_size):
        records = source.read(block)
        for line, name in enumerate(names):
            codes[line, block.start : block.stop] = records.open(name)
    return CodeTable(sizes, codes)
