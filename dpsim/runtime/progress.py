"""What a fleet tells while it works: counts only, never values or clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """How far a round is."""

    question: str
    users_done: int
    users: int
    blocks_done: int
    blocks: int
    retries: int = 0
    note: str = ""


Watcher: TypeAlias = Callable[[RoundProgress], None]


def watch_nothing(_progress: RoundProgress) -> None:
    """The watcher of a quiet run."""
