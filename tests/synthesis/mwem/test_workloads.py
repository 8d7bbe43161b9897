"""Workloads: answers by tables of sums equal plain sums, exactly."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.mwem.child_health import histogram_1d, intervals_1d
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests.synthesis.mwem.problems import box_masks, every_box

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def workloads(draw):
    shape = draw(shapes)
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        row = []
        for size in shape:
            low = draw(st.integers(0, size - 1))
            row += [low, draw(st.integers(low, size - 1))]
        rows.append(tuple(row))
    return BoxWorkload.of(shape, sorted(set(rows)))


@given(workloads(), st.integers(0, 2**32))
def test_answers_are_sums_over_boxes_in_any_dimension(workload, seed):
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 2**55, workload.shape)
    answers = workload.answers(counts)
    assert answers.dtype == np.int64
    np.testing.assert_array_equal(answers, box_masks(workload) @ counts.reshape(-1))
    masses = generator.random(workload.shape)
    floats = workload.answers(masses.reshape(-1))
    assert floats.dtype == np.float64
    np.testing.assert_allclose(floats, box_masks(workload) @ masses.reshape(-1), rtol=1e-12)


@given(workloads())
def test_runs_are_the_cells_of_a_box(workload):
    queries = list(range(len(workload.lower)))[::-1]
    groups, runs, starts, stops = workload.layout(queries)
    np.testing.assert_array_equal(groups, np.arange(len(queries) + 1))
    for place, query in enumerate(queries):
        mine = slice(runs[place], runs[place + 1])
        mask = np.zeros(np.prod(workload.shape), int)
        for start, stop in zip(starts[mine], stops[mine], strict=True):
            mask[start:stop] += 1
        np.testing.assert_array_equal(mask, box_masks(workload)[query])


@given(workloads())
def test_cells_are_those_of_the_runs(workload):
    _, pointers, cells = workload.cells
    found = [cells[a:b].tolist() for a, b in pairwise(pointers)]
    assert found == [np.flatnonzero(mask).tolist() for mask in box_masks(workload)]
    assert BoxWorkload.of((5000,), [(0, 1)]).cells is None


def test_both_ends_are_included():
    workload = BoxWorkload.of((14,), [(11, 11), (0, 13)])
    assert workload.answers(histogram_1d()).tolist() == [93_312, 1_013_184]
    assert len(intervals_1d().lower) == 60


def test_a_whole_marginal_is_one_query_and_its_cells_are_one_each():
    counts = np.arange(24).reshape(2, 3, 4)
    whole = BoxWorkload.marginals((2, 3, 4), [(2, 0), (1,)])
    assert whole.groups.tolist() == [0, 8, 11]
    expected = [*counts.sum(axis=1).reshape(-1), *counts.sum(axis=(0, 2))]
    assert whole.answers(counts).tolist() == expected
    cells = BoxWorkload.marginal_cells((2, 3, 4), [(2, 0), (1,)])
    assert cells.groups.tolist() == list(range(12))
    assert cells.answers(counts).tolist() == expected
    assert whole.is_whole
    assert not cells.is_whole


@pytest.mark.parametrize("neighbors", ["replace", "add_remove"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_the_sensitivity_is_the_largest_change_by_one_record(neighbors, is_whole):
    make = BoxWorkload.marginals if is_whole else BoxWorkload.marginal_cells
    workload = make((2, 3), [(0,), (1,), (0, 1)])
    cells = np.eye(6, dtype=int).reshape(-1, 2, 3)
    if neighbors == "replace":
        changes = [after - before for before, after in product(cells, cells)]
    else:
        changes = [*cells, *-cells]
    moved = [
        np.add.reduceat(np.abs(workload.answers(c)), workload.groups[:-1]) for c in changes
    ]
    assert np.max(moved) == workload.sensitivity(neighbors)


def test_boxes_change_by_one_under_both_relations():
    workload = every_box((2, 3))
    cells = np.eye(6, dtype=int)
    for before, after in product(cells, cells):
        assert np.abs(workload.answers(after - before)).max() <= 1
    assert workload.sensitivity("replace") == workload.sensitivity("add_remove") == 1


def test_the_digest_names_the_content():
    digests = {
        BoxWorkload.of((4,), [(0, 1), (2, 3)]).digest,
        BoxWorkload.of((4,), [(2, 3), (0, 1)]).digest,
        BoxWorkload.of((5,), [(0, 1), (2, 3)]).digest,
        BoxWorkload.marginals((2, 2), [(0,), (1,)]).digest,
        BoxWorkload.marginal_cells((2, 2), [(0,), (1,)]).digest,
    }
    assert len(digests) == 5
    assert BoxWorkload.of((4,), [(0, 1)]).digest == BoxWorkload.of([4], [[0, 1]]).digest


def test_repeated_queries_are_kept_with_a_warning():
    with pytest.warns(UserWarning, match="1 of 3 queries repeat another one"):
        workload = BoxWorkload.of((4,), [(0, 1), (2, 3), (0, 1)])
    assert len(workload.lower) == 3


@pytest.mark.parametrize(
    ("shape", "boxes", "message"),
    [
        ((), [(0, 1)], "shape must name the size of one attribute"),
        ((0,), [(0, 1)], "shape must be a whole number >= 1, got 0"),
        ((4,), [], "a workload needs one query at least"),
        ((4,), [(0, 1), (3, 2)], "query 1 must have lo <= hi in attribute 0, got 3 > 2"),
        ((4,), [(0, 4)], r"query 0 must lie inside 0\.\.3 in attribute 0, got 0\.\.4"),
        ((4, 4), [(0, 1, -1, 1)], r"query 0 must lie inside 0\.\.3 in attribute 1"),
        (
            (4, 4),
            [(0, 1)],
            "query 0 must give lo and hi of each of 2 attributes, got 2 numbers",
        ),
        ((4,), [(0, 1.5)], "query 0 must have whole numbers as ends"),
    ],
)
def test_bad_boxes_are_refused_by_their_index(shape, boxes, message):
    with pytest.raises(InputError, match=message):
        BoxWorkload.of(shape, boxes)


@pytest.mark.parametrize("kept", [(), (0, 0), (2,), (-1,)])
def test_bad_marginals_are_refused_by_their_index(kept):
    with pytest.raises(
        InputError, match=r"marginal 1 must keep different attributes of 0\.\.1"
    ):
        BoxWorkload.marginals((2, 2), [(0,), kept])
    with pytest.raises(InputError, match="one query at least"):
        BoxWorkload.marginals((2, 2), [])


def test_a_histogram_of_another_shape_is_refused():
    with pytest.raises(
        InputError, match=r"a histogram over \(4,\) is needed, got shape \(5,\)"
    ):
        BoxWorkload.of((4,), [(0, 1)]).answers(np.zeros(5))
