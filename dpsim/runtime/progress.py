"""What a fleet tells while it works: counts only, never values or clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """How far a round is, or the work that follows it."""

    question: str
    done: int
    all: int
    blocks_done: int
    blocks: int
    retries: int = 0
    unit: str = "users"


Watcher: TypeAlias = Callable[[RoundProgress], None]


def watch_nothing(_progress: RoundProgress) -> None:
    """The watcher of a quiet run."""
