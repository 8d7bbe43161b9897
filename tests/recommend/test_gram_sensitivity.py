"""Sensitivities against thousands of neighbors, made at random and to hurt."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.recommend.gram_sensitivity import (
    co_count_sensitivity,
    global_sensitivity,
    gram_sensitivity,
    item_sensitivity,
    residual_sensitivity,
    root_above,
    weight_caps,
)
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.ratings_matrix import RatingPiece, RatingScale
from dpsim.recommend.residuals import residual_rows
from dpsim.recommend.split_sums import totals
from tests.recommend.stand_in import SCALE

EVERY = np.arange(40, dtype=np.int32)


def settings_for(protects, head="ratings", trust="central", n_items=40, scale=SCALE):
    return GramSettings.of(
        1_000, n_items, scale, 1, protects=protects, head=head, trust=trust, popular=n_items
    )


def piece_of(chosen, codes):
    """Users by rows of two matrices: what is rated, and how."""
    users, items = np.nonzero(chosen)
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    return RatingPiece(0, indptr, items.astype(np.int32), codes[users, items].astype(np.uint8))


def dense_rows(chosen, codes, means, settings):
    popular = np.arange(settings.n_items, dtype=np.int32)
    rows = residual_rows(piece_of(chosen, codes), popular, means, settings)
    dense = np.zeros(chosen.shape)
    dense[np.repeat(np.arange(rows.n), np.diff(rows.indptr)), rows.places] = rows.values
    return dense


def triangle_norms(before, after):
    """L2 norms of the strict upper triangles of y yᵀ - z zᵀ, from inner products."""
    full = (before**2).sum(1) ** 2 + (after**2).sum(1) ** 2 - 2 * ((before * after).sum(1)) ** 2
    diagonal = ((before**2 - after**2) ** 2).sum(1)
    return np.sqrt(np.maximum(full - diagonal, 0) / 2)


def neighbors(seed, users=4_000, n_items=40):
    """Users of every number of ratings; half are as unlike one of their ratings as can be."""
    rng = np.random.default_rng(seed)
    means = rng.choice([1.0, 5.0, 3.0, 2.2, 4.4], n_items)
    means = np.clip(means + rng.normal(0, 0.4, n_items), 1, 5)
    chosen = rng.random((users, n_items)) < rng.random((users, 1))
    chosen[:, 0] = True
    codes = rng.integers(0, 5, (users, n_items))
    towards = np.where(means < 3, 4, 0)
    extreme = rng.random((users, n_items)) < 0.9
    codes[::2] = np.where(extreme[::2], 4 if rng.random() < 0.5 else towards, codes[::2])
    codes[::2, 0] = 0 if rng.random() < 0.5 else 4
    without = chosen.copy()
    without[:, 0] = False
    return chosen, without, codes, means


@pytest.mark.parametrize("head", ["ratings", "top_n"])
def test_no_rating_moves_the_gram_by_more_than_stated(head):
    settings = settings_for("rating", head)
    claimed, worst = float(gram_sensitivity(settings)), 0.0
    for seed in range(8):
        chosen, without, codes, means = neighbors(seed)
        norms = triangle_norms(
            dense_rows(chosen, codes, means, settings),
            dense_rows(without, codes, means, settings),
        )
        worst = max(worst, float(norms.max()))
    assert worst <= claimed
    assert worst > 0.8 * claimed


def test_a_climb_to_the_worst_rating_stays_below_and_comes_near():
    """Hill climbing over one user's means and codes, from equal ratings against one."""
    settings, rng = settings_for("rating"), np.random.default_rng(5)
    claimed, best = float(gram_sensitivity(settings)), 0.0
    for n in (12, 14, 16):
        chosen = np.zeros((300, 40), np.bool_)
        chosen[:, :n] = True
        without = chosen.copy()
        without[:, 0] = False
        means = np.full(40, 3.0)
        means[0] = 5.0
        codes, top = np.full(40, 4), 0.0
        codes[0] = 0
        for turn in range(25):
            tries = np.tile(codes, (300, 1))
            flips = rng.random(tries.shape) < 0.06 * (turn > 0)
            tries[flips] = rng.integers(0, 5, int(flips.sum()))
            moved = np.clip(means + rng.normal(0, 0.15, 40) * (turn % 2), 1, 5)
            norms = triangle_norms(
                dense_rows(chosen, tries, moved, settings),
                dense_rows(without, tries, moved, settings),
            )
            assert norms.max() <= claimed
            if norms.max() > top:
                top, codes, means = float(norms.max()), tries[norms.argmax()], moved
        best = max(best, top)
    assert best > 0.9 * claimed


@pytest.mark.parametrize("head", ["ratings", "top_n"])
def test_no_user_moves_the_gram_by_more_than_stated(head):
    settings, worst = settings_for("user", head), 0.0
    claimed = float(gram_sensitivity(settings))
    for seed in range(6):
        chosen, _, codes, means = neighbors(seed)
        rows = dense_rows(chosen, codes, means, settings)
        worst = max(worst, float(triangle_norms(rows, 0 * rows).max()))
    assert 0.95 * claimed < worst <= claimed


def test_no_replaced_user_moves_the_gram_by_more_than_stated():
    settings, worst = settings_for("user", trust="local"), 0.0
    claimed = float(gram_sensitivity(settings))
    for seed in range(6):
        chosen, _, codes, means = neighbors(seed)
        rows = dense_rows(chosen, codes, means, settings)
        worst = max(worst, float(triangle_norms(rows, np.roll(rows, 1, axis=0)).max()))
        disjoint = np.concatenate([rows[:, 20:], rows[:, :20]], axis=1)
        worst = max(worst, float(triangle_norms(rows, disjoint).max()))
    assert 0.6 * claimed < worst <= claimed == 4.0**16


def test_sensitivities_are_those_of_the_tables():
    """Below the reference's own bound of 1.3265, by a better proof."""
    many = settings_for("rating", n_items=2_000)
    assert float(residual_sensitivity(many)) == pytest.approx(1.2044, abs=1e-4)
    wider = settings_for("rating", n_items=2_000, scale=RatingScale("0.5", 5, "0.5"))
    assert float(residual_sensitivity(wider)) == pytest.approx(1.2490, abs=1e-4)
    unit = 4.0**16
    assert float(gram_sensitivity(settings_for("user"))) / unit == pytest.approx(0.5**0.5)
    assert float(co_count_sensitivity(5_000, 16)) / unit == pytest.approx(0.99990, abs=1e-5)


@given(st.floats(0.01, 2), st.integers(1, 30), st.integers(0, 10**6))
def test_the_bound_on_a_block_holds_for_any_moves(shift, n, seed):
    """g(s) of the proof against random y and z in [-1, 1] with |y - z| ≤ s."""
    from dpsim.recommend.gram_sensitivity import _block_norm

    rng = np.random.default_rng(seed)
    y = np.where(rng.random((200, n)) < 0.6, 1.0, rng.uniform(-1, 1, (200, n)))
    moves = np.where(rng.random((200, n)) < rng.random((200, 1)), shift, 0.0)
    z = np.clip(y - moves, -1, 1)
    inner = (y * y).sum(1) ** 2 + (z * z).sum(1) ** 2 - 2 * (y * z).sum(1) ** 2
    norms = np.sqrt(np.maximum(inner, 0))
    assert norms.max() <= n * _block_norm(np.array([shift]), 1.0)[0] * (1 + 1e-9) + 1e-9


def test_the_bound_on_a_block_is_reached():
    from dpsim.recommend.gram_sensitivity import _block_norm

    for shift in (0.1, 0.5):
        assert _block_norm(np.array([shift]), 1.0)[0] == pytest.approx(1 - (1 - shift) ** 2)
    border = 2 - 2**0.5
    near = _block_norm(np.array([border - 1e-9, border + 1e-9]), 1.0)
    assert near[0] == pytest.approx(near[1], rel=1e-6)


@given(st.sampled_from(["user", "rating"]), st.fractions("0.1", 4, max_denominator=10))
def test_caps_are_exact_and_no_norm_grows(protects, bound):
    caps = weight_caps(protects, 16, bound, 50).tolist()
    assert caps[0] == 0
    for n in range(1, 51):
        power = 2 if protects == "user" else 4
        assert caps[n] ** power * n <= (bound * 2**16) ** power < (caps[n] + 1) ** power * n


@pytest.mark.parametrize("head", ["ratings", "top_n"])
@pytest.mark.parametrize("protects", ["rating", "user"])
def test_nobody_moves_the_sums_by_more_than_stated(protects, head):
    settings = settings_for(protects, head)
    stated, stated_global = item_sensitivity(settings), global_sensitivity(settings)
    worst = worst_global = 0.0
    for seed in range(3):
        chosen, without, codes, _ = neighbors(seed, 200)
        before = [totals(piece_of(row[None], code[None]), settings)
                  for row, code in zip(chosen, codes, strict=True)]  # fmt: skip
        after = [totals(piece_of(row[None], code[None]), settings)
                 for row, code in zip(without, codes, strict=True)]  # fmt: skip
        moves = np.array(before) - (np.array(after) if protects == "rating" else 0)
        items, pair = (moves[:, :-2], moves[:, -2:]) if head == "ratings" else (moves, moves)
        norms = np.abs(items).sum(1) if protects == "rating" else np.sqrt((items**2).sum(1))
        worst = max(worst, float(norms.max()))
        worst_global = max(worst_global, float(np.abs(pair).sum(1).max()))
    assert 0.99 * float(stated) <= worst <= float(stated)
    if head == "ratings":
        assert 0.99 * float(stated_global) <= worst_global <= float(stated_global)


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_roots_are_rounded_up(square):
    root = root_above(square)
    assert root**2 >= square > (root - Fraction(1, 2**40)) ** 2


def test_a_rating_outside_the_popular_items_cannot_move_the_gram():
    settings = GramSettings.of(10, 40, SCALE, 1, popular=20)
    chosen, _, codes, means = neighbors(1, 50)
    popular = np.arange(0, 40, 2, dtype=np.int32)
    inside = chosen.copy()
    inside[:, 1::2] = False
    rows = [residual_rows(piece_of(made, codes), popular, means, settings)
            for made in (chosen, inside)]  # fmt: skip
    np.testing.assert_array_equal(rows[0].values, rows[1].values)
    np.testing.assert_array_equal(rows[0].indptr, rows[1].indptr)
