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

_GRACE, _MOST_SECONDS = 1.0, 10.0


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Mark all processes started inside, and have them and the folder removed at the end."""
    call = [sys.executable, "-m", __name__, str(folder), str(os.getpid())]
    with subprocess.Popen(call, stdin=subprocess.PIPE, start_new_session=True) as guard:  # noqa: S603
        os.environ[MARK] = str(folder)
        try:
            yield
        finally:
            os.environ.pop(MARK, None)
            guard.communicate()


def _marked(folder: str, driver: int) -> Iterator[int]:
    """Processes that inherited the mark, or have a file of the folder open; not the driver.

    A process that sets its title, as Ray's helpers do, overwrites what the system shows of
    its environment; but it writes its log into the folder.
    """
    mark = f"{MARK}={folder}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) not in {os.getpid(), driver} and (
                mark in (process / "environ").read_bytes().split(b"\0")
                or any(str(file.readlink()).startswith(folder) for file in _files(process))
            ):
                yield int(process.name)


def _files(process: Path) -> Iterator[Path]:
    return (file for file in (process / "fd").iterdir() if file.is_symlink())


def _end(folder: str, driver: int) -> None:
    """Give the processes a moment to end by themselves, then end them until none is left."""
    gentle_until = time.monotonic() + _GRACE
    give_up_at = gentle_until + _MOST_SECONDS
    while (left := list(_marked(folder, driver))) and time.monotonic() < give_up_at:
        for pid in left if time.monotonic() > gentle_until else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    _end(sys.argv[1], int(sys.argv[2]))
