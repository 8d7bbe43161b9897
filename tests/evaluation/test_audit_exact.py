"""Exact checks: every row a distribution, the worst log-ratio at most the claim."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2  # type: ignore[import-untyped]

from dpsim.core.errors import InputError
from dpsim.evaluation.audit_exact import (
    WORST_P,
    Law,
    bits_channel,
    check_channel,
    product_channel,
    sample_law,
    sample_p_value,
    worst_log_ratio,
)
from dpsim.evaluation.audit_sampled import AuditSettings
from dpsim.mechanisms.grr import GRR

epsilons = st.fractions("0.01", 30, max_denominator=1000)


@given(st.integers(1, 200), epsilons)
def test_grr_is_sound_at_its_epsilon(k, epsilon):
    check = check_channel(GRR(k, epsilon).channel(), epsilon)
    assert check.is_sound
    assert check.epsilon == pytest.approx(GRR(k, epsilon).real_epsilon, abs=1e-9)


@given(st.integers(2, 200), st.fractions("0.01", 20, max_denominator=1000))
def test_a_claim_below_the_real_loss_is_found(k, epsilon):
    oracle = GRR(k, epsilon)
    assert not check_channel(oracle.channel(), oracle.real_epsilon - 1e-6).is_sound


def test_five_percent_too_much_are_found_where_sampling_is_blind():
    assert not check_channel(GRR(100, "1.05").channel(), 1).is_sound


def test_a_report_that_one_input_never_gives_costs_everything():
    assert worst_log_ratio(np.array([[0.5, 0.5], [1.0, 0.0]])) == inf
    assert worst_log_ratio(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])) == 0


@pytest.mark.parametrize(
    "channel", [[[0.5, 0.4], [0.5, 0.5]], [[1.1, -0.1], [1.1, -0.1]], [[0.6, 0.5], [0.6, 0.5]]]
)
def test_rows_that_are_no_distributions_are_found(channel):
    assert not check_channel(np.array(channel), 10).is_sound


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_two_bits_cost_the_difference_of_their_log_odds(p, q):
    channel = bits_channel(p, q)
    assert channel.sum(axis=1) == pytest.approx([1, 1])
    expected = abs(log(p / (1 - p)) - log(q / (1 - q)))
    assert worst_log_ratio(channel) == pytest.approx(expected, abs=1e-9)


def test_unary_encoding_with_all_of_epsilon_per_bit_is_found():
    half, whole = 1 / (1 + exp(-0.5)), 1 / (1 + exp(-1.0))
    assert check_channel(bits_channel(half, 1 - half), 1).is_sound
    wrong = check_channel(bits_channel(whole, 1 - whole), 1)
    assert not wrong.is_sound
    assert wrong.epsilon == pytest.approx(2)


def test_losses_of_independent_reports_add_up():
    attributes = [GRR(2, "0.5").channel(), GRR(3, "0.25").channel(), GRR(4, "0.25").channel()]
    whole = product_channel(*attributes)
    assert whole.shape == (24, 24)
    assert check_channel(whole, 1).is_sound
    assert worst_log_ratio(whole) == pytest.approx(1, abs=1e-6)
    unsplit = product_channel(*[GRR(2, 1).channel()] * 3)
    assert worst_log_ratio(unsplit) == pytest.approx(3, abs=1e-6)


@given(st.lists(st.integers(20, 500), min_size=2, max_size=9), st.data())
def test_chi_square_is_that_of_the_textbook(counts, data):
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(counts), max_size=len(counts)))
    law = np.array(weights) / sum(weights)
    seen = np.array(counts)
    expected = seen.sum() * law
    if expected.min() >= 5:
        statistic = ((seen - expected) ** 2 / expected).sum()
        once = sample_p_value(seen[None], law[None])
        twice = sample_p_value(np.array([seen, seen]), np.array([law, law]))
        freedom = len(counts) - 1
        assert once == pytest.approx(chi2.sf(statistic, freedom), rel=1e-9, abs=1e-300)
        assert twice == pytest.approx(chi2.sf(2 * statistic, 2 * freedom), rel=1e-9, abs=1e-300)


def test_impossible_reports_are_never_excused():
    law = np.array([[0.5, 0.5, 0.0]])
    assert sample_p_value(np.array([[500, 500, 0]]), law) == 1
    assert sample_p_value(np.array([[500, 500, 1]]), law) == 0


def test_rare_reports_are_taken_together():
    law = np.array([[0.98, 0.01, 0.01]])
    assert sample_p_value(np.array([[98, 1, 1]]), law) == 1
    assert sample_p_value(np.array([[90, 10, 0]]), law) < 1e-7


def test_one_report_alone_always_fits():
    assert sample_p_value(np.array([[9]]), np.array([[1.0]])) == 1
    assert sample_p_value(np.array([[0, 0]]), np.array([[0.5, 0.5]])) == 1


def test_counts_of_another_shape_are_refused():
    with pytest.raises(InputError, match="counts and law must match"):
        sample_p_value(np.array([[1, 2]]), np.array([[1.0]]))


@pytest.mark.statistical
@pytest.mark.parametrize("k", [2, 10, 100])
def test_the_reports_of_grr_follow_its_law(k):
    law = Law("GRR", GRR(k, 1), np.arange(k, dtype=np.uint8), GRR(k, 1).channel(), 1)
    assert sample_law(law, AuditSettings()) > WORST_P


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["0.98", "1.02"])
def test_reports_of_another_epsilon_do_not_follow_the_law(wrong):
    """Too private is as wrong as not private enough: the estimate would be biased."""
    law = Law("GRR", GRR(4, wrong), np.arange(4, dtype=np.uint8), GRR(4, 1).channel(), 1)
    assert sample_law(law, AuditSettings()) < WORST_P


@pytest.mark.statistical
def test_every_user_of_a_law_draws_for_itself():
    """More users than fit one chunk: the p-value of repeated noise would be far from fair."""
    oracle = GRR(2, 1)
    law = Law("GRR", oracle, np.arange(2, dtype=np.uint8), oracle.channel(), 1)
    values = [sample_law(law, AuditSettings(140_000, seed=seed)) for seed in range(40)]
    assert min(values) > 1e-4
    assert 0.2 < np.mean(values) < 0.8
