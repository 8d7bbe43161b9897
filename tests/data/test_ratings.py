"""Ratings as sparse pieces on an exact scale, and a holder that keeps them."""

import copy
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.data.rating_table import RatingTable
from dpsim.data.ratings import (
    PrivateRatings,
    RatingPiece,
    RatingScale,
    join,
    read_users,
    require_piece,
)

STARS = RatingScale(1, 5)


def piece_of(rows, start=0):
    """A piece from one dict of items and codes per user."""
    sizes = [len(row) for row in rows]
    pairs = [pair for row in rows for pair in sorted(row.items())]
    items = np.array([item for item, _ in pairs], np.int32)
    codes = np.array([code for _, code in pairs], np.uint8)
    return RatingPiece(start, np.cumsum([0, *sizes], dtype=np.int64), items, codes)


def rows_of(piece):
    ends = piece.indptr
    return [
        dict(zip(piece.items[a:b].tolist(), piece.codes[a:b].tolist(), strict=True))
        for a, b in pairwise(ends)
    ]


ROWS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, 4), max_size=6), max_size=8)


def test_a_scale_counts_its_levels_and_gives_exact_values():
    half = RatingScale("0.5", 5, 0.5)
    assert (STARS.levels, half.levels) == (5, 10)
    assert half.values(np.array([0, 1, 9], np.uint8)).tolist() == [0.5, 1.0, 5.0]
    tenth = RatingScale("0.1", 1, "0.1")
    assert tenth.values(np.array([2, 6], np.uint8)).tolist() == [0.3, 0.7]
    assert [s.code_type.name for s in (STARS, RatingScale(0, 1000))] == ["uint8", "uint16"]
    assert (half.span, str(half)) == (4.5, "0.5 to 5 by 0.5")


@given(
    st.fractions(-3, 3, max_denominator=12),
    st.fractions(Fraction(1, 12), 2, max_denominator=12),
    st.integers(1, 9),
)
def test_units_are_whole_multiples_of_the_largest_common_part(lo, step, levels):
    scale = RatingScale(lo, lo + levels * step, step)
    codes = np.arange(scale.levels, dtype=np.uint8)
    whole = [(lo + code * step) / scale.unit for code in range(scale.levels)]
    assert all(number.denominator == 1 for number in whole)
    assert np.gcd.reduce([int(number) for number in whole]) == 1
    assert scale.units(codes).tolist() == [float(number) for number in whole]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1, 5, 0), "step must be > 0"),
        ((5, 1, 1), "hi must be > lo"),
        ((1, 5, 3), "whole steps above lo"),
        ((0, 10**6, 1), "at most 65536 levels"),
        ((float("nan"), 5, 1), "lo must be a finite number"),
    ],
)
def test_an_impossible_scale_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        RatingScale(*values)


@given(ROWS, st.integers(0, 50), st.data())
def test_parts_join_to_the_whole_again(rows, start, data):
    piece = piece_of(rows, start)
    cut = start + data.draw(st.integers(0, piece.n))
    left = piece.part(Block(start, cut - start))
    right = piece.part(Block(cut, start + piece.n - cut))
    assert rows_of(left) + rows_of(right) == rows_of(piece) == rows
    whole = join([left, right])
    assert (whole.start, rows_of(whole)) == (start, rows)
    assert whole.users.tolist() == [start + u for u, row in enumerate(rows) for _ in row]


@given(ROWS, st.data())
def test_keeping_some_ratings_keeps_all_users(rows, data):
    piece = piece_of(rows, 3)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=piece.items.size,
                                       max_size=piece.items.size)), np.bool_)  # fmt: skip
    less, more = piece.keep(kept), piece.keep(~kept)
    assert less.block == more.block == piece.block
    assert [a | b for a, b in zip(rows_of(less), rows_of(more), strict=True)] == rows
    assert less.items.size == kept.sum()


@pytest.mark.parametrize(
    ("indptr", "items", "codes"),
    [
        ([1, 2], [0, 1], [0, 0]),
        ([0, 2, 1], [0], [0]),
        ([0, 2], [0], [0]),
        ([0, 1], [0], [0, 1]),
        ([], [], []),
    ],
)
def test_a_piece_whose_parts_do_not_fit_is_refused(indptr, items, codes):
    with pytest.raises(InputError, match=r"indptr|as long as"):
        RatingPiece(
            0, np.array(indptr, np.int64), np.array(items, np.int32), np.array(codes, np.uint8)
        )


def test_a_piece_has_fixed_types():
    with pytest.raises(InputError, match="int64"):
        RatingPiece(0, np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8))


@pytest.mark.parametrize(
    ("items", "codes", "message"),
    [
        ([2, 1, 0], [0, 0, 0], "ascend"),
        ([1, 1, 0], [0, 0, 0], "ascend"),
        ([0, 10, 0], [0, 0, 0], r"items must lie in 0\.\.9"),
        ([-1, 1, 0], [0, 0, 0], r"items must lie"),
        ([0, 1, 0], [0, 5, 0], r"codes must lie in 0\.\.4"),
    ],
)
def test_contents_out_of_range_or_order_are_refused(items, codes, message):
    ends = np.array([0, 2, 3], np.int64)
    piece = RatingPiece(0, ends, np.array(items, np.int32), np.array(codes, np.uint8))
    with pytest.raises(InputError, match=message):
        require_piece(piece, 10, STARS)


@given(ROWS)
def test_contents_in_range_and_order_are_accepted(rows):
    assert rows_of(require_piece(piece_of(rows), 10, STARS)) == rows


def table_of(rows, **more):
    piece = piece_of(rows)
    users = tuple(f"u{number}" for number in range(piece.n))
    catalog = tuple(f"i{number}" for number in range(10))
    return RatingTable(STARS, catalog, users, piece, np.arange(piece.items.size), **more)


@given(ROWS, st.integers(1, 9), st.data())
def test_any_users_are_read_through_any_blocks(rows, block_size, data):
    table = table_of(rows, block_size=block_size)
    start = data.draw(st.integers(0, len(rows)))
    n = data.draw(st.integers(0, len(rows) - start))
    assert rows_of(read_users(table, Block(start, n))) == rows[start : start + n]


def test_a_table_names_its_bits_whatever_the_block_size():
    rows = [{0: 1, 3: 2}, {}, {9: 4}]
    names = {table_of(rows, block_size=size).fingerprint for size in (1, 2, 100)}
    assert len(names) == 1
    others = [
        [{0: 1, 3: 2}, {9: 4}, {}],
        [{0: 1, 3: 3}, {}, {9: 4}],
        [{0: 1, 4: 2}, {}, {9: 4}],
    ]
    assert len(names | {table_of(other).fingerprint for other in others}) == 4


def test_rows_of_the_file_split_a_table():
    table = table_of([{0: 1, 3: 2}, {5: 0}])
    train, test = table.split_rows([1])
    assert rows_of(train.piece) == [{0: 1}, {5: 0}]
    assert rows_of(test.piece) == [{3: 2}, {}]
    assert test.rows.tolist() == [1]


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.read(Block(0, 1))])
def test_private_ratings_cannot_be_copied_out_or_printed(make):
    held = make(table_of([{7: 3}]))
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="must not leave"):
            leave(held)
    for text in (repr(held), str(held), f"{held}"):
        assert "7" not in text
        assert "[" not in text


def test_a_piece_shows_whose_it_is_and_not_what():
    assert repr(piece_of([{7: 3}])) == "RatingPiece(start=0)"


def test_a_holder_opens_a_part_of_its_users():
    held = table_of([{7: 3}, {1: 1}, {}]).read(Block(0, 3))
    assert isinstance(held, PrivateRatings)
    assert rows_of(held.part(Block(1, 1)).open()) == [{1: 1}]
    assert held.part(Block(1, 1)).open().start == 1


def test_users_who_are_not_there_are_refused():
    table = table_of([{7: 3}])
    with pytest.raises(InputError, match="1 users, not 2"):
        table.read(Block(0, 2))
    with pytest.raises(InputError, match="not in this piece"):
        table.piece.part(Block(0, 2))
    with pytest.raises(InputError, match="begin at user 1"):
        join([table.piece, table.piece])
