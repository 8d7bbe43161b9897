"""What a shard may answer with, and how the answers of all blocks come together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.records import Block


class Shape(Protocol):
    """The form of one round's answers: what passes the border, and what leaves again."""

    @property
    def text(self) -> str:
        """The shape in words: for messages, and for the identity of a checkpoint."""

    def accepts(self, content: object, block: Block) -> bool:
        """Whether this is an answer for the block, and nothing else."""

    def empty(self, n: int) -> NDArray[Any]:
        """The answers of nobody, with room for all ``n`` users."""

    def put(self, total: NDArray[Any], block: Block, content: NDArray[Any]) -> None:
        """Add one block's answer to the whole."""

    def shown(self, total: NDArray[Any]) -> Counts:
        """What the coordinator may see of the whole."""


@dataclass(frozen=True, slots=True)
class TallyShape:
    """One int64 vector that adds up over blocks: sums of reports, no rows."""

    size: int

    @property
    def text(self) -> str:
        return f"the int64 tally of {self.size} sums"

    def accepts(self, content: object, block: Block) -> bool:  # noqa: ARG002
        return _is_array(content, "int64", (self.size,))

    def empty(self, n: int) -> Counts:  # noqa: ARG002
        return np.zeros(self.size, np.int64)

    def put(self, total: Counts, block: Block, content: Counts) -> None:  # noqa: ARG002
        total += content

    def shown(self, total: Counts) -> Counts:
        return total.copy()


@dataclass(frozen=True, slots=True)
class ReportShape:
    """One perturbed row per user, kept with the aggregator: a line of codes per attribute.

    The first line says who took part: 0 dropped, 1 counted, 2 too late.
    """

    attributes: int
    kind: str = "uint8"

    @property
    def text(self) -> str:
        return f"{self.kind} reports of {self.attributes} attributes"

    def accepts(self, content: object, block: Block) -> bool:
        return _is_array(content, self.kind, (1 + self.attributes, block.n))

    def empty(self, n: int) -> NDArray[Any]:
        return np.zeros((1 + self.attributes, n), self.kind)

    def put(self, total: NDArray[Any], block: Block, content: NDArray[Any]) -> None:
        total[:, block.start : block.stop] = content

    def shown(self, total: NDArray[Any]) -> Counts:
        """Who took part: counted, late, dropped."""
        status = np.bincount(total[0], minlength=3)
        return status[[1, 2, 0]].astype(np.int64)


def _is_array(content: object, kind: str, shape: tuple[int, ...]) -> bool:
    return (
        type(content) is np.ndarray
        and content.dtype == np.dtype(kind)
        and content.shape == shape
    )
