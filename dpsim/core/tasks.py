"""Pure work that may be done anywhere: the port to many processes, and the one-process way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

SharedT = TypeVar("SharedT")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class TaskPool(Protocol):
    """Runs a pure function on many items, wherever there is room."""

    @property
    def workers(self) -> int:
        """How many items run at the same time."""

    def map(
        self,
        function: Callable[[SharedT, ItemT], ResultT],
        shared: SharedT,
        items: Sequence[ItemT],
    ) -> Iterator[ResultT]:
        """``function(shared, item)`` per item, in the items' order; a lost one is repeated.

        The function is one of a module's own, and pure: neither the number of workers nor a
        repetition may change a bit of its result.
        """


class OneProcess:
    """The pool without processes: what every other pool must equal bit for bit."""

    workers = 1

    def map(
        self,
        function: Callable[[SharedT, ItemT], ResultT],
        shared: SharedT,
        items: Sequence[ItemT],
    ) -> Iterator[ResultT]:
        """The results, one after the other."""
        return (function(shared, item) for item in items)


class Memory(Protocol):
    """Where a long computation keeps its state between two iterations."""

    def load(self, name: str) -> bytes | None:
        """What was saved last under this name."""

    def save(self, name: str, content: bytes) -> None:
        """Keep the content, whole or not at all."""


class NoMemory:
    """Forgets: a computation that dies begins anew, and ends with the same bits."""

    def load(self, name: str) -> bytes | None:  # noqa: ARG002
        """Nothing."""
        return None

    def save(self, name: str, content: bytes) -> None:
        """Keep nothing."""


Teller: TypeAlias = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is, and how much there is."""


def tell_nobody(_what: str, _done: int, _all: int) -> None:
    """The teller of a quiet computation."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What a host has at hand: workers, a memory, and somebody to tell how far it is."""

    pool: TaskPool
    tell: Teller = tell_nobody
    memory: Memory = field(default_factory=NoMemory)
