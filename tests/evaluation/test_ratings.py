"""Errors and rankings: printed values, small cases by hand, groups that make the whole."""

from math import isnan, log2, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.evaluation.ratings import (
    Quartiles,
    ranking_scores,
    rating_errors,
    rating_errors_by,
    recall_by_popularity,
    relevant_ratings,
)
from tests.recommend.plain import NONE, codes_tables, piece_of_codes


def test_errors_by_hand():
    users = np.array([7, 7, 3])
    made = rating_errors(np.array([1.0, 2, 3]), np.array([2.0, 4, 3]), users)
    assert (made.n, made.mae) == (3, 1.0)
    assert made.rmse == pytest.approx(sqrt(5 / 3))
    assert made.user_rmse == pytest.approx(sqrt(5 / 2) / 2)
    assert made.coverage == 1.0
    part = rating_errors(np.ones(2), np.ones(2), users[:2], np.array([True, False]))
    assert part.coverage == 0.5


def test_no_ratings_have_no_errors():
    made = rating_errors(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    assert made.n == 0
    assert isnan(made.rmse)


def test_lengths_must_agree():
    with pytest.raises(InputError, match="same length"):
        rating_errors(np.zeros(2), np.zeros(1), np.zeros(2, np.int64))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(1, 5)), min_size=1))
def test_groups_make_the_whole(rows):
    groups, truth, predicted = (np.array(column) for column in zip(*rows, strict=True))
    users = np.arange(len(rows))
    whole = rating_errors(truth, predicted, users)
    parts = [part for part in rating_errors_by(groups, truth, predicted, users) if part.n]
    assert sum(part.n for part in parts) == whole.n
    assert sum(part.n * part.mae for part in parts) == pytest.approx(whole.n * whole.mae)
    squares = sum(part.n * part.rmse**2 for part in parts)
    assert squares == pytest.approx(whole.n * whole.rmse**2)


def test_quartiles_are_closed_on_the_right():
    made = Quartiles.of(np.array([1, 2, 2, 3, 10]))
    assert made.cuts == (2.0, 2.0, 3.0)
    assert made.groups.tolist() == [0, 0, 0, 2, 3]
    with pytest.raises(InputError, match="at least one"):
        Quartiles.of(np.zeros(0, np.int64))


@pytest.mark.parametrize(("relevant", "ndcg"), [(3, 0.703918), (2, 0.919721)])
def test_the_printed_gains(relevant, ndcg):
    codes = np.full((1, 9), NONE)
    codes[0, [0, 2, 8][:relevant]] = 4
    made = ranking_scores(np.array([[0, 1, 2]], np.int32), piece_of_codes(codes), 9).quality()
    assert made.ndcg == pytest.approx(ndcg, abs=1e-6)
    assert made.precision == pytest.approx(2 / 3)
    assert made.recall == pytest.approx(2 / relevant)
    assert (made.hit_rate, made.coverage) == (1.0, 3 / 9)


def plain_scores(items, wanted, n):
    hits = [item in wanted for item in items]
    gain = sum(hit / log2(place + 2) for place, hit in enumerate(hits))
    best = sum(1 / log2(place + 2) for place in range(min(n, len(wanted))))
    return sum(hits) / n, sum(hits) / len(wanted), gain / best, float(any(hits))


@given(codes_tables(items=(3, 6)), st.integers(1, 4), st.randoms(use_true_random=False))
def test_measures_are_means_over_users_with_relevant_items(codes, n, random):
    relevant = relevant_ratings(piece_of_codes(codes, start=5), 3)
    lists = [random.sample(range(codes.shape[1]), codes.shape[1]) for _ in codes]
    ranked = np.array([(row + [-1] * n)[:n] for row in lists], np.int32)
    wanted = [set(np.flatnonzero(row >= 3).tolist()) for row in codes]
    made = ranking_scores(ranked, relevant, codes.shape[1])
    rows = [plain_scores(r, w, n) for r, w in zip(ranked, wanted, strict=True) if w]
    whole = made.quality()
    assert whole.users == len(rows)
    found = (whole.precision, whole.recall, whole.ndcg, whole.hit_rate)
    if rows:
        assert found == pytest.approx(tuple(np.mean(rows, axis=0)))
    else:
        assert all(isnan(value) for value in found)
    groups = np.arange(len(codes)) % 4
    parts = made.quality_by(groups)
    assert sum(part.users for part in parts) == whole.users
    total = sum(part.users * part.ndcg for part in parts if part.users)
    assert total == pytest.approx(whole.users * whole.ndcg if rows else 0.0)


def test_nothing_is_no_hit():
    """-1 must not count as the last item of the user before."""
    relevant = piece_of_codes([[NONE, 4], [4, NONE]])
    made = ranking_scores(np.array([[1, -1], [-1, -1]], np.int32), relevant, 2)
    assert made.hits.tolist() == [1, 0]
    assert made.coverage == 0.5


def test_recall_by_popularity_counts_each_relevant_rating_once():
    relevant = piece_of_codes([[4, 4, NONE, NONE], [4, NONE, 4, NONE]])
    ranked = np.array([[0, 3], [2, -1]], np.int32)
    made = recall_by_popularity(ranked, relevant, np.array([0, 0, 1, 3]))
    assert made[:2] == pytest.approx((1 / 3, 1.0))
    assert isnan(made[2])
    assert isnan(made[3])


def test_relevant_ratings_reach_the_code():
    made = relevant_ratings(piece_of_codes([[2, 3, 4], [0, NONE, 3]]), 3)
    assert made.items.tolist() == [1, 2, 2]


def test_there_is_one_list_per_user():
    with pytest.raises(InputError, match="2 lists"):
        ranking_scores(np.zeros((1, 3), np.int32), piece_of_codes([[1], [1]]), 1)
    with pytest.raises(InputError, match="n must be"):
        ranking_scores(np.zeros((1, 0), np.int32), piece_of_codes([[1]]), 1)
