"""Memoized reports over many rounds: bit by bit, and what they cannot reveal."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest

from dpsim.mechanisms.longitudinal import LGRR, LOSUE, LSUE, RAPPOR
from tests import laws
from tests.mechanisms import twins

ALL = 2**64


def codes_for(n, size):
    return (np.arange(n) * 7 % size).astype(np.uint16)


@pytest.mark.parametrize("size", [2, 10, 300])
def test_reported_codes_equal_those_of_plain_integers(size):
    users = np.arange(150) * 3 + 1
    oracle, noise = LGRR(size, 2, 1), twins.noise_for(0, users=users)
    codes = codes_for(150, size)
    p1, q1, p2, q2 = (int(x * ALL) for x in (*oracle.steps.permanent, *oracle.steps.fresh))
    key = noise.permanent(f"GRR {size} 2").key
    draws = noise.stream().draws(64)
    expected = []
    for code, user, draw in zip(codes, users, draws, strict=True):
        permanent = twins.respond(int(code), twins.words(key, user, int(code))[0], p1, q1)
        expected.append(twins.respond(permanent, int(draw), p2, q2))
    reports = oracle.perturb(codes, noise)
    assert reports.dtype == codes.dtype
    assert reports.tolist() == expected
    assert oracle.tally(reports).tolist() == [expected.count(code) for code in range(size)]
    assert oracle.tally(reports).dtype == np.int64


@pytest.mark.parametrize("size", [2, 5, 10, 32, 64, 65, 130])
@pytest.mark.parametrize("kind", ["OUE", "SUE", "RAPPOR"])
def test_reported_bits_equal_those_of_plain_integers(kind, size):
    oracle = RAPPOR(size, 2) if kind == "RAPPOR" else noisy(kind, size)
    users = np.arange(12) * 11 + 4
    noise, codes = twins.noise_for(0, users=users), codes_for(12, size)
    family = "OUE" if kind == "OUE" else "SUE"
    keys = noise.permanent(f"{family} {size} 2").key, noise.stream().key
    width = (size + 63) // 64
    p1, q1, p2, q2 = (int(x * ALL) for x in (*oracle.steps.permanent, *oracle.steps.fresh))
    expected = []
    for code, user in zip(map(int, codes), users, strict=True):
        permanent = [
            draw < (p1 if bit == code else q1)
            for bit, draw in enumerate(twins.row_draws(keys[0], user, 16 * code * width, size))
        ]
        fresh = twins.row_draws(keys[1], user, 0, size)
        row = [draw < (p2 if bit else q2) for bit, draw in zip(permanent, fresh, strict=True)]
        expected.append(row)
    reports = oracle.perturb(codes, noise)
    assert reports.dtype == np.uint64
    assert reports.shape == (12, width)
    bits = np.unpackbits(reports.view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(bits[:, :size], expected)
    assert not bits[:, size:].any()
    np.testing.assert_array_equal(oracle.tally(reports), np.sum(expected, axis=0))


def open_book(kind, size):
    """An oracle whose fresh step lies once in a trillion reports, if ever."""
    if kind == "GRR":
        return LGRR(size, 2, Fraction(2) - Fraction(1, 10**12))
    if kind == "OUE":
        return LOSUE(size, 2, Fraction(2) - Fraction(1, 10**12))
    return RAPPOR(size, 2, Fraction(1, 10**15), 1 - Fraction(1, 10**15))


def noisy(kind, size):
    kinds: dict[str, Any] = {"GRR": LGRR, "OUE": LOSUE, "SUE": LSUE}
    return kinds[kind](size, 2, 1)


def bits_of(oracle, reports):
    if isinstance(oracle, LGRR):
        return reports[:, None] == np.arange(oracle.domain_size)
    bits = np.unpackbits(reports.view(np.uint8), axis=1, bitorder="little")
    return bits[:, : oracle.domain_size]


FAMILIES = ["GRR", "OUE", "SUE"]


@pytest.mark.parametrize("family", FAMILIES)
def test_repeated_truth_repeats_its_permanent_answer_in_a_thousand_rounds(family):
    oracle, codes = open_book(family, 5), codes_for(60, 5)
    first = oracle.perturb(codes, twins.noise_for(60, plan="round 0"))
    for number in range(1, 1000):
        again = oracle.perturb(codes, twins.noise_for(60, plan=f"round {number}"))
        np.testing.assert_array_equal(again, first)
    if family == "GRR":
        assert (first != codes).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_value_that_comes_back_finds_its_old_answer(family):
    oracle = open_book(family, 5)
    one, other = np.zeros(500, np.uint8), np.ones(500, np.uint8)
    before = oracle.perturb(one, twins.noise_for(500, plan="a"))
    between = oracle.perturb(other, twins.noise_for(500, plan="b"))
    after = oracle.perturb(one, twins.noise_for(500, plan="c"))
    np.testing.assert_array_equal(before, after)
    assert (between != before).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_another_attribute_seed_or_loss_gets_other_permanent_answers(family):
    oracle, codes = open_book(family, 5), codes_for(500, 5)
    noise = twins.noise_for(500)
    first = oracle.perturb(codes, noise)
    for other in (
        type(noise)(noise.seed, noise.plan_hash, "another", noise.users),
        type(noise)(noise.seed + 1, noise.plan_hash, noise.subject, noise.users),
    ):
        assert (oracle.perturb(codes, other) != first).any()
    assert noisy(family, 5).permanent_parameters == oracle.permanent_parameters
    assert type(noisy(family, 5))(5, 3, 1).permanent_parameters != oracle.permanent_parameters


@pytest.mark.statistical
@pytest.mark.parametrize("family", FAMILIES)
def test_permanent_answers_of_two_values_and_of_two_users_are_independent(family):
    """Chi-square of the joint law against the product: values 0 and 1, users 2i and 2i+1."""
    n, oracle = 40_000, open_book(family, 3)
    noise = twins.noise_for(n)
    answers = [bits_of(oracle, oracle.perturb(np.full(n, v, np.uint8), noise)) for v in (0, 1)]
    p1, q1 = map(float, oracle.steps.permanent)
    for left, right, shares in (
        (answers[0][:, 2], answers[1][:, 2], (q1, q1)),
        (answers[0][:, 0], answers[1][:, 0], (p1, q1)),
        (answers[0][::2, 0], answers[0][1::2, 0], (p1, p1)),
        (answers[0][::2, 2], answers[0][1::2, 2], (q1, q1)),
    ):
        counts = np.bincount(2 * left.astype(int) + right, minlength=4)
        law = np.outer([1 - shares[0], shares[0]], [1 - shares[1], shares[1]]).reshape(-1)
        laws.assert_counts_follow(counts, law)


@pytest.mark.statistical
def test_the_law_of_independence_has_power():
    """One draw per user for all values, the classic mistake, would be seen."""
    n, oracle = 40_000, open_book("GRR", 3)
    answer = bits_of(oracle, oracle.perturb(np.zeros(n, np.uint8), twins.noise_for(n)))[:, 2]
    q1 = float(oracle.steps.permanent[1])
    counts = np.bincount(3 * answer.astype(int), minlength=4)
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(counts, np.outer([1 - q1, q1], [1 - q1, q1]).reshape(-1))


@pytest.mark.statistical
@pytest.mark.parametrize("family", FAMILIES)
def test_twenty_thousand_rounds_reveal_the_permanent_answer_and_nothing_behind_it(family):
    """The average of a user's reports is that of the permanent answer, true or false."""
    n, size, rounds = 6, 4, 20_000
    codes = codes_for(n, size)
    permanent = bits_of(
        open_book(family, size), open_book(family, size).perturb(codes, twins.noise_for(n))
    )
    oracle, total = noisy(family, size), np.zeros((n, size))
    for number in range(rounds):
        reports = oracle.perturb(codes, twins.noise_for(n, plan=str(number)))
        total += bits_of(oracle, reports)
    p2, q2 = map(float, oracle.steps.fresh)
    expected = np.where(permanent, p2, q2)
    z = np.abs(total / rounds - expected) / np.sqrt(expected * (1 - expected) / rounds)
    assert z.max() < 5
    truth = np.eye(size)[codes]
    p, q = oracle.p, oracle.q
    if_redrawn = np.abs(total / rounds - np.where(truth, p, q)) / np.sqrt(p * (1 - p) / rounds)
    assert if_redrawn.max() > 5
    assert (permanent != truth).any()


@pytest.mark.statistical
@pytest.mark.parametrize("family", [*FAMILIES, "RAPPOR"])
@pytest.mark.parametrize("wrong", [False, True])
def test_squared_errors_are_those_of_the_variance_formula(family, wrong):
    """1,000 repetitions of 300 users; the first losses 1 and 0.8 must be told apart."""
    size, repeats, n = 5, 1000, 300
    stated = RAPPOR(size, 3) if family == "RAPPOR" else type(noisy(family, size))(size, 2, 1)
    perturbing = stated
    if wrong:
        perturbing = (
            RAPPOR(size, 3, "0.5", "0.7")
            if family == "RAPPOR"
            else type(stated)(size, 2, "0.8")
        )
    counts = np.array([120, 90, 60, 30, 0])
    codes = np.tile(np.repeat(np.arange(5), counts), repeats).astype(np.uint8)
    reports = perturbing.perturb(codes, twins.noise_for(repeats * n))
    tallies = bits_of(perturbing, reports).reshape(repeats, n, size).sum(axis=1)
    errors = [(stated.estimate(tally, n) - counts / n) ** 2 for tally in tallies]
    expected = [stated.variance(n, float(share)) for share in counts / n]
    ratio = np.mean(np.array(errors) / expected)
    assert (abs(ratio - 1) < 5 * sqrt(2 / (size * repeats))) == (not wrong)


@pytest.mark.statistical
def test_the_average_of_rounds_has_its_stated_variance():
    size, repeats, n, rounds = 3, 1500, 100, 4
    oracle = LOSUE(size, 2, 1)
    counts = np.array([60, 40, 0])
    codes = np.tile(np.repeat(np.arange(size), counts), repeats).astype(np.uint8)
    total = np.zeros((repeats, size))
    for number in range(rounds):
        noise = twins.noise_for(repeats * n, plan=str(number))
        bits = bits_of(oracle, oracle.perturb(codes, noise)).reshape(repeats, n, size)
        total += [oracle.estimate(tally, n) for tally in bits.sum(axis=1)]
    errors = np.mean((total / rounds - counts / n) ** 2, axis=0)
    stated = [oracle.average_variance(rounds, n, float(share)) for share in counts / n]
    fresh_only = [oracle.variance(n, float(share)) / rounds for share in counts / n]
    assert abs(np.mean(errors / stated) - 1) < 5 * sqrt(2 / (size * repeats))
    assert abs(np.mean(errors / fresh_only) - 1) > 5 * sqrt(2 / (size * repeats))
