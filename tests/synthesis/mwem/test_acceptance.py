"""The tables of the report's data, by z-tests on the mean error; error falls with ε."""

from functools import cache
from itertools import pairwise
from math import hypot

import pytest

from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem.batched import BatchedMWEM, run_trials
from dpsim.synthesis.mwem.errors import error_table
from dpsim.synthesis.mwem.faithful import faithful
from tests.synthesis.mwem.problems import ORACLES, child, child_run

EPSILONS = ["0.1", "1", "5", "10"]
ANCHORS = {"0.1": (425, 2.3), "1": (43.2, 0.25), "5": (8.75, 0.05), "10": (4.39, 0.03)}


@cache
def mean_error(table, epsilon, runs):
    dimensions = 1 if "_1d" in table else 2
    workload, _, iterations = child(dimensions)
    settings = None
    if table.startswith("faithful"):
        replays = 1 if table.endswith("one_replay") else 20
        is_shuffled = True if table.endswith("shuffled") else None
        settings = faithful(
            workload.shape, epsilon, iterations, replays=replays, is_shuffled=is_shuffled
        )
    mwem, truth = child_run(dimensions, epsilon, settings)
    trials = run_trials(
        BatchedMWEM.of(mwem, truth), CentralNoise(3, table + epsilon), range(runs)
    )
    return error_table(trials.answers, truth.answers)[3]


def z_of(row, table, epsilon):
    oracle = ORACLES["tables"][table]["by_eps"][epsilon]
    return (row.mean - oracle["mean"][3]) / hypot(row.standard_error, oracle["se"][3])


ROWS = [
    *(
        (table, epsilon, 1000)
        for table in ("faithful_1d", "default_1d")
        for epsilon in EPSILONS
    ),
    ("faithful_1d_shuffled", "1", 1000),
    *(("faithful_2d", epsilon, 100) for epsilon in EPSILONS),
    *(("faithful_2d_one_replay", epsilon, 100) for epsilon in EPSILONS),
    ("default_2d", "10", 100),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("table", "epsilon", "runs"), ROWS)
def test_the_mean_error_is_as_tabulated(table, epsilon, runs):
    assert abs(z_of(mean_error(table, epsilon, runs), table, epsilon)) < 4


@pytest.mark.statistical
def test_the_default_is_not_above_its_anchors_and_its_error_falls_with_epsilon():
    rows = {epsilon: mean_error("default_1d", epsilon, 1000) for epsilon in EPSILONS}
    for epsilon, (anchor, spread) in ANCHORS.items():
        assert rows[epsilon].mean <= anchor + 3 * hypot(spread, rows[epsilon].standard_error)
    means = [rows[epsilon].mean for epsilon in EPSILONS]
    assert all(above > 1.5 * below for above, below in pairwise(means))


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "mean", "spread"), [("0.1", 418, 7), ("10", 4.16, 0.07)])
def test_newtons_method_errs_as_tabulated(epsilon, mean, spread):
    """The prior weighs as one record; one for each record errs 1.5 to 30 times as much."""
    mwem, truth = child_run(1, epsilon, fit="newton")
    trials = run_trials(BatchedMWEM.of(mwem, truth), CentralNoise(3, "newton"), range(60))
    row = error_table(trials.answers, truth.answers)[3]
    assert abs(row.mean - mean) < 4 * hypot(row.standard_error, spread)


@pytest.mark.statistical
def test_the_tables_tell_one_replay_from_twenty_and_one_epsilon_from_another():
    """The z-test has power."""
    one = mean_error("faithful_2d_one_replay", "10", 100)
    assert abs(z_of(one, "faithful_2d", "10")) > 50
    assert z_of(mean_error("default_1d", "5", 1000), "default_1d", "1") < -50
