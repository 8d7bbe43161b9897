"""A schema read from private data: a draft for a person to check, and marked as one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, inf, log10

import numpy as np
import pyarrow as pa

from dpsim.core.schema import READ_FROM_DATA, Attribute, Bins, Category, Domain, Schema
from dpsim.data.columns import numbers_of, require_plain, texts_of
from dpsim.data.tables import RawTable

MIN_ROWS = 20
"""A value held by fewer rows is not listed: it could point at somebody."""

MAX_COUNTED, MAX_LISTED, MAX_CATEGORY_NUMBERS, BINS = 100_000, 1_000, 64, 16

_HUGE = 1e300  # beyond it the rounded bounds, or their distance, may be infinite
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass
class _Sight:
    """What one pass has seen of a column."""

    name: str
    counts: Counter[str] | None = field(default_factory=Counter)
    is_numeric: bool = True
    has_missing: bool = False
    low: float = inf
    high: float = -inf

    def add(self, column: pa.Array) -> None:
        """Look at some more rows."""
        require_plain(column.type, self.name)
        cells = column.value_counts()
        values, counts = cells.field("values"), cells.field("counts")
        numbers = numbers_of(values, self.name)
        self.has_missing |= bool(numbers.missing.any())
        self.is_numeric &= not (numbers.unreadable.any() or numbers.nonfinite.any())
        finite = numbers.values[np.isfinite(numbers.values)]
        self.low = min(self.low, finite.min(initial=inf))
        self.high = max(self.high, finite.max(initial=-inf))
        self._count(values, counts)

    def _count(self, values: pa.Array, counts: pa.Array) -> None:
        if self.counts is None or len(values) > MAX_COUNTED:
            self.counts = None
            return
        texts = texts_of(values, self.name).to_pylist()
        for text, count in zip(texts, counts.to_pylist(), strict=True):
            if text is not None:
                self.counts[text] += count
        if len(self.counts) > MAX_COUNTED:
            self.counts = None

    @property
    def attribute(self) -> Attribute:
        """The proposal for the column."""
        return Attribute(
            self.name, self._domain(), "category" if self.has_missing else "refuse"
        )

    def _domain(self) -> Domain:
        has_many = self.counts is None or len(self.counts) > MAX_CATEGORY_NUMBERS
        has_range = -_HUGE < self.low < self.high < _HUGE
        if self.is_numeric and has_many and has_range:
            return Bins(*rounded_bounds(self.low, self.high), BINS)
        return _category(self.counts)


def propose(table: RawTable) -> Schema:
    """A schema from one pass over the table: frequent values, and rounded bounds."""
    sights = [_Sight(name) for name in table.names]
    for batch in table.batches():
        for sight in sights:
            sight.add(batch.column(sight.name))
    attributes = tuple(sight.attribute for sight in sights)
    return Schema(attributes, origin=READ_FROM_DATA, reviewed=False)


def rounded_bounds(low: float, high: float) -> tuple[float, float]:
    """Both moved outward to multiples of a 1-2-5 step of about a tenth of the range."""
    step = _step((Fraction(high) - Fraction(low)) / 10)
    below, above = floor(Fraction(low) / step), ceil(Fraction(high) / step)
    return float(below * step), float(above * step)


def _step(least: Fraction) -> Fraction:
    power = floor(log10(10 * least)) - 1  # of ten times: a tenth of the least float is zero
    exact_power = Fraction(10) ** (power - 1)
    steps = (factor * exact_power for factor in (1, 2, 5, 10, 20, 50, 100))
    return next(step for step in steps if step >= least)


def _category(counts: Counter[str] | None) -> Category:
    if counts is None:
        return Category((), other=True)
    frequent = [text for text, count in counts.items() if count >= MIN_ROWS]
    frequent.sort(key=lambda text: (-counts[text], text))
    listed = frequent[:MAX_LISTED]
    return Category(_in_order(listed), other=len(listed) < len(counts) or not listed)


def _in_order(texts: Iterable[str]) -> tuple[str, ...]:
    ordered = sorted(texts)
    if all(_WHOLE.fullmatch(text) for text in ordered):
        ordered.sort(key=int)
    return tuple(ordered)
