"""Raw tables as streams of batches, without interpretation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsim.core.errors import InputError
from dpsim.data.csv_file import read_csv, read_header

_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class RawTable:
    """Named columns and a way to read their rows, as often as needed."""

    names: tuple[str, ...]
    _open: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order, from the first one on."""
        return self._open()


def open_table(path: Path) -> RawTable:
    """The table in a .csv or .parquet file."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"a table must be a .csv or .parquet file, got {path.name}")
    _refuse_no_file(path)
    try:
        return _csv_table(path) if suffix == ".csv" else _parquet_table(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or 'damaged file'}") from None


def frame_table(frame: pd.DataFrame) -> RawTable:
    """The table in a data frame; labels stand for categoricals, nulls for None and NaN."""
    if not all(isinstance(name, str) for name in frame.columns):
        raise InputError(
            "the data frame's column names must be texts; "
            "write df.columns = df.columns.astype(str)"
        )
    names = _distinct(tuple(frame.columns), "the data frame")
    columns = [_arrow(frame[name], name) for name in names]
    table = pa.table(columns, names=list(names))
    return RawTable(names, lambda: iter(table.to_batches(max_chunksize=_BATCH_ROWS)))


def _csv_table(path: Path) -> RawTable:
    header, has_rows = read_header(path)
    names = _distinct(header, str(path))
    return RawTable(names, lambda: read_csv(path, names) if has_rows else iter(()))


def _parquet_table(path: Path) -> RawTable:
    try:
        names = tuple(pq.read_schema(path).names)
    except (pa.ArrowException, ValueError):
        raise InputError(f"{path} is not a Parquet file, or it is damaged") from None
    return RawTable(_distinct(names, str(path)), lambda: _parquet_batches(path))


def _parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=_BATCH_ROWS)
    except (pa.ArrowException, OSError, ValueError):  # their texts may quote cells
        raise InputError(f"{path} is damaged, or it changed while it was read") from None


def _refuse_no_file(path: Path) -> None:
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty; it must at least name its columns")


def _distinct(names: tuple[str, ...], source: str) -> tuple[str, ...]:
    if not names:
        raise InputError(f"{source} has no columns; its first line must name them")
    if "" in names:
        number = names.index("") + 1
        raise InputError(f"{source}: column {number} has no name; every column needs one")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{source} has columns of the same name: {', '.join(twice)}; rename all but one"
        )
    return names


def _arrow(column: pd.Series, name: str) -> pa.Array | pa.ChunkedArray:
    if isinstance(column.dtype, pd.CategoricalDtype):
        labels = _arrow(pd.Series(column.cat.categories), name)
        codes = column.cat.codes.to_numpy()
        return labels.take(pa.array(codes, pa.int32(), mask=codes < 0))
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _texts(column, name)
    # A period or an interval has a text, but no Arrow type of its own.
    return _texts(column, name) if isinstance(array.type, pa.BaseExtensionType) else array


def _texts(column: pd.Series, name: str) -> pa.Array:
    absent = np.asarray(column.isna(), dtype=bool)
    try:
        texts = [None if gone else str(v) for v, gone in zip(column, absent, strict=True)]
        return pa.array(texts, pa.string())
    except Exception:  # a cell's own code runs here, and its errors may quote it
        raise InputError(
            f"column {name!r} of the data frame holds values that have no text; convert it"
        ) from None
