"""A keyed split of ratings: by user and item, and by nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import draws_at
from dpsim.data.generated_ratings import GeneratedRatings
from dpsim.data.rating_split import RatingSplit, held_out
from dpsim.data.ratings import read_users
from tests.data.test_ratings import ROWS, piece_of, rows_of, table_of

SOURCE = GeneratedRatings(300, 40, 10, block_size=64)


@given(ROWS, st.integers(1, 9), st.integers(0, 3))
def test_both_sides_make_the_whole(rows, block_size, seed):
    table = table_of(rows, block_size=block_size)
    sides = [RatingSplit(table, "0.4", seed, is_held_out=side) for side in (False, True)]
    train, test = (rows_of(read_users(side, Block(0, table.n))) for side in sides)
    assert [a | b for a, b in zip(train, test, strict=True)] == rows
    assert not any(set(a) & set(b) for a, b in zip(train, test, strict=True))
    assert sides[0].fingerprint != sides[1].fingerprint


@given(st.integers(0, 250), st.integers(0, 40))
def test_any_block_splits_as_the_whole_does(start, n):
    whole = read_users(RatingSplit(SOURCE, "0.2"), Block(0, 300))
    part = read_users(RatingSplit(SOURCE, "0.2"), Block(start, n))
    assert rows_of(part) == rows_of(whole)[start : start + n]


def test_where_a_rating_goes_does_not_depend_on_the_users_other_ratings():
    full = piece_of([{}, dict.fromkeys(range(10), 0)])
    for item in range(10):
        alone = piece_of([{}, {item: 0}])
        assert held_out(alone, 10, 0.5, 1) == held_out(full, 10, 0.5, 1)[item]


def test_the_draw_is_the_one_at_user_and_item():
    draws = draws_at((3, "sample", "", "\0held out ratings"), 0, 300 * 40)
    piece = read_users(SOURCE, Block(0, 300))
    wanted = draws[piece.users * 40 + piece.items] < 2**31
    assert np.array_equal(held_out(piece, 40, 0.5, 3), wanted)


@pytest.mark.statistical
def test_the_share_is_held_out():
    piece = read_users(SOURCE, Block(0, 300))
    n = piece.items.size
    share = held_out(piece, 40, 0.2, 0).mean()
    assert abs(share - 0.2) < 5 * (0.16 / n) ** 0.5
    assert abs(share - 0.25) > 5 * (0.16 / n) ** 0.5


def test_a_share_of_one_or_more_is_refused():
    with pytest.raises(InputError, match="share must be"):
        RatingSplit(SOURCE, 1)
