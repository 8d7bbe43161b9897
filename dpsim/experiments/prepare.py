"""From what a person names to a record source: a generator, a file or a data frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from dpsim.core.errors import InputError
from dpsim.core.records import RecordSource
from dpsim.core.rng import AGGREGATE_UNIT
from dpsim.core.schema import Attribute, Bins, Schema
from dpsim.data.block_store import BlockStore
from dpsim.data.importers import import_table
from dpsim.data.propose import propose
from dpsim.data.schema_file import load_schema
from dpsim.data.sources import GENERATORS, block_size_for, is_generated, parse_table
from dpsim.data.tables import RawTable, frame_table, open_table
from dpsim.experiments.methods import METHODS
from dpsim.experiments.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

_GRID = 1 << 16
"""Steps between the bounds of numbers whose mean is asked for."""
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
    least_block_size: int = 1
    bins: int | None = None
    """Steps of the grid that numbers are kept on; None: as the schema says."""


def prepare(data: str, wish: Wish, stores: Path) -> Prepared:
    """The source that a description or a path names; files are imported once per content."""
    if is_generated(data):
        table = parse_table(data, wish.block_size)
        size = wish.block_size or max(table.block_size, wish.least_block_size)
        return Prepared(replace(table, block_size=size))
    path = Path(data)
    if ":" in data and not path.exists():
        kinds = ", ".join(f"{kind}:" for kind in GENERATORS)
        raise InputError(f"no file {data!r}, and no generator of that name; there are: {kinds}")
    raw = open_table(path)
    beside = path.with_suffix(".schema.toml")
    found = beside if wish.schema_path is None and beside.exists() else wish.schema_path
    return _store(raw, replace(wish, schema_path=found), stores, _content_key(path))


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
    if wish.bins is not None:
        schema = replace(schema, attributes=tuple(_finer(a, wish.bins) for a in schema))
    notes = () if schema.is_declared else (NO_GUARANTEE,)
    size = wish.block_size or max(block_size_for(len(schema)), wish.least_block_size)
    key = blake2b(
        f"{content}\n{schema.fingerprint}\n{size}".encode(), digest_size=12
    ).hexdigest()
    folder = stores / key
    if folder.exists():
        return Prepared(replace(BlockStore.open(folder), schema=schema), notes)
    store, import_notes = import_table(table, schema, folder, size)
    return Prepared(store, (*notes, *import_notes))


def wish_for(spec: RunSpec) -> Wish:
    """How a specification's data are to be read.

    Means are asked of numbers on a fine grid, frequencies of the schema's own bins; counts
    are drawn for whole units of users.
    """
    return Wish(
        schema_path=Path(spec.schema_file) if spec.schema_file else None,
        strict=spec.strict,
        least_block_size=AGGREGATE_UNIT if spec.fidelity == "aggregate" else 1,
        bins=_GRID if METHODS[spec.method].family in {"mean", "key-value"} else None,
    )


def _finer(attribute: Attribute, bins: int) -> Attribute:
    domain = attribute.domain
    if not isinstance(domain, Bins):
        return attribute
    return replace(attribute, domain=replace(domain, bins=bins))


def _content_key(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(1 << 22):
            digest.update(piece)
    return digest.hexdigest()
