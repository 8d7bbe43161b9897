"""From what a person names to a record source: a generator, a file or a data frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from dpsim.core.errors import InputError
from dpsim.core.records import RecordSource
from dpsim.core.schema import Schema
from dpsim.data.block_store import BlockStore
from dpsim.data.importers import import_table
from dpsim.data.propose import propose
from dpsim.data.schema_file import load_schema
from dpsim.data.sources import GENERATORS, block_size_for, is_generated, parse_generated
from dpsim.data.tables import RawTable, frame_table, open_table

if TYPE_CHECKING:
    import pandas as pd

NO_GUARANTEE = "domain read from the data: fine for a study, no guarantee"


class SchemaRequiredError(InputError):
    """A strict run without a schema that a person vouches for."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A source ready for a fleet, and what a person should know about it."""

    source: RecordSource
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """How the data are to be read, besides where they are."""

    schema: Schema | None = None
    schema_path: Path | None = None
    strict: bool = False
    block_size: int | None = None


def prepare(data: str, wish: Wish, stores: Path) -> Prepared:
    """The source that a description or a path names; files are imported once per content."""
    if is_generated(data):
        return Prepared(parse_generated(data, wish.block_size))
    path = Path(data)
    if ":" in data and not path.exists():
        kinds = ", ".join(f"{kind}:" for kind in GENERATORS)
        raise InputError(f"no file {data!r}, and no generator of that name; there are: {kinds}")
    table = open_table(path)
    beside = path.with_suffix(".schema.toml")
    found = beside if wish.schema_path is None and beside.exists() else wish.schema_path
    return _store(table, replace(wish, schema_path=found), stores, _content_key(path))


def prepare_frame(frame: pd.DataFrame, wish: Wish, stores: Path) -> Prepared:
    """The source of a data frame, in private files under ``stores``."""
    return _store(frame_table(frame), wish, stores, "frame")


def _store(table: RawTable, wish: Wish, stores: Path, content: str) -> Prepared:
    schema = wish.schema or (load_schema(wish.schema_path) if wish.schema_path else None)
    if wish.strict and (schema is None or not schema.is_declared):
        raise SchemaRequiredError(
            "strict runs need a schema that a person vouches for: write one with "
            "'dpsim data schema DATA -o DATA.schema.toml', check it, set reviewed = true, and "
            "name it with --schema"
        )
    schema = schema or propose(table)
    notes = () if schema.is_declared else (NO_GUARANTEE,)
    size = wish.block_size or block_size_for(len(schema))
    key = blake2b(
        f"{content}\n{schema.fingerprint}\n{size}".encode(), digest_size=12
    ).hexdigest()
    folder = stores / key
    if folder.exists():
        return Prepared(replace(BlockStore.open(folder), schema=schema), notes)
    store, import_notes = import_table(table, schema, folder, size)
    return Prepared(store, (*notes, *import_notes))


def _content_key(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(1 << 22):
            digest.update(piece)
    return digest.hexdigest()
