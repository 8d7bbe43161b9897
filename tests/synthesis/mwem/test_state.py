"""States: checkpoints that keep every bit, and runs that go on from any of them."""

import io
import json

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.synthesis.mwem.state import MWEMState
from tests.synthesis.mwem.problems import NOISE, child_run

RUNS = [
    {"engine": "dense"},
    {"engine": "atoms", "output": "average"},
    {"engine": "dense", "fit": "newton", "noise": "laplace"},
    {"engine": "dense", "neighbors": "add_remove"},
]


def by_npz(state):
    file = io.BytesIO()
    np.savez(file, **state.to_arrays())
    file.seek(0)
    with np.load(file) as arrays:
        return MWEMState.from_arrays(arrays)


def by_json(state):
    assert json.loads(state.to_json())
    return MWEMState.from_json(state.to_json())


def same(left, right):
    arrays, others = left.to_arrays(), right.to_arrays()
    return arrays.keys() == others.keys() and all(
        np.array_equal(arrays[name], others[name]) and arrays[name].dtype == others[name].dtype
        for name in arrays
    )


@pytest.mark.parametrize("choices", RUNS)
@pytest.mark.parametrize("keep", [by_npz, by_json])
def test_a_run_killed_after_any_iteration_ends_with_the_same_bits(choices, keep):
    mwem, truth = child_run(1, iterations=6, **choices)
    whole = mwem.run(truth, NOISE)
    state = mwem.start(truth, NOISE)
    while not mwem.is_done(state):
        state = mwem.advance(keep(state), truth, NOISE)
        mwem.advance(keep(state), truth, NOISE) if state.iteration < 6 else None  # lost
    assert same(state, whole)
    assert state.iteration == 6
    assert state.total == whole.total


def test_a_state_without_its_arrays_is_refused():
    with pytest.raises(InputError, match=r"needs the arrays \['masses', 'measurements'\]"):
        MWEMState.from_arrays({"total": np.array(1.0), "queries": np.zeros(0, int)})
