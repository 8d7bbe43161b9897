"""A run on disk: plain files in a private folder, written whole, found again by `resume`.

manifest.json   what was asked, of which data, with which versions
schema.toml     the domain that the codes mean
ledger.jsonl    every charge, before it was asked
events.jsonl    what happened, in counts
round-*.ckpt    sums of the rounds
privacy.json    what the result guarantees
results/        result.json; estimates.csv, or synthetic.csv with its schema and model
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsim.core.errors import InputError, IntegrityError
from dpsim.runtime.files import append_synced, make_private_folder, write_atomic

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
STORES = ".stores"
"""Imported data, beside the run directories and not in them: those can be mailed."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """One run's folder."""

    path: Path

    @classmethod
    def named(cls, root: Path, name: str) -> RunDirectory:
        """The folder of a run; a name cannot lead out of ``root``."""
        if not _NAME.fullmatch(name):
            raise InputError(
                "a run's name must be 1 to 64 letters, digits, dots, dashes or underscores, "
                f"and begin with a letter or digit, got {name[:80]!r}"
            )
        return cls(root / name)

    @classmethod
    def unused(cls, root: Path, stem: str) -> RunDirectory:
        """A folder that is not there yet: the stem and the next free number."""
        clean = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:40] or "run"
        number = 1
        while (root / f"{clean}-{number}").exists():
            number += 1
        return cls.named(root, f"{clean}-{number}")

    @property
    def stores(self) -> Path:
        """Where the run's data lie as blocks."""
        return self.path.parent / STORES

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.path / "ledger.jsonl"

    @property
    def schema(self) -> Path:
        """The schema's file."""
        return self.path / "schema.toml"

    @property
    def is_started(self) -> bool:
        """Whether a run lives here."""
        return (self.path / "manifest.json").exists()

    def create(self) -> None:
        """Make the folder, for its owner only."""
        make_private_folder(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only process that works on this run; the system frees the lock at death."""
        lock = self.path / "lock"
        lock.touch(mode=0o600)
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(f"{self.path} is in use by another process") from None
            yield

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Say what this run is; from here on it can be resumed."""
        self._write("manifest.json", manifest)

    def manifest(self) -> dict[str, Any]:
        """What this run is."""
        if not self.is_started:
            raise InputError(f"{self.path} is not a run directory: it has no manifest.json")
        return self._read("manifest.json")

    def result(self) -> dict[str, Any] | None:
        """The result, if the run is complete."""
        path = self.path / "results" / "result.json"
        return self._read("results/result.json") if path.exists() else None

    def write_result(self, result: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        """The artifacts; ``result.json`` last, because it says that all is there."""
        make_private_folder(self.path / "results")
        self._write("privacy.json", result["privacy"])
        for name, content in files.items():
            write_atomic(self.path / "results" / name, content)
        self._write("results/result.json", result)

    def log(self, kind: str, **facts: object) -> None:
        """One line of events: counts and names of things, never values or users."""
        row = {"time": round(time.time(), 3), "pid": os.getpid(), "event": kind, **facts}
        append_synced(self.path / "events.jsonl", json.dumps(row).encode() + b"\n")

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=1, allow_nan=False)
        write_atomic(self.path / name, text.encode() + b"\n")

    def _read(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError):
            raise IntegrityError(f"{self.path / name} is damaged") from None
        return content
