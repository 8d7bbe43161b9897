"""Sums, residuals and the packed Gram: known figures, and the same bits in any pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.recommend import gram
from dpsim.recommend.gram import packed_start, row_blocks, triangle, unpack
from dpsim.recommend.gram_budget import budget_of
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.ratings_matrix import RatingPiece
from dpsim.recommend.residuals import ResidualRows, biases, residual_rows, residuals
from dpsim.recommend.split_sums import item_facts, totals
from tests.recommend.stand_in import SCALE, cut, piece_of, stand_in

ROWS = (
    {0: 5, 1: 4, 3: 1},
    {0: 4, 1: 5, 2: 1},
    {0: 1, 2: 5, 3: 4},
    {1: 2, 2: 4, 3: 5},
    {0: 5, 2: 2},
)
TOY = piece_of(ROWS)
USERS = stand_in(300, 60, 12)


def settings_of(**changes):
    values = {"n_users": 5, "n_items": 4, "scale": SCALE, "epsilon": None, **changes}
    return GramSettings.of(**values)


def facts_of(settings, piece=TOY):
    return item_facts(totals(piece, settings), settings, budget_of(settings))


def test_sums_and_means_are_those_of_the_tables():
    settings = settings_of()
    sums = totals(TOY, settings) / 4
    assert sums[:4].tolist() == [1.25, 1, 2, 1.25]
    assert sums[4:8].tolist() == [2.75, 2, 2, 1.75]
    facts = facts_of(settings)
    assert facts.global_mean == pytest.approx(3.428571, abs=1e-6)
    expected = [3.589286, 3.530612, 3.214286, 3.387755]
    np.testing.assert_allclose(facts.means, expected, atol=1e-6)
    assert facts.counts.tolist() == [4, 3, 4, 3]
    assert facts.users == 5


def test_biases_are_those_of_the_tables():
    own = biases(TOY, facts_of(settings_of()).means, SCALE, 10.0)
    np.testing.assert_allclose(
        own, [-0.009223, -0.009223, 0.030612, 0.066719, 0.016369], atol=1e-6
    )


@pytest.mark.parametrize(
    ("head", "protects", "expected"),
    [
        ("ratings", "rating", [0.518777, -1.526908, -0.913156, -0.992462, -0.853676, 0.750918]),
        ("ratings", "user", [0.299516, -0.973312, -0.527211, -0.572998, -0.492870, 0.433543]),
        ("top_n", "rating", [1.154701, 1.861807, 1.154701, 1.154701, 1.154701, 1.154701]),
        ("top_n", "user", [0.666667, 1.166667, 0.666667, 0.666667, 0.666667, 0.666667]),
    ],
)
def test_grams_are_those_of_the_tables(head, protects, expected):
    settings = settings_of(head=head, protects=protects)
    means = facts_of(settings_of()).means
    rows = residual_rows(TOY, np.arange(4, dtype=np.int32), means, settings)
    np.testing.assert_allclose(triangle(rows, 4) / 4**16, expected, atol=3e-4)


@pytest.mark.parametrize("head", ["ratings", "top_n"])
@pytest.mark.parametrize("protects", ["rating", "user"])
def test_sums_and_grams_have_the_same_bits_in_any_pieces(protects, head):
    settings = settings_of(n_users=300, n_items=60, protects=protects, head=head, popular=40)
    whole, facts = totals(USERS, settings), facts_of(settings, USERS)
    rows = residual_rows(USERS, facts.popular, facts.means, settings)
    for n in (3, 7, 16):
        parts = cut(USERS, n)
        np.testing.assert_array_equal(sum(totals(part, settings) for part in parts), whole)
        grams = [
            triangle(residual_rows(part, facts.popular, facts.means, settings), 40)
            for part in reversed(parts)
        ]
        np.testing.assert_array_equal(sum(grams), triangle(rows, 40))


@given(st.integers(2, 40), st.integers(1, 300))
def test_blocks_of_rows_cover_all_pairs_once(size, entries):
    blocks = row_blocks(size, entries)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == size - 1
    assert all(first < stop for first, stop in blocks)
    assert [stop for _, stop in blocks[:-1]] == [first for first, _ in blocks[1:]]
    longest = max(
        packed_start(stop, size) - packed_start(first, size) for first, stop in blocks
    )
    assert longest <= entries + size


@given(st.integers(2, 30))
def test_entries_lie_in_the_order_of_the_upper_triangle(size):
    rows, columns = np.triu_indices(size, 1)
    starts = np.array([packed_start(int(row), size) for row in rows])
    np.testing.assert_array_equal(starts + columns - rows - 1, np.arange(rows.size))


@pytest.mark.parametrize("gain", [0, 10**9])
def test_loop_and_dense_product_agree_in_every_block_of_rows(monkeypatch, gain):
    monkeypatch.setattr(gram, "_DENSE_GAIN", gain)
    monkeypatch.setattr(gram, "_CHUNK", 64)
    settings = settings_of(n_users=300, n_items=60, popular=40)
    facts = facts_of(settings, USERS)
    rows = residual_rows(USERS, facts.popular, facts.means, settings)
    dense = np.zeros((300, 40))
    dense[np.repeat(np.arange(300), np.diff(rows.indptr)), rows.places] = rows.values
    expected = (dense.T @ dense)[np.triu_indices(40, 1)].astype(np.int64)
    made = triangle(rows, 40)
    assert made.dtype == np.int64
    np.testing.assert_array_equal(made, expected)
    for entries in (1, 100, 333):
        parts = [triangle(rows, 40, block) for block in row_blocks(40, entries)]
        np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_both_ways_are_taken_by_their_cost():
    few = ResidualRows(np.arange(0, 201, 2), np.tile([0, 1], 100).astype(np.int32),
                       np.ones(200, np.int32))  # fmt: skip
    many = ResidualRows(np.arange(0, 4_001, 40), np.tile(np.arange(40), 100).astype(np.int32),
                        np.ones(4_000, np.int32))  # fmt: skip
    assert not gram._is_dense(few, 100, 0, 99)
    assert gram._is_dense(many, 40, 0, 39)


def test_a_triangle_unpacks_to_a_symmetric_matrix_without_diagonal():
    matrix = unpack(np.arange(1.0, 7.0), 4)
    assert matrix.tolist() == [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]]
    with pytest.raises(InputError, match="a triangle of 4 items has 6 entries"):
        unpack(np.zeros(5), 4)


@given(st.integers(0, 10**6))
def test_relabeling_the_items_permutes_sums_and_gram(seed):
    order = np.random.default_rng(seed).permutation(60)
    rows = [
        {int(order[item]): int(code) + 1 for item, code in zip(
            USERS.items[USERS.indptr[user]:USERS.indptr[user + 1]],
            USERS.codes[USERS.indptr[user]:USERS.indptr[user + 1]], strict=True)}
        for user in range(40)
    ]  # fmt: skip
    moved = piece_of(rows)
    settings = settings_of(n_users=40, n_items=60)
    first, second = facts_of(settings, cut_first(40)), facts_of(settings, moved)
    np.testing.assert_allclose(second.means[order], first.means, rtol=1e-12)
    grams = [
        unpack(gram_of(piece, facts, settings).astype(np.float64), 60)
        for piece, facts in ((cut_first(40), first), (moved, second))
    ]
    # Biases are sums in another order: a residual may land one unit away.
    np.testing.assert_allclose(grams[1][np.ix_(order, order)], grams[0], atol=2e5 * 40)


def gram_of(piece, facts, settings):
    rows = residual_rows(piece, facts.popular, facts.means, settings)
    return triangle(rows, settings.popular)


def cut_first(n):
    from dpsim.core.records import Block

    return USERS.part(Block(0, n))


def test_popular_items_are_those_of_largest_count_and_ties_go_to_the_first():
    settings = settings_of(popular=3)
    assert facts_of(settings).popular.tolist() == [0, 1, 2]
    assert facts_of(settings_of(popular=2)).popular.tolist() == [0, 2]


@pytest.mark.parametrize("protects", ["rating", "user"])
def test_users_and_items_without_ratings_are_harmless(protects):
    piece = piece_of([{}, {0: 5}, {}])
    settings = settings_of(n_users=3, protects=protects)
    facts = facts_of(settings, piece)
    assert facts.global_mean == 5
    np.testing.assert_allclose(facts.means[1:], facts.global_mean)
    assert biases(piece, facts.means, SCALE, 0.0).tolist() == [0, 0, 0]
    rows = residual_rows(piece, facts.popular, facts.means, settings)
    assert not triangle(rows, 4).any()
    nobody = facts_of(settings, piece_of([{}, {}, {}]))
    assert nobody.global_mean == 3
    assert nobody.means.tolist() == [3, 3, 3, 3]


def test_weights_of_users_are_what_they_should_be():
    """16 ratings under c = 3 weigh 3/4 each; the global pair weighs a user as one."""
    piece = piece_of([dict.fromkeys(range(16), 2), dict.fromkeys(range(4), 5)])
    settings = settings_of(n_users=2, n_items=16, protects="user")
    sums = totals(piece, settings) / 2**16
    np.testing.assert_allclose(sums[:16], 0.75 * 0.75)
    np.testing.assert_allclose(sums[16:32], 0.75 * 0.25 + (np.arange(16) < 4))
    assert sums[32:].tolist() == [0.75, 1.25]
    counts = totals(piece, settings_of(n_users=2, n_items=16, protects="user", head="top_n"))
    np.testing.assert_allclose(counts / 2**16, 0.75 + (np.arange(16) < 4))


def test_large_sums_stay_exact():
    settings = settings_of(n_users=2**30, protects="rating", trust="distributed")
    assert totals(TOY, settings)[0] == 5 * 2**16
    from dpsim.recommend.split_sums import _sums

    units = np.array([2**52 + 1, 2**52 + 2, 1])
    assert _sums(np.array([0, 0, 1]), units, 2).tolist() == [2**53 + 3, 1]


def test_residuals_are_clipped_and_never_exceed_their_cap():
    means = np.array([1.0, 5.0, 1.0, 5.0])
    own = residuals(TOY, means, np.zeros(5), SCALE, 1.0)
    assert np.abs(own).max() == 1
    rows = residual_rows(TOY, np.arange(4, dtype=np.int32), means, settings_of(protects="user"))
    assert np.abs(rows.values).max() == int(2**16 / 2**0.5)


def test_pieces_and_requests_that_do_not_fit_are_refused():
    settings = settings_of()
    means, popular = np.full(4, 3.0), np.arange(4, dtype=np.int32)
    with pytest.raises(InputError, match="public catalog"):
        totals(piece_of([{9: 1}]), settings)
    bad = RatingPiece(0, np.array([0, 1]), np.array([0], np.int32), np.array([7], np.uint8))
    with pytest.raises(InputError, match="levels of the scale"):
        totals(bad, settings)
    twice = RatingPiece(0, np.array([0, 2]), np.array([1, 1], np.int32), np.ones(2, np.uint8))
    with pytest.raises(InputError, match="ascend"):
        totals(twice, settings)
    with pytest.raises(InputError, match="ascend"):
        residual_rows(twice, popular, means, settings)
    with pytest.raises(InputError, match="popular items must be 4, ascending"):
        residual_rows(TOY, popular[:3], means, settings)
    with pytest.raises(InputError, match=r"popular items must lie in 0\.\.3"):
        residual_rows(TOY, popular + 1, means, settings)
    with pytest.raises(InputError, match="means must be 4 finite numbers"):
        residual_rows(TOY, popular, means * np.nan, settings)
    with pytest.raises(InputError, match=r"rows must lie in 0\.\.3"):
        triangle(residual_rows(TOY, popular, means, settings), 4, (2, 5))
    with pytest.raises(InputError, match="noisy totals must be 10 whole numbers"):
        item_facts(np.zeros(9, np.int64), settings, budget_of(settings))
