"""Private selection: exact laws, noise by the candidate's position."""

from fractions import Fraction
from itertools import permutations, product
from math import exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.mechanisms.selection import ExponentialSelection, PermuteAndFlip
from tests import laws

BOTH = [ExponentialSelection, PermuteAndFlip]
NOISE = CentralNoise(3, "plan")
scores = st.lists(st.floats(-50, 50), min_size=1, max_size=6).map(np.array)


def test_laws_are_those_of_the_tables():
    values = np.array([0.0, 10, 20])
    np.testing.assert_allclose(
        ExponentialSelection("0.1", 1).probabilities(values),
        [0.18632372, 0.30719589, 0.50648039], atol=5e-9,
    )  # fmt: skip
    np.testing.assert_allclose(
        PermuteAndFlip("0.1", 1).probabilities(values),
        [0.14675136, 0.26607697, 0.58717167], atol=5e-9,
    )  # fmt: skip
    np.testing.assert_allclose(
        ExponentialSelection(1, "0.2").probabilities(np.array([0.1, 0.2, 0.35, 0.5])),
        [0.1455, 0.1869, 0.2719, 0.3956], atol=5e-5,
    )  # fmt: skip


def by_permuting_and_flipping(mechanism, values):
    """The mechanism as it is told: every order, a coin for each, by enumeration."""
    odds = [exp(float(mechanism.epsilon / (2 * mechanism.sensitivity)) * (v - max(values)))
            for v in values]  # fmt: skip
    law = np.zeros(len(values))
    for order in permutations(range(len(values))):
        left = 1 / factorial(len(values))
        for candidate in order:
            law[candidate] += left * odds[candidate]
            left *= 1 - odds[candidate]
    return law


@given(scores.filter(lambda values: values.size <= 5), st.fractions("0.01", 4))
def test_permute_and_flip_is_what_its_name_says(values, epsilon):
    mechanism = PermuteAndFlip(epsilon, 2)
    law = by_permuting_and_flipping(mechanism, values)
    np.testing.assert_allclose(mechanism.probabilities(values), law, atol=1e-12)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("values", [(0, 0, 0), (0, 1, 2), (5, 0, 0.5), (3, 3, 2.5)])
def test_no_change_of_scores_by_the_sensitivity_costs_more_than_epsilon(kind, values):
    mechanism = kind(1, 1)
    base = mechanism.probabilities(np.array(values, float))
    worst = 0.0
    for change in product((-1, 0, 1), repeat=3):
        other = mechanism.probabilities(np.array(values, float) + change)
        worst = max(worst, np.abs(np.log(other / base)).max())
    assert worst <= 1 + 1e-12
    assert worst > 0.6


@pytest.mark.parametrize("kind", BOTH)
def test_half_the_divisor_would_break_the_guarantee(kind):
    """The law above has power: with ε/Δ instead of ε/(2Δ) it fails."""
    mechanism, values = kind(2, 1), np.zeros(3)
    other = mechanism.probabilities(values + np.array([1, -1, -1]))
    assert np.abs(np.log(other / mechanism.probabilities(values))).max() > 1


@given(scores, st.fractions("0.01", 4))
def test_permute_and_flip_expects_a_score_no_worse(values, epsilon):
    plain, flip = ExponentialSelection(epsilon, 1), PermuteAndFlip(epsilon, 1)
    assert flip.probabilities(values) @ values >= plain.probabilities(values) @ values - 1e-9


@pytest.mark.parametrize("kind", BOTH)
@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 10**9))
def test_any_split_of_the_candidates_keeps_every_key(kind, n, cut, start):
    mechanism, values = kind("0.3", 1), np.linspace(0, 9, n)
    cut = min(cut, n)
    whole = mechanism.keys(values, NOISE, "step", start)
    parts = [mechanism.keys(values[a:b], NOISE, "step", start + a)
             for a, b in ((0, cut), (cut, n)) if a < b]  # fmt: skip
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert mechanism.select(values, NOISE, "step", start) == int(np.argmax(whole))


def test_keys_are_scaled_scores_and_noise_of_52_bits():
    words = NOISE.words(Purpose.SELECT, "s", 4, 9)
    uniforms = np.array([((int(word) >> 12) + 0.5) / 2**52 for word in words])
    values = np.array([1.0, 2, 3, 4])
    np.testing.assert_allclose(
        ExponentialSelection("0.5", 2).keys(values, NOISE, "s", 9),
        values / 8 - np.log(-np.log(uniforms)), rtol=1e-15,
    )  # fmt: skip
    np.testing.assert_allclose(
        PermuteAndFlip("0.5", 2).keys(values, NOISE, "s", 9),
        values / 8 - np.log(uniforms), rtol=1e-15,
    )  # fmt: skip


class Ends(CentralNoise):
    """The smallest and the largest word."""

    def words(self, purpose, subject, n, start=0):
        return np.array([0, 2**64 - 1], np.uint64)[np.arange(n) % 2]


@pytest.mark.parametrize("kind", BOTH)
def test_no_word_makes_an_infinite_key(kind):
    keys = kind(1, 1).keys(np.zeros(2), Ends(0, ""), "x")
    assert np.isfinite(keys).all()


@pytest.mark.parametrize("kind", BOTH)
def test_equal_keys_go_to_the_lowest_position(kind):
    class Same(Ends):
        def words(self, purpose, subject, n, start=0):
            return np.full(n, 2**63, np.uint64)

    assert kind(1, 1).select(np.array([1.0, 3, 3]), Same(0, ""), "x") == 1


@pytest.mark.statistical
@pytest.mark.parametrize("kind", BOTH)
def test_choices_follow_the_law(kind):
    assert_choices(kind(1, 1), kind(1, 1))


@pytest.mark.statistical
@pytest.mark.parametrize(("stating", "drawing"), [
    (ExponentialSelection(1, 1), PermuteAndFlip(1, 1)),
    (PermuteAndFlip(1, 1), PermuteAndFlip("1.2", 1)),
])  # fmt: skip
def test_the_sampling_law_has_power(stating, drawing):
    with pytest.raises(AssertionError):
        assert_choices(stating, drawing)


def assert_choices(stating, drawing, n=20_000):
    values = np.array([0.0, 1, 2, 2.5])
    keys = drawing.keys(np.tile(values, n), NOISE, "law").reshape(n, 4)
    counts = np.bincount(keys.argmax(axis=1), minlength=4)
    laws.assert_counts_follow(counts, stating.probabilities(values))


@pytest.mark.parametrize("kind", BOTH)
def test_scores_of_any_size_are_fine(kind):
    law = kind(1, 1).probabilities(np.array([1e9, 0, 1e9]))
    np.testing.assert_allclose(law, [0.5, 0, 0.5], atol=1e-12)


def test_many_candidates_have_a_law():
    law = PermuteAndFlip(1, 1).probabilities(np.zeros(1000))
    np.testing.assert_allclose(law, 1 / 1000, rtol=1e-9)


def test_losses_and_concentrated_losses_are_exact():
    assert ExponentialSelection("1/14", 1).loss.epsilon == Fraction(1, 14)
    assert ExponentialSelection("0.2", 1).rho == Fraction(1, 200)
    assert PermuteAndFlip("0.2", 1).rho == Fraction(1, 50)
    assert dict(PermuteAndFlip("0.2", 2).parameters) == {"epsilon": "0.2", "sensitivity": "2"}


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("epsilon", "sensitivity", "message"), [
    (0, 1, "epsilon must be"), (1, 0, "sensitivity must be > 0"), (1, "nan", "sensitivity"),
])  # fmt: skip
def test_bad_parameters_are_refused(kind, epsilon, sensitivity, message):
    with pytest.raises(InputError, match=message):
        kind(epsilon, sensitivity)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("values", [[], [[1.0]], [float("nan")], [float("inf")]])
def test_bad_scores_are_refused(kind, values):
    with pytest.raises(InputError, match="scores must be finite"):
        kind(1, 1).select(np.array(values, float), NOISE, "x")
