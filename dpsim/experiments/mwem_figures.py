"""Figures of a release of MWEM beside the truth: for study, labelled as such."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.schema import Attribute
from dpsim.experiments import charts
from dpsim.protocols.table_release import TableRelease

_MOST_CELLS = 2_500
_MOST_BARS = 200


def figures(release: TableRelease, truth: NDArray[np.int64], caption: str) -> dict[str, bytes]:
    """SVG files by name: bars, lines and differences in one dimension, heat maps in two."""
    attributes = release.schema.attributes
    private = _expected_counts(release, int(truth.sum()))
    caption = f"{caption} · evaluation only: shows the truth"
    title = " by ".join(attribute.name for attribute in attributes)
    if truth.ndim == 1 and truth.size <= _MOST_BARS:
        frame, gaps = _one_way(attributes[0], truth, private)
        return {
            "bars.svg": charts.svg(charts.bars(frame, title, caption)),
            "lines.svg": charts.svg(charts.lines(frame, title, caption)),
            "differences.svg": charts.svg(charts.differences(gaps, title, caption)),
        }
    if truth.ndim == 2 and truth.size <= _MOST_CELLS:  # noqa: PLR2004
        frame = _two_way(attributes, truth, private)
        return {"heat-maps.svg": charts.svg(charts.heat_maps(frame, title, caption))}
    return {}


def _expected_counts(release: TableRelease, n: int) -> NDArray[np.float64]:
    """The released histogram itself, without the chance of drawn rows."""
    if release.model is None:
        raise InputError("a release without a model has no histogram to show")
    return release.model.marginal(tuple(range(len(release.schema)))) * n


def _one_way(
    attribute: Attribute, truth: NDArray[np.int64], private: NDArray[np.float64]
) -> tuple[Any, Any]:
    import pandas as pd  # noqa: PLC0415 - for figures only

    labels = attribute.labels
    rows = [(label, "true", float(count)) for label, count in zip(labels, truth, strict=True)]
    rows += [(label, "private", float(c)) for label, c in zip(labels, private, strict=True)]
    gaps = pd.DataFrame({"label": labels, "difference": private - truth})
    return pd.DataFrame(rows, columns=["label", "kind", "count"]), gaps


def _two_way(
    attributes: Sequence[Attribute], truth: NDArray[np.int64], private: NDArray[np.float64]
) -> Any:  # noqa: ANN401 - a data frame
    import pandas as pd  # noqa: PLC0415 - for figures only

    cells = list(product(attributes[0].labels, attributes[1].labels))
    tables = {"true": truth, "private": private, "difference": private - truth}
    rows = [
        (row, column, kind, float(count))
        for kind, table in tables.items()
        for (row, column), count in zip(cells, table.ravel(), strict=True)
    ]
    return pd.DataFrame(rows, columns=["row", "column", "kind", "count"])
