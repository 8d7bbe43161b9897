"""Kernels against plain numpy: value and type, and nothing from nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsim.recommend._pair_kernels import add_pairs, fold_rows


def rows_of(seed, users=30, size=12):
    rng = np.random.default_rng(seed)
    chosen = rng.random((users, size)) < rng.random((users, 1))
    dense = np.where(chosen, rng.integers(-65_536, 65_537, (users, size)), 0)
    owner, places = np.nonzero(chosen)
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(1))]).astype(np.int64)
    return indptr, places.astype(np.int32), dense[owner, places].astype(np.int32), dense


@given(st.integers(0, 10**6), st.integers(0, 11), st.integers(0, 11))
def test_pairs_are_added_as_in_a_matrix_product(seed, first, rows):
    size, stop = 12, min(11, first + rows)
    first = min(first, stop)
    indptr, places, values, dense = rows_of(seed)
    start, end = (row * (2 * size - row - 1) // 2 for row in (first, stop))
    packed = np.ones(end - start, np.int64)
    add_pairs(indptr, places, values, (first, stop), size, packed)
    whole = (dense.T @ dense)[np.triu_indices(size, 1)]
    np.testing.assert_array_equal(packed, whole[start:end] + 1)


def test_nobody_adds_nothing():
    packed = np.zeros(3, np.int64)
    add_pairs(
        np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), (0, 2), 3, packed
    )
    assert packed.tolist() == [0, 0, 0]


@given(st.integers(0, 10**6), st.integers(0, 7))
def test_folded_rows_solve_their_equations(seed, rank):
    indptr, places, values, _ = rows_of(seed)
    rng = np.random.default_rng(seed)
    factors, targets = rng.normal(0, 1, (12, rank)), values / 65_536
    folded = fold_rows(indptr, places, targets, factors, 0.7)
    assert folded.shape == (30, rank)
    assert folded.dtype == np.float64
    for user in range(30):
        own = slice(indptr[user], indptr[user + 1])
        q = factors[places[own]]
        expected = np.linalg.solve(q.T @ q + 0.7 * np.eye(rank), q.T @ targets[own])
        np.testing.assert_allclose(folded[user], expected, rtol=1e-8, atol=1e-11)


def test_users_without_ratings_fold_to_zero():
    empty = np.zeros(0, np.int32)
    folded = fold_rows(np.zeros(3, np.int64), empty, np.zeros(0), np.ones((4, 2)), 0.7)
    assert folded.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert fold_rows(np.zeros(1, np.int64), empty, np.zeros(0), np.ones((4, 2)), 0.7).shape == (
        0,
        2,
    )
