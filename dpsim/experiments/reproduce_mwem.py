"""The tables of the MWEM report, by its own program's quirks, and the correct algorithm's."""

from __future__ import annotations

import json
from importlib.resources import files
from math import hypot
from typing import Any

from dpsim.core.exact import exact
from dpsim.core.rng import CentralNoise
from dpsim.experiments.reproduce import Reproduction, Row, Tell
from dpsim.synthesis.mwem.batched import BatchedMWEM, run_trials
from dpsim.synthesis.mwem.child_health import histogram_1d, histogram_2d, intervals_1d
from dpsim.synthesis.mwem.errors import error_table
from dpsim.synthesis.mwem.faithful import faithful
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload

_COLUMNS = ("table", "ε", "really", "mean error", "± se", "expected", "printed", "z")
_RUNS = {1: 1000, 2: 200}
_ITERATIONS = {1: 30, 2: 200}


def reproduce(seed: int, tell: Tell) -> Reproduction:
    """Run the report's tables; the mean error over all queries is compared, by a z-test."""
    content = json.loads(
        files("dpsim.experiments").joinpath("mwem_report.json").read_text("utf-8")
    )
    rows, scores = [], []
    for table, by_epsilon in content["tables"].items():
        for epsilon, expected in by_epsilon.items():
            tell(f"{table}, ε={epsilon}")
            row, score = _run(table, epsilon, expected, (content["queries_2d"], seed))
            rows.append(row)
            scores.append(score)
    return Reproduction(
        title="MWEM report, child mental health: mean error over the queries of the workload",
        columns=_COLUMNS,
        rows=tuple(rows),
        meaning=(
            "faithful tables keep the report's quirks: scores divided by 100,000, so that "
            "selection is near uniform, and noise divided by the number of attributes. What "
            "they really cost stands under 'really'; as the program was run, with the domain "
            "read from the data, no finite ε holds. Printed: the report's own rows. Its 2-D "
            "rows above ε = 0.1 fit one replay, not the twenty it states; its rectangles were "
            "not published. A plain Laplace histogram errs 4.5/ε and 6.0/ε here: this table is "
            "a regression test, not a case for MWEM."
        ),
        largest_z=max(scores),
    )


def _run(
    table: str, epsilon: str, expected: dict[str, Any], given: tuple[list[list[int]], int]
) -> tuple[Row, float]:
    dimensions = 1 if "_1d" in table else 2
    boxes, seed = given
    workload = intervals_1d() if dimensions == 1 else BoxWorkload.of((14, 4), boxes)
    histogram = histogram_1d() if dimensions == 1 else histogram_2d()
    settings = _settings(table, epsilon, workload.shape)
    mwem, truth = MWEM(settings, workload), Truth.of(workload, histogram)
    noise = CentralNoise(seed, f"reproduce {table} {epsilon}")
    trials = run_trials(BatchedMWEM.of(mwem, truth), noise, range(_RUNS[dimensions]))
    found = error_table(trials.answers, truth.answers)[3]
    score = (found.mean - expected["mean"]) / hypot(found.standard_error, expected["se"])
    printed = expected["own"]
    row = (
        table.replace("_", " "), epsilon, f"{float(settings.loss.epsilon):.4g}",
        f"{found.mean:.5g}", f"{found.standard_error:.2g}", f"{expected['mean']:.5g}",
        "" if printed is None else f"{printed:.5g}", f"{score:+.1f}",
    )  # fmt: skip
    return row, abs(score)


def _settings(table: str, epsilon: str, shape: tuple[int, ...]) -> MWEMSettings:
    iterations = _ITERATIONS[len(shape)]
    if table.startswith("faithful"):
        replays = 1 if table.endswith("one_replay") else 20
        return faithful(shape, epsilon, iterations, replays=replays)
    return MWEMSettings(
        shape=shape, neighbors="replace", epsilon=exact(epsilon), iterations=iterations
    )
