"""GRR: exact in law, both sides with the same numbers."""

import pickle
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import draws_at, words_at
from dpsim.mechanisms.grr import GRR
from tests import laws

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
oracles = st.builds(GRR, st.integers(1, 200), epsilons)
small = st.builds(GRR, st.integers(2, 12), st.fractions("0.1", 8, max_denominator=1000))


def draws_for(oracle, n, subject="sample"):
    make = draws_at if oracle.draw_bits == 32 else words_at
    return make((1, "perturb", "law", subject), 0, n)


@dataclass
class Mixed:
    """Perturbs by one oracle and estimates by another: the classic mistake."""

    perturbing: GRR
    estimating: GRR

    def channel(self):
        return self.perturbing.channel()

    def estimate(self, counts, n):
        return self.estimating.estimate(counts, n)

    def variance(self, n, frequency):
        return self.estimating.variance(n, frequency)


@given(oracles)
def test_the_channel_is_stochastic(oracle):
    laws.assert_is_stochastic(oracle.channel())


@given(oracles)
def test_the_channel_costs_exactly_the_real_epsilon_and_no_more_than_asked(oracle):
    laws.assert_loss_is(oracle.channel(), oracle.real_epsilon)
    assert oracle.real_epsilon <= oracle.epsilon
    assert oracle.real_epsilon <= oracle.loss.epsilon or oracle.domain_size == 1


@given(small)
def test_the_loss_law_rejects_another_epsilon(oracle):
    with pytest.raises(AssertionError):
        laws.assert_loss_is(oracle.channel(), oracle.real_epsilon * 1.001)


@given(oracles)
def test_estimate_inverts_the_channel(oracle):
    laws.assert_estimate_inverts(oracle)


@pytest.mark.parametrize("wrong", ["0.999", "1.001", "1.000001"])
def test_the_inversion_law_rejects_another_epsilon(wrong):
    with pytest.raises(AssertionError):
        laws.assert_estimate_inverts(Mixed(GRR(10, 1), GRR(10, wrong)))


def test_estimate_inverts_the_real_and_not_the_ideal_probabilities():
    """For 128 codes on 32 bits they differ by a millionth, and so would the estimate."""
    oracle = GRR(128, 1)
    p, q = exp(1) / (exp(1) + 127), 1 / (exp(1) + 127)
    counts = oracle.channel()[0] * 2**20
    ideal = (counts / 2**20 - q) / (p - q)
    assert oracle.draw_bits == 32
    assert abs(oracle.estimate(counts, 2**20)[0] - 1) < 1e-13
    assert abs(ideal[0] - 1) > 1e-7


@given(small, st.integers(1, 10**6), st.data())
def test_variance_is_the_channels(oracle, n, data):
    shares = data.draw(
        st.lists(st.integers(0, 9), min_size=oracle.domain_size, max_size=oracle.domain_size)
    )
    shares[0] += 1
    laws.assert_variance_is_the_channels(oracle, np.array(shares) / sum(shares), n)


def test_the_variance_law_rejects_another_epsilon():
    with pytest.raises(AssertionError):
        laws.assert_variance_is_the_channels(
            Mixed(GRR(3, 1), GRR(3, "1.01")), [0.5, 0.3, 0.2], 9
        )


def test_variance_is_that_of_the_tables():
    assert GRR(2, 1).variance(1000, 0.3) * 1000**2 == pytest.approx(920.673594, rel=1e-6)
    assert GRR(16, 1).variance(1) == pytest.approx(5.662430, rel=1e-6)
    assert GRR(16, "0.5").variance(1) == pytest.approx(37.184554, rel=1e-6)
    assert GRR(128, 4).variance(1) == pytest.approx(0.0628657, rel=1e-5)


@given(oracles.filter(lambda oracle: oracle.domain_size > 1), st.data())
def test_reports_follow_the_channel_atom_by_atom(oracle, data):
    """Each report owns an interval of draws. Both ends of all of them: no sampling needed."""
    assert_both_ends(oracle, data.draw(st.integers(0, oracle.domain_size - 1)))


@pytest.mark.parametrize(
    ("size", "epsilon", "bits"),
    [
        (2, 1, 32), (10, 1, 32), (200, 4, 32), (256, 4, 32), (257, 4, 32),
        (2, 20, 64), (2, 30, 64), (200, "0.01", 64), (1_000, "0.1", 64), (65_536, 1, 64),
    ],
)  # fmt: skip
def test_reports_follow_the_channel_on_both_widths(size, epsilon, bits):
    oracle = GRR(size, epsilon)
    assert oracle.draw_bits == bits
    for truth in {0, 1, size // 2, size - 1}:
        assert_both_ends(oracle, truth)


def assert_both_ends(oracle, truth):
    size, kind = oracle.domain_size, f"u{oracle.draw_bits // 8}"
    starts = [oracle.truth_atoms + oracle.lie_atoms * place for place in range(size)]
    assert starts[-1] == 2**oracle.draw_bits
    ends = np.array([starts[:-1], [start - 1 for start in starts[1:]]], kind)
    codes = np.full(ends.shape, truth, np.min_scalar_type(size - 1))
    others = np.delete(np.arange(size), truth)
    np.testing.assert_array_equal(oracle.respond(codes, ends), np.array([others, others]))
    told = np.array([0, oracle.truth_atoms - 1], kind)
    assert oracle.respond(codes[0, :1].repeat(2), told).tolist() == [truth, truth]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("size", "epsilon"), [(2, 1), (5, 1), (24, 2), (25, 2), (200, "0.05"), (300, 3)]
)
def test_samples_follow_the_channel(size, epsilon):
    oracle = GRR(size, epsilon)
    draws = draws_for(oracle, 20_000)
    laws.assert_samples_follow(oracle.channel(), oracle.respond, draws, {0, 1, size - 1})


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["0.8", "1.2"])
def test_the_sampling_law_has_power(wrong):
    oracle, other = GRR(5, 1), GRR(5, wrong)
    with pytest.raises(AssertionError):
        laws.assert_samples_follow(oracle.channel(), other.respond, draws_for(other, 20_000))


@pytest.mark.statistical
def test_squared_errors_are_those_of_the_variance_formula():
    assert abs(mean_ratio(GRR(5, 1), GRR(5, 1)) - 1) < 5 * (2 / (5 * 1000)) ** 0.5


@pytest.mark.statistical
def test_squared_errors_reject_another_epsilon():
    assert abs(mean_ratio(GRR(5, "0.8"), GRR(5, 1)) - 1) > 5 * (2 / (5 * 1000)) ** 0.5


def mean_ratio(perturbing, stating, repeats=1000, n=500):
    """Mean over codes and repeats of squared error over stated variance; 1 in expectation."""
    counts = np.array([200, 150, 100, 50, 0])
    codes = np.repeat(np.arange(5), counts).astype(np.uint8)
    draws = draws_for(perturbing, repeats * n).reshape(repeats, n)
    expected = np.array([stating.variance(n, float(share)) for share in counts / n])
    ratios = [
        (perturbing.estimate(perturbing.tally(perturbing.respond(codes, row)), n) - counts / n)
        ** 2
        / expected
        for row in draws
    ]
    return np.mean(ratios)


@given(oracles, st.integers(0, 300))
def test_the_tally_counts_every_report_once_and_adds_up(oracle, n):
    reports = (np.arange(n) * 7 % oracle.domain_size).astype(np.uint8)
    tally = oracle.tally(reports)
    assert tally.dtype == np.int64
    np.testing.assert_array_equal(tally, np.bincount(reports, minlength=oracle.domain_size))
    np.testing.assert_array_equal(
        oracle.tally(reports[: n // 3]) + oracle.tally(reports[n // 3 :]), tally
    )


@given(oracles, st.data())
def test_estimates_sum_to_one_and_are_never_clipped(oracle, data):
    size = oracle.domain_size
    counts = np.array(data.draw(st.lists(st.integers(0, 99), min_size=size, max_size=size)))
    counts[0] += 1
    n = int(counts.sum())
    estimate = oracle.estimate(counts, n)
    assert estimate.sum() == pytest.approx(1, abs=1e-12 * size / (oracle.p - oracle.q))
    if size > 1:
        below = counts < n * oracle.q * (1 - 1e-9)
        assert (estimate[below] < 0).all()


def test_a_code_that_nobody_reported_is_estimated_below_zero_and_its_peer_above_one():
    low, high = sorted(GRR(2, 1).estimate(np.array([100, 0]), 100))
    assert low == pytest.approx(-0.5819767, rel=1e-6)
    assert high == pytest.approx(1.5819767, rel=1e-6)


@given(small, st.randoms(use_true_random=False))
def test_permuting_the_codes_permutes_the_estimate(oracle, random):
    order = list(range(oracle.domain_size))
    random.shuffle(order)
    counts = np.arange(oracle.domain_size) ** 2 + 3
    n = int(counts.sum())
    np.testing.assert_array_equal(
        oracle.estimate(counts[order], n), oracle.estimate(counts, n)[order]
    )


def test_the_largest_epsilon_recovers_the_truth():
    oracle, codes = GRR(100, 30), (np.arange(5_000) % 100).astype(np.uint8)
    np.testing.assert_array_equal(oracle.respond(codes, draws_for(oracle, 5_000)), codes)
    np.testing.assert_allclose(oracle.estimate(oracle.tally(codes), 5_000), 0.01)


@given(epsilons)
def test_one_code_is_the_identity_at_no_loss(epsilon):
    oracle = GRR(1, epsilon)
    codes = np.zeros(5, np.uint8)
    reports = oracle.respond(codes, draws_for(oracle, 5))
    assert reports.tolist() == [0] * 5
    assert reports is not codes
    assert oracle.loss.epsilon == oracle.real_epsilon == 0
    assert oracle.channel().tolist() == [[1.0]]
    assert oracle.estimate(np.array([5]), 5).tolist() == [1.0]
    assert oracle.variance(5, 1.0) == 0


def test_reports_have_the_type_of_the_codes_and_leave_them_alone():
    oracle = GRR(10, 1)
    codes = (np.arange(100) % 10).astype(np.uint16)
    codes.flags.writeable = False
    reports = oracle.respond(codes, draws_for(oracle, 100))
    assert reports.dtype == np.uint16
    assert reports.tolist() != codes.tolist() == [code % 10 for code in range(100)]
    assert oracle.respond(codes[:0], draws_for(oracle, 0)).size == 0


def test_the_ledger_is_charged_what_was_declared():
    assert GRR(10, "1/14").loss.epsilon == Fraction(1, 14)
    assert GRR(10, 0.1).loss.epsilon == Fraction(1, 10)


def test_the_plan_holds_every_number_that_determines_a_report():
    assert dict(GRR(10, "1.0").parameters) == {
        "domain_size": 10, "epsilon": "1", "draw_bits": 32, "truth_atoms": 996300625,
        "lie_atoms": 366518519,
    }  # fmt: skip


def test_an_oracle_is_a_value():
    assert GRR(3, 1) == GRR(3, "1.0") == pickle.loads(pickle.dumps(GRR(3, 1))) != GRR(3, 2)
    with pytest.raises(FrozenInstanceError):
        GRR(3, 1).epsilon = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("epsilon", [0, -1, "nan", float("inf"), True, None, "30.001", "x"])
def test_a_bad_epsilon_is_refused_by_name(epsilon):
    with pytest.raises(InputError, match="epsilon must be"):
        GRR(3, epsilon)


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "3", 1_000_001])
def test_a_bad_domain_size_is_refused_by_name(size):
    with pytest.raises(InputError, match="domain_size must be"):
        GRR(size, 1)


def test_an_epsilon_below_the_grid_is_refused():
    with pytest.raises(InputError, match="epsilon is too small for 1000 codes"):
        GRR(1000, "1e-18")


def test_codes_outside_the_domain_are_counted_and_never_echoed():
    codes = np.array([0, 77, 2, 99], np.uint8)
    with pytest.raises(InputError) as caught:
        GRR(3, 1).respond(codes, draws_for(GRR(3, 1), 4))
    assert str(caught.value) == "2 of 4 codes lie outside 0..2"


def test_codes_too_narrow_for_a_lie_are_refused():
    """A lie of 300 in eight bits would be 44: a wrong report, and no error."""
    oracle = GRR(1000, 4)
    with pytest.raises(InputError, match=r"uint8 cannot hold the codes 0\.\.999"):
        oracle.respond(np.zeros(3, np.uint8), draws_for(oracle, 3))


@pytest.mark.parametrize(("epsilon", "wrong"), [(1, np.uint64), (20, np.uint32)])
def test_draws_of_the_wrong_width_are_refused(epsilon, wrong):
    with pytest.raises(InputError, match="draws must have"):
        GRR(2, epsilon).respond(np.zeros(3, np.uint8), np.zeros(3, wrong))


@pytest.mark.parametrize("n", [0, -1])
def test_estimates_and_variances_need_somebody(n):
    with pytest.raises(InputError, match="n must be"):
        GRR(2, 1).estimate(np.array([0, 0]), n)
    with pytest.raises(InputError, match="n must be"):
        GRR(2, 1).variance(n)
