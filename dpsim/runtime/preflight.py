"""Refusals in one sentence, before anything is charged: what cannot fit, and what to change."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dpsim.core.errors import InputError, ResourceError
from dpsim.runtime.versions import Versions

BYTES_PER_ACTOR = 160_000_000
BYTES_FOR_RAY = 300_000_000
MAX_USERS_WITH_OWN_ACTOR = 64


def require_slots(needed: int, slots: int) -> None:
    """Refuse more shards than there is room for: Ray itself would wait for ever."""
    if needed > slots:
        raise ResourceError(
            f"needs {needed} shard slots, the cluster has {slots}; "
            f"use --shards {max(slots, 1)} or add nodes"
        )


def require_memory(actors: int, free: int | None) -> None:
    """Refuse more processes than the free memory can hold."""
    needed = actors * BYTES_PER_ACTOR + BYTES_FOR_RAY
    if free is not None and needed > free:
        raise ResourceError(
            f"{actors} actors need about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "use fewer --shards"
        )


def free_memory() -> int | None:
    """Bytes that new processes may take, where the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["MemAvailable"].split()[0]) * 1024


def require_equal_versions(here: Versions, others: Sequence[Versions]) -> None:
    """Refuse a cluster that would compute other bits than this process."""
    for other in others:
        for name, value in asdict(other).items():
            if value != getattr(here, name):
                raise ResourceError(
                    f"{name} is {value} on a shard and {getattr(here, name)} here; install "
                    "equal versions on every node"
                )
    if not here.draws_are_golden:
        raise ResourceError(
            "this numpy does not make dpsim's known draws; install the locked one"
        )


def require_one_actor_per_user(n: int) -> None:
    """Refuse the demonstration mode where it would start too many processes."""
    if n > MAX_USERS_WITH_OWN_ACTOR:
        raise InputError(
            f"one actor per user is a demonstration for at most {MAX_USERS_WITH_OWN_ACTOR} "
            f"users, got {n}; leave it out, and use --shards"
        )


def require_reachable(address: str) -> None:
    """Refuse an address where nobody listens, before Ray tries for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise InputError(
            f"address must be auto or HOST:PORT of the cluster's head, got {address}"
        )
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ResourceError(f"no Ray cluster answers at {address}: {reason}") from None
