"""Real tables, where there are any."""

import os
from pathlib import Path

import numpy as np
import pytest

from dpsim.synthesis.table import CodeTable

FOLDER = Path(os.environ.get("DPSIM_DATA", Path(__file__).parents[3] / "shared" / "data"))


def read(name, sizes):
    path = FOLDER / name / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"no {path.name}: set DPSIM_DATA to the folder of real tables")
    codes = np.loadtxt(path, np.uint8, delimiter=",", skiprows=1).T.copy()
    codes.setflags(write=False)
    return CodeTable(sizes, codes)


@pytest.fixture(scope="session")
def nltcs():
    return read("nltcs", (2,) * 16)


@pytest.fixture(scope="session")
def adult():
    return read("adult", (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2))
