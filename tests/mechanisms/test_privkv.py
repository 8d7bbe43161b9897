"""PrivKV: tight loss, no bias, and the published variants with theirs."""

import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.interfaces import KeyValueMechanism
from dpsim.mechanisms.pairs import pair_truth
from dpsim.mechanisms.privkv import FaithfulPrivKV, PrivKV, PrivKVMRound
from tests import laws
from tests.mechanisms import twins

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
small = st.fractions(Fraction(1, 10), 6, max_denominator=1000)
shares = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=1000)
means = st.fractions(-1, 1, max_denominator=10**6)
splits = st.builds(PrivKV, epsilons)
uneven = st.builds(lambda epsilon, share: PrivKV(epsilon, epsilon * share), epsilons, shares)
faithful = st.builds(FaithfulPrivKV, epsilons, epsilons)
rounds = st.builds(PrivKVMRound, epsilons, epsilons, means)
mechanisms = splits | uneven | faithful | rounds


def sigmoid(x):
    return 1 / (1 + exp(-x))


@given(mechanisms)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(mechanism):
    laws.assert_is_stochastic(mechanism.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)
    assert mechanism.real_epsilon <= mechanism.loss.epsilon


@given(mechanisms)
def test_no_report_is_beyond_the_charged_loss_in_60_digits(mechanism):
    charged = mechanism.loss.epsilon
    worst = twins.worst_ratio([[Fraction(x) for x in row] for row in mechanism.atoms.rows])
    with localcontext(prec=60):
        assert (Decimal(worst.numerator) / worst.denominator).ln() <= (
            Decimal(charged.numerator) / charged.denominator
        )


@given(splits | faithful)
def test_hardly_anything_of_the_charged_loss_is_wasted(mechanism):
    assert mechanism.loss.epsilon - Fraction(mechanism.real_epsilon) <= (
        Fraction(2, 10**5) * mechanism.loss.epsilon
    )


@given(uneven)
def test_an_uneven_split_wastes_nothing_either(mechanism):
    assert mechanism.epsilon * Fraction(99998, 10**5) <= Fraction(mechanism.real_epsilon)
    law = mechanism.atoms.law
    assert log(law.keep / law.fake) == pytest.approx(float(mechanism.key_epsilon), rel=2e-5)


@given(mechanisms, st.data())
def test_reports_follow_the_channel_atom_by_atom(mechanism, data):
    """Each report owns an interval of draws. Both ends of all of them: no sampling needed."""
    atoms = mechanism.atoms
    for state, value in enumerate((float("nan"), 1.0, -1.0)):
        silent, plus, minus = atoms.rows[state]
        ends = [0, plus - 1, plus, plus + minus - 1, plus + minus, plus + minus + silent - 1]
        draws = np.array(ends, f"u{atoms.draw_bits // 8}")
        assert ends[-1] == 2**atoms.draw_bits - 1
        reports = mechanism.respond(np.full(6, value), draws)
        assert reports.tolist() == [1, 1, 2, 2, 0, 0]


def test_both_widths_of_draws_are_used():
    assert PrivKV(1).atoms.draw_bits == 32
    assert PrivKV(20).atoms.draw_bits == 64
    assert PrivKVMRound(1, "0.00001").atoms.draw_bits == 64


@pytest.mark.parametrize(
    ("key", "value", "loss"),
    [(0.5, 0.5, 0.7190702), (1, 1, 1.3798855), (1, 0.2, 1.0950083), (0.2, 1.5, 1.5)],
)
def test_the_tight_loss_is_that_of_the_tables(key, value, loss):
    mechanism = FaithfulPrivKV(key, value)
    assert float(mechanism.loss.epsilon) == pytest.approx(loss, abs=5e-8)
    assert mechanism.real_epsilon == pytest.approx(loss, abs=1e-7)
    assert mechanism.loss.epsilon <= mechanism.key_epsilon + mechanism.value_epsilon


@pytest.mark.parametrize(
    ("epsilon", "key"), [(0.5, 0.2809298), (1, 0.6201145), (2, 1.4337808), (4, 3.3250027)]
)
def test_the_default_split_is_that_of_the_tables(epsilon, key):
    law = PrivKV(epsilon).atoms.law
    assert log(law.keep / law.fake) == pytest.approx(key, abs=1e-7)
    assert law.gain / law.keep == pytest.approx(2 * sigmoid(epsilon) - 1, rel=1e-6)
    assert law.keep + law.fake == 1


@pytest.mark.parametrize(("mean", "loss"), [(0.3, 1.5291226), (1, 2), (-1, 2), (0, 1.3798855)])
def test_rounds_with_uneven_fakes_cost_what_the_tables_say(mean, loss):
    mechanism = PrivKVMRound(1, 1, mean)
    assert mechanism.real_epsilon == pytest.approx(loss, abs=1e-7)
    assert mechanism.loss.epsilon == 2


@given(splits | uneven, st.floats(0, 1), st.floats(-1, 1))
def test_frequency_and_sum_of_values_are_unbiased(mechanism, frequency, mean):
    law = twins.mixture(mechanism.channel(), frequency, mean)
    found, product = mechanism.atoms.law.unbiased(law[1], law[2], 1)
    tolerance = 1e-14 / mechanism.atoms.law.gain + 1e-14 / (
        mechanism.atoms.law.keep - mechanism.atoms.law.fake
    )
    assert found == pytest.approx(frequency, abs=tolerance)
    assert product == pytest.approx(frequency * mean, abs=tolerance)


@given(small, st.floats(0.05, 1), st.floats(-1, 1))
def test_the_mean_of_expected_counts_is_the_truth(epsilon, frequency, mean):
    mechanism = PrivKV(epsilon)
    law = twins.mixture(mechanism.channel(), frequency, mean)
    found = mechanism.estimate(law[1:] * 2**40, 2**40)
    assert list(found) == pytest.approx([frequency, mean], abs=1e-9)


def test_the_law_of_no_bias_rejects_another_epsilon():
    law = twins.mixture(PrivKV(1).channel(), 0.3, 0.5)
    found = PrivKV("1.001").estimate(law[1:] * 2**40, 2**40)
    assert list(found) != pytest.approx([0.3, 0.5], abs=1e-6)


@given(st.floats(0.05, 1), st.floats(-1, 1), small, small)
def test_the_published_mean_is_biased_by_the_fakes(frequency, mean, key, value):
    mechanism = FaithfulPrivKV(key, value)
    law = twins.mixture(mechanism.channel(), frequency, mean)
    p = sigmoid(float(key))
    expected = mean * frequency * p / (frequency * p + (1 - frequency) * (1 - p))
    estimate = mechanism.estimate(law[1:] * 2**40, 2**40)
    assert estimate[0] == pytest.approx(frequency, abs=1e-6)
    assert estimate[1] == pytest.approx(expected, abs=1e-6)


def test_the_published_iteration_takes_the_mean_to_the_truth_as_the_tables_say():
    mean: float | None = 0
    found = []
    for _ in range(6):
        mechanism = PrivKVMRound(0.5, 0.5, mean)
        law = twins.mixture(mechanism.channel(), 0.1, 0.6)
        mean = mechanism.estimate(law[1:] * 2**40, 2**40)[1]
        found.append(mean)
    assert found == pytest.approx([0.0929, 0.1714, 0.2378, 0.2939, 0.3413, 0.3813], abs=5e-5)
    assert FaithfulPrivKV(0.5, 0.5).estimate(
        twins.mixture(FaithfulPrivKV(0.5, 0.5).channel(), 0.1, 0.6)[1:] * 2**40, 2**40
    )[1] == pytest.approx(found[0])


@given(small, st.floats(0.05, 1), st.floats(-0.95, 0.95))
def test_variance_is_the_channels(epsilon, frequency, mean):
    mechanism = PrivKV(epsilon)
    assert_variance(mechanism, frequency, mean)


@given(small, small, means, st.floats(0.05, 1), st.floats(-0.95, 0.95))
def test_variance_of_the_published_mean_is_the_channels(key, value, fakes, frequency, mean):
    """Where clipping does not bite; the biased mean varies around its own expectation."""
    mechanism = PrivKVMRound(key, value, fakes * Fraction(9, 10))
    assert_variance(mechanism, frequency, mean)
    assert_variance(FaithfulPrivKV(key, value), frequency, mean)


def assert_variance(mechanism, frequency, mean):
    law = twins.mixture(mechanism.channel(), frequency, mean)
    shares = {(0, 0): law[0], (1, 0): law[1], (0, 1): law[2]}
    scaled = 2**60  # the published estimate reads whole counts
    implied = twins.delta_variance(
        lambda tally, _: mechanism.estimate((tally * scaled).astype(np.int64), scaled),
        shares,
        9,
    )
    np.testing.assert_allclose(mechanism.variance(9, frequency, mean), implied, rtol=1e-4)


def test_standard_deviations_are_those_of_the_tables():
    """100,000 users, one key of d sampled, c of d held, mean 1/2."""
    for epsilon, d, c, frequency, mean in [
        (1, 4, 1, 0.0104, 0.057), (1, 16, 1, 0.0203, 0.437), (2, 16, 4, 0.0098, 0.048),
        (4, 100, 5, 0.0093, 0.190),
    ]:  # fmt: skip
        found = PrivKV(epsilon).variance(100_000 // d, c / d, 0.5)
        assert sqrt(found[0]) == pytest.approx(frequency, abs=6e-5)
        assert sqrt(found[1]) == pytest.approx(mean, abs=6e-4)


def test_counts_are_clipped_in_the_published_mean_only():
    tally = np.array([10, 0])
    assert FaithfulPrivKV(1, 1).estimate(tally, 10)[1] == 1.0
    assert FaithfulPrivKV(1, 1).estimate(tally[::-1], 10)[1] == -1.0
    assert (PrivKV(1).estimate(tally, 10)[1] or 0) > 1


def test_nobody_reported_the_key_and_nobody_seems_to_hold_it():
    for mechanism in (PrivKV(1), FaithfulPrivKV(1, 1), PrivKVMRound(1, 1, 0.5)):
        frequency, mean = mechanism.estimate(np.array([0, 0]), 10)
        assert frequency < 0
        assert mean is None
        with pytest.raises(InputError, match="n must be"):
            mechanism.estimate(np.array([0, 0]), 0)


@pytest.mark.statistical
def test_estimates_are_within_five_standard_errors():
    assert worst_z(PrivKV(2), PrivKV(2)) < 5


@pytest.mark.statistical
def test_the_sampling_law_rejects_another_epsilon():
    assert worst_z(PrivKV("1.8"), PrivKV(2)) > 5


def worst_z(perturbing, estimating, n=200_000):
    values = np.linspace(-0.2, 1, n)
    values[::3] = np.nan
    tally = perturbing.tally(perturbing.perturb(values, twins.noise_for(n)))
    frequency, mean = pair_truth(values)
    found = estimating.estimate(tally, n)
    errors = np.sqrt(estimating.variance(n, frequency, mean))
    return max(abs(found[0] - frequency) / errors[0], abs(found[1] - mean) / errors[1])


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [1, "0.8"])
def test_squared_errors_are_those_of_the_variance_formula(wrong):
    """2,000 repetitions of 500 users, all in one block; the wrong ε must be rejected."""
    stated, repeats, n = PrivKV(1), 2000, 500
    perturbing = PrivKV(wrong)
    values = np.where(np.arange(n) < 400, np.where(np.arange(n) < 280, 1.0, -1.0), np.nan)
    reports = perturbing.perturb(np.tile(values, repeats), twins.noise_for(repeats * n))
    counts = [(reports.reshape(repeats, n) == sign).sum(axis=1) for sign in (1, 2)]
    frequency, product = stated.atoms.law.unbiased(counts[0], counts[1], n)
    of_frequency = stated.variance(n, 0.8, 0.4)[0] - 0.8 * 0.2 / n  # a fixed population
    ratio = np.mean((frequency - 0.8) ** 2) / of_frequency
    bias = abs(np.mean(product) - 0.8 * 0.4) / (np.std(product) / sqrt(repeats))
    within = abs(ratio - 1) < 5 * sqrt(2 / repeats) and bias < 5
    assert within == (wrong == 1)


def test_reports_do_not_depend_on_the_other_users_of_a_block():
    mechanism, values = PrivKV(1), np.linspace(-1, 1, 1000)
    whole = mechanism.perturb(values, twins.noise_for(1000))
    users = np.array([3, 500, 501, 999])
    part = mechanism.perturb(values[users], twins.noise_for(0, users=users))
    np.testing.assert_array_equal(part, whole[users])
    assert (whole != mechanism.perturb(values, twins.noise_for(1000, plan="other"))).any()


def test_inputs_may_be_read_only_and_tallies_add_up():
    mechanism: KeyValueMechanism = PrivKV(1)
    values = np.linspace(-1, 1, 100)
    values.flags.writeable = False
    reports = mechanism.perturb(values, twins.noise_for(100))
    tally = mechanism.tally(reports)
    assert tally.dtype == np.int64
    assert tally.tolist() == [np.sum(reports == 1), np.sum(reports == 2)]
    np.testing.assert_array_equal(
        mechanism.tally(reports[:30]) + mechanism.tally(reports[30:]), tally
    )
    assert mechanism.tally_size == tally.size
    assert mechanism.report_bytes == 0.25


def test_the_plan_holds_every_number_that_determines_a_report():
    assert dict(PrivKV("1.0").parameters) == {
        "epsilon": "1", "key_epsilon": None, "draw_bits": 32, "kept": 2041685230,
        "flipped": 751094022, "fake_plus": 751094022, "fake_minus": 751094022,
    }  # fmt: skip
    assert dict(PrivKVMRound(1, "1/3", 0.25).parameters)["fake_mean"] == "0.25"


def test_a_mechanism_is_a_value():
    assert PrivKV(1) == PrivKV("1.0") == pickle.loads(pickle.dumps(PrivKV(1))) != PrivKV(2)
    assert PrivKV(1, 0.5) != PrivKV(1)
    with pytest.raises(FrozenInstanceError):
        PrivKV(1).epsilon = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("bad", [0, -1, "nan", float("inf"), True, "30.001", "x"])
def test_a_bad_epsilon_is_refused_by_name(bad):
    with pytest.raises(InputError, match=r"^epsilon must be"):
        PrivKV(bad)
    with pytest.raises(InputError, match="key_epsilon must be"):
        PrivKV(1, bad)
    with pytest.raises(InputError, match="value_epsilon must be"):
        FaithfulPrivKV(1, bad)
    with pytest.raises(InputError, match="key_epsilon must be"):
        PrivKVMRound(bad, 1)


@pytest.mark.parametrize("bad", [1, "1.5"])
def test_the_key_cannot_have_all_of_epsilon(bad):
    with pytest.raises(InputError, match="key_epsilon must be > 0 and < epsilon = 1, got"):
        PrivKV(1, bad)


@pytest.mark.parametrize("bad", [1.01, -2, "nan", None])
def test_a_fake_mean_outside_its_range_is_refused(bad):
    with pytest.raises(InputError, match="fake_mean must be"):
        PrivKVMRound(1, 1, bad)


def test_a_loss_below_the_grid_is_refused():
    with pytest.raises(InputError, match="the losses must be larger"):
        PrivKV("1e-16")


def test_one_corrected_round_is_better_than_its_published_mean():
    """The reason for the default: the published mean's bias against the spread of ours."""
    even, tight = FaithfulPrivKV(0.5, 0.5).atoms.law, PrivKV(1)
    assert sqrt(even.variance(100_000, 0.1, 0.6)[1]) == pytest.approx(0.138, abs=2e-3)
    assert sqrt(tight.variance(100_000, 0.1, 0.6)[1]) == pytest.approx(0.0707, abs=1e-4)
