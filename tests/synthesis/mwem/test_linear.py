"""Arbitrary linear queries as compressed rows."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpsim.core.errors import InputError
from dpsim.synthesis.mwem.linear import LinearWorkload

weights = arrays.arrays(float, (4, 6), elements=st.floats(0, 1))
masks = arrays.arrays(float, (4, 6), elements=st.sampled_from([0.0, 1.0]))


@given(weights, arrays.arrays(np.int64, 6, elements=st.integers(0, 10**6)))
def test_answers_are_products_with_the_matrix(matrix, counts):
    answers = LinearWorkload.of((2, 3), matrix).answers(counts.reshape(2, 3))
    np.testing.assert_allclose(answers, matrix @ counts, rtol=1e-12, atol=1e-9)


@given(masks, arrays.arrays(np.int64, 6, elements=st.integers(0, 2**60)))
def test_counts_are_exact_whole_numbers(matrix, counts):
    workload = LinearWorkload.of((6,), matrix)
    answers = workload.answers(counts)
    assert workload.is_counting
    assert answers.dtype == np.int64
    np.testing.assert_array_equal(answers, matrix.astype(int) @ counts)


@given(masks)
def test_cells_are_those_of_weight_one(matrix):
    _, pointers, cells = LinearWorkload.of((6,), matrix).cells
    expected = [np.flatnonzero(row) for row in matrix]
    assert [cells[a:b].tolist() for a, b in pairwise(pointers)] == [
        e.tolist() for e in expected
    ]
    stored = LinearWorkload((6,), (np.array([0, 6]), np.arange(6), matrix[0]))  # zeros too
    assert stored.cells[2].tolist() == expected[0].tolist()


@given(weights)
def test_compressed_rows_and_the_matrix_are_one_workload(matrix):
    dense = LinearWorkload.of((6,), matrix)
    again = LinearWorkload((6,), dense.rows)
    assert dense.digest == again.digest
    assert dense.groups.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("neighbors", ["replace", "add_remove"])
@pytest.mark.parametrize("is_signed", [False, True])
def test_the_sensitivity_is_the_largest_change_by_one_record(neighbors, is_signed):
    matrix = np.array([[0.0, 1.0, 0.5], [1.0, -1.0 if is_signed else 0.0, 0.0]])
    workload = LinearWorkload.of((3,), matrix, is_signed=is_signed)
    columns = matrix.T
    changes = [a - b for a, b in product(columns, columns)]
    largest = np.abs(changes if neighbors == "replace" else columns).max()
    assert largest == workload.sensitivity(neighbors)


def test_one_fraction_makes_a_workload_that_does_not_count():
    assert not LinearWorkload.of((2,), np.array([[1.0, 0.5]])).is_counting


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"matrix must have 4 columns, one per cell of \(4,\)"),
        (np.zeros((0, 4)), "one query at least"),
        (np.array([[0, 1, 1, 1], [0, 0, 2, 0]]), r"query 1 must have weights in \[0, 1\]"),
        (np.array([[0, -1, 1, 1]]), "query 0 .* write is_signed=True"),
        (np.array([[0, np.nan, 1, 1]]), "query 0 must have weights"),
    ],
)
def test_bad_matrices_are_refused_by_the_query(matrix, message):
    with pytest.raises(InputError, match=message):
        LinearWorkload.of((4,), matrix)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (([0, 1, 2], [0, 4], [1, 1]), r"query 1 must have cells inside 0\.\.3"),
        (([0, 2], [1, 1], [1, 1]), "query 0 must name each cell once, in ascending order"),
        (([0, 2], [0], [1]), "pointers must ascend"),
        (([0, 2, 1], [0], [1]), "pointers must ascend"),
        (([0], [], []), "one query at least"),
    ],
)
def test_bad_compressed_rows_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        LinearWorkload((4,), tuple(np.array(part) for part in rows))  # type: ignore[arg-type]


def test_signed_weights_below_minus_one_are_refused():
    with pytest.raises(InputError, match=r"weights in \[-1, 1\]$"):
        LinearWorkload.of((2,), np.array([[-2.0, 1.0]]), is_signed=True)
