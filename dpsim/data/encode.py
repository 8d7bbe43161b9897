"""From cells to codes: what does not fit is counted, so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsim.core.arrays import Codes
from dpsim.core.errors import InputError
from dpsim.core.schema import Attribute, Bins, Category, CodeRange, Schema
from dpsim.data.columns import Numbers, numbers_of, texts_of
from dpsim.data.findings import Findings, Problem


@dataclass(frozen=True, slots=True)
class _Column:
    """The codes of one column, some code standing for each problem."""

    codes: NDArray[np.integer]
    missing: NDArray[np.bool_]
    problems: Mapping[Problem, int]


def encode(batch: pa.RecordBatch, schema: Schema) -> tuple[dict[str, Codes], Findings]:
    """The codes of every attribute, and what was found on the way.

    Codes are in the order of the attribute's labels. Where the findings have errors, the
    codes of the rows in question mean nothing.
    """
    ignored = unknown_columns(tuple(batch.schema.names), schema)
    codes: dict[str, Codes] = {}
    counts: dict[tuple[str, Problem], int] = {}
    for attribute in schema:
        name = attribute.name
        column = _column(batch.column(name), attribute)
        codes[name] = _with_missing(column, attribute)
        refused = 0 if attribute.missing == "category" else np.count_nonzero(column.missing)
        counts[name, Problem.MISSING] = int(refused)
        counts.update({(name, problem): n for problem, n in column.problems.items()})
    return codes, Findings(batch.num_rows, counts, ignored)


def unknown_columns(names: tuple[str, ...], schema: Schema) -> tuple[str, ...]:
    """The columns that the schema does not know; refuses a table that lacks an attribute."""
    lacking = [name for name in schema.names if name not in names]
    if lacking:
        free = [name for name in names if name not in schema.names]
        texts = ", ".join(_with_nearest(name, free) for name in lacking)
        raise InputError(
            f"the table has no column for: {texts}; "
            "rename its columns, or take the attributes out of the schema"
        )
    return tuple(name for name in names if name not in schema.names)


def _with_nearest(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"{name} (nearest: {near[0]})" if near else name


def _column(cells: pa.Array, attribute: Attribute) -> _Column:
    domain, name = attribute.domain, attribute.name
    if isinstance(domain, Category):
        return _labels(texts_of(cells, name), domain)
    numbers = numbers_of(cells, name)
    return _bins(numbers, domain) if isinstance(domain, Bins) else _codes(numbers, domain)


def _labels(texts: pa.Array, domain: Category) -> _Column:
    place = pc.index_in(texts, value_set=pa.array(domain.values, pa.string()))
    missing = texts.is_null().to_numpy(zero_copy_only=False)
    rest = place.null_count - texts.null_count
    codes = place.fill_null(len(domain.values)).to_numpy()
    return _Column(codes, missing, {} if domain.other else {Problem.UNLISTED: rest})


def _bins(numbers: Numbers, domain: Bins) -> _Column:
    values = numbers.values
    codes = np.searchsorted(domain.edges, values, side="right") - 1
    clipped = np.isfinite(values) & ((values < domain.low) | (values > domain.high))
    problems = {**_unfit(numbers), Problem.CLIPPED: int(np.count_nonzero(clipped))}
    return _Column(np.clip(codes, 0, domain.bins - 1), numbers.missing, problems)


def _codes(numbers: Numbers, domain: CodeRange) -> _Column:
    values = numbers.values
    is_code = (values >= 0) & (values < domain.size) & (np.floor(values) == values)
    others = np.isfinite(values) & ~is_code
    codes = np.where(is_code, values, 0).astype(np.int64)
    problems = {**_unfit(numbers), Problem.NOT_A_CODE: int(np.count_nonzero(others))}
    return _Column(codes, numbers.missing, problems)


def _unfit(numbers: Numbers) -> dict[Problem, int]:
    return {
        Problem.NOT_NUMERIC: int(np.count_nonzero(numbers.unreadable)),
        Problem.NOT_FINITE: int(np.count_nonzero(numbers.nonfinite)),
    }


def _with_missing(column: _Column, attribute: Attribute) -> Codes:
    # The last code is that of missing cells, if they have one.
    codes = np.where(column.missing, attribute.size - 1, column.codes)
    return np.minimum(codes, attribute.size - 1).astype(attribute.code_type)
