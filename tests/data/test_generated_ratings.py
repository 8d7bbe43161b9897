"""Generated ratings: by user index alone, from a law whose truth is known."""

import pickle
from math import cos, log, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import words_at
from dpsim.data._item_kernels import choose_items, normals, rate_items
from dpsim.data.generated_ratings import GeneratedRatings, is_generated_ratings, parse_ratings
from dpsim.data.ratings import read_users, require_piece
from tests.data.test_ratings import rows_of

SMALL = GeneratedRatings(200, 30, 12)
WHOLE = read_users(SMALL, Block(0, 200))


@given(st.integers(0, 200), st.integers(0, 60), st.integers(1, 50))
def test_any_users_through_any_blocks_are_the_same_bits(start, n, block_size):
    n = min(n, 200 - start)
    source = GeneratedRatings(200, 30, 12, block_size=block_size)
    assert rows_of(read_users(source, Block(start, n))) == rows_of(WHOLE)[start : start + n]


def test_more_users_do_not_change_the_first_ones():
    more = GeneratedRatings(10_000, 30, 12)
    assert rows_of(more.read(Block(0, 200)).open()) == rows_of(WHOLE)
    assert more.fingerprint != SMALL.fingerprint


@pytest.mark.parametrize("change", ["n_items", "mean", "factors", "seed"])
def test_every_parameter_changes_the_ratings_and_their_name(change):
    values = {"n_users": 200, "n_items": 30, "mean": 12, "factors": 6, "seed": 0}
    values[change] += 1
    other = GeneratedRatings(**values)
    assert rows_of(read_users(other, Block(0, 200))) != rows_of(WHOLE)
    assert other.fingerprint != SMALL.fingerprint


def test_ratings_are_frozen():
    """If this fails, every result on generated ratings has changed."""
    assert "".join(f"{item}:{code} " for item, code in rows_of(WHOLE)[1].items()) == (
        "0:2 1:1 3:3 4:4 6:2 7:3 8:3 11:2 12:2 14:3 16:1 17:2 21:2 23:3 25:3 27:2 28:2 29:3 "
    )


def test_a_user_is_what_the_formulas_make_of_its_words():
    """User 7 again, in plain Python."""
    width = 2 + 6 + 30 + 18
    words = [int(w) for w in words_at((0, "data", "", "ratings"), 7 * width, width)]
    u = [((w >> 12) + 0.5) / 2**52 for w in words]

    def normal(place):
        first, second = u[place - place % 2], u[place - place % 2 + 1]
        return sqrt(-2 * log(first)) * (cos, sin)[place % 2](2 * pi * second)

    truth = SMALL.truth
    size = min(max(round(np.exp(log(12) - 0.32 + 0.8 * normal(0))), 10), 18)
    times = sorted((-log(u[8 + i]) / truth.popularity[i], i) for i in range(30))
    ratings = {}
    for rank, item in enumerate(sorted(i for _, i in times[:size])):
        taste = sum(normal(2 + f) * truth.tastes[item, f] for f in range(6)) / sqrt(6)
        mean = 3.5 + truth.biases[item] + 0.4 * normal(1) + 0.5 * taste
        rating = np.floor(mean + 0.75 * normal(38 + rank) + 0.5)
        ratings[item] = int(min(max(rating, 1), 5)) - 1
    assert rows_of(WHOLE)[7] == ratings


def test_pieces_are_well_formed_and_sizes_are_clipped():
    require_piece(WHOLE, 30, SMALL.scale)
    assert WHOLE.sizes.min() == 10
    assert WHOLE.sizes.max() == 18


def test_a_tiny_catalog_still_has_ratings():
    piece = read_users(GeneratedRatings(20, 2), Block(0, 20))
    assert (piece.sizes == 1).all()


def test_popularity_is_a_shuffled_power_law():
    shares = np.sort(SMALL.truth.popularity)[::-1]
    ranks = np.arange(1.0, 31) ** -0.8
    np.testing.assert_allclose(shares, ranks / ranks.sum())
    assert not np.array_equal(shares, SMALL.truth.popularity)


@pytest.mark.statistical
def test_the_planted_truth_is_the_floor_of_the_reference():
    """.754/.606 ± .006 over seeds: rounding, clipping and noise are what is left."""
    source = GeneratedRatings(4_000)
    piece = read_users(source, Block(0, 4_000))
    assert abs(piece.sizes.mean() - 40) < 5 * 0.95 * 40 / 4_000**0.5
    errors = source.scale.values(piece.codes) - np.clip(source.planted(piece), 1, 5)
    assert abs(np.sqrt(np.mean(errors**2)) - 0.754) < 0.012
    assert abs(np.mean(np.abs(errors)) - 0.606) < 0.012
    blind = source.scale.values(piece.codes) - 3.5
    assert np.sqrt(np.mean(blind**2)) > 0.95


def test_the_planted_values_of_a_part_are_those_of_the_whole():
    whole, part = SMALL.planted(WHOLE), SMALL.planted(WHOLE.part(Block(50, 20)))
    first, last = WHOLE.indptr[[50, 70]]
    assert np.array_equal(whole[first:last], part)


def test_a_description_is_read_and_written():
    made = parse_ratings("ratings:users=1e4,items=500,mean=40,seed=3", 77)
    assert made == GeneratedRatings(10_000, 500, 40, 6, 3, 77)
    assert parse_ratings(made.description, 77) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert parse_ratings("ratings:").n == 10_000
    assert is_generated_ratings("ratings:users=2")
    assert not is_generated_ratings("ratings.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform:n=3", "described by ratings"),
        ("ratings:user=3", "'user=3' is not understood; write key=value with users, items"),
        ("ratings:users", "not understood"),
        ("ratings:users=x", "users must be a whole number"),
        ("ratings:users=1.5", "users must be a whole number"),
        ("ratings:users=inf", "users must be a whole number"),
        ("ratings:items=1", "n_items must be a whole number >= 2"),
        ("ratings:mean=0", "mean must be a whole number >= 1"),
    ],
)
def test_a_description_that_is_wrong_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_ratings(text)


def test_users_who_are_not_there_are_refused():
    with pytest.raises(InputError, match="200 users, not 201"):
        SMALL.read(Block(150, 51))


def test_choosing_breaks_ties_by_the_lower_item():
    words = np.full((2, 5), 1 << 40, np.uint64)
    items = choose_items(words, np.ones(5), np.array([0, 3, 5]))
    assert items.tolist() == [0, 1, 2, 0, 1]
    assert items.dtype == np.int32
    rates = np.array([1.0, 1.0, 9.0, 1.0, 1.0])
    assert choose_items(words[:1], rates, np.array([0, 3])).tolist() == [0, 1, 2]


def test_kernels_take_nothing():
    none = np.zeros((0, 4), np.uint64)
    assert normals(none).shape == (0, 4)
    assert choose_items(none, np.ones(4), np.zeros(1, np.int64)).size == 0
    assert (
        choose_items(np.zeros((1, 4), np.uint64), np.ones(4), np.zeros(2, np.int64)).size == 0
    )
    assert rate_items(np.zeros(0), np.zeros((0, 2)), np.zeros(1, np.int64)).dtype == np.uint8
