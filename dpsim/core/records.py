"""Blocks of users, and private records that refuse to leave their process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts
from dpsim.core.checks import require_at_least
from dpsim.core.schema import Schema


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """Consecutive users ``start .. start + n - 1``: the unit of storage, work and retry."""

    start: int
    n: int

    @property
    def stop(self) -> int:
        """The first index after the block."""
        return self.start + self.n

    def parts(self, size: int) -> Iterator[Block]:
        """The block in pieces of at most ``size`` users, in order."""
        for start in range(self.start, self.stop, size):
            yield Block(start, min(size, self.stop - start))


def blocks_of(n: int, block_size: int) -> tuple[Block, ...]:
    """All users ``0 .. n - 1`` in blocks of ``block_size``; the last may be shorter."""
    require_at_least(1, block_size=block_size)
    return tuple(Block(0, n).parts(block_size))


class PrivateRecords:
    """The true codes of one block's users. An opaque holder: no pickle, no text, no array.

    ``open`` is the one way to the values, for mechanisms inside the shard and for
    evaluation. It catches accidents; the border itself is the shard's return gate.
    """

    __slots__ = ("_block", "_columns", "_count", "_open")

    def __init__(
        self,
        block: Block,
        columns: Callable[[Block], Callable[[str], Codes]],
        count: Callable[[str, Block], Counts] | None = None,
    ) -> None:
        self._block = block
        self._columns = columns
        self._count = count
        self._open = columns(block)

    @property
    def block(self) -> Block:
        """Whose records these are."""
        return self._block

    def open(self, attribute: str) -> Codes:
        """The codes of one attribute, one per user of the block."""
        return self._open(attribute)

    def part(self, block: Block) -> PrivateRecords:
        """The records of some of the block's users."""
        return PrivateRecords(block, self._columns, self._count)

    def histogram(
        self, attribute: str, size: int, places: NDArray[np.int64] | None = None
    ) -> Counts:
        """True counts of the codes, of all users or those in places: for laws of counts."""
        if places is None and self._count is not None:
            return self._count(attribute, self._block)
        codes = self.open(attribute)
        return np.bincount(codes if places is None else codes[places], minlength=size)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("private records must not leave their shard")

    def __repr__(self) -> str:
        return f"PrivateRecords({self._block.n} users)"

    def __format__(self, spec: str) -> str:
        return repr(self)


class RecordSource(Protocol):
    """Where a shard finds its users' records: a small value that can be sent to it."""

    @property
    def schema(self) -> Schema:
        """The public attributes and their domains."""

    @property
    def n(self) -> int:
        """How many users there are."""

    @property
    def block_size(self) -> int:
        """Users per block; fixed for the life of a run."""

    @property
    def fingerprint(self) -> str:
        """A name for the data's bits, whatever the block size."""

    def read(self, block: Block) -> PrivateRecords:
        """The records of one block; an `IntegrityError` if they are not the known ones."""
