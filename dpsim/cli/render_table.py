"""A published table on stdout: how good it is beside what anybody could make, and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MOST_LINES = 8
_WIDTH = 80
_METRICS = {
    "tvd_1": "1-way TVD",
    "tvd_2": "2-way TVD",
    "tvd_3": "3-way TVD",
    "mi_error": "MI error, nats",
}


def table_lines(result: dict[str, Any]) -> Iterator[str]:
    """What was published, its quality if the truth may be seen, and what was learned."""
    table = result["table"]
    yield (
        f"{result['method']} · {table['preset']} · {table['records']:,} records of "
        f"{len(table['attributes'])} attributes"
    )
    yield ""
    if result["evaluation"] is not None:
        yield from _quality(result["evaluation"]["rows"])
        yield ""
        if "workload" in result["evaluation"]:
            yield from _workload(result["evaluation"]["workload"])
            yield ""
    yield from _learned(table)


def _quality(rows: list[dict[str, Any]]) -> Iterator[str]:
    names = ("published", "floor", "bootstrap", "independent", "uniform")
    yield f"  {'error of':<16}" + "".join(f"{name:>12}" for name in names)
    for row in rows:
        label = _METRICS.get(row["metric"])
        if label is None and row["metric"].startswith("error_"):
            label = row["metric"].removeprefix("error_").replace("_", " ")[:16]
        if label is not None:
            values = [row["value"], *(row[name] for name in names[1:])]
            yield f"  {label:<16}" + "".join(f"{_number(value):>12}" for value in values)


def _workload(found: dict[str, Any]) -> Iterator[str]:
    """Errors of counts over all queries, and the baseline's."""
    names = ("max", "min", "mean", "mse")
    yield f"  {found['queries']:,} queries, error{'':<6}" + "".join(f"{n:>12}" for n in names)
    rows = {row["metric"]: row for row in found["release"]}
    yield f"  {'this release':<22}" + "".join(f"{rows[n]['mean']:>12.5g}" for n in names)
    if found["trials"] is not None:
        rows = {row["metric"]: row for row in found["trials"]}
        yield f"  mean of {rows['mean']['trials']:<14}" + "".join(
            f"{rows[n]['mean']:>12.5g}" for n in names
        )
        yield f"  {'± standard error':<22}" + "".join(
            f"{rows[n]['standard_error']:>12.2g}" for n in names
        )
    if found["laplace_mean"] is not None:
        yield f"  {'Laplace histogram':<22}{'':>24}{found['laplace_mean']:>12.5g}"
    yield f"  {found['advice']}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _learned(table: dict[str, Any]) -> Iterator[str]:
    """The network or the clusters, as much as fits."""
    lines = [
        f"  {child} <- {', '.join(parents)}"
        for child, parents in table.get("network", [])
        if parents
    ]
    title = "network (child <- parents)"
    if not lines:
        lines = [f"  {', '.join(cluster)}" for cluster in table.get("clusters", [])]
        title = "attribute clusters"
    if not lines:
        return
    yield title
    for line in lines[:_MOST_LINES]:
        yield line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
    if len(lines) > _MOST_LINES:
        yield f"  … and {len(lines) - _MOST_LINES} more in results/model.json"
    yield ""
