"""Ratings from files and data frames: the MovieLens layouts, CSV, Parquet.

dpsim ships no MovieLens file and fetches none: these functions read your own copy. The scale
comes from the kind of file or from you, the catalog from the file beside it or from you; never
from the ratings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv

from dpsim.core.errors import InputError
from dpsim.data.rating_columns import Duplicates, RatingColumns, RatingRules, build_table
from dpsim.data.rating_table import RatingTable
from dpsim.data.ratings import RatingScale
from dpsim.data.tables import RawTable, frame_table, open_table

_STARS, _HALF_STARS = RatingScale(1, 5), RatingScale("0.5", 5, "0.5")
_U_DATA = (100_000, "6e47046882bad158b0efbb84cd5cb987")
_NAMES = {
    "user": ("user", "user_id", "userId", "userid", "user_id:token"),
    "item": ("item", "item_id", "itemId", "movieId", "movie_id", "itemid", "item_id:token"),
    "rating": ("rating", "rating:float"),
    "time": ("time", "timestamp", "timestamp:float"),
}
_MOVIELENS_HEADER = ("userId", "movieId", "rating", "timestamp")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A MovieLens layout: how rows are separated, and where its catalog is."""

    separator: bytes
    catalog_file: str
    catalog_separator: bytes


_KINDS = {
    "u.data": _Kind(b"\t", "u.item", b"|"),
    "ratings.dat": _Kind(b"::", "movies.dat", b"::"),
    "ratings.csv": _Kind(b",", "movies.csv", b","),
}


def read_ratings(
    source: Path | pd.DataFrame,
    scale: RatingScale | None = None,
    *,
    catalog: Iterable[object] | None = None,
    is_catalog_rated: bool = False,
    columns: Sequence[str] = (),
    duplicates: Duplicates = "error",
) -> tuple[RatingTable, list[str]]:
    """The ratings of a file, a MovieLens folder or a data frame, and notes.

    ``columns`` names the columns of user, item, rating and, if there is one, time; without it
    they are known by their usual names. ``is_catalog_rated`` takes the rated items for the
    catalog: for evaluation only, since it reveals which items were rated.
    """
    raw, known_scale, known_catalog, notes = _open(source, tuple(columns))
    used = scale or known_scale
    if used is None:
        raise InputError(
            f"{raw.source}: the scale is not known from this kind of file; give one, such as "
            "RatingScale(1, 5, 1): it is never taken from the ratings"
        )
    labels = known_catalog if catalog is None else tuple(str(item) for item in catalog)
    if labels is None and not is_catalog_rated:
        raise InputError(
            f"{raw.source}: there is no public catalog; give catalog=[…] with all items, or "
            "is_catalog_rated=True for an evaluation that may reveal which were rated"
        )
    rules = RatingRules(used, None if is_catalog_rated else labels, duplicates)
    table, found = build_table(raw, rules)
    return table, [*notes, *found]


def _open(
    source: Path | pd.DataFrame, columns: tuple[str, ...]
) -> tuple[RatingColumns, RatingScale | None, tuple[str, ...] | None, list[str]]:
    if isinstance(source, pd.DataFrame):
        return _from_table(frame_table(source), "the data frame", columns, 1), None, None, []
    path = _file_in(Path(source))
    if path.name in ("u.data", "ratings.dat"):
        raw = _headless(path, _KINDS[path.name].separator)
        return raw, _scale_of(path), _catalog_beside(path), _notes(path, raw)
    if path.suffix == ".inter":
        return _from_arrow(_tabbed(path), str(path), columns, 2), None, None, []
    table = open_table(path)
    raw = _from_table(table, str(path), columns, 2 if path.suffix.lower() == ".csv" else 1)
    if path.name == "ratings.csv" and table.names == _MOVIELENS_HEADER:
        return raw, _HALF_STARS, _catalog_beside(path), []
    return raw, None, None, []


def _file_in(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_dir():
        return path
    for name in _KINDS:
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path} holds none of {', '.join(_KINDS)}; name the file itself")


def _scale_of(path: Path) -> RatingScale | None:
    """Both sizes that come as ratings.dat have their own companions."""
    if path.name == "u.data" or (path.parent / "users.dat").exists():
        return _STARS
    return _HALF_STARS if (path.parent / "tags.dat").exists() else None


def _catalog_beside(path: Path) -> tuple[str, ...] | None:
    kind = _KINDS[path.name]
    file = path.parent / kind.catalog_file
    if not file.is_file():
        return None
    lines = file.read_bytes().splitlines()[path.suffix == ".csv" :]
    labels = [line.split(kind.catalog_separator, 1)[0].strip() for line in lines]
    try:
        return tuple(sorted({label.decode("ascii") for label in labels if label}, key=int))
    except ValueError:
        raise InputError(f"{file} does not begin its lines with the items' numbers") from None


def _notes(path: Path, raw: RatingColumns) -> list[str]:
    rows, digest = _U_DATA
    if (
        path.name != "u.data"
        or md5(path.read_bytes(), usedforsecurity=False).hexdigest() == digest
    ):
        return []
    return [
        f"{path} is not the published file: its md5 differs; {len(raw.user):,} of {rows:,} rows"
    ]


def _headless(path: Path, separator: bytes) -> RatingColumns:
    """User, item, rating, time without a header; two-byte separators become tabs."""
    content = path.read_bytes()
    if separator != b"\t":
        content = content.replace(separator, b"\t")
    table = _parse(content, path, ["user", "item", "rating", "time"])
    user, item, rating, time = (column.combine_chunks() for column in table.columns)
    return RatingColumns(str(path), user, item, rating, time)


def _tabbed(path: Path) -> pa.Table:
    content = path.read_bytes()
    header, _, rest = content.partition(b"\n")
    return _parse(rest, path, header.decode("utf-8", "replace").strip().split("\t"))


def _parse(content: bytes, path: Path, names: list[str]) -> pa.Table:
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    parse = arrow_csv.ParseOptions(delimiter="\t", quote_char=False)
    read = arrow_csv.ReadOptions(column_names=names)
    try:
        return arrow_csv.read_csv(pa.BufferReader(content), read, parse, convert)
    except (pa.ArrowException, ValueError):  # their texts quote cells
        raise InputError(
            f"{path} cannot be read: each row must have {len(names)} fields: {', '.join(names)}"
        ) from None


def _from_table(
    table: RawTable, source: str, columns: tuple[str, ...], first_row: int
) -> RatingColumns:
    names = _column_names(table.names, source, columns)
    batches = list(table.batches())
    if not batches:
        raise InputError(f"{source} holds no rows")
    whole = pa.Table.from_batches(batches).select(list(names))
    return _from_arrow(whole, source, names, first_row)


def _from_arrow(
    table: pa.Table, source: str, columns: tuple[str, ...], first_row: int
) -> RatingColumns:
    names = _column_names(tuple(table.column_names), source, columns)
    parts = [table[name].combine_chunks() for name in names]
    user, item, rating, *time = parts
    return RatingColumns(source, user, item, rating, time[0] if time else None, first_row)


def _column_names(
    present: tuple[str, ...], source: str, columns: tuple[str, ...]
) -> tuple[str, ...]:
    if columns:
        if len(columns) not in (3, 4) or not set(columns) <= set(present):
            raise InputError(
                f"{source}: columns must name those of user, item, rating and, if there is "
                f"one, time; there are: {', '.join(present)}"
            )
        return columns
    found = {what: [n for n in names if n in present] for what, names in _NAMES.items()}
    missing = [what for what in ("user", "item", "rating") if not found[what]]
    if missing:
        raise InputError(
            f"{source}: no column of {' and '.join(missing)} among {', '.join(present)}; "
            "name them by columns=(user, item, rating)"
        )
    return tuple(names[0] for names in found.values() if names)
