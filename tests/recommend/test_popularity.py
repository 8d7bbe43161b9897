"""Ranked lists: unseen items, best first, ties by item; random and popular ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import CentralNoise
from dpsim.recommend.popularity import ItemCosine, Popularity, RandomItems, rank
from tests.recommend.plain import NONE, T, codes_tables, matrix_of, piece_of_codes


def ranked_plainly(scores, codes, n):
    lists = []
    for user, row in enumerate(codes):
        mine = scores[min(user, len(scores) - 1)]
        unseen = [item for item in range(row.size) if row[item] == NONE]
        best = sorted(unseen, key=lambda item: (-mine[item], item))[:n]
        lists.append(best + [-1] * (n - len(best)))
    return lists


@given(codes_tables(), st.integers(1, 5), st.data())
def test_a_list_holds_the_best_unseen_items(codes, n, data):
    rows = data.draw(st.sampled_from([1, codes.shape[0]]))
    size = rows * codes.shape[1]
    flat = data.draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size))
    scores = np.array(flat, float).reshape(rows, -1)
    made = rank(scores, piece_of_codes(codes), n)
    assert made.dtype == np.int32
    assert made.tolist() == ranked_plainly(scores, codes, n)


@given(codes_tables(), st.integers(1, 4))
def test_popular_items_come_first(codes, n):
    counts = (codes != NONE).sum(axis=0)
    made = Popularity(counts).top_n(piece_of_codes(codes), n)
    assert made.tolist() == ranked_plainly([counts], codes, n)


def cosine_scores(codes, k):
    has = (codes != NONE).astype(float)
    counts = has.sum(axis=0)
    below = np.sqrt(counts)[:, None] * np.sqrt(counts)
    cosines = np.divide(has.T @ has, below, out=np.zeros_like(below), where=below > 0)
    scores = np.zeros(codes.shape)
    for user, item in np.ndindex(codes.shape):
        rated = np.flatnonzero(has[user]).tolist()
        near = sorted(zip(-cosines[item, rated], rated, strict=True))[:k]
        scores[user, item] = sum(cosines[item, j] for j in sorted(j for _, j in near))
    return scores


@given(codes_tables(), st.integers(1, 4), st.integers(1, 4))
def test_items_next_to_what_was_rated_come_first(codes, k, n):
    made = ItemCosine(matrix_of(codes), k).top_n(piece_of_codes(codes), n)
    assert made.tolist() == ranked_plainly(cosine_scores(codes, k), codes, n)


def test_no_item_is_given_up_too_early():
    """Sums that cannot enter a list are not computed: only those."""
    rng = np.random.default_rng(6)
    codes = np.where(rng.random((60, 40)) < rng.random(40) ** 2, 1, NONE)
    made = ItemCosine(matrix_of(codes), 4).top_n(piece_of_codes(codes), 5)
    assert made.tolist() == ranked_plainly(cosine_scores(codes, 4), codes, 5)


def test_a_new_user_gets_a_list():
    model = ItemCosine(matrix_of(T), 2)
    new = piece_of_codes(T[[4]], start=70)
    assert model.top_n(new, 2).tolist() == model.top_n(piece_of_codes(T), 2)[[4]].tolist()


def test_random_items_are_unseen_distinct_and_belong_to_the_user():
    rng = np.random.default_rng(3)
    codes = np.where(rng.random((50, 20)) < 0.3, 1, NONE)
    piece = piece_of_codes(codes)
    random = RandomItems(20, CentralNoise(1, "x"))
    made = random.top_n(piece, 5)
    for user, items in enumerate(made):
        assert len(set(items)) == 5
        assert (codes[user, items] == NONE).all()
    assert np.array_equal(random.top_n(piece.part(Block(13, 7)), 5), made[13:20])
    assert not np.array_equal(RandomItems(20, CentralNoise(2, "x")).top_n(piece, 5), made)
    assert random.top_n(piece.part(Block(3, 0)), 5).shape == (0, 5)


@pytest.mark.statistical
def test_random_items_are_uniform():
    piece = piece_of_codes(np.full((4_000, 10), NONE))
    counts = np.bincount(RandomItems(10, CentralNoise(1, "")).top_n(piece, 3).ravel())
    sd = (4_000 * 0.3 * 0.7) ** 0.5
    assert (np.abs(counts - 1_200) < 5 * sd).all()
    assert not (np.abs(counts - 1_400) < 5 * sd).any()


def test_bad_scores_and_lengths_are_refused():
    piece = piece_of_codes(T)
    with pytest.raises(InputError, match="1 row or 5"):
        rank(np.zeros((2, 4)), piece, 1)
    with pytest.raises(InputError, match="finite"):
        rank(np.full((1, 4), np.nan), piece, 1)
    for model in (Popularity(np.ones(4)), RandomItems(4, CentralNoise(0, "")),
                  ItemCosine(matrix_of(T))):  # fmt: skip
        with pytest.raises(InputError, match="n must be a whole number >= 1"):
            model.top_n(piece, 0)
    with pytest.raises(InputError, match="k must be"):
        ItemCosine(matrix_of(T), 0)
