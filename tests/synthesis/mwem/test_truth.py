"""True answers: from histograms, from records of domains too large for one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.data.child_health import COPIES
from dpsim.synthesis.mwem import truth as module
from dpsim.synthesis.mwem.child_health import histogram_1d, histogram_2d
from dpsim.synthesis.mwem.random_workload import random_boxes
from dpsim.synthesis.mwem.truth import Truth, codes_inside, count_cells
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests.synthesis.mwem.problems import NOISE


@given(st.integers(0, 2**32))
def test_records_and_their_histogram_have_the_same_answers(seed):
    shape = (7, 5, 6)
    codes = np.random.default_rng(seed).integers(0, 5, (3, 40)).astype(np.uint8)
    workload = random_boxes(shape, 20, NOISE)
    by_cells = Truth.of(workload, count_cells(codes_inside(codes, shape), shape))
    by_codes = Truth.of_codes(workload, codes)
    assert by_cells.total == by_codes.total == 40
    assert by_codes.answers.dtype == np.int64
    np.testing.assert_array_equal(by_cells.answers, by_codes.answers)


def test_record_by_record_and_by_a_coarse_grid_are_one(monkeypatch):
    workload = random_boxes((90, 80), 30, NOISE)
    codes = np.random.default_rng(1).integers(0, 80, (2, 500))
    by_grid = Truth.of_codes(workload, codes)
    monkeypatch.setattr(module, "_SMALL_GRID", 0)
    by_record = Truth.of_codes(workload, codes[:, :200])
    rest = Truth.of_codes(workload, codes[:, 200:])
    np.testing.assert_array_equal(by_grid.answers, by_record.answers + rest.answers)


def test_a_domain_larger_than_any_memory_can_be_asked():
    workload = BoxWorkload.of((10**9, 10**9), [(0, 10**8, 5, 10**9 - 1)])
    codes = np.array([[7, 10**8 + 1, 9], [6, 7, 2]])
    assert Truth.of_codes(workload, codes).answers.tolist() == [1]


def test_records_outside_the_domain_are_refused_clipped_or_dropped():
    codes = np.array([[0, 3, -1, 2]])
    with pytest.raises(InputError, match="some records lie outside the domain") as caught:
        codes_inside(codes, (3,))
    assert not set("-13") & set(str(caught.value))
    assert codes_inside(codes, (3,), "clip").tolist() == [[0, 2, 0, 2]]
    assert codes_inside(codes, (3,), "drop", "add_remove").tolist() == [[0, 2]]
    with pytest.raises(InputError, match="changes n, which is public here; write 'clip'"):
        codes_inside(codes, (3,), "drop")
    with pytest.raises(InputError, match="outside must be one of"):
        codes_inside(codes, (3,), "ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("codes", [np.zeros((1, 3)), np.zeros(3, int), np.zeros((2, 3), int)])
def test_codes_of_another_kind_are_refused(codes):
    with pytest.raises(InputError, match="codes must be whole numbers in 1 rows"):
        codes_inside(codes, (3,))


def test_the_table_of_the_report_is_the_published_one():
    assert histogram_1d().sum() == 1_013_184
    assert np.gcd.reduce(histogram_2d().reshape(-1)) == COPIES == 288
    assert histogram_1d()[:3].tolist() == [25_056, 38_592, 44_352]
    assert histogram_2d().shape == (14, 4)
