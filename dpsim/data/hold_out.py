"""Some of a source's users, chosen without looking: to learn from, or to test on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes
from dpsim.core.records import Block, PrivateRecords, RecordSource, blocks_of
from dpsim.core.rng import Purpose, draws_at
from dpsim.core.schema import Schema


@dataclass(frozen=True)
class HoldOut:
    """The users outside a share that is held out, or those inside it.

    Who belongs to it depends on the seed and the user's index alone. Users are counted anew
    from 0, in the source's order.
    """

    source: RecordSource
    share: Fraction
    seed: int = 0
    is_held_out: bool = False

    @property
    def schema(self) -> Schema:
        """The source's."""
        return self.source.schema

    @property
    def n(self) -> int:
        """How many users belong to it."""
        return int(self._users.size)

    @property
    def block_size(self) -> int:
        """The source's."""
        return self.source.block_size

    @property
    def fingerprint(self) -> str:
        """A name for the data and the choice."""
        text = f"{self.source.fingerprint} {self.share} {self.seed} {self.is_held_out}"
        return blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def _users(self) -> NDArray[np.int64]:
        return _users(self.source.n, self.share, self.seed, self.is_held_out)

    def read(self, block: Block) -> PrivateRecords:
        """The records of one block of the chosen users."""
        return PrivateRecords(block, self._columns)

    def _columns(self, block: Block) -> _Columns:
        return _Columns(self.source, self._users[block.start : block.stop])


@dataclass(frozen=True, slots=True)
class _Columns:
    source: RecordSource
    users: NDArray[np.int64]

    def __call__(self, attribute: str) -> Codes:
        size = self.source.block_size
        parts = []
        for block in blocks_of(self.source.n, size):
            first, last = np.searchsorted(self.users, (block.start, block.stop))
            if first < last:
                codes = self.source.read(block).open(attribute)
                parts.append(codes[self.users[first:last] - block.start])
        return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


@lru_cache(maxsize=4)
def _users(n: int, share: Fraction, seed: int, is_held_out: bool) -> NDArray[np.int64]:
    draws = draws_at((seed, Purpose.SAMPLE.value, "", "\0hold out"), 0, n)
    held = draws.astype(np.uint64) < np.uint64(int(share * 2**32))
    return np.flatnonzero(held if is_held_out else ~held)
