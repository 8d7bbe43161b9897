"""The ledger that a run keeps: in memory, or in a file that survives a crash.

The file is a chain of JSON lines, each with the hash of the one before. A charge is on disk
before anything is asked, so a crash can only over-count. A torn last line is cut, because
nothing was asked for it; any other damage stops the run.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpsim.core.errors import InputError, IntegrityError
from dpsim.core.exact import text_of
from dpsim.core.ledger import Charge, Ledger
from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.runtime.files import append_synced, write_atomic

_START = "0" * 64


class LedgerFileError(IntegrityError):
    """The file is not the chain that was written."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__(path, line)
        self.path, self.line = path, line

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: the ledger was changed by another hand; stop"


class LedgerBook:
    """One ledger, charged before anything is asked; it belongs to one data set.

    Share a book between runs on the same users, and their losses add up under one limit.
    """

    def __init__(self, limit: PrivacyLoss | object, path: Path | None = None) -> None:
        loss = limit if isinstance(limit, PrivacyLoss) else PrivacyLoss(limit)  # type: ignore[arg-type]
        self._ledger = Ledger(loss)
        self._data: str | None = None
        self._path = path
        self._last = _START
        if path is not None and path.exists():
            self._replay(path)

    @property
    def ledger(self) -> Ledger:
        """The charges so far, under their limit."""
        return self._ledger

    def bind(self, source: RecordSource) -> None:
        """Say whose users these are, and how their domain is known; refuse other data."""
        data = source.fingerprint
        if self._data is None:
            self._data = data
            head = {"data": data, "domain": source.schema.origin}
            self._write({**head, "limit": _plain(self._ledger.limit)})
        elif self._data != data:
            raise InputError("this ledger belongs to other data; use a new one")

    def charge(self, plan: Plan, loss: PrivacyLoss) -> None:
        """Pay for a plan, once. When this returns the charge is on disk."""
        before = self._ledger
        after = before.charge(Charge.of(plan, loss))
        if after is before:
            return
        charge = after.charges[-1]
        self._write({**asdict(charge), "loss": _plain(charge.loss)})
        self._ledger = after

    def _write(self, row: dict[str, Any]) -> None:
        line, last = _line(row, self._last)
        if self._path is not None:
            append_synced(self._path, line)
        self._last = last

    def _replay(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_atomic(path, whole)
        for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line)
                expected, self._last = _line(
                    {key: value for key, value in row.items() if key != "chain"}, self._last
                )
                if expected.rstrip(b"\n") != line:
                    raise LedgerFileError(str(path), number)
                self._take(row)
            except InputError:  # another limit: the file is right, the question is not
                raise
            except (ValueError, KeyError, TypeError, AttributeError):
                raise LedgerFileError(str(path), number) from None

    def _take(self, row: dict[str, Any]) -> None:
        if "data" in row:
            self._data = row["data"]
            if _loss(row["limit"]) != self._ledger.limit:
                raise InputError(
                    f"the ledger's limit is {_loss(row['limit'])}; it cannot become "
                    f"{self._ledger.limit}"
                )
            return
        charge = Charge(
            row["experiment"], row["round_id"], row["question"], row["plan_hash"],
            _loss(row["loss"]), row["group"], row["memo"],
        )  # fmt: skip
        self._ledger = self._ledger.charge(charge)


def _line(row: dict[str, Any], last: str) -> tuple[bytes, str]:
    """The row as a line, and the hash that the next line carries on."""
    text = json.dumps(row, ensure_ascii=False, sort_keys=True)
    chain = sha256(f"{last}{text}".encode()).hexdigest()
    return json.dumps({**row, "chain": chain}, sort_keys=True).encode() + b"\n", chain


def _plain(loss: PrivacyLoss) -> dict[str, str]:
    return {
        "epsilon": text_of(loss.epsilon),
        "delta": text_of(loss.delta),
        "unit": loss.unit,
        "neighbors": loss.neighbors,
    }


def _loss(row: dict[str, Any]) -> PrivacyLoss:
    epsilon, delta = Fraction(row["epsilon"]), Fraction(row["delta"])
    return PrivacyLoss(epsilon, delta, unit=row["unit"], neighbors=row["neighbors"])
