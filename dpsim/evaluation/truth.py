"""The true values of what a release estimates: evaluation only, never part of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.records import RecordSource, blocks_of
from dpsim.core.rng import AGGREGATE_UNIT
from dpsim.core.schema import Attribute
from dpsim.protocols.mean import bounds_of
from dpsim.protocols.release import Release, Row


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The root mean square error over one attribute's rows, and the one expected of them."""

    attribute: str
    rmse: float
    expected_rmse: float | None
    """None after post-processing, which has no formula."""


def true_histograms(
    source: RecordSource, names: Sequence[str], fidelity: str = "record"
) -> dict[str, Counts]:
    """How many users hold each code, of the users that a run of this fidelity asks."""
    counts = {name: np.zeros(source.schema[name].size, np.int64) for name in names}
    for block in blocks_of(source.n, source.block_size):
        records = source.read(block)
        for name, total in counts.items():
            if fidelity == "record":
                counts[name] = total + np.bincount(records.open(name), minlength=total.size)
                continue
            parts = [records.part(unit) for unit in block.parts(AGGREGATE_UNIT)]
            counts[name] = sum((p.histogram(name, total.size) for p in parts), start=total)
    return counts


def true_rows(
    source: RecordSource, release: Release, fidelity: str = "record"
) -> list[float | None]:
    """The truth of each row of a release, in its order."""
    names = release.schema.names
    counts = true_histograms(source, names, fidelity)
    known = {name: _truths(source.schema[name], counts[name]) for name in names}
    return [known[row.attribute].get((row.label, row.unit)) for row in release.rows]


def _truths(attribute: Attribute, counts: Counts) -> dict[tuple[str, str], float | None]:
    n = max(1, int(counts.sum()))
    labels = zip(attribute.labels, (counts / n).tolist(), strict=True)
    truths: dict[tuple[str, str], float | None] = {(name, "share"): v for name, v in labels}
    try:
        numbers = attribute.numbers
    except ValueError:
        return truths
    holds = ~np.isnan(numbers)
    holders = int(counts[holds].sum())
    truths["holds it", "share"] = holders / n
    truths["mean", "number"] = None
    if holders:
        low, high = bounds_of(attribute)
        mean = float(counts[holds] @ numbers[holds]) / holders
        truths["mean", "number"] = low + (mean + 1) * (high - low) / 2
    return truths


def accuracy(rows: Sequence[Row], truths: Sequence[float | None]) -> list[Accuracy]:
    """Per attribute, over its shares; over its numbers where it has no shares."""
    found = []
    for name in dict.fromkeys(row.attribute for row in rows):
        known = [
            (row, row.estimate - truth)
            for row, truth in zip(rows, truths, strict=True)
            if row.attribute == name and row.estimate is not None and truth is not None
        ]
        unit = "share" if any(row.unit == "share" for row, _ in known) else "number"
        kept = [(row.standard_error, error) for row, error in known if row.unit == unit]
        if kept:
            errors = [spread for spread, _ in kept if spread is not None]
            expected = _root_mean_square(errors) if len(errors) == len(kept) else None
            found.append(Accuracy(name, _root_mean_square([e for _, e in kept]), expected))
    return found


def _root_mean_square(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
