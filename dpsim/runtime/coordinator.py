"""The reconcile loop: ask what is missing, send it, repeat until nothing is.

Only the aggregator knows what has arrived. A lost call, a lost answer and a restarted
aggregator look the same from here: a missing block, which is sent again.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from dpsim.core.arrays import Counts
from dpsim.core.errors import IncompleteError
from dpsim.core.records import Block
from dpsim.runtime.aggregator import Progress


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard to try. Nothing in here may change a result."""

    in_flight: int = 2
    first_pause: float = 0.2
    longest_pause: float = 5.0
    call_limit: float = 20.0
    """Seconds after which a silent call counts as lost and its shard is restarted."""
    patience: float = 60.0
    """Seconds without any progress after which a round is given up."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call: merged, or lost for a cause that may pass."""

    block: Block
    cause: str | None = None


class Line(Protocol):
    """The calls of one round, wherever they go."""

    def progress(self) -> Progress:
        """What the aggregator still lacks, or the total."""

    def shard_of(self, block: Block) -> int:
        """Who answers for the block."""

    def send(self, block: Block) -> None:
        """Start one call."""

    def collect(self, timeout: float) -> list[Outcome]:
        """Outcomes that have come in; waits for the first at most ``timeout`` seconds."""

    def name_of(self, shard: int) -> str:
        """Shard, process and node, for a message."""


class IncompleteRoundError(IncompleteError):
    """No progress for too long."""

    def __init__(self, shard: str, start: int, cause: str, seconds: float) -> None:
        super().__init__(shard, start, cause, seconds)
        self.shard, self.start, self.cause, self.seconds = shard, start, cause, seconds

    def __str__(self) -> str:
        return (
            f"no progress for {self.seconds:.0f} s: {self.shard}, block of users from "
            f"{self.start} on: {self.cause}; nothing is lost, resume the run"
        )


@dataclass(slots=True)
class _Shard:
    """One shard as the coordinator sees it: waiting blocks, calls, failures, a pause."""

    queue: deque[Block] = field(default_factory=deque)
    flying: set[Block] = field(default_factory=set)
    failures: int = 0
    ready_at: float = 0.0


def reconcile(
    line: Line,
    pace: Pace,
    watch: Callable[[Block, int], None],
    clock: Callable[[], float] = time.monotonic,
) -> Counts:
    """Send what is missing until the total is there; raise after too long a silence.

    ``watch`` hears of every merged block and of the calls repeated so far.
    """
    retries = 0
    while (progress := line.progress()).total is None:
        retries = _one_pass(line, progress.missing, pace, watch, clock, retries)
    return progress.total


def _one_pass(
    line: Line,
    missing: Iterable[Block],
    pace: Pace,
    watch: Callable[[Block, int], None],
    clock: Callable[[], float],
    retries: int,
) -> int:
    """Bring each missing block home once. Shards that fail pause; the others do not wait."""
    shards: defaultdict[int, _Shard] = defaultdict(_Shard)
    for block in missing:
        shards[line.shard_of(block)].queue.append(block)
    causes: dict[int, tuple[Block, str]] = {}
    moved_at = clock()
    while any(shard.queue or shard.flying for shard in shards.values()):
        _dispatch(line, shards.values(), pace, clock())
        for outcome in line.collect(_next_wait(shards.values(), pace, clock())):
            number = line.shard_of(outcome.block)
            shard = shards[number]
            shard.flying.discard(outcome.block)
            if outcome.cause is None:
                shard.failures, moved_at = 0, clock()
                watch(outcome.block, retries)
            else:
                retries += 1
                shard.queue.appendleft(outcome.block)
                _back_off(shard, pace, clock())
                causes[number] = (outcome.block, outcome.cause)
        if clock() - moved_at > pace.patience:
            raise _given_up(line, shards, causes, clock() - moved_at)
    return retries


def _dispatch(line: Line, shards: Iterable[_Shard], pace: Pace, now: float) -> None:
    for shard in shards:
        # After a failure one call asks whether the shard is back; then the rest may follow.
        most = 1 if shard.failures else pace.in_flight
        while shard.queue and len(shard.flying) < most and now >= shard.ready_at:
            block = shard.queue.popleft()
            line.send(block)
            shard.flying.add(block)


def _back_off(shard: _Shard, pace: Pace, now: float) -> None:
    pause = min(pace.longest_pause, pace.first_pause * 2 ** min(shard.failures, 32))
    shard.failures += 1
    shard.ready_at = now + pause


def _next_wait(shards: Iterable[_Shard], pace: Pace, now: float) -> float:
    """Until the next pause ends, so that no shard waits for another's call."""
    pauses = [s.ready_at - now for s in shards if s.queue and s.ready_at > now]
    return max(0.01, min([1.0, pace.patience, *pauses]))


def _given_up(
    line: Line,
    shards: dict[int, _Shard],
    causes: dict[int, tuple[Block, str]],
    seconds: float,
) -> IncompleteRoundError:
    stuck = {number: [*shard.flying, *shard.queue] for number, shard in shards.items()}
    number = max(stuck, key=lambda shard: len(stuck[shard]))
    block, cause = causes.get(number, (min(stuck[number]), "no answer"))
    return IncompleteRoundError(line.name_of(number), block.start, cause, seconds)
