"""Files that are whole or not there: private to the user, synced, renamed into place."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_folder(path: Path) -> None:
    """A folder that only its owner may enter."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file at once: a reader sees the old content or the new, never a part."""
    work = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        descriptor = os.open(work, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)
    sync_folder(path.parent)


def append_synced(path: Path, content: bytes) -> None:
    """Add to a file's end and wait until the disk has it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
