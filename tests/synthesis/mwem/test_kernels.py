"""Kernels equal plain numpy, in value and dtype, on empty input too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.synthesis.mwem import _atom_kernels as atoms
from dpsim.synthesis.mwem import _query_kernels as queries
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests.synthesis.mwem.problems import box_masks, every_box

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32)
NO_WORDS = np.zeros(0, np.uint64)


def plain_table(values):
    table = np.zeros([size + 1 for size in values.shape], values.dtype)
    table[(slice(1, None),) * values.ndim] = values
    for axis in reversed(range(values.ndim)):
        table = table.cumsum(axis)
    return table


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@given(shape=shapes, seed=seeds)
def test_the_table_of_sums(kind, shape, seed):
    values = (100 * np.random.default_rng(seed).random(shape)).astype(kind)
    table = np.full(np.prod(np.array(shape) + 1), 7, kind)
    queries.fill_table(values.reshape(-1), np.array(shape), table)
    np.testing.assert_array_equal(table.reshape([s + 1 for s in shape]), plain_table(values))


@given(shapes, seeds)
def test_corners_spread_and_overlaps(shape, seed):
    boxes = every_box(shape)
    generator = np.random.default_rng(seed)
    chosen = generator.choice(len(boxes.lower), min(8, len(boxes.lower)), replace=False)
    lower, upper, masks = boxes.lower[chosen], boxes.upper[chosen], box_masks(boxes)[chosen]
    sizes, law = np.array(shape), generator.random(np.prod(shape))
    table = plain_table(law.reshape(shape)).reshape(-1)
    corners = queries.box_corners(lower, upper, sizes)
    answers = np.full(len(chosen), np.nan)
    queries.add_up(table, *corners, answers)
    np.testing.assert_allclose(answers, masks @ law, atol=1e-12)
    amounts = generator.normal(size=len(chosen))
    behind = queries.spread(amounts, *corners, table.size).reshape([s + 1 for s in shape])
    for axis in range(len(shape)):
        behind = np.flip(np.flip(behind, axis).cumsum(axis), axis)
    exponents = behind[(slice(1, None),) * len(shape)].reshape(-1)
    np.testing.assert_allclose(exponents, masks.T @ amounts, atol=1e-12)
    products = queries.overlaps(table, lower, upper, sizes)
    np.testing.assert_allclose(products, (masks * law) @ masks.T, atol=1e-12)


def test_no_boxes_have_no_corners_runs_answers_or_overlaps():
    none, sizes = np.zeros((0, 2), np.int64), np.array([3, 4])
    for arrays in (queries.box_corners(none, none, sizes), queries.box_runs(none, none, sizes)):
        assert [array.size for array in arrays] == [1, 0, 0]
    assert queries.overlaps(np.zeros(20), none, none, sizes).shape == (0, 0)
    answers = queries.atom_answers(
        np.zeros(4),
        np.array([1, 1]),
        (none, none),
        np.array([0, 0]),
        (np.zeros(0, int), np.zeros(0)),
    )
    assert answers.shape == (0,)
    assert answers.dtype == np.float64
    counts = queries.count_inside(np.zeros((2, 0), np.uint8), none, none)
    assert counts.shape == (0,)
    assert counts.dtype == np.int64


@given(seeds)
def test_records_inside_boxes(seed):
    boxes = every_box((3, 4))
    codes = np.random.default_rng(seed).integers(0, 3, (2, 20)).astype(np.uint8)
    counts = np.bincount(codes[0] * 4 + codes[1], minlength=12)
    found = queries.count_inside(codes, boxes.lower, boxes.upper)
    np.testing.assert_array_equal(found, box_masks(boxes) @ counts)


@given(seeds, st.integers(0, 5))
def test_moments_of_rows(seed, rows):
    generator = np.random.default_rng(seed)
    weights, law = generator.random((rows, 7)), generator.random(7)
    means, products = queries.row_moments(weights, law)
    np.testing.assert_allclose(means, weights @ law)
    np.testing.assert_allclose(products, (weights * law) @ weights.T)


@given(seeds, st.integers(0, 8))
def test_positive_systems_are_solved_and_others_refused(seed, size):
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(size, size))
    matrix, vector = root @ root.T + np.eye(size), generator.normal(size=size)
    solution, is_positive = queries.solve_positive(matrix, vector)
    assert is_positive
    np.testing.assert_allclose(matrix @ solution, vector, atol=1e-9)
    assert size == 0 or not queries.solve_positive(-matrix, vector)[1]


def plain_replay(guess, total, orders, targets, weights):
    """One update after the other, each normalized; a query may have several rows."""
    for order in orders:
        for item in order:
            exponents = np.zeros(guess.size)
            for target, row in zip(targets[item], weights[item], strict=True):
                exponents += row * (target - row @ guess) / (2 * total)
            guess = guess * np.exp(exponents)
            guess *= total / guess.sum()
    return guess


def inside_out(words):
    order: list[int] = []
    for place, word in enumerate(words):
        other = (int(word) >> 32) * (place + 1) >> 32
        order.append(order[other] if other < place else place)
        order[other] = place
    return order


@given(seeds, st.booleans())
def test_replays_are_updates_one_by_one(seed, is_shuffled):
    generator = np.random.default_rng(seed)
    boxes = every_box((4, 6))
    chosen = generator.choice(len(boxes.lower), 5, replace=False).tolist()
    masks = box_masks(boxes)[chosen]
    guess, total = generator.random(24) + 0.1, 50.0
    targets = generator.random(5) * total
    words = generator.integers(0, 2**64, 15, np.uint64) if is_shuffled else NO_WORDS
    orders = [inside_out(row) for row in words.reshape(3, 5)] if is_shuffled else [range(5)] * 3
    start = guess * total / guess.sum()
    expected = plain_replay(start, total, orders, targets[:, None], masks[:, None])
    other = guess.copy()
    measured = np.arange(5), np.arange(6), targets
    atoms.replay(guess, total, 3, words, measured, boxes.layout(chosen))
    np.testing.assert_allclose(guess, expected, rtol=1e-10)
    by_cells = np.array(chosen), np.arange(6), targets
    atoms.replay_cells(other, total, 3, words, by_cells, boxes.cells)
    np.testing.assert_allclose(other, expected, rtol=1e-10)


def test_a_shuffle_gives_every_order_its_share():
    """Words at the middle of each cell of the unit cube: every order comes equally often."""
    seen = []
    for second in range(2):
        for third in range(3):
            words = [0, (2 * second + 1) << 62, ((2 * third + 1) << 63) // 3]
            seen.append(tuple(inside_out(words)))
    assert len(set(seen)) == 6


@given(seeds)
def test_all_cells_of_a_marginal_move_at_once(seed):
    generator = np.random.default_rng(seed)
    whole = BoxWorkload.marginals((3, 4), [(0,), (1,)])
    masks = box_masks(whole)
    guess, total = generator.random(12) + 0.1, 20.0
    targets = generator.random(7) * 10
    start = guess * total / guess.sum()
    rows = [masks[:3], masks[3:]]
    expected = plain_replay(start, total, [range(2)] * 2, [targets[:3], targets[3:]], rows)
    measured, other = (np.arange(2), np.array([0, 3, 7]), targets), guess.copy()
    atoms.replay(guess, total, 2, NO_WORDS, measured, whole.layout([0, 1]))
    np.testing.assert_allclose(guess, expected, rtol=1e-10)
    atoms.replay_cells(other, total, 2, NO_WORDS, measured, whole.cells)
    np.testing.assert_allclose(other, expected, rtol=1e-10)


@given(seeds)
def test_weighted_replays_are_updates_one_by_one(seed):
    generator = np.random.default_rng(seed)
    weights = generator.random((4, 9)) * (generator.random((4, 9)) < 0.7)
    workload = LinearWorkload.of((9,), weights)
    guess, total = generator.random(9) + 0.1, 30.0
    targets = generator.random(4) * total
    start = guess * total / guess.sum()
    expected = plain_replay(start, total, [range(4)] * 3, targets[:, None], weights[:, None])
    measured = np.arange(4), np.arange(5), targets
    atoms.replay_weighted(guess, total, 3, NO_WORDS, measured, workload.rows)
    np.testing.assert_allclose(guess, expected, rtol=1e-10)


def test_no_measurement_only_normalizes():
    boxes = every_box((3,))
    guess = np.array([1.0, 2.0, 5.0])
    none = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0)
    atoms.replay(guess, 4.0, 3, NO_WORDS, none, boxes.layout([]))
    np.testing.assert_array_equal(guess, [0.5, 1.0, 2.5])
    atoms.replay_cells(guess, 8.0, 3, NO_WORDS, none, boxes.cells)
    np.testing.assert_array_equal(guess, [1.0, 2.0, 5.0])
    rows = LinearWorkload.of((3,), np.eye(3)).rows
    atoms.replay_weighted(guess, 4.0, 3, NO_WORDS, none, rows)
    np.testing.assert_array_equal(guess, [0.5, 1.0, 2.5])


def test_absurd_measurements_keep_masses_finite():
    """Nothing is clipped in the kernel: masses are rescaled before they overflow."""
    boxes = every_box((3,))
    for targets in ([1e9, -1e9], [-1e9, -1e9], [1e9, 1e9]):
        for replay, cells in (
            (atoms.replay, boxes.layout(range(6))),
            (atoms.replay_cells, boxes.cells),
        ):
            guess = np.ones(3)
            measured = np.array([0, 2]), np.arange(3), np.array(targets)
            replay(guess, 3.0, 50, NO_WORDS, measured, cells)
            assert np.isfinite(guess).all()
            assert guess.min() > 0
            assert guess.sum() == pytest.approx(3)
