"""One process, no Ray: the specification that every other fleet must equal bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsim.core.arrays import Counts
from dpsim.core.errors import IncompleteError
from dpsim.core.records import RecordSource, blocks_of
from dpsim.core.tasks import OneProcess
from dpsim.data.partition import partition
from dpsim.protocols.base import Request, Step
from dpsim.runtime.checkpoint import RoundId
from dpsim.runtime.fleet import PayingFleet
from dpsim.runtime.host import Host
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.progress import Watcher, watch_nothing
from dpsim.runtime.shard import Shard


class LocalFleet(PayingFleet):
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
        super().__init__(source, book, watch)
        self._aggregator = Host(OneProcess(), folder, self._tell_work)
        runs = partition(blocks_of(source.n, source.block_size), shards)
        limit = book.ledger.limit
        self._owners = {
            block: shard
            for blocks in runs
            for shard in [Shard(source, blocks, seed, limit)]
            for block in blocks
        }
        book.bind(source)

    def _carry(self, request: Request, round_id: RoundId) -> Counts:
        missing = self._aggregator.progress(round_id).missing
        blocks = round_id.blocks
        done = set(blocks).difference(missing)
        for block in missing:
            self._aggregator.merge(round_id, self._owners[block].answer(request, block))
            done.add(block)
            self._tell(request.plan.question, done, len(blocks))
        total = self._aggregator.progress(round_id).total
        if total is None:
            raise IncompleteError("a block was lost within one process")
        return total

    def _learn(self, step: Step, requests: tuple[Request, ...]) -> Any:
        return self._aggregator.learn(step, tuple(map(self._round_of, requests)))

    def close(self) -> None:
        """Keep what has been merged."""
        self._aggregator.save()
