"""Memoized reports: what the two steps are, what they cost, how accurate they are."""

import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import FrequencyOracle, Memoized
from dpsim.mechanisms.longitudinal import LGRR, LOSUE, LSUE, RAPPOR
from tests import laws
from tests.mechanisms import twins

ALL = 2**64
THREE = (LGRR, LOSUE, LSUE)
epsilons = st.fractions(Fraction(1, 20), 30, max_denominator=10**4)
shares = st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=100)
sizes = st.integers(2, 300)
oracles = st.builds(
    lambda kind, size, epsilon, share: kind(size, epsilon, epsilon * share),
    st.sampled_from(THREE), sizes, epsilons, shares,
)  # fmt: skip
small = st.builds(
    lambda kind, size, epsilon, share: kind(size, epsilon, epsilon * share),
    st.sampled_from(THREE), st.integers(2, 8),
    st.fractions(Fraction(1, 2), 6, max_denominator=100),
    shares.filter(lambda share: share > Fraction(1, 5)),
)  # fmt: skip


def log_of(ratio):
    with localcontext(prec=60):
        return (Decimal(ratio.numerator) / ratio.denominator).ln()


def below(ratio, epsilon):
    return log_of(ratio) <= Decimal(epsilon.numerator) / epsilon.denominator


def odds(oracle, p, q):
    return p / q if isinstance(oracle, LGRR) else p * (1 - q) / ((1 - p) * q)


@given(oracles)
def test_neither_the_first_report_nor_all_of_them_cost_more_than_asked(oracle):
    """In 60 digits, from the atoms: all reports together reveal the permanent answer."""
    with localcontext(prec=60):
        assert below(odds(oracle, *oracle.steps.permanent), oracle.epsilon)
        assert below(odds(oracle, *oracle.steps.support), oracle.first_epsilon)
    assert oracle.real_epsilon <= oracle.loss.epsilon == oracle.epsilon
    assert oracle.real_epsilon == pytest.approx(float(oracle.epsilon), rel=1e-4)
    assert oracle.first_report_epsilon <= oracle.first_epsilon
    assert oracle.first_report_epsilon == pytest.approx(float(oracle.first_epsilon), rel=1e-4)


@given(oracles)
def test_supports_are_the_product_of_both_steps(oracle):
    (p1, q1), (p2, q2) = oracle.steps.permanent, oracle.steps.fresh
    if isinstance(oracle, LGRR):
        size = oracle.domain_size
        assert p1 + (size - 1) * q1 == p2 + (size - 1) * q2 == 1
        assert oracle.steps.support[0] == p1 * p2 + (size - 1) * q1 * q2
        assert oracle.steps.support[1] == p1 * q2 + q1 * p2 + (size - 2) * q1 * q2
    else:
        assert oracle.steps.support[0] == p1 * p2 + (1 - p1) * q2
        assert oracle.steps.support[1] == q1 * p2 + (1 - q1) * q2
        assert p2 + q2 == 1
        assert p1 == (Fraction(1, 2) if isinstance(oracle, LOSUE) else 1 - q1)


@pytest.mark.parametrize(
    ("oracle", "keep"),
    [
        (LGRR(2, 2, 1), 0.8033881), (LGRR(10, 2, 1), 0.4385246), (LGRR(128, 2, 1), 0.2842610),
        (LOSUE(7, 2, 1), 0.8033881), (LSUE(7, 2, 1), 0.7649963),
    ],
)  # fmt: skip
def test_fresh_steps_are_those_of_the_tables(oracle, keep):
    assert float(oracle.steps.fresh[0]) == pytest.approx(keep, abs=5e-8)


@pytest.mark.parametrize(
    ("oracle", "losses"),
    [
        (LGRR(10, 2, 1), (1, 1.753212, 1.999175, 2.0)),
        (LGRR(128, 2, 1), (1, 1.955630, 2.0, 2.0)),
        (LOSUE(10, 2, 1), (1, 1.641664, 1.993653, 2.0)),
        (LOSUE(10, 4, 0.5), (0.5, 0.994972, 2.378906, 3.998323)),
    ],
)  # fmt: skip
def test_losses_after_some_reports_are_those_of_the_tables(oracle, losses):
    found = [oracle.loss_after(reports) for reports in (1, 2, 5, 20)]
    assert found == pytest.approx(losses, abs=1e-6)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("reports", [1, 2, 3, 4])
def test_the_loss_of_codes_after_some_reports_is_the_worst_of_all_sequences(size, reports):
    oracle = LGRR(size, 2, 1)
    first, second = (
        np.where(np.eye(size, dtype=bool), float(p), float(q))
        for p, q in (oracle.steps.permanent, oracle.steps.fresh)
    )
    worst = 0.0
    for sequence in product(range(size), repeat=reports):
        law = first @ second[:, list(sequence)].prod(axis=1)
        worst = max(worst, law.max() / law.min())
    assert oracle.loss_after(reports) == pytest.approx(log(worst), abs=1e-9)


@pytest.mark.parametrize("oracle", [LOSUE(3, 2, 1), LSUE(3, 3, 1), RAPPOR(3, 2, "0.4", "0.9")])
@pytest.mark.parametrize("reports", [1, 2, 4])
def test_the_loss_of_bits_after_some_reports_is_the_worst_of_all_sequences(oracle, reports):
    """Two codes differ in two independent bits: the product of their worst ratios."""
    (p1, q1), (p2, q2) = oracle.steps.permanent, oracle.steps.fresh
    worst = {True: Fraction(0), False: Fraction(0)}
    for sequence in product((0, 1), repeat=reports):
        ones = sum(sequence)
        if_set = p2**ones * (1 - p2) ** (reports - ones)
        if_clear = q2**ones * (1 - q2) ** (reports - ones)
        told = p1 * if_set + (1 - p1) * if_clear
        lied = q1 * if_set + (1 - q1) * if_clear
        worst[True], worst[False] = (
            max(worst[True], told / lied),
            max(worst[False], lied / told),
        )
    expected = float(log_of(worst[True] * worst[False]))
    assert oracle.loss_after(reports) == pytest.approx(expected, abs=1e-12)


@given(oracles, st.integers(0, 10**6), st.integers(0, 10**6))
def test_losses_grow_with_reports_and_never_pass_epsilon(oracle, one, other):
    fewer, more = sorted((one, other))
    assert 0 <= oracle.loss_after(fewer) <= oracle.loss_after(more) <= oracle.epsilon
    assert oracle.loss_after(0) == 0
    assert oracle.loss_after(1) == pytest.approx(oracle.first_report_epsilon, abs=1e-12)
    assert oracle.loss_after(10**9) == pytest.approx(oracle.real_epsilon, abs=1e-9)


def test_rappor_is_that_of_the_tables():
    oracle = RAPPOR.with_flip(10, 0.5, 0.5, 0.75)
    assert oracle.real_epsilon == pytest.approx(2.1972246, abs=5e-8)
    assert oracle.loss.epsilon >= Fraction(oracle.real_epsilon)
    assert [oracle.p, oracle.q] == pytest.approx([0.6875, 0.5625])
    assert oracle.first_report_epsilon == pytest.approx(0.5371429, abs=5e-8)
    assert oracle.loss_after(1) == pytest.approx(0.5371429, abs=5e-8)
    q1 = oracle.steps.permanent[1]
    assert float(q1) == pytest.approx(0.25, abs=1e-12)
    assert RAPPOR(10, oracle.epsilon) == oracle


@given(small, st.integers(1, 10**6))
def test_estimates_invert_the_supports(oracle, n):
    size = oracle.domain_size
    p, q = oracle.p, oracle.q
    counts = np.where(np.eye(size, dtype=bool), p, q)
    for code in range(size):
        np.testing.assert_allclose(
            oracle.estimate(counts[code] * n, n), np.eye(size)[code], atol=1e-13 / (p - q)
        )


@given(st.integers(2, 9), st.floats(0, 1), st.integers(1, 10**5), st.integers(1, 50))
def test_variances_are_those_of_sums_of_two_steps(size, f, n, rounds):
    """By total variance: the permanent answer, then the fresh ones given it."""
    for oracle in (LGRR(size, 3, 1), LOSUE(size, 3, 1), RAPPOR(size, 3)):
        (p1, q1), (p2, q2) = (
            tuple(map(float, x)) for x in (oracle.steps.permanent, oracle.steps.fresh)
        )
        total = 0.0
        for share, kept in ((f, p1), (1 - f, q1)):
            within = (kept * p2 * (1 - p2) + (1 - kept) * q2 * (1 - q2)) / rounds
            between = kept * (1 - kept) * (p2 - q2) ** 2
            total += share * (within + between)
        expected = total / (n * (oracle.p - oracle.q) ** 2)
        assert oracle.average_variance(rounds, n, f) == pytest.approx(expected, rel=1e-9)
        assert oracle.variance(n, f) == oracle.average_variance(1, n, f)


@given(small, st.floats(0, 1))
def test_averages_of_users_drawn_independently_have_the_published_variance(oracle, f):
    """[τ(1-τ)/T + (1-1/T)(p₂-q₂)²τ₁(1-τ₁)]/(p-q)², less the f(1-f) of a fixed population."""
    (p1, q1), (p2, q2) = (
        tuple(map(float, x)) for x in (oracle.steps.permanent, oracle.steps.fresh)
    )
    once, always = oracle.q + f * (oracle.p - oracle.q), q1 + f * (p1 - q1)
    for rounds in (1, 4, 10**6):
        published = (
            once * (1 - once) / rounds
            + (1 - 1 / rounds) * (p2 - q2) ** 2 * always * (1 - always)
        ) / (oracle.p - oracle.q) ** 2
        ours = oracle.average_variance(rounds, 1, f) + f * (1 - f)
        assert ours == pytest.approx(published, rel=1e-9)
    floor = (f * p1 * (1 - p1) + (1 - f) * q1 * (1 - q1)) / (p1 - q1) ** 2
    assert oracle.average_variance(10**12, 1, f) == pytest.approx(floor, rel=1e-6)


def test_the_first_report_is_as_accurate_as_the_mechanism_it_equals():
    assert LGRR(16, 2, 1).variance(1) == pytest.approx(GRR(16, 1).variance(1), rel=1e-7)
    assert LGRR(128, 9, "0.5").variance(1) == pytest.approx(303.319403, rel=1e-6)
    assert LOSUE(16, 2, 1).variance(1) == pytest.approx(3.682694, rel=1e-6)
    assert LSUE(16, 2, 1).variance(1) == pytest.approx(3.917698, rel=1e-6)
    np.testing.assert_allclose(LGRR(5, 2, 1).channel(), GRR(5, 1).channel(), atol=1e-9)
    laws.assert_estimate_inverts(LGRR(5, 2, 1))


def codes_for(n, size):
    return (np.arange(n) * 7 % size).astype(np.uint16)


@pytest.mark.parametrize("kind", [*THREE, RAPPOR])
def test_reports_depend_on_their_own_user_only(kind):
    oracle, codes = kind(7, 2, "0.5"), codes_for(300, 7)
    codes.flags.writeable = False
    whole = oracle.perturb(codes, twins.noise_for(300))
    users = np.array([3, 150, 151, 299])
    part = oracle.perturb(codes[users], twins.noise_for(0, users=users))
    np.testing.assert_array_equal(part, whole[users])
    np.testing.assert_array_equal(
        oracle.tally(whole[:100]) + oracle.tally(whole[100:]), oracle.tally(whole)
    )
    assert oracle.tally(oracle.perturb(codes[:0], twins.noise_for(0))).tolist() == [0] * 7
    assert oracle.tally_size == 7


@pytest.mark.parametrize("kind", [*THREE, RAPPOR])
def test_one_code_is_told_for_nothing(kind):
    oracle = kind(1, 2, "0.5")
    reports = oracle.perturb(np.zeros(5, np.uint8), twins.noise_for(5))
    assert oracle.tally(reports).tolist() == [5]
    assert oracle.estimate(np.array([5]), 5).tolist() == [1]
    assert oracle.loss.epsilon == oracle.real_epsilon == oracle.first_report_epsilon == 0
    assert oracle.loss_after(9) == oracle.variance(5, 1.0) == oracle.average_variance(3, 5) == 0
    if kind is LGRR:
        assert oracle.channel().tolist() == [[1.0]]


def test_oracles_keep_their_contracts_and_are_values():
    oracle: FrequencyOracle = LGRR(3, 2, 1)
    bits: FrequencyOracle = LOSUE(3, 2, 1)
    memoized: Memoized = RAPPOR(3, 2)
    assert isinstance(memoized, Memoized)
    assert not isinstance(GRR(3, 2), Memoized)
    assert (
        oracle == LGRR(3, "2.0", 1) == pickle.loads(pickle.dumps(oracle)) != LGRR(3, 2, "0.5")
    )
    assert dict(bits.parameters) == {
        "domain_size": 3, "epsilon": "2", "first_epsilon": "1", "permanent_true": 2**63,
        "permanent_false": 2198905795380358826, "fresh_true": 14819894059366668260,
        "fresh_false": 3626850014342883356,
    }  # fmt: skip
    assert (oracle.report_bytes, LGRR(300, 2, 1).report_bytes, bits.report_bytes) == (
        1,
        2,
        3 / 8,
    )
    with pytest.raises(FrozenInstanceError):
        LSUE(3, 2, 1).epsilon = Fraction(1)  # type: ignore[misc]


@pytest.mark.parametrize("kind", THREE)
def test_bad_parameters_are_refused_by_name(kind):
    for bad in (0, 1.5, True, 1_000_001):
        with pytest.raises(InputError, match="domain_size must be"):
            kind(bad, 2, 1)
    for wrong in (0, -1, "nan", True, 31):
        with pytest.raises(InputError, match=r"^epsilon must be"):
            kind(3, wrong, 1)
        with pytest.raises(InputError, match="first_epsilon must be"):
            kind(3, 2, wrong)
    for large in (2, "2.5"):
        with pytest.raises(
            InputError, match="first_epsilon must be > 0 and < epsilon = 2, got"
        ):
            kind(3, 2, large)
    with pytest.raises(InputError, match="the losses are too small"):
        kind(3, 2, "1e-25")
    with pytest.raises(InputError, match="reports must be"):
        kind(3, 2, 1).loss_after(-1)
    with pytest.raises(InputError, match="rounds must be"):
        kind(3, 2, 1).average_variance(0, 5)
    with pytest.raises(InputError, match="n must be"):
        kind(3, 2, 1).variance(0)
    with pytest.raises(InputError, match="n must be"):
        kind(3, 2, 1).estimate(np.zeros(3, np.int64), 0)


def test_rates_and_flips_are_refused_by_name():
    for bad in (0, "0.75", "0.8", 1, "nan"):
        with pytest.raises(InputError, match="zero_rate must be"):
            RAPPOR(3, 2, bad)
    with pytest.raises(InputError, match="one_rate must be"):
        RAPPOR(3, 2, "0.5", 1)
    for wrong in (0, 1, -1):
        with pytest.raises(InputError, match="flip must be"):
            RAPPOR.with_flip(3, wrong)
    for kind in (LOSUE, LSUE, RAPPOR):
        with pytest.raises(InputError, match="domain_size must be <= 1,024, got 1,025"):
            kind(1025, 2, "0.5")


@pytest.mark.parametrize("kind", [*THREE, RAPPOR])
def test_bad_inputs_are_counted_and_never_echoed(kind):
    oracle = kind(3, 2, "0.5")
    with pytest.raises(InputError) as caught:
        oracle.perturb(np.array([0, 77, 2, 99], np.uint8), twins.noise_for(4))
    assert str(caught.value) == "2 of 4 codes lie outside 0..2"
    with pytest.raises(InputError, match="one input per user, got 2 for 3 users"):
        oracle.perturb(np.zeros(2, np.uint8), twins.noise_for(3))
