"""Generated tables as files, written block by block."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from dpsim.core.errors import InputError
from dpsim.core.records import blocks_of
from dpsim.data.generated import GeneratedTable
from dpsim.data.schema_file import dump_schema


def write_sample(table: GeneratedTable, path: Path) -> Path:
    """Write all records and, beside them, the schema; returns the schema's path."""
    schema_path = path.with_suffix(".schema.toml")
    for target in (path, schema_path):
        if target.exists():
            raise InputError(f"{target} exists; choose another name, or remove it first")
    if path.suffix not in {".csv", ".parquet"}:
        raise InputError(f"the file's name must end in .csv or .parquet, got {path.name}")
    columns = pa.schema(
        [(item.name, pa.from_numpy_dtype(item.code_type)) for item in table.schema]
    )
    writer = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
    work = path.with_name(f".{path.name}.partial")
    try:
        with writer(work, columns) as sink:
            for block in blocks_of(table.n, table.block_size):
                records = table.read(block)
                arrays = [pa.array(records.open(name)) for name in table.schema.names]
                sink.write_table(pa.table(arrays, schema=columns))
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)
    schema_path.write_text(dump_schema(table.schema), "utf-8")
    return schema_path
