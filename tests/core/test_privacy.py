"""Losses form an algebra, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss

epsilons = st.fractions(0, 30, max_denominator=1000)
deltas = st.fractions(0, Fraction(1, 10), max_denominator=1000)
losses = st.builds(PrivacyLoss, epsilons, deltas)


@given(losses, losses, losses)
def test_composition_is_commutative_and_associative(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)


@given(losses, losses)
def test_the_same_users_pay_the_sum_and_disjoint_users_the_maximum(a, b):
    assert (a + b).epsilon == a.epsilon + b.epsilon
    assert (a + b).delta == a.delta + b.delta
    assert (a | b).epsilon == max(a.epsilon, b.epsilon)
    assert (a | b).delta == max(a.delta, b.delta)
    assert (a | b).within(a + b)


@given(losses)
def test_nothing_is_neutral(a):
    assert a + PrivacyLoss() == a | PrivacyLoss() == a | a == a


@given(losses, losses)
def test_within_compares_both_numbers(a, b):
    assert a.within(b) == (a.epsilon <= b.epsilon and a.delta <= b.delta)


def test_within_is_exact():
    tenth = PrivacyLoss.of("0.1")
    assert (tenth + tenth + tenth).within(PrivacyLoss.of("0.3"))
    assert not (tenth + tenth + tenth).within(PrivacyLoss.of("0.29999999999999999999"))


def test_deltas_that_reach_one_stay_below_it():
    half = PrivacyLoss.of(1, "0.5")
    assert (half + half).delta == 1 - Fraction(1, 2**64)


@pytest.mark.parametrize("act", [PrivacyLoss.__add__, PrivacyLoss.__or__, PrivacyLoss.within])
@pytest.mark.parametrize("other", [{"unit": "attribute"}, {"neighbors": "add_remove"}])
def test_losses_under_different_relations_do_not_mix(act, other):
    with pytest.raises(InputError, match="losses must be under one neighbor relation"):
        act(PrivacyLoss.of(1), PrivacyLoss(Fraction(1), **other))


def test_composition_keeps_the_relation():
    loss = PrivacyLoss(Fraction(1), unit="rating", neighbors="add_remove")
    assert (loss + loss).unit == (loss | loss).unit == "rating"
    assert (loss + loss).neighbors == (loss | loss).neighbors == "add_remove"


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"), [(-1, 0, "epsilon"), (1, -1, "delta"), (1, 1, "delta")]
)
def test_impossible_losses_are_refused_by_name(epsilon, delta, name):
    with pytest.raises(InputError, match=f"{name} must be"):
        PrivacyLoss.of(epsilon, delta)


def test_a_loss_prints_as_its_canonical_numbers():
    assert str(PrivacyLoss.of("1/14")) == "ε=1/14"
    assert str(PrivacyLoss.of(1, "1e-6")) == "ε=1, δ=0.000001"
