"""A process that owns blocks of users and answers for them."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from dpsim.core.errors import DpsimError, InputError
from dpsim.core.ledger import Charge, Ledger
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import Block, RecordSource
from dpsim.core.rng import ClientNoise
from dpsim.protocols.base import Answer, Request
from dpsim.protocols.catalog import EXACT_REQUESTS, REQUESTS
from dpsim.protocols.curator import require_entrusted
from dpsim.runtime.versions import Versions, versions_here


class ShardError(DpsimError):
    """A shard failed for a reason of its own: a bug, named without any value."""

    def __init__(self, kind: str, start: int) -> None:
        super().__init__(kind, start)
        self.kind, self.start = kind, start

    def __str__(self) -> str:
        return f"{self.kind} while answering for the block of users from {self.start} on"


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What a shard tells of itself: nothing about its users."""

    pid: int
    versions: Versions


class Shard:
    """Reads the private records of its own blocks and answers requests about them.

    Nothing here remembers noise: an answer is a function of the seed, the plan and the block,
    so a restarted shard repeats it bit for bit. The ledger is a second lock, for users who do
    not trust the coordinator; a plan is charged once, however often it is asked.
    """

    def __init__(
        self, source: RecordSource, blocks: Collection[Block], seed: int, limit: PrivacyLoss
    ) -> None:
        self._source = source
        self._blocks = frozenset(blocks)
        self._seed = seed
        self._ledger = Ledger(limit)

    def info(self) -> ShardInfo:
        """Which process this is, and with which versions it computes."""
        return ShardInfo(os.getpid(), versions_here())

    def answer(self, request: Request, block: Block) -> Answer:
        """What one block's users say. Nothing else may leave, in success or failure."""
        if type(request) not in REQUESTS:
            raise InputError("a shard answers the requests of dpsim.protocols only")
        if type(request) in EXACT_REQUESTS:
            require_entrusted(self._source)
        if block not in self._blocks:
            raise InputError(f"users from {block.start} on do not belong to this shard")
        plan = request.plan
        self._ledger = self._ledger.charge(Charge.of(plan, request.loss))
        started = time.process_time()
        try:
            noise = ClientNoise(self._seed, plan.hash, block)
            content = request.answer(self._source.read(block), noise)
        except DpsimError:
            raise
        except MemoryError:
            raise MemoryError from None
        except Exception as error:
            raise ShardError(type(error).__name__, block.start) from None
        answer = Answer(plan.hash, block, np.asarray(content), time.process_time() - started)
        answer.check(plan.hash, request.shape)
        return answer
