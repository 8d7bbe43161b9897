"""Ratings by user and by item: the same ratings, with exact sums."""

import numpy as np
import pytest
from hypothesis import given

from dpsim.core.errors import InputError
from dpsim.data.ratings import RatingScale, no_users
from dpsim.recommend._item_kernels import by_item
from dpsim.recommend.ratings_matrix import RatingMatrix
from tests.recommend.plain import (
    NONE,
    STARS,
    T,
    codes_tables,
    matrix_of,
    piece_of_codes,
    units_of,
)


@given(codes_tables())
def test_the_item_side_holds_the_same_ratings(codes):
    matrix, units = matrix_of(codes), units_of(codes)
    for item in range(codes.shape[1]):
        first, last = matrix.item_ends[[item, item + 1]]
        raters = np.flatnonzero(codes[:, item] != NONE)
        assert matrix.item_users[first:last].tolist() == raters.tolist()
        assert matrix.item_units[first:last].tolist() == units[raters, item].tolist()
    assert matrix.counts.tolist() == (codes != NONE).sum(axis=0).tolist()
    assert matrix.sums.tolist() == units.sum(axis=0).tolist()
    assert matrix.squares.tolist() == (units**2).sum(axis=0).tolist()


def test_the_kernel_keeps_types_and_takes_nothing():
    empty = no_users(0, STARS)
    made = by_item(3, empty.indptr, empty.items, np.zeros(0))
    assert [part.size for part in made] == [4, 0, 0, 3, 3, 3]
    kinds = [np.int64, np.int32, np.float64, np.int64, np.float64, np.float64]
    assert [part.dtype for part in made] == kinds


def test_means_are_over_raters_and_fall_back_to_the_mean_of_all():
    codes = np.column_stack([T, np.full(5, NONE)])
    matrix = matrix_of(codes)
    assert matrix.mean == pytest.approx(48 / 14)
    assert matrix.item_means == pytest.approx([15 / 4, 11 / 3, 12 / 4, 10 / 3, 48 / 14])


def test_half_stars_are_counted_in_halves():
    matrix = matrix_of([[0, 9], [4, NONE]], RatingScale("0.5", 5, "0.5"))
    assert (matrix.unit, matrix.sums.tolist()) == (0.5, [6.0, 10.0])
    assert matrix.item_means.tolist() == [1.5, 5.0]


def test_without_ratings_the_mean_is_the_middle():
    matrix = RatingMatrix(2, STARS, no_users(0, STARS))
    assert (matrix.mean, matrix.item_means.tolist()) == (3.0, [3.0, 3.0])
    assert repr(matrix) == "RatingMatrix(0 users, 2 items, 0 ratings)"


def test_items_outside_the_catalog_are_refused():
    with pytest.raises(InputError, match="the public catalog"):
        RatingMatrix(3, STARS, piece_of_codes(T))
