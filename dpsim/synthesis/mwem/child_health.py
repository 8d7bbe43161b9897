"""The MWEM report's counts and queries: child mental health, age and satisfaction."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.data.child_health import COUNTS
from dpsim.synthesis.mwem.workloads import BoxWorkload


def histogram_2d() -> Counts:
    """Records by age (14 values) and satisfaction (4 values)."""
    return np.array(COUNTS, np.int64)


def histogram_1d() -> Counts:
    """Records by age."""
    return np.asarray(histogram_2d().sum(axis=1))


def intervals_1d() -> BoxWorkload:
    """The report's 60 intervals of age."""
    text = files("dpsim.synthesis.mwem").joinpath("child_health.json").read_text("utf-8")
    content: dict[str, list[list[int]]] = json.loads(text)
    return BoxWorkload.of((14,), content["queries_1d"])
