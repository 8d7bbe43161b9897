"""The aggregator's state on disk: sums and digests of one round, whole or not there."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import IntegrityError
from dpsim.core.records import Block, blocks_of
from dpsim.protocols.shapes import Shape
from dpsim.runtime.files import write_atomic

_DIGEST_SIZE = 16


class CheckpointError(IntegrityError):
    """The file is damaged or belongs to another round."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is not the checkpoint of this round; remove it to ask again"


@dataclass(frozen=True, slots=True)
class RoundId:
    """Which answers are meant: the plan, the users in their blocks, the form."""

    plan_hash: str
    n: int
    block_size: int
    shape: Shape

    def holds(self, block: Block) -> bool:
        """Whether this is one of the blocks."""
        size = min(self.block_size, self.n - block.start)
        return block.start % self.block_size == 0 and block.n == size > 0

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks whose answers make the sum."""
        return blocks_of(self.n, self.block_size)


def checkpoint_path(folder: Path, round_id: RoundId) -> Path:
    """One file per plan."""
    return folder / f"round-{round_id.plan_hash}.ckpt"


def save_checkpoint(
    path: Path, round_id: RoundId, total: NDArray[Any], digests: dict[Block, bytes]
) -> None:
    """Write the state of a round, atomically, without pickles."""
    blocks = sorted(digests)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        identity=np.frombuffer(_identity(round_id), np.uint8),
        total=total.astype(total.dtype.newbyteorder("<"), copy=False),
        starts=np.array([block.start for block in blocks], "<i8"),
        digests=np.frombuffer(b"".join(digests[block] for block in blocks), np.uint8),
    )
    write_atomic(path, buffer.getvalue())


def load_checkpoint(path: Path, round_id: RoundId) -> tuple[NDArray[Any], dict[Block, bytes]]:
    """The state of a round; refuses a file that is not about exactly this round."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            identity = arrays["identity"].tobytes()
            total = arrays["total"]
            total = total.astype(total.dtype.newbyteorder("="), copy=False)
            starts, raw = arrays["starts"].tolist(), arrays["digests"].tobytes()
    except Exception:  # a damaged archive fails in more ways than zipfile and numpy name
        raise CheckpointError(str(path)) from None
    known = {block.start: block for block in round_id.blocks}
    is_whole = len(raw) == _DIGEST_SIZE * len(starts) and known.keys() >= set(starts)
    right = round_id.shape.empty(round_id.n)
    is_whole = is_whole and (total.shape, total.dtype) == (right.shape, right.dtype)
    if identity != _identity(round_id) or not is_whole:
        raise CheckpointError(str(path))
    pieces = [raw[i : i + _DIGEST_SIZE] for i in range(0, len(raw), _DIGEST_SIZE)]
    return total, {known[start]: piece for start, piece in zip(starts, pieces, strict=True)}


def _identity(round_id: RoundId) -> bytes:
    values = (round_id.plan_hash, round_id.n, round_id.block_size, round_id.shape.text)
    return " ".join(map(str, values)).encode()
