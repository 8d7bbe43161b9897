"""What a release becomes: a result to print, and files to keep."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from dpsim.core.exact import text_of
from dpsim.core.records import RecordSource
from dpsim.data.schema_file import dump_schema
from dpsim.evaluation.table_quality import TableQuality, quality
from dpsim.evaluation.truth import true_rows
from dpsim.experiments.methods import METHODS
from dpsim.experiments.mwem_errors import true_counts, workload_errors
from dpsim.experiments.mwem_figures import figures
from dpsim.experiments.spec import RunSpec
from dpsim.experiments.summary import summarize, summarize_table
from dpsim.experiments.users import held_out
from dpsim.protocols.curator import read_table
from dpsim.protocols.release import Release
from dpsim.protocols.table_release import TableRelease


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result as plain values, and the files that belong to it."""

    result: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)


def conclude(
    spec: RunSpec, release: Release | TableRelease, source: RecordSource, with_truth: bool
) -> Outcome:
    """The release, beside the truth if that is asked for."""
    if isinstance(release, TableRelease):
        return _table(spec, release, source, with_truth)
    truths = true_rows(source, release, spec.fidelity) if with_truth else None
    result = summarize(spec, release, truths)
    result["notes"] = list(_advice(spec, release))
    return Outcome(result, {"estimates.csv": _estimates(result)})


def _table(
    spec: RunSpec, release: TableRelease, source: RecordSource, with_truth: bool
) -> Outcome:
    found = table_quality(spec, release, source) if with_truth else None
    result = summarize_table(spec, release, found)
    is_histogram = spec.method == "mwem" and spec.preset != "marginals"
    if is_histogram and result["evaluation"] is not None:
        result["evaluation"]["workload"] = workload_errors(spec, release, source)
    pictures = {}
    if is_histogram and found is not None:
        caption = f"ε={text_of(release.loss.epsilon)}, {spec.preset or 'default'} preset"
        pictures = figures(release, true_counts(release, source), caption)
    text = release.frame().to_csv(index=False, lineterminator="\n")
    files = {
        "synthetic.csv": text.encode(),
        "synthetic.schema.toml": dump_schema(release.schema).encode(),
        **pictures,
        "model.json": json.dumps(release.facts, indent=1, allow_nan=False).encode() + b"\n",
    }
    return Outcome(result, files)


def table_quality(spec: RunSpec, release: TableRelease, source: RecordSource) -> TableQuality:
    """The released table against the truth: evaluation only."""
    names = release.schema.names
    truth = read_table(source, names)
    apart = held_out(source)
    if spec.target is None or apart is None:
        return quality(truth, release.table)
    test = read_table(apart, names)
    return quality(truth, release.table, test=test, targets=(names.index(spec.target),))


def _advice(spec: RunSpec, release: Release) -> list[str]:
    """What changes the meaning of a result, or would make it better: one line each."""
    advice = []
    if not isfinite(release.paid.real_epsilon):
        advice.append("the reports have no finite ε: the charged one is nominal, no guarantee")
    d = len(release.schema)
    if spec.collect == "split" and d > 1 and not METHODS[spec.method].is_joint:
        advice.append(
            f"each user answered {d} times at ε/{d}; --collect sample asks once, at ε"
        )
    return advice


def _estimates(result: dict[str, Any]) -> bytes:
    """The estimates as one tidy table."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["attribute", "label", "unit", "estimate", "half_width_95"])
    for item in result["attributes"]:
        rows.writerows([item["name"], *row.values()] for row in item["rows"])
    return text.getvalue().encode()
