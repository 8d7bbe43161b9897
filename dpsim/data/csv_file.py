"""A CSV file as batches of texts: nothing is guessed, nothing is dropped in silence."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv

from dpsim.core.errors import InputError

_BLOCK_BYTES = 8 << 20  # also the longest row that can be read
_SCAN_BYTES = 1 << 20


@dataclass
class _Ragged:
    """The rows whose number of fields is not the header's."""

    path: Path
    n: int = 0
    first: int = 0

    def skip(self, row: arrow_csv.InvalidRow) -> str:
        """Count a row without looking at it."""
        self.first = self.first or row.number
        self.n += 1
        return "skip"

    def refuse(self, fields: int) -> None:
        """Raise if there were any."""
        if self.n:
            rows = "row has" if self.n == 1 else "rows have"
            raise InputError(
                f"{self.path}: {self.n:,} {rows} another number of fields than the header's "
                f"{fields}; first at row {self.first:,}, counting the header as row 1"
            )


def read_header(path: Path) -> tuple[tuple[str, ...], bool]:
    """The column names of a text file, and whether rows follow."""
    _refuse_unreadable_text(path)
    with path.open(encoding="utf-8-sig", newline="") as lines:
        try:
            names = tuple(next(csv.reader(lines), ()))
        except csv.Error:
            raise InputError(f"{path}: the header cannot be read; check its quotes") from None
        return names, bool(lines.read(1))


def read_csv(path: Path, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """All rows in order, every column as text; ragged rows are counted, then refused."""
    ragged = _Ragged(path)
    parse = arrow_csv.ParseOptions(
        newlines_in_values=True,
        invalid_row_handler=ragged.skip,
        # In a single column an empty line is a missing value, else it is no row.
        ignore_empty_lines=len(names) > 1,
    )
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    read = arrow_csv.ReadOptions(
        use_threads=False,  # else pyarrow does not know the rows' numbers
        block_size=_BLOCK_BYTES,
        column_names=names,
        skip_rows_after_names=1,
    )
    try:
        yield from arrow_csv.open_csv(path, read, parse, convert)
    except (pa.ArrowException, OSError, ValueError):  # their texts quote cells
        raise InputError(
            f"{path} cannot be read as CSV: it changed, or a row is longer than "
            f"{_BLOCK_BYTES >> 20} MB; check that every quote is closed"
        ) from None
    ragged.refuse(len(names))


def _refuse_unreadable_text(path: Path) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    quotes = 0
    try:
        with path.open("rb") as file:
            while part := file.read(_SCAN_BYTES):
                text = decoder.decode(part)
                if "\0" in text:
                    raise InputError(f"{path} holds NUL bytes; write it again as UTF-8 text")
                quotes += text.count('"')
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:  # its text quotes the file
        raise InputError(
            f"{path} is not UTF-8; convert it, for example from Latin-1 by "
            "iconv -f LATIN1 -t UTF-8"
        ) from None
    if quotes % 2:  # pyarrow would read all rows from there on as one cell
        raise InputError(
            f"{path}: a quotation mark is not closed; a cell that holds one must be quoted, "
            "and the mark doubled"
        )
