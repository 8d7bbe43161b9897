"""Bits and choices: every draw decides one thing, at exact probabilities."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import draws_at, words_at
from dpsim.mechanisms.bits import (
    RandomizedBits,
    bernoulli,
    categorical,
    cumulative_atoms,
    discretize,
    keep_atoms,
    keep_probability,
)

A = 2**32
atoms32 = st.integers(1, A - 1)
ADDRESS = (1, "perturb", "bits", "x")


def test_the_keep_probability_is_that_of_the_formula_and_never_overflows():
    assert keep_probability(1) == pytest.approx(exp(1) / (exp(1) + 1))
    assert keep_probability("0.5", 16) == pytest.approx(exp(0.5) / (exp(0.5) + 15))
    assert keep_probability(800) == 1.0
    assert keep_probability(0, 4) == 0.25
    assert keep_probability(3, 1) == 1.0
    for wrong in (-1, "nan", "inf", True):
        with pytest.raises(InputError, match="epsilon must be"):
            keep_probability(wrong)
    with pytest.raises(InputError, match="values must be"):
        keep_probability(1, 0)


def test_the_keep_atoms_are_those_of_the_tables():
    assert keep_atoms(1) == (32, 3139872686, 1155094610)
    assert keep_atoms(1, 10) == (32, 996300625, 366518519)
    with pytest.raises(InputError, match="epsilon must be"):
        keep_atoms(800)
    with pytest.raises(InputError, match="values must be"):
        keep_atoms(1, 1)


@given(st.floats(-5, 5), st.floats(0.001, 10), st.floats(0, 1))
def test_a_value_becomes_the_upper_end_for_exactly_its_share_of_draws(low, width, share):
    high = low + width
    value = min(max(low + share * width, low), high)
    atoms = round((value - low) / (high - low) * A)
    draws = np.array(
        [draw for draw in (0, atoms - 1, atoms, A - 1) if 0 <= draw < A], np.uint32
    )
    ends = discretize(np.full(draws.size, value), draws, low, high)
    np.testing.assert_array_equal(ends, np.where(draws < atoms, high, low))
    mean = (atoms * high + (A - atoms) * low) / A
    assert mean == pytest.approx(value, abs=width * 2**-32)


def test_the_ends_stay_where_they_are():
    draws = np.array([[0, A - 1], [0, A - 1]], np.uint32)
    values = np.array([[0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(discretize(values, draws), values)
    assert discretize(np.zeros(0), np.zeros(0, np.uint32)).size == 0


@pytest.mark.parametrize("values", [[0.5, 1.1], [np.nan, 0.5], [-0.1, 0.5], [0.5, np.inf]])
def test_values_outside_are_counted_and_never_echoed(values):
    with pytest.raises(InputError) as caught:
        discretize(np.array(values), np.zeros(2, np.uint32))
    assert str(caught.value) == "1 of 2 values lie outside 0.0..1.0"


@pytest.mark.parametrize("ends", [(1, 0), (1, 1), (0, np.inf), (np.nan, 1)])
def test_a_range_without_inside_is_refused(ends):
    with pytest.raises(InputError, match="low must be below high"):
        discretize(np.zeros(1), np.zeros(1, np.uint32), *ends)


@pytest.mark.parametrize(("kind", "size"), [(np.uint32, 2**32), (np.uint64, 2**64)])
def test_a_coin_shows_heads_for_exactly_its_atoms(kind, size):
    draws = np.array([0, 1, 2, size - 2, size - 1], kind)
    assert bernoulli(0, draws).tolist() == [False] * 5
    assert bernoulli(2, draws).tolist() == [True, True, False, False, False]
    assert bernoulli(size - 1, draws).tolist() == [True] * 4 + [False]
    assert bernoulli(size, draws).tolist() == [True] * 5
    assert bernoulli(2, draws[:0]).dtype == np.bool_
    wrongs: list[Any] = [-1, size + 1, 0.5]
    for wrong in wrongs:
        with pytest.raises(InputError, match="atoms must be"):
            bernoulli(wrong, draws)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8).filter(any))
def test_each_choice_owns_its_share_of_draws(weights):
    """Both ends of each interval; choices of no weight are never made."""
    ends = cumulative_atoms(weights)
    starts, stops = (0, *ends), (*ends, A)
    for choice, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        assert abs((stop - start) - A * weights[choice] / sum(weights)) <= 1
        if start < stop:
            draws = np.array([start, stop - 1], np.uint32)
            assert categorical(ends, draws).tolist() == [choice, choice]


def test_shares_that_fall_short_of_one_still_choose():
    """A sum of floats below 1 makes other samplers fail; here the last one takes the rest."""
    ends = cumulative_atoms([0.1] * 10)
    last = categorical(ends, np.array([A - 1], np.uint32))
    assert last.tolist() == [9]
    assert categorical(cumulative_atoms(["1/3", "1/3"], 64), words_at(ADDRESS, 0, 9)).max() < 2
    assert categorical((), np.array([5], np.uint32)).tolist() == [0]


def test_impossible_choices_are_refused():
    for wrong in ([], [0, 0], [1, -1]):
        with pytest.raises(InputError, match="shares must be"):
            cumulative_atoms(wrong)
    for ends in ([5, 4], [-1], [A + 1]):
        with pytest.raises(InputError, match="ends must rise"):
            categorical(ends, np.zeros(1, np.uint32))


@given(atoms32, atoms32)
@example(A - 1, A - 5)
@example(A // 2, A - A // 8)
@example(5, 1)
def test_randomized_bits_follow_their_atoms_and_cost_what_they_state(p_atoms, q_atoms):
    if p_atoms == q_atoms:
        return
    oracle = RandomizedBits(p_atoms, q_atoms)
    for bit, atoms in ((1, p_atoms), (0, q_atoms)):
        draws = np.array([0, atoms - 1, atoms, A - 1], np.uint32)
        assert oracle.respond(np.full(4, bit), draws).tolist() == [True, True, False, False]
    p, q = Fraction(p_atoms, A), Fraction(q_atoms, A)
    ratios = (p / q, q / p, (1 - p) / (1 - q), (1 - q) / (1 - p))
    with localcontext(prec=50):
        real = max((Decimal(r.numerator) / r.denominator).ln() for r in ratios)
        charged = Decimal(oracle.loss.epsilon.numerator) / oracle.loss.epsilon.denominator
        assert real <= charged <= real + Decimal("1e-12")
    assert oracle.real_epsilon == pytest.approx(float(real), rel=1e-12)
    assert oracle.real_epsilon <= oracle.loss.epsilon


@given(st.fractions("0.01", 30, max_denominator=1000))
def test_symmetric_bits_cost_at_most_epsilon(epsilon):
    oracle = RandomizedBits.symmetric(epsilon)
    assert oracle.p + oracle.q == 1
    assert oracle.real_epsilon <= epsilon
    assert oracle.real_epsilon == pytest.approx(float(epsilon), rel=1.1e-5)
    assert log(oracle.p / oracle.q) == pytest.approx(oracle.real_epsilon)


def test_bits_may_have_any_shape_and_estimates_invert():
    oracle = RandomizedBits.symmetric(1)
    bits = np.arange(24).reshape(2, 3, 4) % 2
    bits.flags.writeable = False
    draws = draws_at(ADDRESS, 0, 24).reshape(2, 3, 4)
    reports = oracle.respond(bits, draws)
    flat = oracle.respond(bits.ravel(), draws.ravel())
    assert reports.dtype == np.bool_
    np.testing.assert_array_equal(reports, flat.reshape(2, 3, 4))
    n = 2**32
    assert oracle.estimate(oracle.p_atoms, n) == pytest.approx(1, abs=1e-15)
    assert oracle.estimate(oracle.q_atoms, n) == pytest.approx(0, abs=1e-15)


def test_a_row_of_draws_is_never_shared():
    with pytest.raises(InputError, match="draws must be 32 bits each in shape"):
        RandomizedBits.symmetric(1).respond(np.zeros((5, 3)), np.zeros(3, np.uint32))
    with pytest.raises(InputError, match="draws must be 32 bits"):
        RandomizedBits.symmetric(1).respond(np.zeros(3), np.zeros(3, np.uint64))
    with pytest.raises(InputError, match="draws must be 32 bits"):
        discretize(np.zeros((5, 3)), np.zeros(3, np.uint32))


def test_bad_bits_and_atoms_are_refused():
    with pytest.raises(InputError, match="bits must be 0 or 1"):
        RandomizedBits.symmetric(1).respond(np.array([0, 2]), np.zeros(2, np.uint32))
    for wrong in ((0, 5), (5, 0), (A, 5), (5, A), (True, 5), (0.5, 5)):
        with pytest.raises(InputError, match="_atoms must be"):
            RandomizedBits(*wrong)
    with pytest.raises(InputError, match="must differ"):
        RandomizedBits(5, 5)
    with pytest.raises(InputError, match="draw_bits must be"):
        RandomizedBits(5, 6, 16)
    with pytest.raises(InputError, match="n must be"):
        RandomizedBits(5, 6).estimate(0, 0)
