"""The choice of groups looks at domain sizes and ε only."""

from fractions import Fraction
from itertools import combinations
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.group_choice import (
    _Cost,
    attribute_design,
    auto_design,
    cover_design,
    pair_design,
)

NLTCS = (2,) * 16
ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)


def lengths(design):
    return {len(group.attributes) for group in design.groups}


@pytest.mark.parametrize(
    ("sizes", "epsilon", "expected"),
    [
        (NLTCS, "0.5", {2}),
        (NLTCS, 1, {2}),
        (NLTCS, 2, {3}),
        (NLTCS, 4, {4}),
        (ADULT, "0.5", {1}),
        (ADULT, 1, {1}),
        (ADULT, 2, {1, 2, 3}),
        (ADULT, 4, {2, 3}),
        ((5,), 1, {1}),
    ],
)
def test_auto_is_the_design_that_came_out_best(sizes, epsilon, expected):
    assert lengths(auto_design(sizes, epsilon)) == expected


def test_half_of_the_users_tell_about_single_attributes_in_between():
    design = auto_design(ADULT, 2)
    alone = sum(group.share for group in design.groups if len(group.attributes) == 1)
    assert alone == Fraction(1, 2)


def test_sixteen_bits_at_epsilon_four_are_covered_by_the_lines_of_a_plane():
    groups = cover_design(NLTCS, 4).groups
    assert len(groups) == 20
    held = [pair for group in groups for pair in combinations(group.attributes, 2)]
    assert sorted(held) == list(combinations(range(16), 2))
    assert {group.share for group in groups} == {Fraction(1, 20)}


@settings(max_examples=20)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=7), st.sampled_from([1, 2, 4, 8]))
def test_a_cover_holds_every_pair_and_no_constant(sizes, epsilon):
    asked = [a for a, size in enumerate(sizes) if size > 1]
    if not asked:
        return
    design = cover_design(tuple(sizes), epsilon)
    held = {pair for group in design.groups for pair in combinations(group.attributes, 2)}
    assert held == set(combinations(asked, 2))
    assert {a for group in design.groups for a in group.attributes} == set(asked)
    assert len({group.attributes for group in design.groups}) == len(design.groups)


def test_the_cost_of_pairs_and_triples_of_bits_is_the_formulas():
    """GRR on m cells tells ((e-1)/(e+m-1))² about each of their functions."""
    cost, e = _Cost((2,) * 5, 5, Fraction(2)), exp(2)
    for c in (2, 3):
        parts = 2 / c + 4 / (5 * c * (c - 1))
        expected = parts * ((e + 2**c - 1) / (e - 1)) ** 2
        assert cost.of(tuple(range(c))) == pytest.approx(expected, rel=1e-6)


def test_groups_over_the_cell_cap_never_pay():
    assert _Cost((300, 300), 2, Fraction(1)).of((0, 1)) == float("inf")


def test_attributes_with_one_code_are_not_asked():
    assert [g.attributes for g in attribute_design((1, 3, 2), 1).groups] == [(1,), (2,)]
    assert [g.attributes for g in pair_design((2, 1, 3, 2), 1).groups] == [
        (0, 2),
        (0, 3),
        (2, 3),
    ]


@pytest.mark.parametrize("design", [attribute_design, pair_design, cover_design, auto_design])
def test_one_attribute_with_a_choice_is_asked_alone(design):
    assert [group.attributes for group in design((1, 4), 1).groups] == [(1,)]


@pytest.mark.parametrize("design", [attribute_design, pair_design, cover_design, auto_design])
@pytest.mark.parametrize(
    ("sizes", "words"), [((), "sizes must be"), ((1, 1), "nothing to ask")]
)
def test_tables_without_a_question_are_refused(design, sizes, words):
    with pytest.raises(InputError, match=words):
        design(sizes, 1)
