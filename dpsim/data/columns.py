"""Raw columns as texts and as numbers, whatever type a file gave them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsim.core.errors import InputError

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:inf|infinity|nan)$"


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column as numbers; NaN where a cell is missing or unreadable."""

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]

    @property
    def nonfinite(self) -> NDArray[np.bool_]:
        """The numbers that are infinite or NaN."""
        absent: NDArray[np.bool_] = self.missing | self.unreadable
        return ~np.isfinite(self.values) & ~absent


def require_plain(kind: pa.DataType, name: str) -> None:
    """Refuse a column of bytes, lists or other things that are not one value each."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    is_number = is_number or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    if not (
        is_number or _is_text(kind) or pa.types.is_temporal(kind) or pa.types.is_null(kind)
    ):
        raise InputError(
            f"column {name!r} holds neither texts, numbers, booleans nor dates; "
            "convert it to text, or leave it out"
        )


def texts_of(column: pa.Array, name: str) -> pa.Array:
    """The column as texts; null where a cell is missing or empty."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return texts_of(column.dictionary, name).take(column.indices)
    if _is_text(kind):
        texts = column.cast(pa.string())
        empty = pc.equal(texts, "")
        return pc.if_else(empty, pa.scalar(None, pa.string()), texts)
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "True", "False")
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    return _python_texts(column, name)


def numbers_of(column: pa.Array, name: str) -> Numbers:
    """The column as numbers; typed numbers as they are, texts as decimal numbers."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return numbers_of(column.dictionary.take(column.indices), name)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        cells, parsed = column, column.cast(pa.float64(), safe=False)
    else:
        cells = texts_of(column, name)
        parsed = _parse(cells)
    values = parsed.fill_null(np.nan).to_numpy()
    missing = _flags(cells.is_null())
    return Numbers(values, missing, _flags(parsed.is_null()) & ~missing)


def _parse(texts: pa.Array) -> pa.Array:
    with suppress(pa.ArrowInvalid):  # the usual case, and ten times as fast
        return texts.cast(pa.float64())
    trimmed = pc.utf8_trim(texts, " \t")
    matches = pc.match_substring_regex(trimmed, _NUMBER)
    return pc.if_else(matches, trimmed, pa.scalar(None, pa.string())).cast(pa.float64())


def _python_texts(column: pa.Array, name: str) -> pa.Array:
    kind = column.type
    require_plain(kind, name)
    distinct = column.dictionary_encode()
    if pa.types.is_floating(kind):  # numpy writes a 32-bit 0.1 as it is meant
        values = distinct.dictionary.to_numpy(zero_copy_only=False)
    else:
        values = distinct.dictionary.to_pylist()
    return pa.array([str(value) for value in values], pa.string()).take(distinct.indices)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def _flags(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)
