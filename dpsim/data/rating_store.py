"""Blocks of ratings in a folder: one Arrow file per block, memory-mapped, with fingerprints."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.records import Block, blocks_of
from dpsim.data.block_store import DataChangedError
from dpsim.data.ratings import (
    PrivateRatings,
    RatingPiece,
    RatingScale,
    RatingSource,
    read_users,
)

_DESCRIPTION = "ratings.json"


@dataclass(frozen=True)
class RatingStore:
    """A folder of blocks: a path and what must be found there, all that travels to a shard."""

    folder: Path
    scale: RatingScale
    n: int
    n_items: int
    block_size: int
    fingerprint: str
    block_fingerprints: tuple[str, ...] = field(repr=False)
    _verified: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[RatingStore], tuple[object, ...]]:
        # What one process has verified says nothing about what another one will read.
        values = (self.folder, self.scale, self.n, self.n_items, self.block_size)
        return RatingStore, (*values, self.fingerprint, self.block_fingerprints)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The store in a folder that `write_ratings` has finished."""
        try:
            text = json.loads((folder / _DESCRIPTION).read_text("utf-8"))
            return cls(
                folder=folder,
                scale=RatingScale(*text["scale"]),
                n=text["n"],
                n_items=text["n_items"],
                block_size=text["block_size"],
                fingerprint=text["fingerprint"],
                block_fingerprints=tuple(text["blocks"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{folder} is not a store of ratings") from None

    def read(self, block: Block) -> PrivateRatings:
        """Map the block's ratings: items and codes are not copied, and are read-only."""
        number, rest = divmod(block.start, self.block_size)
        if rest + block.n > self.block_size or block.stop > self.n:
            raise InputError(f"users {block.start}..{block.stop - 1} are not within one block")
        return PrivateRatings(block, self._map(number).part)

    def _map(self, number: int) -> RatingPiece:
        start = number * self.block_size
        try:
            with pa.memory_map(str(self.folder / _file_name(number))) as source:
                table = pa.ipc.open_file(source).read_all()
            items, codes = (table[name].chunk(0) for name in ("items", "codes"))
            piece = RatingPiece(
                start,
                items.offsets.to_numpy().astype(np.int64),
                items.values.to_numpy(),
                codes.values.to_numpy(),
            )
        except (OSError, pa.ArrowException, IndexError, KeyError, ValueError):
            raise DataChangedError(start) from None
        if number not in self._verified:
            if _name_of(piece) != self.block_fingerprints[number]:
                raise DataChangedError(start)
            self._verified.add(number)
        return piece


def write_ratings(source: RatingSource, folder: Path, block_size: int = 0) -> RatingStore:
    """All ratings of a source as a store: made beside its place, moved there when whole."""
    size = block_size or source.block_size
    work = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    work.mkdir(mode=0o700)
    try:
        names = []
        for number, block in enumerate(blocks_of(source.n, size)):
            piece = read_users(source, block)
            _write_private(work / _file_name(number), _packed(piece))
            names.append(_name_of(piece))
        description = {
            "format": 1,
            "n": source.n,
            "n_items": source.n_items,
            "scale": [text_of(getattr(source.scale, part)) for part in ("lo", "hi", "step")],
            "block_size": size,
            "fingerprint": source.fingerprint,
            "blocks": names,
        }
        _write_private(work / _DESCRIPTION, json.dumps(description, indent=1).encode())
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return RatingStore.open(folder)


def _packed(piece: RatingPiece) -> pa.Buffer:
    if piece.items.size > np.iinfo(np.int32).max:
        raise InputError(
            f"the block from user {piece.start} on is too large; use smaller blocks"
        )
    ends = pa.array(piece.indptr.astype(np.int32))
    batch = pa.record_batch(
        {
            "items": pa.ListArray.from_arrays(ends, pa.array(piece.items)),
            "codes": pa.ListArray.from_arrays(ends, pa.array(piece.codes)),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as file:
        file.write_batch(batch)
    return sink.getvalue()


def _file_name(number: int) -> str:
    return f"ratings-{number:06d}.arrow"


def _write_private(path: Path, content: bytes | pa.Buffer) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _name_of(piece: RatingPiece) -> str:
    digest = blake2b(f"{piece.start}\n{piece.codes.dtype.str}\n".encode(), digest_size=16)
    for column in (piece.indptr, piece.items, piece.codes):
        digest.update(f"{column.size}\n".encode())
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()
