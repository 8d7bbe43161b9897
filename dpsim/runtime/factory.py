"""Local or Ray, by name: the one place where the choice is made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsim.core.errors import ResourceError
from dpsim.core.records import RecordSource
from dpsim.protocols.base import Fleet
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.runtime.progress import Watcher, watch_nothing

FleetName = Literal["local", "ray"]
LOCAL_CELLS = 50_000_000
"""Up to this many values one process is done before Ray has started."""


@dataclass(frozen=True, slots=True)
class FleetPlace:
    """Where shards run and how many; nothing in here changes a result."""

    fleet: FleetName
    shards: int
    address: str | None = None


def choose_place(
    source: RecordSource,
    cells: int,
    fleet: FleetName | None,
    shards: int | None,
    address: str | None,
) -> FleetPlace:
    """What was asked for, and sensible values for the rest: as many shards as processors."""
    chosen = fleet or ("ray" if address or cells > LOCAL_CELLS else "local")
    blocks = -(-source.n // source.block_size)
    wanted = shards or len(os.sched_getaffinity(0))
    return FleetPlace(chosen, max(1, min(wanted, blocks)), address)


@contextmanager
def open_fleet(
    place: FleetPlace,
    source: RecordSource,
    seed: int,
    book: LedgerBook,
    folder: Path | None = None,
    watch: Watcher = watch_nothing,
) -> Iterator[Fleet]:
    """A fleet for the duration of a protocol; it keeps its checkpoints when it closes."""
    if place.fleet == "local":
        with LocalFleet(
            source, seed, book, shards=place.shards, folder=folder, watch=watch
        ) as fleet:
            yield fleet
        return
    try:
        from dpsim.runtime.ray_fleet import RayFleet  # noqa: PLC0415 - a local run needs no Ray
        from dpsim.runtime.ray_session import ray_session  # noqa: PLC0415
    except ImportError:
        raise ResourceError("Ray is not installed here; use --fleet local") from None
    with (
        ray_session(place.shards, place.address),
        RayFleet(
            source, seed, book, shards=place.shards, folder=folder, watch=watch
        ) as ray_fleet,
    ):
        yield ray_fleet
