"""Discrete Laplace noise on a grid: exact in law."""

from fractions import Fraction
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.laplace import LocalLaplace
from dpsim.mechanisms.unit_interval import share_of
from tests import laws
from tests.mechanisms import mean_laws

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
mechanisms = st.builds(LocalLaplace, epsilons, st.sampled_from([2, 3, 10, 64, 1000]))


def law_of_noise(mechanism, reach):
    noise = np.arange(-reach, reach + 1)
    ratio = exp(-float(mechanism.rate) / (mechanism.points - 1))
    return noise, (1 - ratio) / (1 + ratio) * ratio ** np.abs(noise)


@given(mechanisms)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(mechanism):
    laws.assert_is_stochastic(mechanism.channel([-1.0, -0.3, 0.0, 0.77, 1.0]))
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)


@given(mechanisms, st.lists(st.floats(-1, 1), min_size=2, max_size=6))
def test_no_two_numbers_cost_more_than_the_ends(mechanism, inputs):
    channel = mechanism.channel(inputs)
    worst = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
    assert worst <= mechanism.real_epsilon + 1e-12


@given(epsilons)
def test_the_rate_is_at_most_epsilon_and_within_a_whole_number_of_it(epsilon):
    mechanism = LocalLaplace(epsilon)
    assert 0 <= epsilon - mechanism.rate < Fraction(1, 2**32)
    assert mechanism.real_epsilon == mechanism.rate
    assert mechanism.scale == 65_535 / mechanism.rate
    assert mechanism.scale.numerator < 2**48


def test_the_channel_is_that_of_rounding_and_noise():
    """By the definition: all noise, both neighbors, and everything beyond an end at the end."""
    mechanism, number = LocalLaplace(2, 7), 0.3
    noise, law = law_of_noise(mechanism, 200)
    start, rest = divmod(share_of(number) * 6, 2**31)
    expected = np.zeros(7)
    for at, share in ((start, 1 - rest / 2**31), (start + 1, rest / 2**31)):
        np.add.at(expected, np.clip(at + noise, 0, 6), share * law)
    np.testing.assert_allclose(mechanism.channel([number])[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("epsilon", "points"), [(1, 2), (2, 7), (5, 50), ("0.7", 10)])
def test_variance_is_that_of_the_law_with_the_most_that_rounding_adds(epsilon, points):
    mechanism = LocalLaplace(epsilon, points)
    noise, law = law_of_noise(mechanism, 5000)
    step = 2 / (points - 1)
    assert mechanism.variance(3) * 3 == pytest.approx(
        (law @ noise**2 + 1 / 4) * step**2, rel=1e-9
    )
    values = mean_laws.values_of(mechanism, noise)
    np.testing.assert_allclose(values, noise * step - 1, atol=1e-9)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4, 8])
def test_on_the_default_grid_the_variance_is_that_of_the_continuous_noise(epsilon):
    expected = 8 / float(Fraction(epsilon)) ** 2
    assert LocalLaplace(epsilon).variance(1) == pytest.approx(expected, rel=1e-6)


def test_the_plan_holds_every_number_that_determines_a_report():
    assert dict(LocalLaplace("2.0").parameters) == {
        "epsilon": "2", "points": 65536, "scale_top": 65535, "scale_bottom": 2,
    }  # fmt: skip
    assert LocalLaplace(1).bound == inf
    assert LocalLaplace(1).report_bytes == 8


def test_an_epsilon_whose_sums_could_overflow_is_refused():
    with pytest.raises(InputError, match="epsilon must be >= 1/65536, got 1e-5"):
        LocalLaplace("1e-5")


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "points"), [(1, 2), (2, 8), ("0.3", 5), (8, 21)])
def test_samples_follow_the_channel(epsilon, points):
    assert_samples_follow(LocalLaplace(epsilon, points), LocalLaplace(epsilon, points))


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "wrong"), [(1, "1.2"), (2, "1.8")])
def test_the_sampling_law_has_power(epsilon, wrong):
    with pytest.raises(AssertionError):
        assert_samples_follow(LocalLaplace(epsilon, 8), LocalLaplace(wrong, 8))


def assert_samples_follow(stating, perturbing, n=100_000):
    for number in (-1.0, 0.3):
        reports = perturbing.perturb(np.full(n, number), mean_laws.noise_for(n))
        places = np.clip(reports, 0, stating.points - 1)
        law = stating.channel([number])[0]
        counts = np.bincount(places, minlength=stating.points)
        frequent = law * n > 20
        laws.assert_counts_follow(
            np.array([*counts[frequent], counts[~frequent].sum() + 20]),
            (np.array([*law[frequent], law[~frequent].sum() + 20 / n])) / (1 + 20 / n),
        )


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "points"), [(1, 2), (2, 4), (3, 7)])
def test_noise_has_the_discrete_law_far_beyond_the_grid(epsilon, points):
    mechanism, n = LocalLaplace(epsilon, points), 100_000
    noise = mechanism.perturb(np.full(n, -1.0), mean_laws.noise_for(n))
    support, law = law_of_noise(mechanism, 200)
    reach = int(np.abs(support[law * n > 20]).max())
    inside = np.abs(noise) <= reach
    counts = np.bincount(noise[inside] + reach, minlength=2 * reach + 1)
    laws.assert_counts_follow(
        counts, law[np.abs(support) <= reach] / law[np.abs(support) <= reach].sum()
    )
