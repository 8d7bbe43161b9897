"""What all oracles of the pure frame have in common."""

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import generator_at
from dpsim.mechanisms.hadamard import HadamardResponse
from dpsim.mechanisms.interfaces import CountLaw, FrequencyOracle
from dpsim.mechanisms.local_hashing import BLH, OLH
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.mechanisms.unary import OUE, SUE, FaithfulOUE, FaithfulSUE
from tests.pure_laws import mean_ratio, noise_for, spread_of_ratio

SOUND: list[Any] = [SUE, OUE, OLH, BLH, SubsetSelection, HadamardResponse]
FAITHFUL: list[Any] = [FaithfulSUE, FaithfulOUE]
EVERY = pytest.mark.parametrize("make", SOUND + FAITHFUL)
EVERY_SOUND = pytest.mark.parametrize("make", SOUND)
WITH_LAW = pytest.mark.parametrize("make", [SUE, OUE, FaithfulSUE, FaithfulOUE, OLH, BLH])

epsilons = st.fractions(Fraction(1, 1000), 30, max_denominator=10**6)


def codes_for(n, size):
    return (np.arange(n) * 7 % size).astype(np.uint16)


@EVERY_SOUND
@given(size=st.integers(2, 1000), epsilon=epsilons)
def test_the_odds_never_exceed_the_loss_and_come_near_it(make, size, epsilon):
    """In 50 digits: a rounding error would break privacy, not accuracy."""
    oracle = make(size, epsilon)
    with localcontext(prec=50):
        asked = Decimal(epsilon.numerator) / epsilon.denominator
        real = (Decimal(oracle.odds[0]) / oracle.odds[1]).ln()
        assert real <= asked
        assert asked - real <= Decimal("1.1e-5") * asked
        assert abs(Decimal(oracle.real_epsilon) - real) <= Decimal("1e-15") * max(1, real)
    assert oracle.real_epsilon <= oracle.loss.epsilon == epsilon


@EVERY
@given(size=st.integers(2, 300), epsilon=st.fractions("0.01", 12, max_denominator=1000))
def test_the_gap_is_p_less_q_and_tells_codes_apart(make, size, epsilon):
    oracle = make(size, epsilon)
    assert oracle.gap == pytest.approx(oracle.p - oracle.q, abs=1e-15)
    assert (oracle.gap < 0) == (make in FAITHFUL)
    assert oracle.domain_size == size


@EVERY
@given(size=st.integers(1, 200), data=st.data())
def test_a_report_depends_on_the_user_and_nothing_else(make, size, data):
    """Any part of the users, on their own, send what they send among all."""
    oracle, codes = make(size, 1), codes_for(150, size)
    places = np.array(sorted(data.draw(st.sets(st.integers(0, 149), max_size=20))), np.int64)
    whole = oracle.perturb(codes, noise_for(np.arange(1000, 1150)))
    part = oracle.perturb(codes[places], noise_for(1000 + places))
    assert part.dtype == whole.dtype
    np.testing.assert_array_equal(part, whole[places])


@EVERY
def test_another_seed_or_subject_gives_other_reports(make):
    oracle, codes = make(16, 1), codes_for(100, 16)
    reports = oracle.perturb(codes, noise_for(100))
    for other in (noise_for(100, seed=2), noise_for(100, subject="y")):
        assert (oracle.perturb(codes, other) != reports).any()


@EVERY
@pytest.mark.parametrize("size", [2, 8, 64, 65, 128, 200])
def test_tallies_add_up_and_reports_weigh_what_they_say(make, size):
    oracle, codes = make(size, 1), codes_for(300, size)
    codes.flags.writeable = False
    reports = oracle.perturb(codes, noise_for(300))
    assert len(reports) == 300
    assert reports.nbytes == 300 * oracle.report_bytes
    tally = oracle.tally(reports)
    assert tally.dtype == np.int64
    assert tally.shape == (oracle.tally_size,)
    parts = oracle.tally(reports[:100]) + oracle.tally(reports[100:])
    np.testing.assert_array_equal(parts, tally)
    assert oracle.tally(reports[:0]).tolist() == [0] * oracle.tally_size
    assert codes.tolist() == codes_for(300, size).tolist()


@EVERY
@given(epsilon=epsilons)
def test_one_code_is_the_identity_at_no_loss(make, epsilon):
    oracle = make(1, epsilon)
    tally = oracle.tally(oracle.perturb(np.zeros(5, np.uint8), noise_for(5)))
    assert tally[0] == tally.sum() == 5
    assert oracle.loss.epsilon == oracle.real_epsilon == 0
    assert oracle.estimate(tally, 5).tolist() == [1.0]
    assert oracle.variance(5, 1.0) == 0
    assert oracle.p == 1
    if isinstance(oracle, CountLaw):
        assert oracle.simulate(np.array([5]), generator_at((1, "", "", ""), 0)).tolist() == [5]


@pytest.mark.statistical
@EVERY
def test_squared_errors_are_those_of_the_variance_formula(make):
    counts, repeats = [200, 150, 100, 50, 0], 1000
    ratio = mean_ratio(make(5, 1), make(5, 1), counts, repeats)
    assert abs(ratio - 1) < 5 * spread_of_ratio(counts, repeats)


@pytest.mark.statistical
@EVERY
def test_squared_errors_reject_another_epsilon(make):
    counts, repeats = [200, 150, 100, 50, 0], 1000
    ratio = mean_ratio(make(5, "0.8"), make(5, 1), counts, repeats)
    assert abs(ratio - 1) > 5 * spread_of_ratio(counts, repeats)


@pytest.mark.statistical
@EVERY
def test_errors_have_no_bias_in_large_domains(make):
    n, size = 40_000, 130
    oracle, codes = make(size, 1), (np.arange(n) % 100).astype(np.uint8)
    truth = np.bincount(codes, minlength=size) / n
    estimate = oracle.estimate(oracle.tally(oracle.perturb(codes, noise_for(n))), n)
    errors = np.sqrt([oracle.variance(n, float(share)) for share in truth])
    z = (estimate - truth) / errors
    assert np.abs(z).max() < 5
    assert abs((z**2).mean() - 1) < 5 * (2 / size) ** 0.5


@pytest.mark.statistical
@WITH_LAW
def test_simulated_tallies_have_the_law_of_tallied_reports(make):
    """Mean and variance of each count over many units; the oracle's own law, no reports."""
    oracle, histogram, repeats = make(4, 1), np.array([300, 200, 100, 0]), 4000
    n, p, q = int(histogram.sum()), oracle.p, oracle.q
    tallies = np.array(
        [
            oracle.simulate(histogram, generator_at((3, "a", "b", "c"), i))
            for i in range(repeats)
        ]
    )
    assert tallies.dtype == np.int64
    mean = histogram * p + (n - histogram) * q
    variance = histogram * p * (1 - p) + (n - histogram) * q * (1 - q)
    assert (np.abs(tallies.mean(axis=0) - mean) < 5 * (variance / repeats) ** 0.5).all()
    ratios = tallies.var(axis=0) / variance
    assert (np.abs(ratios - 1) < 5 * (2 / repeats) ** 0.5).all()
    correlation = np.corrcoef(tallies.T)[np.triu_indices(4, 1)]
    assert np.abs(correlation).max() < 5 / repeats**0.5


def test_subsets_and_indices_have_no_short_law():
    assert not isinstance(SubsetSelection(4, 1), CountLaw)
    assert not isinstance(HadamardResponse(4, 1), CountLaw)


@EVERY
def test_an_oracle_is_a_value(make):
    assert make(3, 1) == make(3, "1.0") == pickle.loads(pickle.dumps(make(3, 1))) != make(3, 2)
    assert hash(make(3, 1)) == hash(make(3, "1.0"))
    with pytest.raises(FrozenInstanceError):
        make(3, 1).epsilon = Fraction(2)


@EVERY
def test_the_plan_holds_every_number_that_determines_a_report(make):
    names = dict(make(10, "1.0").parameters)
    assert names["domain_size"] == 10
    assert names["epsilon"] == "1"
    assert names["draw_bits"] == 32
    assert names != dict(make(10, "1.000001").parameters)


def test_oracles_of_different_kinds_differ():
    assert len({make(5, 1) for make in SOUND + FAITHFUL}) == 8


def test_the_type_checker_knows_all_of_them_as_oracles():
    makers: list[Callable[[int, Fraction], FrequencyOracle]] = [
        SUE, OUE, FaithfulSUE, FaithfulOUE, OLH, BLH, SubsetSelection, HadamardResponse
    ]  # fmt: skip
    assert makers == [SUE, OUE, *FAITHFUL, *SOUND[2:]]


@EVERY
@pytest.mark.parametrize("epsilon", [0, -1, "nan", float("inf"), True, None, "30.001", "x"])
def test_a_bad_epsilon_is_refused_by_name(make, epsilon):
    with pytest.raises(InputError, match="epsilon must be"):
        make(3, epsilon)


@EVERY
@pytest.mark.parametrize("size", [0, -1, 2.0, True, "3", 1_000_001])
def test_a_bad_domain_size_is_refused_by_name(make, size):
    with pytest.raises(InputError, match="domain_size must be"):
        make(size, 1)


@EVERY_SOUND
def test_an_epsilon_below_the_grid_is_refused(make):
    with pytest.raises(InputError, match="epsilon is too small for 1000 codes"):
        make(1000, "1e-21")


@EVERY
def test_codes_outside_the_domain_are_counted_and_never_echoed(make):
    with pytest.raises(InputError) as caught:
        make(3, 1).perturb(np.array([0, 77, 2, 99], np.uint8), noise_for(4))
    assert str(caught.value) == "2 of 4 codes lie outside 0..2"


@EVERY
@pytest.mark.parametrize("n", [0, -1])
def test_estimates_and_variances_need_somebody(make, n):
    oracle = make(2, 1)
    with pytest.raises(InputError, match="n must be"):
        oracle.estimate(np.zeros(oracle.tally_size, np.int64), n)
    with pytest.raises(InputError, match="n must be"):
        oracle.variance(n)
