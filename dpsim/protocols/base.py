"""The words of every conversation: request, answer, fleet."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.ledger import Ledger
from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import Block, PrivateRecords, RecordSource
from dpsim.core.rng import ClientNoise
from dpsim.core.tasks import Desk
from dpsim.protocols.shapes import Shape


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


class Priced(Protocol):
    """Anything that is paid for before it happens."""

    @property
    def plan(self) -> Plan:
        """What determines the noise."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the plan costs each user."""


class Request(Priced, Protocol):
    """One question to every user: its plan, its price, and how to answer it."""

    @property
    def shape(self) -> Shape:
        """What an answer looks like."""

    def answer(self, records: PrivateRecords, noise: ClientNoise) -> NDArray[Any]:
        """Client side: a block's reports or their tally. The last code that sees the truth."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a shard says of one block: a tally of reports, or the reports themselves."""

    plan_hash: str
    block: Block
    content: NDArray[Any]
    seconds: float = 0.0

    def check(self, plan_hash: str, shape: Shape) -> None:
        """Refuse all but the answer to this plan: the border that nothing else may cross."""
        if self.plan_hash != plan_hash or not shape.accepts(self.content, self.block):
            raise InputError(f"a shard may only answer with {shape.text}, as the plan says")

    @property
    def digest(self) -> bytes:
        """Equal for equal answers: how the aggregator recognizes a repeated one."""
        little = self.content.dtype.newbyteorder("<")
        return blake2b(self.content.astype(little).tobytes(), digest_size=16).digest()


class Step(Protocol):
    """Work of the host on what it holds. Reading records costs; reports are paid for."""

    @property
    def plan(self) -> Plan | None:
        """What determines the noise of a step that reads records; None for any other."""

    @property
    def loss(self) -> PrivacyLoss | None:
        """What the plan costs each user."""

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Any:  # noqa: ANN401
        """The result, from the answers that the host holds: the same bits wherever it runs."""


class PostProcessing:
    """The part of a step that every step on reports shares: it costs nothing."""

    __slots__ = ()

    @property
    def plan(self) -> None:
        """None: nothing is asked."""

    @property
    def loss(self) -> None:
        """None: nothing is spent."""


class Fleet(Protocol):
    """All shards, wherever they run: pays first, then asks every user."""

    @property
    def source(self) -> RecordSource:
        """Whose users they are; protocols may read its schema and n, not its records."""

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""

    def ask(self, request: Request) -> Counts:
        """Charge the request, have all users answer, and return what may be shown of it."""

    def learn(self, step: Step, *requests: Request) -> Any:  # noqa: ANN401 - the step's result
        """Charge the step, then run it where the answers to the requests are held."""
