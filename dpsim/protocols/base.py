"""The words of every conversation: request, answer, fleet."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.ledger import Ledger
from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import Block, PrivateRecords, RecordSource
from dpsim.core.rng import ClientNoise


@dataclass(frozen=True, slots=True)
class Layout:
    """Named parts of one vector of counts, so that every answer is a plain sum."""

    parts: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Length of the vector."""
        return sum(size for _, size in self.parts)

    def split(self, vector: Counts) -> dict[str, Counts]:
        """The parts by name, as views."""
        borders = np.cumsum([size for _, size in self.parts])[:-1]
        pieces = np.split(vector, borders)
        return dict(zip((name for name, _ in self.parts), pieces, strict=True))


class Request(Protocol):
    """One question to every user: its plan, its price, and how to answer it."""

    @property
    def plan(self) -> Plan:
        """What determines the reports."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the plan costs each user."""

    @property
    def layout(self) -> Layout:
        """What the tally is made of."""

    def answer(self, records: PrivateRecords, noise: ClientNoise) -> Counts:
        """Client side: the tally of one block's reports. The last code that sees the truth."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The tally of one block's reports: int64 sums, no rows. Answers of other blocks add up."""

    plan_hash: str
    block: Block
    tally: Counts
    seconds: float = 0.0

    def check(self, plan_hash: str, size: int) -> None:
        """Refuse anything but a tally of this plan: the border that nothing else may cross."""
        tally = self.tally
        is_tally = (
            type(tally) is np.ndarray and tally.dtype == np.int64 and tally.shape == (size,)
        )
        if not is_tally or self.plan_hash != plan_hash:
            raise InputError("a shard may only answer with the int64 tally of the plan")

    @property
    def digest(self) -> bytes:
        """Equal for equal tallies: how the aggregator recognizes a repeated answer."""
        return blake2b(self.tally.astype("<i8").tobytes(), digest_size=16).digest()


class Fleet(Protocol):
    """All shards, wherever they run: pays first, then asks every user."""

    @property
    def source(self) -> RecordSource:
        """Whose users they are; protocols may read its schema and n, not its records."""

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""

    def ask(self, request: Request) -> Counts:
        """Charge the request, then return the sum of all users' answers, or raise."""
