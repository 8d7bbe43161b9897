"""State encoding is GRR over three states."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.f2m import F2M
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import KeyValueMechanism
from dpsim.mechanisms.pairs import pair_truth
from dpsim.mechanisms.privkv import PrivKV
from dpsim.mechanisms.state_encoding import StateEncoding
from tests import laws
from tests.mechanisms import twins

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
small = st.fractions(Fraction(1, 10), 6, max_denominator=1000)


@given(epsilons)
def test_the_channel_is_that_of_grr_and_costs_the_real_epsilon(epsilon):
    mechanism, oracle = StateEncoding(epsilon), GRR(3, epsilon)
    np.testing.assert_array_equal(mechanism.channel(), oracle.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)
    assert mechanism.real_epsilon <= epsilon == mechanism.loss.epsilon


@given(epsilons)
def test_reports_follow_the_channel_atom_by_atom(epsilon):
    atoms = StateEncoding(epsilon).atoms
    for state, value in enumerate((float("nan"), 1.0, -1.0)):
        silent, plus, minus = atoms.rows[state]
        ends = [0, plus - 1, plus, plus + minus - 1, plus + minus, plus + minus + silent - 1]
        draws = np.array(ends, f"u{atoms.draw_bits // 8}")
        reports = StateEncoding(epsilon).respond(np.full(6, value), draws)
        assert reports.tolist() == [1, 1, 2, 2, 0, 0]


@given(small, st.lists(st.integers(0, 1000), min_size=3, max_size=3))
def test_estimates_are_those_of_the_three_shares(epsilon, counts):
    n = sum(counts) + 1
    counts[0] += 1
    shares = GRR(3, epsilon).estimate(np.array(counts), n)
    frequency, mean = StateEncoding(epsilon).estimate(np.array(counts[1:]), n)
    assert frequency == pytest.approx(1 - shares[0], abs=1e-12)
    if frequency > 1e-3:
        assert mean == pytest.approx((shares[1] - shares[2]) / frequency, abs=1e-9)


@given(small, st.floats(0.05, 1), st.floats(-0.99, 0.99))
def test_variance_is_the_channels_and_that_of_the_formula(epsilon, f, m):
    mechanism = StateEncoding(epsilon)
    law = twins.mixture(mechanism.channel(), f, m)
    shares = {(0, 0): law[0], (1, 0): law[1], (0, 1): law[2]}
    found = mechanism.variance(9, f, m)
    np.testing.assert_allclose(
        found, twins.delta_variance(mechanism.estimate, shares, 9), rtol=1e-4
    )
    silent, plus, minus = law
    gap = GRR(3, epsilon).p - GRR(3, epsilon).q
    of_mean = (
        plus + minus - (plus - minus) ** 2 - 2 * m * (plus - minus) * silent
        + m**2 * silent * (1 - silent)
    ) / (gap * f) ** 2  # fmt: skip
    assert found[0] == pytest.approx(silent * (1 - silent) / gap**2 / 9)
    assert found[1] == pytest.approx(of_mean / 9)


def test_standard_deviations_are_those_of_the_tables():
    for epsilon, d, c, frequency, mean in [
        (1, 4, 1, 0.0087, 0.052), (1, 16, 1, 0.0173, 0.394), (2, 16, 4, 0.0090, 0.046),
        (4, 100, 5, 0.0092, 0.188),
    ]:  # fmt: skip
        found = StateEncoding(epsilon).variance(100_000 // d, c / d, 0.5)
        assert sqrt(found[0]) == pytest.approx(frequency, abs=6e-5)
        assert sqrt(found[1]) == pytest.approx(mean, abs=6e-4)


@given(small, st.floats(0.01, 1), st.floats(-1, 1))
def test_no_point_favors_privkv_or_f2m_with_their_defaults(epsilon, f, m):
    ours = np.array(StateEncoding(epsilon).variance(1, f, m))
    for other in (PrivKV(epsilon), F2M(epsilon)):
        assert (ours <= np.array(other.variance(1, f, m)) * (1 + 1e-6) + 1e-9).all()


def test_privkv_can_trade_the_mean_for_the_frequency():
    ours, theirs = (
        StateEncoding(1).variance(1, 0.1, 0.5),
        PrivKV(1, "0.9").variance(1, 0.1, 0.5),
    )
    assert theirs[0] < ours[0]
    assert theirs[1] > ours[1]


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [2, "1.8"])
def test_estimates_are_within_five_standard_errors_and_another_epsilon_is_not(wrong):
    n = 200_000
    values = np.linspace(-0.2, 1, n)
    values[::3] = np.nan
    perturbing, estimating = StateEncoding(wrong), StateEncoding(2)
    tally = perturbing.tally(perturbing.perturb(values, twins.noise_for(n)))
    truth = np.array(pair_truth(values), float)
    found = np.array(estimating.estimate(tally, n), float)
    z = np.abs(found - truth) / np.sqrt(estimating.variance(n, *truth))
    assert (z.max() < 5) == (wrong == 2)


def test_the_contract_is_kept_and_bad_epsilons_are_refused():
    mechanism: KeyValueMechanism = StateEncoding("0.5")
    assert dict(mechanism.parameters)["epsilon"] == "0.5"
    assert mechanism.loss.epsilon == Fraction(1, 2)
    assert mechanism.estimate(np.array([0, 0]), 5)[1] is None
    for bad in (0, "nan", 31, True):
        with pytest.raises(InputError, match="epsilon must be"):
            StateEncoding(bad)
    with pytest.raises(InputError, match="epsilon is too small"):
        StateEncoding("1e-20")
