"""How well a release of MWEM answers its workload, beside a plain Laplace histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.records import RecordSource
from dpsim.experiments.spec import RunSpec
from dpsim.experiments.tables import mwem_asked
from dpsim.protocols.curator import read_table
from dpsim.protocols.mwem import error_rows
from dpsim.protocols.table_release import TableRelease
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.mwem.baselines import outlook
from dpsim.synthesis.mwem.truth import Truth

LAPLACE_WINS = "a plain Laplace histogram errs less here: many records per cell, or few cells"
MWEM_WINS = "MWEM is expected to err less than a Laplace histogram here"


def true_counts(release: TableRelease, source: RecordSource) -> Counts:
    """How many users are in each cell of the released attributes."""
    table = read_table(source, release.schema.names)
    return joint_counts(table, tuple(range(len(table.sizes))))


def workload_errors(
    spec: RunSpec, release: TableRelease, source: RecordSource
) -> dict[str, Any]:
    """Errors of this release and of all trials, and the baseline's: evaluation."""
    mwem = mwem_asked(spec).mwem(release.table.sizes)
    truth = Truth.of(mwem.workload, true_counts(release, source))
    seen = outlook(mwem.settings, mwem.workload, truth.total)
    return {
        "queries": int(mwem.workload.groups.size - 1),
        "release": error_rows(np.array([release.facts["answers"]]), truth),
        "trials": None if release.trials is None else release.trials["errors"],
        "laplace_mean": seen.laplace_error,
        "advice": LAPLACE_WINS if seen.is_unlikely_to_win else MWEM_WINS,
    }
