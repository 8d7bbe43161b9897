"""Designs: exact shares, one group per user, and nothing that depends on the data."""

from fractions import Fraction
from math import cbrt, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.designs import Design, Group, cube_root, design_of, mixed_design

SIZES = (2, 3, 4)
HALF = Fraction(1, 2)


@given(st.lists(st.integers(1, 50), min_size=3, max_size=3))
def test_weights_become_exact_shares(weights):
    design = design_of(SIZES, [(0,), (1,), (2,)], 1, weights)
    assert sum(group.share for group in design.groups) == 1
    first = design.groups[0].share
    assert first == Fraction(weights[0], sum(weights))


def test_without_weights_shares_follow_the_cube_root_of_the_cells():
    design = design_of((8, 27), [(0,), (1,), (0, 1)], 1)
    assert [group.share for group in design.groups] == [
        Fraction(2, 11),
        Fraction(3, 11),
        Fraction(6, 11),
    ]


@given(st.integers(1, 10**6))
def test_cube_roots_are_whole_thousandths_rounded_down(value):
    root = cube_root(value)
    assert root**3 <= value * 10**9 < (root + 1) ** 3
    assert abs(root - floor(1000 * cbrt(value))) <= 1


def test_every_draw_belongs_to_the_group_of_its_interval():
    design = design_of(SIZES, [(0,), (1,), (2,)], 1, [1, 2, 5])
    borders = [2**61, 3 * 2**61]
    draws = [0, borders[0] - 1, borders[0], borders[1] - 1, borders[1], 2**64 - 1]
    chosen = design.choose(np.array(draws, np.uint64))
    assert chosen.tolist() == [0, 0, 1, 1, 2, 2]
    assert chosen.dtype == np.int64
    assert design.choose(np.zeros(0, np.uint64)).shape == (0,)


def test_one_group_takes_everybody():
    design = design_of((2, 2), [(0, 1)], 1)
    assert design.choose(np.array([0, 2**64 - 1], np.uint64)).tolist() == [0, 0]


def test_a_user_pays_for_one_report():
    assert design_of(SIZES, [(0,), (1, 2)], "0.3").loss == PrivacyLoss.of("0.3")
    groups = (Group((0,), HALF, GRR(2, 1)), Group((1,), HALF, GRR(3, 2)))
    assert Design((2, 3), groups).loss == PrivacyLoss.of(2)


def test_users_are_expected_by_share():
    assert design_of((2, 2), [(0,), (1,)], 1, [1, 3]).expected_users(100) == (25.0, 75.0)


def test_a_mixture_scales_the_shares_of_its_parts():
    parts = [
        (design_of((2, 2), [(0,), (1,)], 1), Fraction(1, 4)),
        (design_of((2, 2), [(0, 1)], 1), Fraction(3, 4)),
    ]
    shares = [group.share for group in mixed_design(parts).groups]
    assert shares == [Fraction(1, 8), Fraction(1, 8), Fraction(3, 4)]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ((Group((0,), HALF, GRR(2, 1)),), "must sum to 1, got 0.5"),
        ((Group((0,), Fraction(1), GRR(2, 1)),), r"attributes \[1\] are in no group"),
        ((Group((0, 0), Fraction(1), GRR(4, 1)),), "each once"),
        ((Group((), Fraction(1), GRR(1, 1)),), "each once"),
        ((Group((0, 2), Fraction(1), GRR(4, 1)),), r"outside 0\.\.1"),
        ((Group((0, 1), Fraction(1), GRR(5, 1)),), "has 6 cells, and its mechanism knows 5"),
        (
            (Group((0, 1), Fraction(2), GRR(6, 1)), Group((0,), Fraction(-1), GRR(2, 1))),
            "must be > 0",
        ),
    ],
)
def test_designs_that_fit_nothing_are_refused(groups, words):
    with pytest.raises(InputError, match=words):
        Design((2, 3), groups)


def test_a_group_over_the_cell_cap_is_refused_with_its_sizes():
    with pytest.raises(InputError, match=r"300 x 300 = 90,000 cells, and 65,536 is the most"):
        design_of((300, 300), [(0, 1)], 1)


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, -1]])
def test_weights_must_be_positive_and_one_per_group(weights):
    with pytest.raises(InputError, match="weights must be > 0"):
        design_of((2, 2), [(0,), (1,)], 1, weights)


def test_no_groups_and_no_designs_are_refused():
    with pytest.raises(InputError, match="one group at least"):
        design_of((2, 2), [], 1)
    with pytest.raises(InputError, match="one design at least"):
        mixed_design([])
    parts = [(design_of((2,), [(0,)], 1), HALF), (design_of((3,), [(0,)], 1), HALF)]
    with pytest.raises(InputError, match="the same attributes"):
        mixed_design(parts)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much"])
def test_a_loss_that_is_none_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        design_of((2, 2), [(0, 1)], epsilon)
