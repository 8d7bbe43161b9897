"""Tables of codes, and what every model of a whole table offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise

CodeMatrix: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""One row per attribute, one column per user: codes 0..size-1."""


def code_type(sizes: tuple[int, ...]) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds every code."""
    largest = max(sizes, default=1)
    return np.uint8 if largest <= 1 << 8 else np.uint16 if largest <= 1 << 16 else np.uint32


class TableSource(Protocol):
    """A table that a task may open: a small value, or one that is shared without a copy."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""

    @property
    def n(self) -> int:
        """How many users there are."""

    def open(self) -> CodeTable:
        """The codes, in this process."""


@dataclass(frozen=True, slots=True, eq=False)
class CodeTable:
    """Codes of many users, attribute by attribute: reports, or synthetic records."""

    sizes: tuple[int, ...]
    codes: CodeMatrix

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.codes.shape[0] != len(self.sizes):  # noqa: PLR2004
            raise InputError(
                f"a table of {len(self.sizes)} attributes needs as many rows of codes, "
                f"got an array of shape {self.codes.shape}"
            )

    @property
    def n(self) -> int:
        """How many users there are."""
        return int(self.codes.shape[1])

    def open(self) -> CodeTable:
        """The table itself."""
        return self


class TableModel(Protocol):
    """A law of whole records: what a method publishes, and where its rows come from."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""

    def sample(self, n: int, noise: CentralNoise, start: int = 0) -> CodeMatrix:
        """Records ``start .. start + n - 1``: a record depends on its index and the noise only.

        Draws have `Purpose.PUBLISH`; subjects name the attribute, positions are indices.
        """

    def marginal(self, attributes: tuple[int, ...]) -> Frequencies:
        """The exact law of some attributes, one axis each, in the order given."""
