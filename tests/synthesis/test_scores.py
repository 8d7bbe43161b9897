"""Scores: their values, and the most that one record moves them, by enumeration."""

import math
import pickle
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.scores import (
    SCORES,
    CorrectedInformation,
    Distance,
    Information,
    Measured,
    distance_sensitivity,
    information_sensitivity,
    score_of,
)
from tests.synthesis.test_contingency import all_subsets, made_table


def information_twin(counts):
    law = counts / counts.sum()
    outer = np.outer(law.sum(axis=1), law.sum(axis=0))
    return sum(p * math.log(p / q) for p, q in zip(law.flat, outer.flat, strict=True) if p > 0)


def distance_twin(counts):
    law = counts / counts.sum()
    return np.abs(law - np.outer(law.sum(axis=1), law.sum(axis=0))).sum() / 2


def pair(table, child, parents):
    return joint_counts(table, (child, *parents)).reshape(table.sizes[child], -1)


def scores_of(score, table, width):
    measured = [
        Measured(rows, score.measure(table, rows))
        for rows in (all_subsets(len(table.sizes), w) for w in range(1, width + 1))
    ]
    return measured[-1].subsets, score.scores(measured, table.sizes, table.n)


@given(
    st.lists(st.integers(1, 6), min_size=4, max_size=4),
    st.sampled_from([3, 100]),
    st.integers(2, 4),
)
def test_scores_are_those_of_plain_twins(sizes, n, width):
    table = made_table(sizes, n)
    found = {name: scores_of(score, table, width) for name, score in SCORES.items()}
    for place, row in enumerate(found["information"][0].tolist()):
        for member, child in enumerate(row):
            counts = pair(table, child, [a for a in row if a != child])
            information = information_twin(counts)
            bias = (counts.shape[0] - 1) * (counts.shape[1] - 1) / (2 * n)
            expected = (information, information - bias, distance_twin(counts))
            values = [found[name][1][place, member] for name in SCORES]
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_a_set_whose_parents_were_not_measured_is_no_candidate():
    table = made_table((2, 3, 4, 5), 100)
    rows, pairs = all_subsets(4, 3), all_subsets(4, 2)[[0, 3, 5]]  # 01, 12, 23
    score = Information()
    measured = [Measured(r, score.measure(table, r)) for r in (all_subsets(4, 1), pairs, rows)]
    scores = score.scores(measured, table.sizes, 100)
    known = [
        [True, False, True],
        [False, False, True],
        [True, False, False],
        [True, False, True],
    ]
    assert np.isfinite(scores).tolist() == known
    full = scores_of(score, table, 3)[1]
    np.testing.assert_array_equal(scores[known], full[known])
    none = [*measured[:1], Measured(pairs[:0], np.zeros(0)), measured[2]]
    assert np.isnan(score.scores(none, table.sizes, 100)).all()


def worst_move(twin, shape, n):
    """The largest change over all tables of n records and all replacements of one."""
    cells = list(product(range(shape[0]), range(shape[1])))
    values = {}
    for chosen in combinations_with_replacement(range(len(cells)), n):
        counts = np.zeros(shape, int)
        for cell in chosen:
            counts[cells[cell]] += 1
        values[counts.tobytes()] = (counts, twin(counts))
    worst = 0.0
    for counts, value in values.values():
        for old, new in product(cells, cells):
            if counts[old]:
                other = counts.copy()
                other[old] -= 1
                other[new] += 1
                worst = max(worst, abs(values[other.tobytes()][1] - value))
    return worst


@pytest.mark.parametrize(
    ("shape", "n", "stated", "is_attained"),
    [
        ((2, 2), 4, 0.56234, True), ((2, 2), 10, 0.32508, True), ((2, 3), 5, None, True),
        ((3, 3), 5, 0.76382, True), ((3, 3), 4, None, False),
    ],
)  # fmt: skip
def test_information_moves_by_its_sensitivity_and_no_more(shape, n, stated, is_attained):
    bound = information_sensitivity(n, is_narrow=2 in shape)
    worst = worst_move(information_twin, shape, n)
    assert worst <= bound + 1e-12
    assert (abs(worst - bound) < 1e-12) == is_attained
    if stated:
        assert bound == pytest.approx(stated, abs=5e-6)


def test_information_sensitivity_is_that_of_the_reference():
    assert information_sensitivity(6, is_narrow=False) == pytest.approx(0.69798, abs=5e-6)


@pytest.mark.parametrize(
    ("shape", "n"),
    [((2, 2), 4), ((2, 2), 9), ((2, 3), 6), ((2, 5), 4), ((3, 3), 5), ((3, 4), 4)],
)
def test_distance_moves_by_no_more_than_its_sensitivity(shape, n):
    bound = distance_sensitivity(n, is_narrow=2 in shape)
    worst = worst_move(distance_twin, shape, n)
    assert worst <= bound + 1e-12
    assert worst > 0.6 * bound
    assert bound < 3 / n + 2 / n**2


def test_narrow_distance_sensitivity_is_attained_in_the_limit():
    """A record leaves a value and a column that are rare together for another such column."""
    before = np.array([[1, 0] + [100] * 98, [100, 100] + [99] * 98])
    after = before.copy()
    after[0, 0] -= 1
    after[1, 1] += 1
    moved = abs(distance_twin(after) - distance_twin(before))
    bound = distance_sensitivity(int(before.sum()), is_narrow=True)
    assert 0.95 * bound < moved <= bound


def test_wide_distance_sensitivity_is_attained_in_the_limit():
    """One row and one column that avoid their common cell, as the proof says."""
    side, base = 60, 60
    counts = np.zeros((side, side), int)
    counts[1:, 1:] = base
    counts[0, 1:], counts[1:, 0] = base, base
    n = int(counts.sum())
    before, after = counts.copy(), counts.copy()
    before[0, 0] += 1
    after[-1, -1] += 1
    moved = abs(distance_twin(after) - distance_twin(before))
    bound = distance_sensitivity(n + 1, is_narrow=False)
    assert 0.9 * bound < moved <= bound


def test_stated_sensitivities_cover_rounding():
    for n in (2, 100, 10**6):
        for is_narrow in (True, False):
            pure = information_sensitivity(n, is_narrow=is_narrow)
            stated = Information().sensitivity(n, is_narrow=is_narrow)
            assert pure < stated < pure * (1 + 1e-5)
            assert CorrectedInformation().sensitivity(n, is_narrow=is_narrow) == stated
            pure = distance_sensitivity(n, is_narrow=is_narrow)
            assert pure < Distance().sensitivity(n, is_narrow=is_narrow) < pure * (1 + 1e-6)


def test_scores_are_values_that_travel():
    for name, score in SCORES.items():
        assert pickle.loads(pickle.dumps(score)) == score
        assert score_of(name) is score
        assert score_of(score) is score
    assert [score.grows for score in SCORES.values()] == [True, False, True]
    with pytest.raises(InputError, match="score must be one of information, corrected"):
        score_of("mutual")


@pytest.mark.parametrize("sensitivity", [information_sensitivity, distance_sensitivity])
def test_one_record_has_no_sensitivity(sensitivity):
    with pytest.raises(InputError, match="n must be"):
        sensitivity(1, is_narrow=True)
