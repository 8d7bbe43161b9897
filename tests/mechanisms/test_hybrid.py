"""Hybrid: a mixture whose branch does not depend on the number."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.hybrid import DUCHI_UP_TO, Hybrid
from dpsim.mechanisms.piecewise import Piecewise
from tests import laws
from tests.mechanisms import mean_laws

epsilons = st.fractions(Fraction(1, 100), 20, max_denominator=10**6)
mechanisms = st.builds(Hybrid, epsilons, st.sampled_from([2, 16, 64]))
usual = st.builds(
    Hybrid, st.fractions("0.1", 8, max_denominator=1000), st.sampled_from([16, 64])
)
numbers = st.floats(-1, 1)


def codes_of(mechanism):
    return np.arange(2 + mechanism.points * mechanism.is_mixed, dtype=np.uint32)


@given(mechanisms)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(mechanism):
    laws.assert_is_stochastic(mechanism.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)
    assert mechanism.real_epsilon <= mechanism.epsilon


@given(usual, st.lists(numbers, min_size=1, max_size=4))
def test_mean_and_variance_are_the_channels(mechanism, inputs):
    inputs = np.array(inputs)
    means, variances = mean_laws.moments(mechanism, codes_of(mechanism), inputs)
    np.testing.assert_allclose(means, inputs, atol=(mechanism.bound + 2) * mean_laws.SHARE)
    stated = mechanism.variance(3, inputs.mean(), (inputs**2).mean()) * 3
    room = mechanism.points - 1
    rounding = (2 * mechanism.bound / room) ** 2 / 4 if mechanism.is_mixed else 0
    slack = 1e-7 * mechanism.bound**2
    assert variances.mean() - slack <= stated <= variances.mean() + rounding + slack


def test_the_moments_reject_another_epsilon():
    other, mechanism = Hybrid("1.01", 64), Hybrid(1, 64)
    law = mechanism.channel([0.5])[0]
    assert abs(law @ mean_laws.values_of(other, codes_of(other)) - 0.5) > 1e-3


@pytest.mark.parametrize(
    ("epsilon", "variance"), [("0.5", 16.670792), (1, 4.288992), (2, 1.042336), (4, 0.218979)]
)
def test_variances_are_those_of_the_table_and_hardly_depend_on_the_numbers(epsilon, variance):
    mechanism = Hybrid(epsilon)
    assert mechanism.variance(1) == pytest.approx(variance, rel=3e-4)
    if mechanism.is_mixed:
        assert mechanism.variance(1, 1, 1) == pytest.approx(variance, rel=3e-4)


def test_up_to_the_threshold_it_is_duchis():
    mechanism = Hybrid(DUCHI_UP_TO)
    assert not mechanism.is_mixed
    inputs = np.linspace(-1, 1, 500)
    reports = mechanism.perturb(inputs, mean_laws.noise_for(500))
    expected = Duchi(DUCHI_UP_TO).perturb(inputs, mean_laws.noise_for(500))
    np.testing.assert_array_equal(reports, expected.astype(np.uint32))
    assert reports.dtype == np.uint32
    assert mechanism.tally(reports).tolist() == [np.count_nonzero(expected), 500, 0, 0]
    assert mechanism.variance(9, 0, 0.5) == Duchi(DUCHI_UP_TO).variance(9, 0, 0.5)
    assert mechanism.bound == Duchi(DUCHI_UP_TO).bound


def test_the_threshold_is_where_the_mixture_becomes_better():
    root = 241**0.5
    inner = -5 + 2 * (6353 - 405 * root) ** (1 / 3) + 2 * (6353 + 405 * root) ** (1 / 3)
    assert float(DUCHI_UP_TO) == pytest.approx(log(inner / 27), abs=1e-8)
    above = DUCHI_UP_TO + Fraction(1, 10**6)
    assert Hybrid(above).is_mixed
    # The worst case of a mixture that also holds Piecewise, against Duchi's alone.
    assert Hybrid(above).variance(1) == pytest.approx(Duchi(above).variance(1), rel=3e-4)
    assert Hybrid("0.7").variance(1) < Duchi("0.7").variance(1) * 0.999


@pytest.mark.parametrize("epsilon", ["0.7", 1, 2, 4, 8])
def test_the_worst_case_is_below_that_of_both_parts(epsilon):
    worst = max(Hybrid(epsilon).variance(1, 0, square) for square in (0, 1))
    assert worst < Duchi(epsilon).variance(1)
    assert worst < Piecewise(epsilon).variance(1, 1, 1)


def test_tallies_hold_both_parts():
    reports = np.array([0, 1, 1, 2, 2 + 65535, 7], np.uint32)
    assert Hybrid(1).tally(reports).tolist() == [2, 3, 65540, 3]
    assert Hybrid(1).tally(reports).dtype == np.int64


def test_the_plan_holds_every_number_that_determines_a_report():
    assert dict(Hybrid(1).parameters) == {
        "epsilon": "1", "points": 65536, "duchi_atoms": round(2**32 / exp(0.5)),
        "duchi_draw_bits": 32, "duchi_lie_atoms": 1155094610, "piecewise_width": 24743,
        "piecewise_atom_bits": 32, "piecewise_anywhere_atoms": 2605008853,
    }  # fmt: skip
    assert dict(Hybrid("0.5").parameters) == {
        "epsilon": "0.5", "points": 65536, "duchi_atoms": 2**32, "duchi_draw_bits": 32,
        "duchi_lie_atoms": 1621524826,
    }  # fmt: skip
    assert Hybrid(1).report_bytes == 17 / 8


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", ["0.5", 1])
def test_samples_follow_the_channel(epsilon):
    assert_samples_follow(Hybrid(epsilon, 16), Hybrid(epsilon, 16))


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "wrong"), [("0.5", "0.4"), (1, "1.2")])
def test_the_sampling_law_has_power(epsilon, wrong):
    with pytest.raises(AssertionError):
        assert_samples_follow(Hybrid(epsilon, 16), Hybrid(wrong, 16))


def assert_samples_follow(stating, perturbing, n=50_000):
    for number in (-1.0, 0.3):
        reports = perturbing.perturb(np.full(n, number), mean_laws.noise_for(n))
        counts = np.bincount(reports, minlength=codes_of(stating).size)
        laws.assert_counts_follow(counts, stating.channel([number])[0])
