"""What a run of MWEM has come to: the guess, and what was measured so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError

Floats = NDArray[np.float64]
_AXIS = "edges_"


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A positive mass for every cell of a grid over the domain.

    Without edges every cell of the domain has its own. With them, the values
    ``edges[k] .. edges[k + 1] - 1`` of an axis share one slab, and a mass is spread evenly.
    """

    masses: Floats
    """One axis per attribute."""
    edges: tuple[NDArray[np.int64], ...] = ()
    summed: Floats | None = None
    """The sum of all guesses before this one, where their average is wanted."""
    multipliers: Floats | None = None
    """The parameters of a Newton fit: its next start."""


@dataclass(frozen=True, slots=True, eq=False)
class MWEMState:
    """A run after some iterations: nothing in it is private once its charges are made.

    A host keeps it as a checkpoint. All noise has an address, so an iteration that is lost is
    made again with the same bits.
    """

    total: float
    """n, or its noisy estimate where n is private."""
    guess: Guess
    queries: tuple[int, ...] = ()
    """What was measured, in order: one query per iteration."""
    measurements: Floats | None = None
    """One number per part of these queries, as measured, before any clipping."""

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return len(self.queries)

    @property
    def measured(self) -> Floats:
        """All measurements; empty at the start."""
        return np.zeros(0) if self.measurements is None else self.measurements

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The state as named arrays, for ``numpy.savez``."""
        arrays: dict[str, NDArray[Any]] = {
            "total": np.array(self.total),
            "queries": np.array(self.queries, np.int64),
            "measurements": self.measured,
            "masses": self.guess.masses,
        }
        arrays |= {f"{_AXIS}{axis}": edge for axis, edge in enumerate(self.guess.edges)}
        for name in ("summed", "multipliers"):
            value = getattr(self.guess, name)
            if value is not None:
                arrays[name] = value
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The state that `to_arrays` gave: the same bits."""
        missing = {"total", "queries", "measurements", "masses"} - set(arrays)
        if missing:
            raise InputError(f"a state of MWEM needs the arrays {sorted(missing)}")
        axes = sum(name.startswith(_AXIS) for name in arrays)
        guess = Guess(
            np.asarray(arrays["masses"], np.float64),
            tuple(np.asarray(arrays[f"{_AXIS}{axis}"], np.int64) for axis in range(axes)),
            *(_maybe(arrays, name) for name in ("summed", "multipliers")),
        )
        queries = tuple(int(query) for query in arrays["queries"])
        measurements = np.asarray(arrays["measurements"], np.float64)
        return cls(float(arrays["total"]), guess, queries, measurements)

    def to_json(self) -> str:
        """The state as text; floats keep every bit."""
        return json.dumps({name: value.tolist() for name, value in self.to_arrays().items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The state that `to_json` gave: the same bits."""
        return cls.from_arrays({name: np.array(v) for name, v in json.loads(text).items()})


def _maybe(arrays: Mapping[str, NDArray[Any]], name: str) -> Floats | None:
    return np.asarray(arrays[name], np.float64) if name in arrays else None
