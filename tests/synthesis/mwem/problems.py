"""The child health table and its oracles, and small problems that can be enumerated."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem import child_health
from dpsim.synthesis.mwem.dense import Fitting
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload

ORACLES = json.loads(Path(__file__).with_name("acceptance.json").read_text())
NOISE = CentralNoise(11, "plan")


@cache
def child(dimensions):
    """Workload, true histogram and iterations of the report."""
    if dimensions == 1:
        return child_health.intervals_1d(), child_health.histogram_1d(), 30
    boxes = BoxWorkload.of((14, 4), ORACLES["queries_2d"])
    return boxes, child_health.histogram_2d(), 200


def child_run(
    dimensions, epsilon: Any = 1, settings=None, engine: Any = "dense", **choices: Any
):
    workload, histogram, iterations = child(dimensions)
    choices = {"neighbors": "replace", "iterations": iterations, **choices}
    made = settings or MWEMSettings(shape=workload.shape, epsilon=epsilon, **choices)
    return MWEM(made, workload, engine), Truth.of(workload, histogram)


def small_run(workload, histogram, engine=None, **choices: Any):
    choices = {"neighbors": "replace", "epsilon": 1, "iterations": 2, **choices}
    settings = MWEMSettings(shape=workload.shape, **choices)
    return MWEM(settings, workload, engine), Truth.of(workload, np.asarray(histogram))


def forced(mwem, truth, n, replays=20, ridge=0.0):
    """The first n queries measured without noise, fitted after each in insertion order."""
    guess = mwem.engine.start(float(truth.total))
    words = np.zeros(0, np.uint64)
    for last in range(1, n + 1):
        queries = tuple(range(last))
        targets = truth.answers[:last].astype(float)
        fitting = Fitting(queries, targets, float(truth.total), replays, words, ridge)
        guess = mwem.engine.fit(guess, fitting)
    return guess


def every_box(shape):
    """All boxes of a domain."""
    rows: list[list[int]] = [[]]
    for size in shape:
        ends = [(lo, hi) for lo in range(size) for hi in range(lo, size)]
        rows = [[*row, lo, hi] for row in rows for lo, hi in ends]
    return BoxWorkload.of(shape, rows)


def box_masks(workload):
    """A plain 0/1 matrix, one row per part."""
    masks = np.zeros((len(workload.lower), *workload.shape), int)
    for mask, low, high in zip(masks, workload.lower, workload.upper, strict=True):
        mask[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = 1
    return masks.reshape(len(masks), -1)
