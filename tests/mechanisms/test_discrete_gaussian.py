"""The discrete Gaussian: exact in law, and the same bits whatever decides a comparison."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms._noise_kernels import (
    REJECTED,
    TAKEN,
    UNSURE,
    gaussian_entries,
    gaussian_trial,
)
from dpsim.mechanisms.discrete_gaussian import MARGIN, DiscreteGaussian, borders
from dpsim.mechanisms.exact_gaussian import Uniform, entry_at, whole_law
from tests import laws

NOISE = CentralNoise(7, "0" * 32)
TOP = 2**64 - 1


@njit
def trial(words, sigma, table, margin):
    return gaussian_trial(words, sigma, table, margin)


def tried(words, sigma, margin=MARGIN):
    first, second, third = (np.uint64(word) for word in words)
    size = Fraction(sigma)
    parts = np.int64(size.numerator), np.int64(size.denominator)
    return trial((first, second, third), parts, borders(), margin)


def test_the_borders_are_those_of_whole_sigmas():
    """In 100 digits, by another sum: the law of k is exp(-k²/2) over all k."""
    with localcontext(prec=100):
        odds = [(Decimal(-k * k) / 2).exp() for k in range(40)]
        ends = [int(sum(odds[: k + 1]) / sum(odds) * 2**63) for k in range(10)]
    assert borders().tolist() == ends
    assert borders()[-1] == 2**63 - 1


@given(st.fractions("0.2", 60, max_denominator=50), st.integers(0, 9), st.integers(0, 60))
def test_a_trial_keeps_each_value_with_the_probability_of_the_law(sigma, k, place):
    """Both ends of the interval that the third word owns; the first two are set by hand."""
    top, bottom = sigma.numerator, sigma.denominator
    width = -(-top // bottom)
    place %= width
    size = -(-k * top // bottom) + place
    x = Fraction(size * bottom - k * top, top)
    first = (int(borders()[k]) - 1) << 1
    second = (2 * place + 1) * 2**63 // width
    if x >= 1:
        assert tried((first, second, 0), sigma)[0] == REJECTED
        return
    probability = np.exp(-float(x * (2 * k + x)) / 2)
    low, high = int((probability - 1e-11) * 2**64), int((probability + 1e-11) * 2**64)
    if low > 0:
        assert tried((first, second, low), sigma) == (TAKEN, size)
        expected = (TAKEN, -size) if size else (REJECTED, 0)
        assert tried((first | 1, second, low), sigma) == expected
    if high < TOP:
        assert tried((first, second, high), sigma)[0] == REJECTED
        near = int(probability * 2**64)
        assert tried((first, second, near), sigma)[0] == UNSURE


@pytest.mark.parametrize("k", range(9))
def test_the_first_word_is_sure_on_both_sides_of_a_border_only(k):
    border = int(borders()[k])
    assert tried(((border - 1) << 1, 1, 0), 1) == (TAKEN, k)
    assert tried((border << 1, 1, 0), 1)[0] == UNSURE
    assert tried(((border + 1) << 1, 1, 0), 1) == (TAKEN, k + 1)


def test_the_tail_beyond_the_table_is_unsure_and_not_cut_off():
    assert tried((TOP, 1, 0), 1)[0] == UNSURE


def test_a_place_is_uniform_because_uneven_words_are_rejected():
    """For a width of 3, 2^64 = 1 modulo 3: one word of all is thrown away."""
    taken = [tried((0, word, 0), 3)[1] for word in (1, 2**64 // 3 - 1, 2**64 // 3 + 1, TOP)]
    assert taken == [0, 0, 1, 2]
    assert tried((0, 0, 0), 3)[0] == REJECTED


@pytest.mark.parametrize("sigma", ["1/3", 1, "3/2", "7/3", 50, 9 * 2**32, 2**48])
def test_exact_arithmetic_gives_the_bits_of_the_fast_loop(sigma):
    """With a margin of 1/4 half of all entries are settled by decimals: no bit may change."""
    law = DiscreteGaussian(sigma, 1)
    fast, slow = law.draw(80, NOISE, "x"), law.draw(80, NOISE, "x", margin=0.25)
    np.testing.assert_array_equal(fast, slow)
    assert fast.dtype == slow.dtype == np.int64


def test_a_wide_margin_really_leaves_entries_to_decimals():
    key, sigma = np.array([1, 2], np.uint64), (np.int64(50), np.int64(1))
    noise, unsure = gaussian_entries(0, 200, key, sigma, borders(), 0.25)
    assert 50 < unsure.sum() < 190
    assert not noise[unsure].any()
    assert [entry_at(int(place), key, Fraction(50)) for place in np.flatnonzero(~unsure)] == (
        noise[~unsure].tolist()
    )


def test_a_number_at_a_border_draws_the_bits_that_decide():
    """One half, to 64 bits, is not below one half; with further zeros it never is."""
    asked = []

    def further(place):
        asked.append(place)
        return TOP if place == 1 else 0

    def third(digits):
        with localcontext(prec=digits + 10):
            return Decimal(1) / 3

    repeating = int("01" * 32, 2)
    assert not Uniform(repeating, 64, lambda place: TOP).is_below(third)
    assert Uniform(repeating, 64, lambda place: 0).is_below(third)
    assert Uniform(repeating - 1, 64, further).is_below(third)
    assert asked == []
    assert not Uniform(repeating, 64, lambda place: repeating + (place == 2)).is_below(third)


def test_the_law_of_whole_sigmas_sums_to_one():
    with localcontext(prec=80):
        assert abs(sum(whole_law(30, 60), Decimal(-1))) < Decimal(10) ** -55


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", ["1/2", 1, "3/2", 4])
def test_samples_follow_the_law(sigma):
    laws.assert_counts_follow(*counted(DiscreteGaussian(sigma, 1), DiscreteGaussian(sigma, 1)))


@pytest.mark.statistical
def test_the_sampling_law_has_power():
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(
            *counted(DiscreteGaussian("1.52", 1), DiscreteGaussian("1.5", 1))
        )


def counted(drawing, stating, n=200_000):
    reach = int(3.4 * float(stating.sigma)) + 1
    drawn = np.clip(drawing.draw(n, NOISE, "sample"), -reach, reach) + reach
    law = stating.probabilities(np.arange(-60, 61))
    inside = law[60 - reach : 61 + reach].copy()
    inside[0] += law[: 60 - reach].sum()
    inside[-1] += law[61 + reach :].sum()
    return np.bincount(drawn, minlength=2 * reach + 1), inside


@pytest.mark.statistical
def test_large_noise_has_the_spread_and_tails_of_a_normal():
    n = 400_000
    z = DiscreteGaussian(9 * 2**32, 1).draw(n, NOISE, "wide") / (9 * 2**32)
    assert abs(z.mean()) < 5 * n**-0.5
    assert abs(z.std() - 1) < 5 * (2 * n) ** -0.5
    assert abs((z**4).mean() - 3) < 5 * (96 / n) ** 0.5
    assert abs((np.abs(z) > 2).mean() - 0.0455) < 5 * (0.0455 / n) ** 0.5


@given(st.integers(0, 300), st.integers(0, 300))
def test_any_slice_equals_the_slice_of_the_whole(start, n):
    law = DiscreteGaussian(1000, 1)
    whole = law.draw(start + n, NOISE, "entries")
    np.testing.assert_array_equal(law.draw(n, NOISE, "entries", start), whole[start:])


def test_each_part_of_the_address_changes_the_noise():
    law = DiscreteGaussian(2**40, 1)
    others = [
        law.draw(9, CentralNoise(8, "0" * 32), "x"),
        law.draw(9, CentralNoise(7, "1" * 32), "x"),
        law.draw(9, NOISE, "y"),
        law.draw(9, NOISE, "x", 9),
    ]
    own = law.draw(9, NOISE, "x")
    assert not any((own == other).any() for other in others)


def test_noise_is_frozen():
    """If this fails, every seeded result has changed: a line in *Changed results*."""
    assert DiscreteGaussian(1000, 1).draw(6, NOISE, "frozen").tolist() == [
        -1495,
        410,
        -1885,
        -2128,
        2123,
        -1327,
    ]


def test_measured_values_are_values_plus_noise_in_any_parts():
    law, values = DiscreteGaussian(5, 1), np.arange(12).reshape(3, 4)
    measured = law.measure(values, NOISE, "x")
    np.testing.assert_array_equal(measured - values, law.draw(12, NOISE, "x").reshape(3, 4))
    np.testing.assert_array_equal(law.measure(values[1], NOISE, "x", 4), measured[1])
    assert law.measure(np.zeros(0, np.int64), NOISE, "x").dtype == np.int64


@given(st.fractions("0.3", 20, max_denominator=30))
def test_the_law_sums_to_one_and_has_the_stated_variance(sigma):
    law, values = DiscreteGaussian(sigma, 1), np.arange(-400, 401)
    probabilities = law.probabilities(values)
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert probabilities @ values**2 == pytest.approx(law.variance, rel=1e-9)


@given(st.fractions("0.5", 9, max_denominator=20), st.integers(1, 4))
def test_the_loss_in_concentrated_privacy_is_exactly_rho(sigma, shift):
    """Rényi divergences of order α from a whole shift: at most αρ, and for whole α just it."""
    law, values = DiscreteGaussian(sigma, shift), np.arange(-600, 601)
    here = -0.5 * (values / float(sigma)) ** 2
    there = -0.5 * ((values - shift) / float(sigma)) ** 2
    assert law.rho == Fraction(shift) ** 2 / (2 * sigma**2)
    for order in (1.5, 2, 4):
        total = np.logaddexp.reduce(order * here + (1 - order) * there)
        divergence = (total - np.logaddexp.reduce(here)) / (order - 1)
        assert divergence <= order * float(law.rho) * (1 + 1e-9)
        if order != 1.5:
            assert divergence >= order * float(law.rho) * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [0, -1, "nan", 2**49, Fraction(1, 2**50), True, None])
def test_a_bad_sigma_is_refused_by_name(sigma):
    with pytest.raises(InputError, match="sigma must be"):
        DiscreteGaussian(sigma, 1)


def test_bad_sensitivities_and_values_are_refused():
    with pytest.raises(InputError, match="sensitivity must be > 0"):
        DiscreteGaussian(1, 0)
    with pytest.raises(InputError, match="values must be whole numbers, got float64"):
        DiscreteGaussian(1, 1).measure(np.ones(2), NOISE, "x")
    with pytest.raises(InputError, match="start must be"):
        DiscreteGaussian(1, 1).draw(1, NOISE, "x", -1)


def test_the_plan_holds_every_number_that_determines_the_noise():
    assert dict(DiscreteGaussian("3/2", 2).parameters) == {"sigma": "1.5", "sensitivity": "2"}
