"""Sampled audits: what they count, what they conclude, and when they are blind."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.evaluation.audit_bounds import smallest_excess
from dpsim.evaluation.audit_composed import Record, Rounds
from dpsim.evaluation.audit_exact import Law, product_channel
from dpsim.evaluation.audit_mutants import Tabled
from dpsim.evaluation.audit_sampled import (
    AuditCase,
    AuditSettings,
    Hits,
    audit,
    count_hits,
    judge,
)
from dpsim.evaluation.audit_scores import (
    all_equal,
    bit_of,
    code,
    one_sided,
    ones,
    packed_ones,
    sign,
    tails,
    worst_case,
)
from dpsim.mechanisms.grr import GRR

ZERO, ONE = np.uint8(0), np.uint8(1)
SETTINGS = AuditSettings()


@dataclass
class Recorder:
    """Reports its inputs as they are, and remembers whose they were."""

    users: list[np.ndarray]
    inputs: list[np.ndarray]

    def perturb(self, inputs, noise):
        self.users.append(noise.users)
        self.inputs.append(inputs)
        return inputs


def exponential_channel(size, epsilon, factor=0.5):
    """Select among candidates by score: the first's rises, then all others' do.

    Neighbors move every score by at most one. The weights are exp(factor ε score): without
    the factor 1/2 up to 2ε is lost.
    """
    scores = np.ones((2, size))
    scores[0, 0], scores[1, 1:] = 0, 0
    weights = np.exp(factor * epsilon * scores)
    return weights / weights.sum(axis=1, keepdims=True)


def majority(zero, one, least):
    """One code is reported at least so many times more often than the other, over columns."""

    def score(reports):
        lead = (reports == one).sum(axis=1) - (reports == zero).sum(axis=1)
        return sign(lead >= least, lead <= -least)

    return score


def test_every_trial_is_another_user_and_a_secret_fair_bit_chooses_the_input():
    seen = Recorder([], [])
    found = audit(AuditCase("x", seen, ZERO, ONE, code(0, 1), 1), AuditSettings(200_000))
    np.testing.assert_array_equal(np.concatenate(seen.users), np.arange(200_000))
    share = np.concatenate(seen.inputs).mean()
    assert abs(share - 0.5) < 5 * 0.5 / 200_000**0.5
    assert found.guesses == found.correct == 200_000
    assert found.is_violation


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([-1, 0, 1]))))
def test_hits_are_counted_by_arm(trials):
    bits = np.array([bit for bit, _ in trials], np.uint8)
    guesses = np.array([guess for _, guess in trials], np.int8)
    hits = count_hits(bits, guesses)
    assert hits == Hits(
        sum(bit for bit, _ in trials),
        trials.count((1, 1)),
        trials.count((1, -1)),
        trials.count((0, 1)) + trials.count((0, 0)) + trials.count((0, -1)),
        trials.count((0, 1)),
        trials.count((0, -1)),
    )
    assert hits.guesses == sum(guess != 0 for _, guess in trials)
    assert hits.correct == sum(guess == 2 * bit - 1 for bit, guess in trials)


def test_a_verdict_names_what_was_found_or_what_would_have_been():
    clean = judge("x", Hits(500, 300, 200, 500, 200, 300), 1, 1e-8, exact=1.0)
    assert not clean.is_violation
    assert clean.excess == smallest_excess(1, lambda _: 1000, 1e-8)
    assert clean.verdict == "no violation found; smallest detectable excess 0.688"
    assert judge("x", Hits(500, 490, 10, 500, 10, 490), 1, 1e-8).verdict == "VIOLATION"
    nothing = judge("x", Hits(5, 0, 0, 5, 0, 0), 1, 1e-8)
    assert (nothing.guess_epsilon, nothing.two_arm_epsilon, nothing.excess) == (-inf, -inf, inf)
    assert nothing.p_value == 1


def test_an_audit_repeats_itself_and_another_seed_does_not():
    case = AuditCase("GRR", GRR(4, 1), ZERO, ONE, code(0, 1), Fraction(1))
    small = AuditSettings(100_000, seed=3)
    assert audit(case, small) == audit(case, small)
    assert audit(case, small) != audit(case, AuditSettings(100_000, seed=4))


@pytest.mark.statistical
def test_false_alarms_are_as_rare_as_stated():
    """400 audits at α = 0.05 of a mechanism that costs all of its claim."""
    case = AuditCase("GRR", GRR(2, 1), ZERO, ONE, code(0, 1), 1)
    alarms = sum(
        audit(case, AuditSettings(2000, 0.05, seed)).is_violation for seed in range(400)
    )
    assert 4 < alarms < 20 + 5 * (400 * 0.05 * 0.95) ** 0.5


@pytest.mark.statistical
@pytest.mark.parametrize(("size", "bound"), [(4, 1.439), (16, 1.819), (64, 1.792)])
def test_a_choice_without_the_factor_one_half_is_found(size, bound):
    settings = AuditSettings(400_000)
    mutant = Tabled(exponential_channel(size, 1, factor=1.0))
    found = audit(AuditCase("chosen", mutant, ZERO, ONE, one_sided(0), 1), settings)
    assert found.is_violation
    assert abs(found.guess_epsilon - bound) < 5 * standard_error(found)
    healthy = Tabled(exponential_channel(size, 1))
    assert not audit(
        AuditCase("chosen", healthy, ZERO, ONE, one_sided(0), 1), settings
    ).is_violation


@pytest.mark.statistical
def test_the_wrong_event_misses_the_same_bug():
    """Guessing on every output dilutes what one of them tells: a factor of two passes."""
    mutant = Tabled(exponential_channel(4, 1, factor=1.0))
    every = AuditCase("every", mutant, ZERO, ONE, lambda y: sign(y == 0, y != 0), 1)
    found = audit(every, SETTINGS)
    assert not found.is_violation
    assert abs(found.guess_epsilon - 0.758) < 5 * standard_error(found)
    telling = AuditCase("telling", mutant, ZERO, ONE, one_sided(0), 1)
    assert audit(telling, SETTINGS).is_violation


@pytest.mark.statistical
def test_a_wide_record_has_no_power_and_its_exact_law_has():
    """Fourteen attributes of ten codes: 1.4 of 4 is all that sampling can show."""
    oracle = GRR(10, Fraction(4, 14))
    record = Record((oracle,) * 14)
    inputs = np.zeros(14, np.uint8), np.ones(14, np.uint8)
    found = audit(
        AuditCase("wide", record, *inputs, majority(0, 1, 6), 4), AuditSettings(200_000)
    )
    assert 0.8 < found.guess_epsilon < 1.6
    assert 14 * oracle.real_epsilon == pytest.approx(4, abs=1e-5)


def standard_error(found):
    accuracy = found.correct / found.guesses
    return 1 / (found.guesses * accuracy * (1 - accuracy)) ** 0.5


@pytest.mark.parametrize("mechanism", [Record((GRR(2, 1),) * 2), Rounds(GRR(2, 1), 2)])
def test_columns_and_rounds_draw_for_themselves(mechanism):
    inputs = np.zeros((50_000, 2) if isinstance(mechanism, Record) else 50_000, np.uint8)
    reports = mechanism.perturb(inputs, UserNoise(0, "plan", "x", np.arange(50_000)))
    first, second = reports.T.astype(float)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / 50_000**0.5
    assert abs(first.mean() - GRR(2, 1).q) < 5 * 0.5 / 50_000**0.5


def test_scores_speak_for_the_input_they_should():
    codes = np.array([0, 1, 2], np.uint8)
    assert code(0, 1)(codes).tolist() == [-1, 1, 0]
    assert one_sided(2)(codes).tolist() == [0, 0, 1]
    assert tails(0, 2)(codes).tolist() == [-1, 0, 1]
    rows = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 1], [2, 2, 1]], np.uint8)
    assert all_equal(0, 1)(rows).tolist() == [-1, 1, 0, 0]
    assert majority(0, 1, 1)(rows).tolist() == [-1, 1, 1, 1]
    assert majority(0, 1, 2)(rows).tolist() == [-1, 1, 0, 0]
    bits = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.uint8)
    assert ones(0, 1)(bits).tolist() == [-1, 1, 0, 0]
    words = np.array([[1], [2], [3], [0]], np.uint16)
    assert packed_ones(0, 1)(words).tolist() == [-1, 1, 0, 0]
    rounds = np.array([[[1], [1]], [[2], [2]], [[1], [2]], [[2], [3]], [[2], [0]]], np.uint64)
    assert packed_ones(0, 1)(rounds).tolist() == [-1, 1, 0, 0, 0]
    wide = np.array([[0, 4]], np.uint64)
    assert bit_of(wide, 66).tolist() == [True]
    assert packed_ones(2, 66)(wide).tolist() == [1]


def test_the_worst_case_of_a_law_is_its_largest_ratio_and_its_most_frequent_reports():
    channel = np.array([[0.5, 0.3, 0.2], [0.25, 0.35, 0.4], [0.5, 0.4, 0.1]])
    law = Law("x", Tabled(channel), np.arange(3, dtype=np.uint8), channel, 2)
    case = worst_case(law)
    assert {int(case.input0), int(case.input1)} == {1, 2}
    assert case.exact == pytest.approx(np.log(4))
    expected = -1 if case.input1 == 2 else 1
    assert case.score(np.array([0, 1, 2])).tolist() == [0, 0, expected]


def test_of_equal_ratios_the_worst_case_takes_the_most_frequent_reports():
    """All pairs differ by a factor of two; the last pair does so in two reports."""
    channel = np.array([[0.2, 0.2, 0.6], [0.1, 0.2, 0.7], [0.2, 0.1, 0.7]])
    case = worst_case(Law("x", Tabled(channel), np.arange(3, dtype=np.uint8), channel, 2))
    assert (int(case.input0), int(case.input1)) == (1, 2)
    assert case.exact == pytest.approx(np.log(2))
    assert case.score(np.array([0, 1, 2])).tolist() == [1, -1, 0]


def test_the_worst_case_finds_reports_of_one_input_only():
    channel = np.array([[0.5, 0.5, 0.0, 0.0], [0.5, 0.4, 0.1, 0.0]])
    case = worst_case(Law("x", Tabled(channel), np.arange(2, dtype=np.uint8), channel, 1))
    assert case.exact == inf
    assert case.score(np.array([0, 1, 2, 3])).tolist() == [0, 0, 1, 0]


def test_equal_rows_leave_nothing_to_guess():
    channel = np.array([[0.5, 0.5], [0.5, 0.5]])
    case = worst_case(Law("x", Tabled(channel), np.arange(2, dtype=np.uint8), channel, 1))
    assert case.exact == 0
    assert case.score(np.array([0, 1])).tolist() == [0, 0]


def test_the_worst_case_of_grr_is_the_known_event():
    oracle = GRR(3, 1)
    case = worst_case(Law("x", oracle, np.arange(3, dtype=np.uint8), oracle.channel(), 1))
    known = code(int(case.input0), int(case.input1))
    reports = np.arange(3, dtype=np.uint8)
    assert case.score(reports).tolist() == known(reports).tolist()
    assert case.exact == pytest.approx(oracle.real_epsilon)


@pytest.mark.parametrize(
    "wrong", [{"trials": 0}, {"alpha": 0.0}, {"alpha": 1.0}, {"seed": -1}, {"trials": 1.5}]
)
def test_bad_settings_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        AuditSettings(**wrong)


def test_a_product_of_nothing_is_certain():
    assert product_channel().tolist() == [[1.0]]
