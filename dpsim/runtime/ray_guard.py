"""A small process that outlives the driver, to end what Ray leaves behind and to tidy up.

It waits for the end of its standard input, which the driver holds open. However the driver
ends, the processes of its own cluster are then gone within seconds, and so is their folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = "DPSIM_CLUSTER"
"""The variable by which the processes of one cluster are known: they all inherit it."""

_GRACE = 1.0


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Mark all processes started inside, and have them and the folder removed at the end."""
    call = [sys.executable, "-m", __name__, str(folder)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, start_new_session=True) as guard:  # noqa: S603
        os.environ[MARK] = str(folder)
        try:
            yield
        finally:
            os.environ.pop(MARK, None)
            guard.communicate()


def _marked(folder: str) -> Iterator[int]:
    mark = f"{MARK}={folder}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def _end(folder: str) -> None:
    deadline = time.monotonic() + _GRACE
    while (left := list(_marked(folder))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    _end(sys.argv[1])
