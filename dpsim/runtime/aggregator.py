"""Brings answers together, each block once, and knows what is missing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import IntegrityError
from dpsim.core.records import Block
from dpsim.protocols.base import Answer
from dpsim.runtime.checkpoint import (
    RoundId,
    checkpoint_path,
    load_checkpoint,
    save_checkpoint,
)

_MERGES_PER_CHECKPOINT = 8
_SECONDS_PER_CHECKPOINT = 2.0
_MOST_BYTES_AT_ONCE = 1 << 24


class ReplayMismatchError(IntegrityError):
    """A block was answered twice, differently: non-determinism or tampering."""

    def __init__(self, plan_hash: str, start: int) -> None:
        super().__init__(plan_hash, start)
        self.plan_hash, self.start = plan_hash, start

    def __str__(self) -> str:
        return (
            f"the block of users from {self.start} on answered plan {self.plan_hash[:8]} "
            "twice, differently; the round is stopped"
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """What a round still lacks, or what may be shown of all. One value: no restart between."""

    missing: tuple[Block, ...]
    repeats: int = 0
    total: Counts | None = None


@dataclass(slots=True)
class _Whole:
    total: NDArray[Any]
    digests: dict[Block, bytes] = field(default_factory=dict)
    repeats: int = 0
    unsaved: int = 0
    saved_at: float = field(default_factory=time.monotonic)


class Aggregator:
    """Holds the answers to each plan: every block once, in any order of arrival.

    With a folder, it keeps a checkpoint there and finds it again after a restart.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._wholes: dict[RoundId, _Whole] = {}

    def progress(self, round_id: RoundId) -> Progress:
        """The blocks not merged yet, after a restart perhaps all; never a part of the whole."""
        state = self._whole(round_id)
        missing = tuple(block for block in round_id.blocks if block not in state.digests)
        if not missing:
            self._save(round_id, state)
        return Progress(missing, state.repeats, None if missing else self._shown(round_id))

    def merge(self, round_id: RoundId, answer: Answer) -> None:
        """Add an answer. A repeated one changes nothing; a different one is refused."""
        answer.check(round_id.plan_hash, round_id.shape)
        if not round_id.holds(answer.block):
            raise IntegrityError(
                f"users from {answer.block.start} on are no block of the round"
            )
        state = self._whole(round_id)
        known = state.digests.get(answer.block)
        if known is None:
            round_id.shape.put(state.total, answer.block, answer.content)
            state.digests[answer.block] = answer.digest
            state.unsaved += 1
            self._save_if_due(round_id, state)
        elif known != answer.digest:
            raise ReplayMismatchError(round_id.plan_hash, answer.block.start)
        else:
            state.repeats += 1

    def save(self) -> None:
        """Write what has been merged since the last checkpoint."""
        for round_id, state in self._wholes.items():
            self._save(round_id, state)

    def _shown(self, round_id: RoundId) -> Counts:
        return round_id.shape.shown(self._whole(round_id).total)

    def _whole(self, round_id: RoundId) -> _Whole:
        if round_id not in self._wholes:
            self._wholes[round_id] = self._load(round_id)
        return self._wholes[round_id]

    def _load(self, round_id: RoundId) -> _Whole:
        if self._folder is not None and checkpoint_path(self._folder, round_id).exists():
            return _Whole(*load_checkpoint(checkpoint_path(self._folder, round_id), round_id))
        return _Whole(round_id.shape.empty(round_id.n))

    def _save_if_due(self, round_id: RoundId, state: _Whole) -> None:
        # What is large is written when it is whole: shards can repeat their answers.
        is_small = state.total.nbytes <= _MOST_BYTES_AT_ONCE
        late = time.monotonic() - state.saved_at >= _SECONDS_PER_CHECKPOINT
        if is_small and (late or state.unsaved >= _MERGES_PER_CHECKPOINT):
            self._save(round_id, state)

    def _save(self, round_id: RoundId, state: _Whole) -> None:
        if self._folder is not None and state.unsaved:
            path = checkpoint_path(self._folder, round_id)
            save_checkpoint(path, round_id, state.total, state.digests)
        state.unsaved, state.saved_at = 0, time.monotonic()
