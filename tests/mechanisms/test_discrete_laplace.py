"""Discrete Laplace noise on counts: exact in law, by address."""

from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, key_of
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from tests import laws

NOISE = CentralNoise(7, "plan")
epsilons = st.fractions(Fraction(1, 10_000), 30, max_denominator=10**9)
mechanisms = st.builds(DiscreteLaplace, epsilons, st.integers(1, 10**6))


@pytest.mark.parametrize(
    ("scale", "variance", "mean_error", "at_zero"),
    [(2, 7.835396178, 1.919034751, 0.2449186624),
     (60, 7199.833336, 59.99722231, 0.008333140437)],
)  # fmt: skip
def test_closed_forms_are_those_of_the_tables(scale, variance, mean_error, at_zero):
    mechanism = DiscreteLaplace(Fraction(1, scale), 1)
    assert mechanism.scale == scale
    assert mechanism.variance == pytest.approx(variance, rel=1e-9)
    assert mechanism.mean_error == pytest.approx(mean_error, rel=1e-9)
    assert mechanism.probabilities(np.array([0]))[0] == pytest.approx(at_zero, rel=1e-9)


@given(st.fractions("0.05", 30, max_denominator=1000), st.integers(1, 3))
def test_moments_are_those_of_the_law(epsilon, sensitivity):
    mechanism = DiscreteLaplace(epsilon, sensitivity)
    reach = int(45 * mechanism.scale) + 5
    support = np.arange(-reach, reach + 1)
    law = mechanism.probabilities(support)
    assert law.sum() == pytest.approx(1, rel=1e-9)
    assert law @ np.abs(support) == pytest.approx(mechanism.mean_error, rel=1e-9)
    assert law @ support**2 == pytest.approx(mechanism.variance, rel=1e-9)


@given(mechanisms)
def test_counts_that_differ_by_the_sensitivity_cost_epsilon_and_no_more(mechanism):
    """The real loss is Δ over the scale: at most ε, and less by rounding only."""
    real = mechanism.sensitivity / mechanism.scale
    assert real <= mechanism.epsilon == mechanism.loss.epsilon
    assert mechanism.epsilon - real <= mechanism.epsilon / 2**46
    assert max(mechanism.scale.numerator, mechanism.scale.denominator) < 2**48
    assert mechanism.real_epsilon == pytest.approx(float(real), rel=1e-15)


def test_simple_scales_are_not_rounded():
    assert DiscreteLaplace("1/3", 2).scale == 6
    assert DiscreteLaplace("0.7", 2).scale == Fraction(20, 7)
    assert DiscreteLaplace(Fraction(2**60 + 1, 2**61), 1).scale != Fraction(2**61, 2**60 + 1)


def test_the_law_of_neighbors_differs_by_exactly_epsilon():
    mechanism = DiscreteLaplace("0.7", 2)
    support = np.arange(-50, 51)
    ratios = np.log(mechanism.probabilities(support) / mechanism.probabilities(support - 2))
    assert ratios.max() == pytest.approx(0.7, rel=1e-12)


def words_of_cell(key, cell):
    for step in count():
        counter = cell + (step << 64) + (1 << 128)
        yield from map(int, np.random.Philox(key=key, counter=counter - 1).random_raw(4))


def below(words, limit):
    for word in words:
        if word * limit % 2**64 >= (2**64 - limit) % limit:
            return word * limit // 2**64
    raise AssertionError


def decays(words, above, over, trial):
    while below(words, over * trial) < above:
        trial += 1
    return trial % 2 == 1


def noise_of_cell(scale, key, cell):
    """Algorithm 2 of Canonne, Kamath and Steinke in whole numbers of any size."""
    words = words_of_cell(key, cell)
    top, bottom = scale.as_integer_ratio()
    next(words)  # the word that a point of a grid would be rounded by
    while True:
        size = below(words, top)
        if not decays(words, size, top, 1):
            continue
        while decays(words, 1, 1, 2):
            size += top
        is_negative = below(words, 2)
        if size // bottom or not is_negative:
            return -(size // bottom) if is_negative else size // bottom


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(2, 2), ("0.7", 2), ("1/30", 120)])
@pytest.mark.parametrize(("n", "start"), [(0, 0), (1, 5), (200, 0), (50, 2**40)])
def test_noise_is_that_of_the_algorithm_in_plain_integers(epsilon, sensitivity, n, start):
    mechanism = DiscreteLaplace(epsilon, sensitivity)
    key = key_of((7, "measure", "plan", "here"))
    counts = np.arange(n)
    expected = [cell + noise_of_cell(mechanism.scale, key, start + cell) for cell in range(n)]
    measured = mechanism.measure(counts, NOISE, "here", start)
    assert measured.dtype == np.int64
    assert measured.tolist() == expected


def test_any_part_of_a_table_has_the_noise_of_the_whole():
    mechanism, counts = DiscreteLaplace(1, 2), np.arange(60).reshape(3, 4, 5)
    whole = mechanism.measure(counts, NOISE, "table")
    assert whole.shape == (3, 4, 5)
    part = mechanism.measure(counts.ravel()[17:31], NOISE, "table", 17)
    np.testing.assert_array_equal(part, whole.ravel()[17:31])


def test_each_part_of_the_address_changes_the_noise():
    mechanism, zeros = DiscreteLaplace("0.1", 1), np.zeros(50, np.int64)
    base = mechanism.measure(zeros, NOISE, "a").tolist()
    assert mechanism.measure(zeros, NOISE, "a").tolist() == base
    for noise, subject in (
        (NOISE, "b"),
        (CentralNoise(8, "plan"), "a"),
        (CentralNoise(7, "q"), "a"),
    ):
        assert mechanism.measure(zeros, noise, subject).tolist() != base


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1, "0.37", 4])
def test_samples_follow_the_law(epsilon):
    assert_follow(DiscreteLaplace(epsilon, 2), DiscreteLaplace(epsilon, 2))


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["0.95", "1.05", 2])
def test_the_sampling_law_has_power(wrong):
    with pytest.raises(AssertionError):
        assert_follow(DiscreteLaplace(1, 2), DiscreteLaplace(wrong, 2))


def assert_follow(stating, drawing, n=200_000):
    drawn = drawing.measure(np.zeros(n, np.int64), NOISE, "law")
    reach = int(float(stating.scale) * 5)
    support = np.arange(-reach, reach + 1)
    inside = drawn[np.abs(drawn) <= reach]
    law = stating.probabilities(support)
    counts = np.bincount(inside + reach, minlength=support.size)
    laws.assert_counts_follow(np.append(counts, n - inside.size), np.append(law, 1 - law.sum()))


def test_noise_of_the_smallest_scale_is_nearly_none():
    assert not DiscreteLaplace(30, 1).measure(np.zeros(10_000, np.int64), NOISE, "x").any()


def test_the_plan_holds_the_scale():
    assert dict(DiscreteLaplace("0.5", 2).parameters) == {
        "epsilon": "0.5", "sensitivity": 2, "scale_top": 4, "scale_bottom": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "message"),
    [(0, 1, "epsilon must be"), (31, 1, "epsilon must be"), (1, 0, "sensitivity must be"),
     (1, 1.5, "sensitivity must be"), ("1e-13", 1, "epsilon is too small")],
)  # fmt: skip
def test_bad_parameters_are_refused(epsilon, sensitivity, message):
    with pytest.raises(InputError, match=message):
        DiscreteLaplace(epsilon, sensitivity)


def test_counts_must_be_whole():
    with pytest.raises(InputError, match="counts must be whole numbers, got float64"):
        DiscreteLaplace(1, 1).measure(np.zeros(3), NOISE, "x")  # type: ignore[arg-type]
