"""Shards as actors: the same classes as in one process, carried by Ray."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import exceptions as rex
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from dpsim.core.arrays import Counts
from dpsim.core.errors import ResourceError
from dpsim.core.records import Block, RecordSource, blocks_of
from dpsim.data.partition import partition
from dpsim.protocols.base import Request, Step
from dpsim.runtime.aggregator import Progress
from dpsim.runtime.checkpoint import RoundId
from dpsim.runtime.coordinator import Outcome, Pace, reconcile
from dpsim.runtime.fleet import PayingFleet
from dpsim.runtime.host import Host, NotHeldError, Work
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.preflight import require_equal_versions
from dpsim.runtime.progress import Watcher, watch_nothing
from dpsim.runtime.ray_errors import fatal, loss_of, name_of
from dpsim.runtime.ray_pool import RayPool
from dpsim.runtime.ray_session import SHARD_SLOT, free_slots, has_shard_slots
from dpsim.runtime.shard import Shard, ShardInfo
from dpsim.runtime.versions import versions_here

# No processors: long-lived actors that hold some would starve the tasks of other protocols.
# Ray restarts processes; only the coordinator repeats calls, because it knows the plan.
_SHARD_OPTIONS: dict[str, Any] = {
    "num_cpus": 0,
    "max_restarts": -1,
    "max_task_retries": 0,
    "scheduling_strategy": "SPREAD",
    "concurrency_groups": {"control": 1},
}
ShardActor = ray.remote(**_SHARD_OPTIONS)(Shard)
_HOST_OPTIONS: dict[str, Any] = {
    "num_cpus": 0,
    "max_restarts": -1,
    "max_task_retries": -1,
    "concurrency_groups": {"control": 1},
}
HostActor = ray.remote(**_HOST_OPTIONS)(Host)
_SECONDS_BETWEEN_LOOKS = 0.5


class RayFleet(PayingFleet):
    """One actor per shard, one for the aggregator, which is also the host of what is learned.

    The driver holds references, no reports.
    """

    def __init__(  # noqa: PLR0913
        self,
        source: RecordSource,
        seed: int,
        book: LedgerBook,
        *,
        shards: int = 2,
        folder: Path | None = None,
        watch: Watcher = watch_nothing,
        pace: Pace | None = None,
    ) -> None:
        super().__init__(source, book, watch)
        self.pace = pace or Pace()
        self._runs = partition(blocks_of(source.n, source.block_size), shards)
        slots = {SHARD_SLOT: 1} if has_shard_slots() else {}
        limit = book.ledger.limit
        self._shards = [
            ShardActor.options(resources=slots).remote(source, blocks, seed, limit)
            for blocks in self._runs
        ]
        here = ray.get_runtime_context().get_node_id()
        beside_driver = NodeAffinitySchedulingStrategy(here, soft=False)
        self._aggregator = HostActor.options(scheduling_strategy=beside_driver).remote(
            RayPool(), folder
        )
        self.infos = self._meet()
        book.bind(source)

    def _carry(self, request: Request, round_id: RoundId) -> Counts:
        line = _RayLine(
            self._shards, self._runs, self._aggregator, request, round_id, self.pace
        )
        blocks = round_id.blocks
        done = set(blocks).difference(line.progress().missing)

        def watch(block: Block, retries: int) -> None:
            done.add(block)
            self._tell(request.plan.question, done, len(blocks), retries)

        return reconcile(line, self.pace, watch)

    def _learn(self, step: Step, requests: tuple[Request, ...]) -> Any:
        while True:
            round_ids = tuple(self._round_of(request) for request in requests)
            call = self._aggregator.learn.remote(step, round_ids)
            try:
                self._wait(call)
                return ray.get(call)
            except NotHeldError:  # the host was restarted: what it held is asked again
                for request in requests:
                    self.ask(request)
            except rex.RayError as error:
                raise fatal(error) from None

    def _wait(self, call: Any) -> None:
        """Until a step is done; meanwhile, tell how far it is."""
        while not ray.wait([call], timeout=_SECONDS_BETWEEN_LOOKS, fetch_local=False)[0]:
            look = self._aggregator.work.options(concurrency_group="control").remote()
            with contextlib.suppress(rex.RayError):
                work: Work = ray.get(look, timeout=self.pace.patience)
                self._tell_work(work.what, work.done, work.all)

    def close(self) -> None:
        """Keep what has been merged, then end the actors."""
        with contextlib.suppress(rex.RayError):
            ray.get(self._aggregator.save.remote(), timeout=10)
        for actor in (*self._shards, self._aggregator):
            ray.kill(actor)

    def _meet(self) -> list[ShardInfo]:
        """Wait until every shard is there and computes with the versions of this process."""
        deadline = time.monotonic() + self.pace.patience + len(self._shards)
        infos = [self._info(shard, deadline) for shard in self._shards]
        require_equal_versions(versions_here(), [info.versions for info in infos])
        return infos

    def _info(self, shard: Any, deadline: float) -> ShardInfo:
        """What a shard tells of itself; one that dies while it starts is asked again."""
        while True:
            call = shard.info.options(concurrency_group="control").remote()
            try:
                info: ShardInfo = ray.get(call, timeout=max(0.0, deadline - time.monotonic()))
            except rex.GetTimeoutError:
                raise ResourceError(
                    f"{len(self._shards)} shards did not start within "
                    f"{self.pace.patience:.0f} s, {free_slots()} shard slots are free; use "
                    "fewer --shards, or wait for others"
                ) from None
            except rex.RayError as error:
                if loss_of(error) is None:
                    raise ResourceError(f"a shard did not start: {name_of(error)}") from None
                time.sleep(self.pace.first_pause)
            else:
                return info


@dataclass(slots=True)
class _Call:
    """One call in flight: first the shard's answer, then its merge."""

    block: Block
    sent_at: float
    is_merge: bool = False


class _RayLine:
    """The calls of one round. Answers go from shard to aggregator by reference."""

    def __init__(
        self,
        shards: list[Any],
        runs: Iterable[tuple[Block, ...]],
        aggregator: Any,
        request: Request,
        round_id: RoundId,
        pace: Pace,
    ) -> None:
        self._shards = shards
        self._owner = {block: number for number, run in enumerate(runs) for block in run}
        self._aggregator = aggregator
        self._request = request
        self._round_id = round_id
        self._pace = pace
        self._calls: dict[Any, _Call] = {}

    def progress(self) -> Progress:
        try:
            answer = self._aggregator.progress.remote(self._round_id)
            progress: Progress = ray.get(answer, timeout=self._pace.patience)
        except rex.RayError as error:
            raise fatal(error) from None
        return progress

    def shard_of(self, block: Block) -> int:
        return self._owner[block]

    def name_of(self, shard: int) -> str:
        return f"shard {shard} of {len(self._shards)}"

    def send(self, block: Block) -> None:
        call = self._shards[self._owner[block]].answer.remote(self._request, block)
        self._calls[call] = _Call(block, time.monotonic())

    def collect(self, timeout: float) -> list[Outcome]:
        waiting = list(self._calls)
        if not waiting:
            time.sleep(timeout)
            return []
        ready, _ = ray.wait(waiting, num_returns=1, timeout=timeout, fetch_local=False)
        if len(waiting) > len(ready) > 0:
            ready, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0, fetch_local=False)
        outcomes = [self._advance(ref) for ref in ready]
        return [outcome for outcome in outcomes if outcome is not None] + self._give_up_silent()

    def _advance(self, ref: Any) -> Outcome | None:
        """An answer goes on to the aggregator; a finished merge is the outcome."""
        call = self._calls.pop(ref)
        if not call.is_merge:
            # Only now, with the answer there: an actor runs calls in the order they were
            # sent, and one that waits for its argument holds back all behind it.
            merge = self._aggregator.merge.remote(self._round_id, ref)
            self._calls[merge] = _Call(call.block, time.monotonic(), is_merge=True)
            return None
        try:
            ray.get(ref, timeout=self._pace.call_limit)
        except rex.RayError as error:
            if (cause := loss_of(error)) is None:
                raise fatal(error) from None
            return Outcome(call.block, cause)
        return Outcome(call.block)

    def _give_up_silent(self) -> list[Outcome]:
        """Calls that are out for too long count as lost; a silent shard is started anew."""
        limit = self._pace.call_limit
        now = time.monotonic()
        silent = [ref for ref, call in self._calls.items() if now - call.sent_at > limit]
        outcomes = []
        for ref in silent:
            call = self._calls.pop(ref)
            if not call.is_merge:
                ray.kill(self._shards[self._owner[call.block]], no_restart=False)
            outcomes.append(Outcome(call.block, f"silent for {limit:g} s"))
        return outcomes
