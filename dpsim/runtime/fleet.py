"""What all fleets share: whose users they ask, the book they pay from, how they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from dpsim.core.arrays import Counts
from dpsim.core.ledger import Ledger
from dpsim.core.records import Block, RecordSource
from dpsim.protocols.base import Request
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
        plan, source = request.plan, self.source
        self._book.charge(plan, request.loss)
        round_id = RoundId(plan.hash, source.n, source.block_size, request.layout.size)
        return self._carry(request, round_id)

    @abstractmethod
    def _carry(self, request: Request, round_id: RoundId) -> Counts:
        """The sum of all users' answers to a request that is paid for."""

    @abstractmethod
    def close(self) -> None:
        """Keep what has been merged, then end."""

    def _tell(self, question: str, done: set[Block], blocks: int, retries: int = 0) -> None:
        users = sum(block.n for block in done)
        counts = (users, self.source.n, len(done), blocks)
        self._watch(RoundProgress(question, *counts, retries=retries))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
