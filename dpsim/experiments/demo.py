"""The demonstration: one round, what a budget costs, and a shard that is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.errors import IncompleteError
from dpsim.core.exact import text_of
from dpsim.core.ledger import Ledger
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import blocks_of
from dpsim.data.partition import partition
from dpsim.data.sources import parse_generated
from dpsim.evaluation.truth import accuracy, true_rows
from dpsim.experiments.run import Job, Listener, start
from dpsim.experiments.run_directory import RunDirectory
from dpsim.experiments.spec import RunSpec, RuntimeProfile
from dpsim.protocols.collect import CollectRequest
from dpsim.protocols.frequency import (
    Round,
    estimate_frequencies,
    frequency_request,
)
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.progress import RoundProgress
from dpsim.runtime.ray_fleet import RayFleet
from dpsim.runtime.ray_session import ray_session

EPSILONS = tuple(map(Fraction, ("1/4", "1/2", "1", "2", "4")))
_BLOCKS = 64
_SEED = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """What one ε bought: the error over all codes of all attributes, and the expected one."""

    epsilon: str
    rmse: float
    expected_rmse: float


@dataclass(frozen=True, slots=True)
class Survival:
    """A replay of a paid plan in which a shard died."""

    shard: int
    pid: int
    calls_repeated: int
    is_same: bool
    digest: str


class Demo:
    """Steps on one generated table, all through the same kind of shard processes."""

    def __init__(self, n: int, shards: int, directory: RunDirectory) -> None:
        self.description = f"planted:n={n},d=4,k=6,seed={_SEED}"
        self.shards = shards
        self.source = parse_generated(self.description, max(1, n // _BLOCKS))
        self._directory = directory
        self._book = LedgerBook(PrivacyLoss(sum(EPSILONS, Fraction(0))))

    @property
    def ledger(self) -> Ledger:
        """What the comparison of budgets has cost."""
        return self._book.ledger

    @contextmanager
    def processes(self) -> Iterator[RayFleet]:
        """Ray with one process per shard."""
        with (
            ray_session(2 * self.shards),  # the replay has processes of its own
            RayFleet(self.source, 0, self._book, shards=self.shards) as fleet,
        ):
            yield fleet

    def users_of(self) -> list[tuple[int, int]]:
        """First and last user of each shard."""
        blocks = blocks_of(self.source.n, self.source.block_size)
        runs = partition(blocks, self.shards)
        return [(run[0].start, run[-1].stop - 1) for run in runs]

    def run(self, listener: Listener) -> dict[str, Any]:
        """One recorded run at ε = 1, as ``dpsim run`` does it."""
        spec = RunSpec(method="grr", data=self.description, epsilon="1")
        block_size = self.source.block_size
        profile = RuntimeProfile(fleet="ray", shards=self.shards, block_size=block_size)
        return start(Job(spec, profile, self._directory), listener)

    def costs(self, fleet: RayFleet) -> Iterator[Cost]:
        """One round per ε: each is another question, charged on its own."""
        for epsilon in EPSILONS:
            release = estimate_frequencies(fleet, self._request(epsilon))
            found = accuracy(release.rows, true_rows(self.source, release))
            rmse, expected = np.sqrt(
                np.mean(
                    [(item.rmse**2, (item.expected_rmse or 0) ** 2) for item in found], axis=0
                )
            )
            yield Cost(text_of(epsilon), float(rmse), float(expected))

    def survive(self, fleet: RayFleet) -> Survival:
        """Ask a paid plan again, in new processes, and kill one of them in mid-round."""
        before = fleet.ask(self._request(Fraction(1)))
        shard = self.shards - 1
        killed: list[int] = []
        seen: list[RoundProgress] = []

        def watch(progress: RoundProgress) -> None:
            seen.append(progress)
            if not killed and progress.blocks_done * 4 >= progress.blocks:
                killed.append(replay.infos[shard].pid)
                os.kill(killed[0], signal.SIGKILL)

        with RayFleet(self.source, 0, self._book, shards=self.shards, watch=watch) as replay:
            after = replay.ask(self._request(Fraction(1)))
        if not killed:
            raise IncompleteError("the demonstration ended before a shard could be killed")
        same = bool(np.array_equal(before, after))
        return Survival(shard, killed[0], seen[-1].retries, same, _digest(after))

    def _request(self, epsilon: Fraction) -> CollectRequest:
        return frequency_request(self.source.schema, self.source.schema.names, epsilon, Round())


def _digest(total: Counts) -> str:
    return blake2b(total.astype("<i8").tobytes(), digest_size=8).hexdigest()
