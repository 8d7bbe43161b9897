"""What all fleets share: whose users they ask, the book they pay from, how they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

from dpsim.core.arrays import Counts
from dpsim.core.ledger import Ledger
from dpsim.core.records import Block, RecordSource
from dpsim.protocols.base import Request, Step
from dpsim.runtime.checkpoint import RoundId
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.progress import RoundProgress, Watcher


class PayingFleet(ABC):
    """Charges a request before it is carried out, and tells of every merged block."""

    def __init__(self, source: RecordSource, book: LedgerBook, watch: Watcher) -> None:
        self.source = source
        self._book = book
        self._watch = watch

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""
        return self._book.ledger

    def ask(self, request: Request) -> Counts:
        """Charge the request, then have every block answered and added once."""
        self._book.charge(request.plan, request.loss)
        return self._carry(request, self._round_of(request))

    def learn(self, step: Step, *requests: Request) -> Any:
        """Charge the step if it reads records, then run it where the answers are held."""
        if step.plan is not None and step.loss is not None:
            self._book.charge(step.plan, step.loss)
        return self._learn(step, requests)

    def _round_of(self, request: Request) -> RoundId:
        source = self.source
        return RoundId(request.plan.hash, source.n, source.block_size, request.shape)

    @abstractmethod
    def _carry(self, request: Request, round_id: RoundId) -> Counts:
        """What may be shown of all users' answers to a request that is paid for."""

    @abstractmethod
    def _learn(self, step: Step, requests: tuple[Request, ...]) -> Any:
        """The result of a step that is paid for."""

    @abstractmethod
    def close(self) -> None:
        """Keep what has been merged, then end."""

    def _tell(self, question: str, done: set[Block], blocks: int, retries: int = 0) -> None:
        users = sum(block.n for block in done)
        counts = (users, self.source.n, len(done), blocks)
        self._watch(RoundProgress(question, *counts, retries=retries))

    def _tell_work(self, what: str, done: int, all_: int) -> None:
        if all_:
            self._watch(RoundProgress(what, done, all_, 0, 0, unit="tables"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
