"""One process, no Ray: the specification that every other fleet must equal bit for bit."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from dpsim.core.arrays import Counts
from dpsim.core.errors import IncompleteError
from dpsim.core.ledger import Ledger
from dpsim.core.records import RecordSource, blocks_of
from dpsim.data.partition import partition
from dpsim.protocols.base import Request
from dpsim.runtime.aggregator import Aggregator
from dpsim.runtime.checkpoint import RoundId
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.progress import RoundProgress, Watcher, watch_nothing
from dpsim.runtime.shard import Shard


class LocalFleet:
    """All shards in this process, asked one after the other."""

    def __init__(
        self,
        source: RecordSource,
        seed: int,
        book: LedgerBook,
        *,
        shards: int = 1,
        folder: Path | None = None,
        watch: Watcher = watch_nothing,
    ) -> None:
        self.source = source
        self._book = book
        self._watch = watch
        self._aggregator = Aggregator(folder)
        runs = partition(blocks_of(source.n, source.block_size), shards)
        limit = book.ledger.limit
        self._owners = {
            block: shard
            for blocks in runs
            for shard in [Shard(source, blocks, seed, limit)]
            for block in blocks
        }
        book.bind(source)

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""
        return self._book.ledger

    def ask(self, request: Request) -> Counts:
        """Charge the request, then add up every block's answer."""
        plan = request.plan
        self._book.charge(plan, request.loss)
        source = self.source
        round_id = RoundId(plan.hash, source.n, source.block_size, request.layout.size)
        missing = self._aggregator.progress(round_id).missing
        users_done = source.n - sum(block.n for block in missing)
        blocks = len(round_id.blocks)
        for place, block in enumerate(missing, start=blocks - len(missing) + 1):
            self._aggregator.merge(round_id, self._owners[block].answer(request, block))
            users_done += block.n
            self._watch(RoundProgress(plan.question, users_done, source.n, place, blocks))
        total = self._aggregator.progress(round_id).total
        if total is None:
            raise IncompleteError("a block was lost within one process")
        return total

    def close(self) -> None:
        """Keep what has been merged."""
        self._aggregator.save()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
