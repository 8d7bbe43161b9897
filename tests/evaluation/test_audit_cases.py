"""Every mechanism under audit: exact laws, samplers, lower bounds, and bugs that must show."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from dpsim.evaluation.audit_bounds import guess_epsilon
from dpsim.evaluation.audit_cases import FAMILIES, doubled
from dpsim.evaluation.audit_exact import WORST_P, check_channel, sample_law
from dpsim.evaluation.audit_frequency import grr_cases
from dpsim.evaluation.audit_mutants import planted_bugs
from dpsim.evaluation.audit_records import fake_laws, split_cases
from dpsim.evaluation.audit_sampled import AuditSettings, audit
from dpsim.mechanisms.fake_data import FakeData
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.local_hashing import BLH, OLH

pytestmark = pytest.mark.statistical

SETTINGS = AuditSettings(1_000_000, 1e-8, seed=20)
MOST_AUDITS = 60
CASES = [case for family in FAMILIES.values() for case in family.cases(Fraction(1))]
EXTRA = [
    *grr_cases(Fraction(4)),
    next(split_cases(Fraction(3))),
    list(split_cases(Fraction(4)))[1],
]
LAWS = [law for family in FAMILIES.values() for law in family.laws(Fraction(1))]
BUGS = [
    *(case for family in FAMILIES.values() for case in doubled(family, Fraction(1))),
    *planted_bugs(Fraction(1)),
]


def title(item):
    return f"{item.name} {float(item.claim):g}"


@pytest.fixture(scope="module")
def found():
    """One audit of each healthy case."""
    return {title(case): audit(case, SETTINGS) for case in [*CASES, *EXTRA]}


def standard_error(result):
    accuracy = result.correct / result.guesses
    return 1 / (result.guesses * accuracy * (1 - accuracy)) ** 0.5


def test_false_alarms_of_the_whole_suite_are_below_one_in_a_million():
    assert (len(CASES) + len(EXTRA)) * SETTINGS.alpha < 1e-6
    assert len(CASES) + len(EXTRA) <= MOST_AUDITS
    assert len({title(case) for case in [*CASES, *EXTRA]}) == len(CASES) + len(EXTRA)


@pytest.mark.parametrize("case", [*CASES, *EXTRA], ids=title)
def test_no_claim_is_refuted(case, found):
    result = found[title(case)]
    assert not result.is_violation, result
    assert result.verdict.startswith("no violation found; smallest detectable excess 0.")


@pytest.mark.parametrize("case", [*CASES, *EXTRA], ids=title)
def test_lower_bounds_are_as_near_to_the_exact_ratio_as_they_can_be(case, found):
    """What an event of that ratio gives on average: a blunt score would lie below it."""
    result = found[title(case)]
    assert case.exact is not None
    assert case.exact <= float(case.claim) + 1e-9
    right = round(result.guesses / (1 + exp(-case.exact)))
    expected = guess_epsilon(right, result.guesses, SETTINGS.alpha)
    assert abs(result.guess_epsilon - expected) < 5 * standard_error(result)
    assert result.two_arm_epsilon <= result.guess_epsilon + 5 * standard_error(result)


TABLE = {
    "GRR k=2 1": (0.989, 0.984, 1_000_000), "GRR k=16 1": (0.973, 0.952, 210_350),
    "GRR k=100 1": (0.924, 0.867, 36_650), "GRR k=2 4": (3.950, 3.924, 1_000_000),
    "GRR k=16 4": (3.957, 3.936, 798_097), "GRR k=100 4": (3.917, 3.873, 362_161),
    "SUE k=16 1": (0.984, 0.972, 530_000), "OUE k=16 1": (0.982, 0.966, 500_000),
    "OLH k=16 1": (0.984, 0.971, 488_000), "Duchi 1": (0.989, 0.982, 1_000_000),
    "Piecewise 1": (0.988, 0.982, 851_000), "Laplace 1": (0.984, 0.975, 684_000),
    "PrivKV faithful +1 or absent 1.37989": (1.354, 1.352, 334_000),
    "PrivKV faithful +1 or -1 1.37989": (0.988, 0.981, 731_000),
    "record of 3 GRR k=2 3": (2.967, 2.937, 410_000),
    "record of 4 GRR k=4 4": (3.804, 3.707, 51_000),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_lower_bounds_are_those_of_the_reference(name, found):
    """Both are samples: five standard errors of their difference."""
    result, (guess, two_arm, guesses) = found[name], TABLE[name]
    error = standard_error(result)
    assert abs(result.guess_epsilon - guess) < 5 * 2**0.5 * error
    assert abs(result.two_arm_epsilon - two_arm) < 5 * 2**0.5 * 2 * error
    assert result.guesses == pytest.approx(guesses, rel=0.02)


@pytest.mark.parametrize("law", LAWS, ids=title)
def test_reports_follow_the_stated_law(law):
    assert sample_law(law, SETTINGS) > WORST_P


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", "1", "4", "9"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_exact_loss_is_the_real_epsilon_and_within_the_claim(family, epsilon):
    for law in FAMILIES[family].laws(Fraction(epsilon)):
        check = check_channel(law.channel, law.claim)
        assert check.is_sound, (law.name, check)
        real = real_epsilon(law)
        if real is not None:
            assert check.epsilon == pytest.approx(real, abs=1e-9 * max(1, real)), law.name


def real_epsilon(law):
    """What the mechanism says of itself, where its law is the one of a single report."""
    if law.name.startswith(("record", "fake data")):
        return None
    if law.name.endswith("one report"):
        return law.mechanism.first_report_epsilon
    return law.mechanism.real_epsilon


def test_fake_data_says_what_its_worst_attribute_costs():
    whole, *attributes = fake_laws(Fraction(1))
    losses = [check_channel(law.channel, 1).epsilon for law in attributes]
    mechanism = FakeData((2, 3), 1)
    assert mechanism == whole.mechanism
    assert max(losses) == pytest.approx(mechanism.real_epsilon, abs=1e-9)
    assert check_channel(whole.channel, whole.claim).epsilon == pytest.approx(
        float(whole.claim), abs=1e-6
    )


@pytest.mark.parametrize("kind", [OLH, BLH])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_hashing_is_private_under_every_key(kind, epsilon):
    oracle = kind(9, epsilon)
    for key in (0, 1, 2**63, 2**64 - 1, *(0x9E3779B97F4A7C15 * i % 2**64 for i in range(40))):
        assert check_channel(oracle.channel(key), Fraction(epsilon)).is_sound


@pytest.mark.parametrize("case", BUGS, ids=title)
def test_every_planted_bug_is_flagged(case):
    result = audit(case, SETTINGS)
    assert result.is_violation, result
    assert result.verdict == "VIOLATION"
    if case.name in BUG_TABLE:
        error = standard_error(result) if result.correct < result.guesses else 0.01
        assert abs(result.guess_epsilon - BUG_TABLE[case.name]) < 5 * 2**0.5 * error


BUG_TABLE = {
    "record of 3, ε not split": 2.959, "two fresh rounds": 1.962, "SUE, ε per bit": 1.973,
    "GRR k=2 with 1.05 ε": 1.038, "GRR k=16 with 1.05 ε": 1.025,
    "GRR k=8, out-of-domain echo": 8.937, "Laplace, half the noise": 1.983,
    "GRR k=2, twice ε": 1.985,
}  # fmt: skip


def test_the_table_of_bugs_names_bugs_that_exist():
    assert set(BUG_TABLE) <= {case.name for case in BUGS}


def test_what_sampling_cannot_see_the_exact_law_shows():
    """5 % too much at k = 100 is below the smallest detectable excess."""
    wrong = GRR(100, "1.05")
    (case,) = [case for case in grr_cases(Fraction("1.05")) if case.name == "GRR k=100"]
    result = audit(case, SETTINGS)
    assert result.excess > 0.05
    assert result.guess_epsilon < 1
    assert not check_channel(wrong.channel(), 1).is_sound


def test_doubling_keeps_the_claim_and_the_inputs():
    honest = list(FAMILIES["key-value"].cases(Fraction(1)))
    for plain, twice in zip(honest, doubled(FAMILIES["key-value"], Fraction(1)), strict=True):
        assert twice.claim == plain.claim
        assert (twice.exact or 0) > (plain.exact or 0)
        np.testing.assert_array_equal(twice.input1, plain.input1)
