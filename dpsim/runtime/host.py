"""The aggregator that also computes: it holds the answers, and what is learned from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsim.core.errors import DpsimError, InputError
from dpsim.core.tasks import Desk, Memory, NoMemory, TaskPool, Teller, tell_nobody
from dpsim.protocols.base import Step
from dpsim.runtime.aggregator import Aggregator
from dpsim.runtime.checkpoint import RoundId
from dpsim.runtime.files import write_atomic


class NotHeldError(DpsimError):
    """The host was restarted and holds no longer what a step needs: ask again, for free."""


@dataclass(frozen=True, slots=True)
class Work:
    """How far a step is."""

    what: str = ""
    done: int = 0
    all: int = 0


class FileMemory:
    """States of computations as files of one folder, written whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, name: str) -> bytes | None:
        """What was saved last under this name."""
        path = self._path(name)
        return path.read_bytes() if path.exists() else None

    def save(self, name: str, content: bytes) -> None:
        """Keep the content, whole or not at all."""
        write_atomic(self._path(name), content)

    def _path(self, name: str) -> Path:
        if not re.fullmatch(r"[a-z0-9-]{1,64}", name):
            raise InputError(
                f"a state's name has letters, digits and dashes, got {name[:64]!r}"
            )
        return self._folder / f"state-{name}.ckpt"


class Host(Aggregator):
    """Runs a step on the answers it holds. A step that dies begins anew: the same bits."""

    def __init__(
        self, pool: TaskPool, folder: Path | None = None, tell: Teller = tell_nobody
    ) -> None:
        super().__init__(folder)
        self._pool = pool
        self._pass_on = tell
        self._memory: Memory = NoMemory() if folder is None else FileMemory(folder)
        self._work = Work()

    def learn(self, step: Step, round_ids: tuple[RoundId, ...]) -> Any:
        """The step's result. Steps are of a closed list, as requests are."""
        from dpsim.protocols.steps import STEPS  # noqa: PLC0415 - a plain round needs none

        if type(step) not in STEPS:
            raise InputError("a host runs the steps of dpsim.protocols only")
        if any(self.progress(round_id).missing for round_id in round_ids):
            raise NotHeldError("the host lacks answers")
        held = tuple(self._whole(round_id).total for round_id in round_ids)
        for whole in held:
            whole.setflags(write=False)
        return step.run(held, Desk(self._pool, self._tell, self._memory))

    def work(self) -> Work:
        """How far the step is that runs now."""
        return self._work

    def _tell(self, what: str, done: int, all_: int) -> None:
        self._work = Work(what, done, all_)
        self._pass_on(what, done, all_)
