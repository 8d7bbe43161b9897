"""Columns of user, item, rating and time into a table of codes: nothing wrong gets in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.data.rating_table import RatingTable
from dpsim.data.ratings import RatingPiece, RatingScale

Duplicates: TypeAlias = Literal["error", "last", "mean"]
Times: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
_ABSENT, _NOT_A_NUMBER, _OUTSIDE, _OFF_STEP = -1, -2, -3, -4
_ABSENT_TEXTS = frozenset(("", "na", "n/a", "nan", "null", "none"))


@dataclass(frozen=True, slots=True)
class RatingRules:
    """What is public about ratings, and what becomes of two ratings of one item by one user."""

    scale: RatingScale
    catalog: tuple[str, ...] | None
    """The items' labels; None takes those that were rated, which reveals them."""
    duplicates: Duplicates = "error"

    def __post_init__(self) -> None:
        if self.duplicates not in ("error", "last", "mean"):
            raise InputError(
                f"duplicates must be 'error', 'last' or 'mean', got {self.duplicates!r}"
            )
        if self.catalog is not None and len(set(self.catalog)) < len(self.catalog):
            raise InputError("the catalog names an item twice; every label must be distinct")


@dataclass(frozen=True, slots=True)
class RatingColumns:
    """Raw columns of equal length, and the number that messages give to the first row."""

    source: str
    user: pa.Array = field(repr=False)
    item: pa.Array = field(repr=False)
    rating: pa.Array = field(repr=False)
    time: pa.Array | None = field(default=None, repr=False)
    first_row: int = 1

    def refuse(self, wrong: NDArray[np.bool_], what: str, remedy: str) -> list[str]:
        """A line if any row is wrong: how many and where the first is, never what it holds."""
        if not wrong.any():
            return []
        n, first = int(np.count_nonzero(wrong)), int(np.argmax(wrong)) + self.first_row
        rows = "row has" if n == 1 else "rows have"
        return [f"{self.source}: {n:,} {rows} {what}, first at row {first:,}; {remedy}"]


def build_table(columns: RatingColumns, rules: RatingRules) -> tuple[RatingTable, list[str]]:
    """The ratings as a table, and notes; one error tells all problems."""
    codes = _rating_codes(columns.rating, rules.scale)
    user_labels, users = _labels(columns.user)
    item_labels, items = _labels(columns.item)
    catalog = item_labels if rules.catalog is None else rules.catalog
    items = _in_catalog(items, item_labels, catalog)
    rated = codes != _ABSENT
    problems = [
        *columns.refuse(codes == _NOT_A_NUMBER, "no number as rating", "write numbers"),
        *columns.refuse(
            codes == _OUTSIDE,
            f"a rating outside {rules.scale}",
            "mend it, or declare the scale it is on",
        ),
        *columns.refuse(
            codes == _OFF_STEP,
            f"a rating between the steps of {rules.scale}",
            "mend it, or declare a finer step",
        ),
        *columns.refuse(rated & (users < 0), "no user", "name the user of every rating"),
        *columns.refuse(rated & (items == -1), "no item", "name the item of every rating"),
        *columns.refuse(
            rated & (items == _OUTSIDE),
            "an item outside the public catalog",
            "add it to the catalog, which must not be made from private ratings",
        ),
    ]
    if problems:
        raise InputError("\n".join(problems))
    times = _times(columns)
    rows = np.flatnonzero(rated)
    order = rows[np.lexsort((rows, items[rows], users[rows]))]
    order, codes, joined = _settle(columns, order, (users, items, codes, times), rules)
    notes = []
    if rows.size < rated.size:
        notes.append(f"{rated.size - rows.size:,} rows hold no rating; they were left out")
    if joined:
        notes.append(f"{joined:,} repeated ratings were settled: {rules.duplicates}")
    ends = np.searchsorted(users[order], np.arange(len(user_labels) + 1))
    piece = RatingPiece(
        0, ends.astype(np.int64), items[order].astype(np.int32),
        codes.astype(rules.scale.code_type),
    )  # fmt: skip
    kept_times = None if times is None else times[order]
    return RatingTable(rules.scale, catalog, user_labels, piece, order, kept_times), notes


def _settle(
    columns: RatingColumns,
    order: NDArray[np.int64],
    values: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Times | None],
    rules: RatingRules,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """One row per user and item, its code, and how many rows that made superfluous."""
    users, items, codes, times = values
    same = (np.diff(users[order]) == 0) & (np.diff(items[order]) == 0)
    if not same.any():
        return order, codes[order], 0
    if rules.duplicates == "error":
        again = np.zeros(codes.size, np.bool_)
        again[order[1:][same]] = True
        remedy = "remove them, or settle them by duplicates='last' or 'mean'"
        raise InputError(columns.refuse(again, "an item its user had rated", remedy)[0])
    if times is not None:  # the latest comes last, the later row if they are equal
        order = order[np.lexsort((order, times[order], items[order], users[order]))]
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    sizes = np.diff(np.append(starts, order.size))
    last = order[starts + sizes - 1]
    if rules.duplicates == "last":
        return last, codes[last], int(same.sum())
    sums = np.add.reduceat(codes[order], starts)
    return last, (2 * sums + sizes) // (2 * sizes), int(same.sum())


def _rating_codes(column: pa.Array, scale: RatingScale) -> NDArray[np.int64]:
    """The code of each rating, or the sign of what is wrong: exact, by distinct values."""
    encoded = column.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    table = np.array([_rating_code(text, scale) for text in texts] + [_ABSENT], np.int64)
    places = pc.fill_null(encoded.indices, len(texts)).to_numpy(zero_copy_only=False)
    codes: NDArray[np.int64] = table[places]
    return codes


def _rating_code(text: str | None, scale: RatingScale) -> int:
    if text is None or text.strip().lower() in _ABSENT_TEXTS:
        return _ABSENT
    try:
        value = exact(text)
    except InputError:
        return _NOT_A_NUMBER
    if value == 0 and scale.lo > 0:
        return _ABSENT
    if not scale.lo <= value <= scale.hi:
        return _OUTSIDE
    steps = (value - scale.lo) / scale.step
    return int(steps) if steps.denominator == 1 else _OFF_STEP


def _labels(column: pa.Array) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Distinct labels, sorted as numbers if all are, and each row's place among them or -1."""
    encoded = column.dictionary_encode()
    texts = [_label(value) for value in encoded.dictionary.to_pylist()]
    labels = tuple(_sorted(sorted({text for text in texts if text})))
    place = {label: number for number, label in enumerate(labels)}
    table = np.array([place.get(text, -1) for text in texts] + [-1], np.int64)
    return labels, table[
        pc.fill_null(encoded.indices, len(texts)).to_numpy(zero_copy_only=False)
    ]


def _label(value: object) -> str:
    if isinstance(value, float):  # what pandas makes of whole numbers where one is missing
        return "" if value != value else str(int(value)) if value.is_integer() else str(value)  # noqa: PLR0124
    return "" if value is None else str(value)


def _sorted(texts: Sequence[str]) -> Sequence[str]:
    if all(text.isdecimal() and text.isascii() for text in texts):
        return sorted(texts, key=lambda text: (int(text), text))
    return texts


def _in_catalog(
    items: NDArray[np.int64], labels: tuple[str, ...], catalog: tuple[str, ...]
) -> NDArray[np.int64]:
    place = {label: number for number, label in enumerate(catalog)}
    table = np.array([place.get(label, _OUTSIDE) for label in labels] + [-1], np.int64)
    return table[items]


def _times(columns: RatingColumns) -> Times | None:
    if columns.time is None:
        return None
    for kind in (pa.int64(), pa.float64()):
        try:
            times: Times = columns.time.cast(kind).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            continue
        if times.dtype.kind == "i" or np.isfinite(times).all():
            return times
    raise InputError(
        f"{columns.source}: times must be numbers or timestamps, in every row; leave the "
        "column out if there are none"
    )
