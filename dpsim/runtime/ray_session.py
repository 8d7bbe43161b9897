"""Ray as a context manager: started here for this run, or an existing cluster by address."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray
from ray._private import services, worker

from dpsim.core.errors import ResourceError
from dpsim.runtime.preflight import (
    free_memory,
    require_memory,
    require_reachable,
    require_slots,
)
from dpsim.runtime.ray_guard import guarded

SHARD_SLOT = "shard"
_STORE_BYTES = 256 * 1024 * 1024

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}


@contextmanager
def ray_session(
    shards: int, address: str | None = None, processors: int | None = None
) -> Iterator[None]:
    """Have Ray with room for the shards and their aggregator; stop only what was started."""
    os.environ.update({key: value for key, value in _QUIET.items() if key not in os.environ})
    if ray.is_initialized():
        require_slots(shards, shard_slots())
        yield
    elif address is None:
        require_memory(shards + 1, free_memory())
        with _nothing_on_stdout(), _own_cluster(shards, processors):
            yield
    else:
        require_reachable(address)
        with _nothing_on_stdout(), _joined_cluster(address):
            require_slots(shards, shard_slots())
            yield


def shard_slots() -> int:
    """Shards that the cluster can hold: its shard slots, or its processors if it names none."""
    resources = ray.cluster_resources()
    return int(resources.get(SHARD_SLOT, resources.get("CPU", 0)))


def free_slots() -> int:
    """Shard slots that nobody uses now."""
    return int(ray.available_resources().get(SHARD_SLOT, 0))


def has_shard_slots() -> bool:
    """Whether the cluster's nodes declare slots for shards."""
    return SHARD_SLOT in ray.cluster_resources()


@contextmanager
def _own_cluster(shards: int, processors: int | None) -> Iterator[None]:
    """A cluster of this process alone: loopback, no dashboard, its own private folder."""
    folder = Path(tempfile.mkdtemp(prefix="dpsim-", dir=_short_folder()))
    _require_token()
    with guarded(folder):
        try:
            with _only_for_this_user(), _own_sigterm():
                ray.init(
                    address="local",
                    num_cpus=processors,
                    resources={SHARD_SLOT: shards},
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    object_store_memory=_STORE_BYTES,
                    _temp_dir=str(folder),
                    _node_ip_address="127.0.0.1",
                )
        except Exception as error:
            why = _reason(error)
            raise ResourceError(f"Ray did not start ({why}); use --fleet local") from None
        try:
            yield
        finally:
            ray.shutdown()


def _require_token() -> None:
    """One secret per process: Ray keeps the first one it has seen for as long as it lives."""
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextmanager
def _only_for_this_user() -> Iterator[None]:
    """Files that others cannot read, and sockets on the loopback interface.

    Ray replaces 127.0.0.1 by an outside address; while the cluster starts, it may not.
    """
    mask = os.umask(0o077)
    resolve = services.resolve_ip_for_localhost
    services.resolve_ip_for_localhost = lambda host: host
    try:
        yield
    finally:
        services.resolve_ip_for_localhost = resolve
        os.umask(mask)


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep this program's answer to SIGTERM: Ray's own would end it with another code."""
    answer = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, answer)


def _short_folder() -> str:
    """Where Ray's sockets go: their paths may have 107 characters, too few for deep folders."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 30 else "/tmp"  # noqa: PLR2004, S108 - mkdtemp makes it private


@contextmanager
def _joined_cluster(address: str) -> Iterator[None]:
    try:
        with _own_sigterm():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise ResourceError(
            f"cannot join the Ray cluster at {address} ({_reason(error)}); if it has a token, "
            "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _nothing_on_stdout() -> Iterator[None]:
    """Ray prints news of dead processes among the results; the coordinator tells them."""
    tell = worker.print_to_stdstream
    worker.print_to_stdstream = lambda *_news, **_more: None
    try:
        yield
    finally:
        worker.print_to_stdstream = tell


def _reason(error: Exception) -> str:
    """The first line of Ray's explanation: the rest is for its developers."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:160]
