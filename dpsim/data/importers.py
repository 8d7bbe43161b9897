"""Tables into block stores: all of a table, or nothing."""

from __future__ import annotations

from pathlib import Path

from dpsim.core.errors import InputError
from dpsim.core.schema import Schema
from dpsim.data.block_store import BlockStore, BlockStoreWriter
from dpsim.data.encode import encode, unknown_columns
from dpsim.data.findings import Findings
from dpsim.data.tables import RawTable


def import_table(
    table: RawTable, schema: Schema, folder: Path, block_size: int
) -> tuple[BlockStore, list[str]]:
    """The table's codes as a store in a folder, and notes; one error tells all problems."""
    findings = Findings(ignored=unknown_columns(table.names, schema))
    with BlockStoreWriter(folder, schema, block_size) as writer:
        for batch in table.batches():
            codes, found = encode(batch, schema)
            findings += found
            if not findings.errors:
                writer.append(codes)
        if findings.errors:
            lines = ("the data does not fit the schema; nothing was imported", *findings.errors)
            raise InputError("\n".join(lines))
        return writer.finish(), findings.notes


def check_table(table: RawTable, schema: Schema) -> Findings:
    """What importing the table would find, without writing anything."""
    findings = Findings(ignored=unknown_columns(table.names, schema))
    for batch in table.batches():
        findings += encode(batch, schema)[1]
    return findings
