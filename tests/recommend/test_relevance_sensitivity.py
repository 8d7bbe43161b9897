"""RS: the printed values, the definition, what it bounds and what it does not."""

import numpy as np
import pytest
from hypothesis import given

from dpsim.core.errors import InputError, ResourceError
from dpsim.data.ratings import RatingScale
from dpsim.recommend._item_kernels import inverse_norms
from dpsim.recommend.relevance_sensitivity import relevance_sensitivity, shrink_factor
from tests.recommend.plain import NONE, T, codes_tables, matrix_of, relevance, similarities

TWO = np.array([[4, 5], [5, 4], [2, 0], [0, 3], [3, 1]]) - 1
TOY = np.array([[1, 5], [1, 5], [1, 5], [5, 0]]) - 1


def test_the_printed_values():
    wanted = [0.626224, 0.238095, 0.120491, 0.228106, 0.378777, 0.885615]
    made = relevance_sensitivity(matrix_of(T))[np.triu_indices(4, 1)]
    assert made == pytest.approx(wanted, abs=1e-6)
    assert relevance_sensitivity(matrix_of(TWO))[0, 1] == pytest.approx(0.636285, abs=1e-6)
    assert relevance_sensitivity(matrix_of(TOY))[0, 1] == pytest.approx(0.136083, abs=1e-6)
    assert relevance_sensitivity(matrix_of(TOY[:3]))[0, 1] == pytest.approx(0.5, abs=1e-6)
    assert shrink_factor(1) == pytest.approx(0.367879, abs=1e-6)


@given(codes_tables())
def test_every_entry_is_as_defined(codes):
    made = relevance_sensitivity(matrix_of(codes))
    n = codes.shape[1]
    wanted = [[0 if i == j else relevance(codes, i, j) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-7)
    assert made.dtype == np.float32


@given(codes_tables())
def test_zero_may_be_a_rating(codes):
    scale = RatingScale(0, 4)
    made = relevance_sensitivity(matrix_of(codes, scale))
    n = codes.shape[1]
    assert np.isfinite(made).all()
    for i, j in zip(*np.triu_indices(n, 1), strict=True):
        wanted = relevance(codes, i, j, scale)
        assert made[i, j] == made[j, i] == pytest.approx(wanted, rel=1e-5, abs=1e-7)


@given(codes_tables(users=(2, 7)))
def test_removing_a_co_rater_never_moves_the_cosine_further(codes):
    made = relevance_sensitivity(matrix_of(codes))
    before = similarities(codes, "cosine")
    for x in range(codes.shape[0]):
        after = similarities(np.delete(codes, x, axis=0), "cosine")
        both = np.outer(codes[x] != NONE, codes[x] != NONE)
        np.fill_diagonal(both, val=False)
        assert (np.abs(after - before)[both] <= made[both] * (1 + 1e-6) + 1e-7).all()


def test_removing_who_rated_one_item_may_move_it_further():
    """The toy: without user 4 the cosine grows by .67, and RS was .14."""
    change = similarities(TOY[:3], "cosine")[0, 1] - similarities(TOY, "cosine")[0, 1]
    assert change == pytest.approx(1 - 0.327327, abs=1e-6)
    assert change > 4 * relevance_sensitivity(matrix_of(TOY))[0, 1]


def test_a_single_rater_has_full_sensitivity():
    assert relevance_sensitivity(matrix_of([[2, 3, NONE]]))[0].tolist() == [0, 1, 0]


def test_ratings_below_zero_are_refused():
    with pytest.raises(InputError, match="RS needs ratings >= 0"):
        relevance_sensitivity(matrix_of(T, RatingScale(-2, 2)))


def test_a_matrix_that_is_too_large_is_refused():
    with pytest.raises(ResourceError, match="GB"):
        relevance_sensitivity(matrix_of(T), limit=63)


def test_inverse_norms_are_as_defined_and_take_nothing():
    made = inverse_norms(np.array([3.0, 4.0, 2.0]), np.array([0, 0, 1], np.int32),
                         np.array([25.0, 4.0]))  # fmt: skip
    assert made.tolist() == [0.25, 1 / 3, np.inf]
    empty = inverse_norms(np.zeros(0), np.zeros(0, np.int32), np.zeros(0))
    assert (empty.size, empty.dtype) == (0, np.float64)
