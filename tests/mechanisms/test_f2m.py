"""F2M: two bits side by side."""

import pickle
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms._pair_kernels import respond_both
from dpsim.mechanisms.f2m import F2M
from dpsim.mechanisms.interfaces import KeyValueMechanism
from dpsim.mechanisms.pairs import pair_truth
from tests import laws
from tests.mechanisms import twins

NAN = float("nan")
epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
small = st.fractions(Fraction(1, 5), 8, max_denominator=1000)
splits = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100)
fills = st.fractions(-1, 1, max_denominator=100)
mechanisms = st.builds(F2M, epsilons, splits, fills)
moderate = st.builds(F2M, small, splits.filter(lambda x: 0.1 < x < 0.9), fills)


@given(mechanisms)
def test_the_channel_costs_the_real_epsilon_and_no_more_than_asked(mechanism):
    laws.assert_is_stochastic(mechanism.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)
    assert mechanism.real_epsilon <= mechanism.loss.epsilon == mechanism.epsilon


@given(epsilons, splits, st.sampled_from([-1, 1]))
def test_with_a_fill_at_the_end_all_of_epsilon_is_spent(epsilon, split, fill):
    mechanism = F2M(epsilon, split, fill)
    assert mechanism.real_epsilon == pytest.approx(float(epsilon), rel=3e-5)


@given(small, splits)
def test_with_a_fair_fill_less_than_epsilon_is_spent(epsilon, split):
    key, value = float(epsilon * split), float(epsilon * (1 - split))
    tight = max(value, key + log((1 + exp(value)) / 2))
    assert F2M(epsilon, split).real_epsilon == pytest.approx(tight, rel=3e-5)
    assert tight < epsilon


@given(mechanisms)
def test_reports_follow_the_channel_atom_by_atom(mechanism):
    """Both ends of each of the four intervals of draws, for all three states."""
    total = 2**mechanism.draw_bits
    for state, value in enumerate((NAN, 1.0, -1.0)):
        atoms = dict(enumerate(round(Fraction(x) * total) for x in mechanism.channel()[state]))
        exact = dict(enumerate(mechanism._rows[state]))
        assert all(abs(atoms[r] - exact[r]) <= total * 2**-52 for r in atoms)
        order = (1, 0, 3, 2) if state == 0 else (3, 2, 1, 0)
        start = 0
        for report in order:
            ends = [start, start + exact[report] - 1]
            draws = np.array(ends, f"u{mechanism.draw_bits // 8}")
            assert mechanism.respond(np.full(2, value), draws).tolist() == [report, report]
            start += exact[report]
        assert start == total


@given(
    moderate.filter(lambda m: m.draw_bits == 32),
    st.lists(
        st.tuples(st.floats(-1, 1) | st.just(NAN), st.integers(0, 2**32 - 1)), max_size=20
    ),
)
def test_responses_equal_those_of_plain_integers(mechanism, rows):
    values = np.array([value for value, _ in rows], np.float64)
    draws = np.array([draw for _, draw in rows], np.uint32)
    reports = mechanism.respond(values, draws)
    assert reports.dtype == np.uint8
    assert reports.tolist() == [pair_of(mechanism, *row) for row in rows]


def pair_of(mechanism, value, draw):
    numbers = dict(mechanism.parameters)
    true_key, total = numbers["true_key"], 2**32
    held = not np.isnan(value)
    value = value if held else float(mechanism.set_value)
    told = draw < true_key
    start, size = (0, true_key) if told else (true_key, total - true_key)
    flipped = numbers["flipped_if_true" if told else "flipped_if_false"]
    plus = draw - start < twins.threshold(value, flipped, size - 2 * flipped)
    return 2 * (held == told) + plus


def test_both_widths_of_draws_are_used_and_an_empty_block_gives_nothing():
    assert F2M(1).draw_bits == 32
    assert F2M(25).draw_bits == 64
    for bits in (np.uint32, np.uint64):
        assert (
            respond_both(np.zeros(0), np.zeros(0, bits), np.ones(5, np.uint64), 0.0).size == 0
        )


@given(moderate, st.floats(0.05, 1), st.floats(-1, 1))
def test_expected_counts_are_estimated_as_the_truth(mechanism, frequency, mean):
    law = twins.mixture(mechanism.channel(), frequency, mean)
    counts = np.array([law[2] + law[3], law[1] + law[3]])
    found = mechanism.estimate(counts * 2**40, 2**40)
    fill_rounding = 2**-31 / (mechanism._gaps[1] * frequency)  # a value between two atoms
    assert found[0] == pytest.approx(frequency, abs=1e-9)
    assert found[1] == pytest.approx(mean, abs=fill_rounding)


@given(moderate, st.floats(0.05, 1), st.floats(-1, 1))
def test_variance_is_the_channels(mechanism, frequency, mean):
    law = twins.mixture(mechanism.channel(), frequency, mean)
    shares = {(report >> 1, report & 1): law[report] for report in range(4)}
    implied = twins.delta_variance(mechanism.estimate, shares, 9)
    np.testing.assert_allclose(mechanism.variance(9, frequency, mean), implied, rtol=1e-4)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [2, "1.8"])
def test_estimates_are_within_five_standard_errors_and_another_epsilon_is_not(wrong):
    n = 200_000
    values = np.linspace(-0.2, 1, n)
    values[::3] = np.nan
    perturbing, estimating = F2M(wrong, "0.4", "0.5"), F2M(2, "0.4", "0.5")
    tally = perturbing.tally(perturbing.perturb(values, twins.noise_for(n)))
    truth = np.array(pair_truth(values), float)
    found = np.array(estimating.estimate(tally, n), float)
    z = np.abs(found - truth) / np.sqrt(estimating.variance(n, *truth))
    assert (z.max() < 5) == (wrong == 2)


def test_tallies_count_bits_and_add_up():
    mechanism: KeyValueMechanism = F2M(1)
    reports = np.array([0, 1, 2, 3, 3, 2, 3], np.uint8)
    assert mechanism.tally(reports).tolist() == [5, 4]
    assert mechanism.tally(reports).dtype == np.int64
    assert mechanism.tally_size == 2
    assert mechanism.report_bytes == 0.25


def test_a_mean_is_unknown_where_nobody_seems_to_hold_the_key():
    assert F2M(1).estimate(np.array([1, 5]), 10)[1] is None
    assert F2M(1).variance(10, 0.0, 0.0)[1] == np.inf
    with pytest.raises(InputError, match="n must be"):
        F2M(1).estimate(np.array([0, 0]), 0)


def test_a_mechanism_is_a_value_and_its_plan_is_complete():
    assert F2M(1) == F2M("1.0", 0.5, 0) == pickle.loads(pickle.dumps(F2M(1))) != F2M(1, "0.4")
    assert dict(F2M(2, "1/2", "-0.5").parameters) == {
        "epsilon": "2", "split": "0.5", "set_value": "-0.5", "draw_bits": 32,
        "true_key": 3139872686, "flipped_if_true": 844441824, "flipped_if_false": 310652787,
    }  # fmt: skip


@pytest.mark.parametrize("bad", [0, 1, -0.1, "nan", None])
def test_a_split_must_leave_something_for_both(bad):
    with pytest.raises(InputError, match="split must be"):
        F2M(1, bad)


@pytest.mark.parametrize("bad", [1.5, "nan", None])
def test_bad_values_and_epsilons_are_refused_by_name(bad):
    with pytest.raises(InputError, match="set_value must be"):
        F2M(1, "1/2", bad)
    with pytest.raises(InputError, match="epsilon must be"):
        F2M(0)
    with pytest.raises(InputError, match="epsilon must be larger"):
        F2M("1e-17")
