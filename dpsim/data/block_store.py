"""Blocks of codes in a folder: one Arrow file per block, memory-mapped, with fingerprints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from dpsim.core.arrays import Codes
from dpsim.core.errors import InputError, IntegrityError
from dpsim.core.records import Block, PrivateRecords, blocks_of
from dpsim.core.schema import Schema
from dpsim.data.schema_file import dump_schema, parse_schema

_DESCRIPTION = "store.json"


class DataChangedError(IntegrityError):
    """A block holds other bytes than at its import: the same coins would reveal the change."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start

    def __str__(self) -> str:
        return (
            f"the block of users from {self.start} on is not the one that was imported; "
            "start a new run on the new data"
        )


@dataclass(frozen=True)
class BlockStore:
    """A folder of blocks: a path and what must be found there, all that travels to a shard."""

    folder: Path
    schema: Schema
    n: int
    block_size: int
    fingerprint: str
    block_fingerprints: tuple[str, ...] = field(repr=False)
    _verified: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[BlockStore], tuple[object, ...]]:
        # What one process has verified says nothing about what another one will read.
        values = (self.folder, self.schema, self.n, self.block_size, self.fingerprint)
        return BlockStore, (*values, self.block_fingerprints)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The store in a folder that a `BlockStoreWriter` has finished."""
        try:
            text = json.loads((folder / _DESCRIPTION).read_text("utf-8"))
            return cls(
                folder=folder,
                schema=parse_schema(text["schema"], str(folder)),
                n=text["n"],
                block_size=text["block_size"],
                fingerprint=text["fingerprint"],
                block_fingerprints=tuple(text["blocks"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{folder} is not a block store") from None

    def read(self, block: Block) -> PrivateRecords:
        """Map the block's columns: nothing is copied, and the arrays are read-only."""
        number, rest = divmod(block.start, self.block_size)
        inside = rest + block.n <= self.block_size and block.stop <= self.n
        if not inside:
            raise InputError(f"users {block.start}..{block.stop - 1} are not within one block")
        columns, start = self._map(number), number * self.block_size

        def column_of(part: Block) -> Callable[[str], Codes]:
            return lambda name: columns[name][part.start - start : part.stop - start]

        return PrivateRecords(block, column_of)

    def _map(self, number: int) -> Mapping[str, Codes]:
        start = number * self.block_size
        try:
            with pa.memory_map(str(self.folder / _file_name(number))) as source:
                table = pa.ipc.open_file(source).read_all()
            columns = {name: table[name].chunk(0).to_numpy() for name in self.schema.names}
        except (OSError, pa.ArrowException, IndexError, KeyError, ValueError):
            raise DataChangedError(start) from None
        if number not in self._verified:
            if _fingerprint(columns, self.schema.names) != self.block_fingerprints[number]:
                raise DataChangedError(start)
            self._verified.add(number)
        return columns


class BlockStoreWriter:
    """Writes a store beside its final place and moves it there when it is whole."""

    def __init__(self, folder: Path, schema: Schema, block_size: int) -> None:
        blocks_of(0, block_size)
        self._folder, self._schema, self._block_size = folder, schema, block_size
        self._work = folder.with_name(f".{folder.name}.partial")
        self._waiting: list[Mapping[str, Codes]] = []
        self._waiting_n = 0
        self._fingerprints: list[str] = []
        self._columns = {name: blake2b(digest_size=16) for name in schema.names}
        self._n = 0

    def __enter__(self) -> Self:
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._work.mkdir(mode=0o700)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def append(self, codes: Mapping[str, Codes]) -> None:
        """Add users; full blocks are written at once."""
        n = codes[self._schema.names[0]].size
        self._waiting.append(codes)
        self._waiting_n += n
        if self._waiting_n >= self._block_size:
            self._write_full_blocks()

    def finish(self) -> BlockStore:
        """Write what is left and the description, and give the folder its name."""
        self._write_full_blocks()
        if self._waiting_n:
            self._write(self._joined())
        store = BlockStore(
            self._folder, self._schema, self._n, self._block_size, self._fingerprint(),
            tuple(self._fingerprints),
        )  # fmt: skip
        description = {
            "format": 1,
            "n": self._n,
            "block_size": self._block_size,
            "fingerprint": store.fingerprint,
            "schema": dump_schema(self._schema),
            "blocks": self._fingerprints,
        }
        _write_private(self._work / _DESCRIPTION, json.dumps(description, indent=1).encode())
        shutil.rmtree(self._folder, ignore_errors=True)
        self._work.rename(self._folder)
        return store

    def _write_full_blocks(self) -> None:
        if self._waiting_n < self._block_size:
            return
        whole = self._joined()
        full = self._waiting_n - self._waiting_n % self._block_size
        for block in Block(0, full).parts(self._block_size):
            self._write({k: v[block.start : block.stop] for k, v in whole.items()})
        self._waiting = [{name: column[full:] for name, column in whole.items()}]
        self._waiting_n -= full

    def _joined(self) -> Mapping[str, Codes]:
        names = self._schema.names
        return {name: np.concatenate([part[name] for part in self._waiting]) for name in names}

    def _write(self, columns: Mapping[str, Codes]) -> None:
        names = self._schema.names
        batch = pa.record_batch([pa.array(columns[name]) for name in names], names=list(names))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        _write_private(self._work / _file_name(len(self._fingerprints)), sink.getvalue())
        self._fingerprints.append(_fingerprint(columns, names))
        for name in names:
            self._columns[name].update(np.ascontiguousarray(columns[name]).data)
        self._n += batch.num_rows

    def _fingerprint(self) -> str:
        """A name for the data's bits, the same for every block size."""
        parts = [self._schema.fingerprint, str(self._n)]
        parts += [digest.hexdigest() for digest in self._columns.values()]
        return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _file_name(number: int) -> str:
    return f"block-{number:06d}.arrow"


def _write_private(path: Path, content: bytes | pa.Buffer) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _fingerprint(columns: Mapping[str, Codes], names: Sequence[str]) -> str:
    digest = blake2b(digest_size=16)
    for name in names:
        column = np.ascontiguousarray(columns[name])
        digest.update(f"{name}\n{column.dtype.str}\n{column.size}\n".encode())
        digest.update(column.data)
    return digest.hexdigest()
