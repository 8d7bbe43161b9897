"""NLTCS and Adult as tables of codes, where there are any."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dpsim.synthesis.table import CodeTable

FOLDER = Path(os.environ.get("DPSIM_DATA", Path(__file__).parents[3] / "shared" / "data"))
SIZES = {
    "nltcs": (2,) * 16,
    "adult": (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2),
}


def real_table(name):
    path = FOLDER / name / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"no {path.name}: set DPSIM_DATA to the folder of real tables")
    return _read(path, name)


@cache
def _read(path, name):
    codes = np.loadtxt(path, np.uint8, delimiter=",", skiprows=1).T
    return CodeTable(SIZES[name], np.ascontiguousarray(codes))
