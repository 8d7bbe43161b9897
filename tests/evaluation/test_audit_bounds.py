"""What a sample proves: exact tails, the tables of the literature, and honest sizes."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom  # type: ignore[import-untyped]

from dpsim.core.errors import InputError
from dpsim.evaluation.audit_bounds import (
    guess_epsilon,
    guess_p_value,
    least_convincing,
    smallest_excess,
    two_arm_epsilon,
)

alphas = st.sampled_from([1e-8, 1e-3, 0.01, 0.05, 0.5])


def accuracy(epsilon):
    return 1 / (1 + exp(-epsilon))


@pytest.mark.parametrize(
    ("correct", "guesses", "alpha", "bound"),
    [
        (731_059, 10**6, 1e-8, 0.9873550), (73_106, 10**5, 1e-8, 0.9600768),
        (800, 1000, 0.01, 1.2021220), (1000, 1000, 0.01, 5.3782722),
        (500, 1000, 0.01, -0.1491637),
    ],
)  # fmt: skip
def test_guess_bounds_are_those_of_the_table(correct, guesses, alpha, bound):
    assert guess_epsilon(correct, guesses, alpha) == pytest.approx(bound, abs=1e-7)


@pytest.mark.parametrize(
    ("sample", "bound"),
    [
        ((365_529, 500_000, 134_471, 500_000, 1e-8), 0.9817392),
        ((600, 1000, 250, 1000, 0.05), 0.7158658),
        ((1000, 1000, 0, 1000, 0.05), 5.6005875),
    ],
)
def test_two_arm_bounds_are_those_of_the_table(sample, bound):
    assert two_arm_epsilon(*sample) == pytest.approx(bound, abs=1e-7)


@given(st.integers(0, 3000), st.integers(0, 3000), alphas)
def test_the_guess_bound_is_the_beta_quantile(one, other, alpha):
    correct, guesses = min(one, other), max(one, other)
    bound = guess_epsilon(correct, guesses, alpha)
    if correct == 0:
        assert bound == -inf
    else:
        least = beta.ppf(alpha, correct, guesses - correct + 1)
        assert bound == pytest.approx(log(least / (1 - least)), rel=1e-8, abs=1e-9)


@given(st.integers(1, 3000), st.integers(0, 3000), st.floats(0, 6))
def test_the_p_value_is_the_binomial_tail(guesses, correct, epsilon):
    correct = min(correct, guesses)
    tail = binom.sf(correct - 1, guesses, accuracy(epsilon))
    assert guess_p_value(correct, guesses, epsilon) == pytest.approx(tail, rel=1e-9, abs=1e-300)


@given(st.integers(1, 2000), st.floats(0, 5), alphas, st.data())
def test_p_value_and_bound_agree_on_what_is_a_violation(guesses, epsilon, alpha, data):
    correct = data.draw(st.integers(1, guesses))
    bound = guess_epsilon(correct, guesses, alpha)
    if abs(bound - epsilon) > 1e-6:
        assert (guess_p_value(correct, guesses, epsilon) < alpha) == (bound > epsilon)


@given(st.integers(1, 2000), st.floats(0, 5), alphas)
def test_the_least_convincing_number_is_the_first_that_refutes(guesses, epsilon, alpha):
    least = least_convincing(guesses, epsilon, alpha)
    if least is None:
        assert guess_p_value(guesses, guesses, epsilon) >= alpha
    else:
        assert guess_p_value(least, guesses, epsilon) < alpha
        assert guess_p_value(least - 1, guesses, epsilon) >= alpha


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 40, 500])
def test_the_false_alarms_of_guesses_stay_below_alpha_exactly(epsilon, n):
    """Summed over the law of a mechanism that costs exactly ε: no sampling."""
    counts = np.arange(n + 1)
    law = binom.pmf(counts, n, accuracy(epsilon))
    for alpha in (0.01, 0.05, 0.3):
        alarms = [guess_epsilon(int(c), n, alpha) > epsilon + 1e-12 for c in counts]
        assert law[alarms].sum() <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_false_alarms_of_two_arms_stay_below_alpha_exactly(delta):
    """At the extreme pair of rates: P1 = e^ε P0 + δ."""
    n, epsilon, alpha = 60, 0.8, 0.05
    rate0 = 0.3
    rate1 = exp(epsilon) * rate0 + delta
    counts = np.arange(n + 1)
    joint = np.outer(binom.pmf(counts, n, rate1), binom.pmf(counts, n, rate0))
    bounds = [
        [two_arm_epsilon(int(a), n, int(b), n, alpha, delta) for b in counts] for a in counts
    ]
    assert 0 < joint[np.array(bounds) > epsilon].sum() <= alpha


def test_a_delta_loosens_the_bound_and_may_leave_nothing():
    arms = (600, 1000, 250, 1000)
    assert two_arm_epsilon(*arms, 0.05, 0.1) < two_arm_epsilon(*arms, 0.05)
    assert two_arm_epsilon(*arms, 0.05, 0.7) == -inf
    low = beta.ppf(0.025, 600, 401)
    high = beta.ppf(0.975, 251, 750)
    expected = log((low - 0.1) / high)
    assert two_arm_epsilon(*arms, 0.05, 0.1) == pytest.approx(expected, rel=1e-9)


def test_empty_samples_prove_nothing():
    assert guess_epsilon(0, 0, 0.01) == -inf
    assert guess_p_value(0, 0, 1.0) == 1
    assert two_arm_epsilon(0, 0, 0, 0, 0.01) == -inf
    assert least_convincing(0, 1.0, 0.01) is None
    assert smallest_excess(1.0, lambda _: 0, 0.01) == inf


SHARES = (
    lambda n: lambda _epsilon: n,  # GRR k=2 always guesses, OUE if just one of two bits is set
    lambda n: lambda _epsilon: n / 2,
    lambda n: lambda epsilon: n * (exp(epsilon) + 1) / (exp(epsilon) + 99),  # GRR k=100
)
EXCESSES = {
    10**4: [(0.184, 0.261, 0.893), (0.203, 0.291, 0.849), (0.288, 0.418, 0.816),
            (0.804, 1.280, 1.096)],
    10**5: [(0.058, 0.081, 0.326), (0.063, 0.090, 0.305), (0.087, 0.125, 0.289),
            (0.221, 0.321, 0.343)],
    10**6: [(0.018, 0.026, 0.109), (0.020, 0.028, 0.101), (0.027, 0.039, 0.095),
            (0.067, 0.096, 0.109)],
    10**7: [(0.006, 0.008, 0.035), (0.006, 0.009, 0.033), (0.009, 0.012, 0.030),
            (0.021, 0.030, 0.035)],
}  # fmt: skip


@pytest.mark.parametrize("n", EXCESSES)
def test_the_smallest_detectable_excess_is_that_of_the_table(n):
    """The table rounds to three digits, and approximates the power: 2.5 % are allowed."""
    for claim, row in zip((0.5, 1.0, 2.0, 4.0), EXCESSES[n], strict=True):
        for share, expected in zip(SHARES, row, strict=True):
            found = smallest_excess(claim, share(n), 1e-8)
            assert found == pytest.approx(expected, rel=0.025, abs=0.0006)


@given(st.floats(0.1, 4), st.integers(2000, 10**6), st.sampled_from([0.5, 0.9, 0.999]))
def test_the_smallest_excess_has_the_stated_power_and_less_has_not(claim, n, power):
    excess = smallest_excess(claim, lambda _: n, 1e-8, power)
    least = least_convincing(n, claim, 1e-8)
    assert least is not None
    assert binom.sf(least - 1, n, accuracy(claim + excess)) >= power - 1e-9
    assert binom.sf(least - 1, n, accuracy(claim + 0.999 * excess)) < power


def test_more_trials_find_less():
    guesses = [(lambda _, n=n: n) for n in (10**3, 10**4, 10**5)]
    found = [smallest_excess(1.0, item, 1e-8) for item in guesses]
    assert found == sorted(found, reverse=True)
    assert smallest_excess(1.0, lambda _: 10, 1e-8) == inf


@pytest.mark.parametrize("alpha", [0, 1, -0.1, float("nan")])
def test_a_bad_alpha_is_refused(alpha):
    for call in (
        lambda: guess_epsilon(1, 2, alpha),
        lambda: two_arm_epsilon(1, 2, 1, 2, alpha),
        lambda: least_convincing(2, 1.0, alpha),
    ):
        with pytest.raises(InputError, match="alpha must be"):
            call()


@pytest.mark.parametrize(("part", "whole"), [(3, 2), (-1, 2)])
def test_more_hits_than_trials_are_refused(part, whole):
    with pytest.raises(InputError, match="hits must be"):
        guess_epsilon(part, whole, 0.01)
    with pytest.raises(InputError, match="hits must be"):
        guess_p_value(part, whole, 1.0)
    with pytest.raises(InputError, match="hits must be"):
        two_arm_epsilon(1, 2, part, whole, 0.01)
