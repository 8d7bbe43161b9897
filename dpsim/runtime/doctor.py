"""What a run needs of a machine, checked one by one."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsim.core.errors import DpsimError
from dpsim.data.sources import parse_generated
from dpsim.protocols.frequency import Round, frequency_request
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.preflight import BYTES_FOR_RAY, BYTES_PER_ACTOR, free_memory
from dpsim.runtime.versions import versions_here

_LEAST_DISK = 1_000_000_000
_LEAST_SHARED_MEMORY = 300_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    what: str
    verdict: Literal["ok", "note", "fail"]
    detail: str


def examine(address: str | None = None) -> Iterator[Check]:
    """All checks, in order; the last one starts Ray with one shard, or joins the cluster."""
    here = versions_here()
    enough = sys.version_info >= (3, 11)
    yield Check("python", "ok" if enough else "fail", f"{here.python}, dpsim {here.dpsim}")
    yield Check("libraries", "ok", f"numpy {here.numpy}, ray {here.ray}")
    yield Check(
        "draws",
        "ok" if here.draws_are_golden else "fail",
        "the known bits" if here.draws_are_golden else "other bits: install the locked numpy",
    )
    processors = len(os.sched_getaffinity(0))
    yield Check("processors", "ok", f"{processors}: that many shards by default")
    yield _memory(processors)
    yield _space("disk", Path.cwd(), _LEAST_DISK, "runs are kept here")
    yield _space("shared mem", Path("/dev/shm"), _LEAST_SHARED_MEMORY, "for Ray")  # noqa: S108
    yield _writable()
    yield _ray(address)


def _memory(processors: int) -> Check:
    free = free_memory()
    if free is None:
        return Check("memory", "note", "unknown on this system")
    needed = (processors + 1) * BYTES_PER_ACTOR + BYTES_FOR_RAY
    text = f"{free / 1e9:.1f} GB free, {processors} shards need about {needed / 1e9:.1f} GB"
    return Check("memory", "ok" if free > needed else "fail", text)


def _space(what: str, folder: Path, least: int, use: str) -> Check:
    if not folder.exists():
        return Check(what, "note", f"{folder} is not there")
    free = shutil.disk_usage(folder).free
    return Check(what, "ok" if free >= least else "note", f"{free / 1e9:.1f} GB free, {use}")


def _writable() -> Check:
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            private = (Path(folder).stat().st_mode & 0o077) == 0
    except OSError:
        return Check("rights", "fail", "this folder cannot be written; go to one of yours")
    return Check("rights", "ok" if private else "note", "private folders can be made here")


def _ray(address: str | None) -> Check:
    """Ask one generated round through one shard, and compare it with this process."""
    from dpsim.runtime.factory import FleetPlace, open_fleet  # noqa: PLC0415 - loads Ray last

    source = parse_generated("zipf:n=1000,k=4")
    started = time.monotonic()
    digests = []
    try:
        for place in (FleetPlace("local", 1), FleetPlace("ray", 1, address)):
            with open_fleet(place, source, 0, LedgerBook(1)) as fleet:
                request = frequency_request(source.schema, source.schema.names, 1, Round())
                digests.append(fleet.ask(request).tobytes())
    except DpsimError as error:
        return Check("ray", "fail", str(error))
    seconds = time.monotonic() - started
    if digests[0] != digests[1]:
        return Check("ray", "fail", "a shard computes other bits than this process")
    return Check("ray", "ok", f"one shard answered with the same bits, {seconds:.1f} s in all")
