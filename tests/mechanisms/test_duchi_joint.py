"""Duchi's mechanism in several dimensions: every vector of signs by enumeration."""

import pickle
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.duchi_joint import JointDuchi
from tests import laws
from tests.mechanisms import mean_laws

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
mechanisms = st.builds(JointDuchi, st.integers(1, 6), epsilons)


def corners(d):
    """All vectors of signs; bit j of the place is dimension j."""
    return 2.0 * (np.arange(1 << d)[:, None] >> np.arange(d) & 1) - 1


def channel_of_half_spaces(d, likely, unlikely, share):
    """A vector uniform on one half-space with probability ``share``, else on the other."""
    inner = corners(d) @ corners(d).T
    first, second = likely(inner), unlikely(inner)
    return share * first / first.sum(axis=1, keepdims=True) + (1 - share) * second / second.sum(
        axis=1, keepdims=True
    )


def loss_of(channel):
    return np.log(channel.max(axis=0) / channel.min(axis=0)).max()


@given(mechanisms)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(mechanism):
    laws.assert_is_stochastic(mechanism.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)


@given(st.integers(1, 64), epsilons)
def test_the_real_epsilon_is_at_most_the_one_asked_for_and_near_it(d, epsilon):
    mechanism = JointDuchi(d, epsilon)
    n_open = sum(comb(d, a) for a in range(d + 1) if 2 * a > d)
    with localcontext(prec=60):
        lean = Decimal((2**64 - mechanism.cube_atoms) * 2**d)
        ratio = 1 + lean / (mechanism.cube_atoms * n_open)
        assert ratio <= (Decimal(epsilon.numerator) / epsilon.denominator).exp()
    assert mechanism.real_epsilon <= epsilon
    assert mechanism.real_epsilon == pytest.approx(float(epsilon), rel=1e-6)


@given(st.integers(1, 64), epsilons)
def test_the_laws_of_all_vectors_add_up_to_one(d, epsilon):
    law = JointDuchi(d, epsilon).agreement_law()
    assert sum(comb(d, a) * law[a] for a in range(d + 1)) == pytest.approx(1, rel=1e-12)
    assert log(law.max() / law.min()) == pytest.approx(float(epsilon), rel=1e-6)


@pytest.mark.parametrize("d", range(1, 7))
def test_the_channel_is_that_of_an_open_and_a_closed_half_space(d):
    n_open = np.count_nonzero(corners(d) @ corners(d)[0] > 0)
    share = exp(1) * n_open / ((exp(1) - 1) * n_open + 2**d)
    expected = channel_of_half_spaces(d, lambda t: t > 0, lambda t: t <= 0, share)
    np.testing.assert_allclose(JointDuchi(d, 1).channel(), expected, rtol=1e-12)


@pytest.mark.parametrize("d", range(1, 7))
def test_two_closed_half_spaces_as_in_print_would_cost_more(d):
    share = exp(1) / (exp(1) + 1)
    printed = channel_of_half_spaces(d, lambda t: t >= 0, lambda t: t <= 0, share)
    expected = 1 if d % 2 else log(exp(1) + 1)
    assert loss_of(printed) == pytest.approx(expected, rel=1e-12)
    assert loss_of(JointDuchi(d, 1).channel()) <= 1


@given(mechanisms, st.data())
def test_means_and_variances_are_the_channels(mechanism, data):
    d = mechanism.dimensions
    row = st.lists(st.floats(-1, 1), min_size=d, max_size=d)
    inputs = np.array(data.draw(st.lists(row, min_size=1, max_size=4)))
    laws.assert_is_stochastic(mechanism.channel(inputs))
    assert loss_of(mechanism.channel(inputs)) <= mechanism.real_epsilon + 1e-12
    reports = np.arange(1 << d).astype(np.uint64)
    values = mean_laws.values_of(mechanism, reports)
    means = mechanism.channel(inputs) @ values
    np.testing.assert_allclose(means, inputs, atol=1e-9 + 1e-13 * mechanism.bound)
    variances = mechanism.channel(inputs) @ values**2 - means**2
    stated = mechanism.variance(7, (inputs**2).mean(axis=0))
    tolerance = 2e-9 + 1e-13 * mechanism.bound**2
    np.testing.assert_allclose(variances.mean(axis=0) / 7, stated, atol=tolerance)


def test_bounds_and_shares_are_those_of_the_tables():
    bounds = [2.163953414, 3.327906827, 4.327906827, 4.770542437,
              5.770542437, 5.924650924, 6.924650924, 6.913886770]  # fmt: skip
    ours = [JointDuchi(d, 1).bound for d in range(1, 9)]
    np.testing.assert_allclose(ours, bounds, rtol=1e-9)
    shares = {1: 0.731058579, 2: 0.475366886, 3: 0.731058579, 4: 0.552689318,
              6: 0.587435243, 7: 0.731058579, 8: 0.607984806}  # fmt: skip
    for d, share in shares.items():
        law = JointDuchi(d, 1).agreement_law()
        above = sum(comb(d, a) * law[a] for a in range(d + 1) if 2 * a > d)
        assert above == pytest.approx(share, rel=1e-8)
    assert JointDuchi(4, 1).variance(1).tolist() == pytest.approx([22.758075] * 4, rel=1e-6)


def test_one_dimension_is_the_scalar_mechanism():
    assert JointDuchi(1, 1).bound == pytest.approx(Duchi(1).bound, rel=1e-8)
    inputs = np.array([-1.0, -0.3, 0.5])
    expected = Duchi(1).channel(inputs.tolist())
    np.testing.assert_allclose(JointDuchi(1, 1).channel(inputs[:, None]), expected, atol=1e-9)
    column = JointDuchi(1, 1).perturb(inputs[:, None], mean_laws.noise_for(3))
    vector = JointDuchi(1, 1).perturb(inputs, mean_laws.noise_for(3))
    np.testing.assert_array_equal(column, vector)


@pytest.mark.statistical
@pytest.mark.parametrize("d", range(1, 6))
def test_samples_follow_the_channel(d):
    assert_samples_follow(JointDuchi(d, 2), JointDuchi(d, 2))


@pytest.mark.statistical
@pytest.mark.parametrize("d", range(1, 6))
def test_the_sampling_law_has_power(d):
    with pytest.raises(AssertionError):
        assert_samples_follow(JointDuchi(d, 2), JointDuchi(d, "1.7"))


def assert_samples_follow(stating, perturbing, n=60_000):
    d = stating.dimensions
    rows = np.array([np.ones(d), np.resize([0.75, -0.5, 0.0], d), np.resize([-1.0, 1.0], d)])
    for row in rows:
        reports = perturbing.perturb(np.tile(row, (n, 1)), mean_laws.noise_for(n))
        counts = np.bincount(reports.astype(np.int64), minlength=1 << d)
        laws.assert_counts_follow(counts, stating.channel(row[None])[0])


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "epsilon"), [(1, 1), (2, 4), (9, 1), (16, 8), (63, 2), (64, 2)])
def test_estimates_have_the_stated_errors_in_every_dimension(d, epsilon):
    mechanism, n = JointDuchi(d, epsilon), 40_000
    truth = np.resize([1.0, -1.0, 0.5, 0.0, -0.25], d)
    reports = mechanism.perturb(np.tile(truth, (n, 1)), mean_laws.noise_for(n))
    scores = mechanism.estimate(mechanism.tally(reports), n) - truth
    scores /= mechanism.variance(n, truth**2) ** 0.5
    assert scores.shape == (d,)
    assert np.abs(scores).max() < 5
    assert abs((scores**2).mean() - 1) < 5 * (2 / d) ** 0.5


@pytest.mark.parametrize("d", [1, 8, 9, 64])
def test_a_report_depends_on_the_user_and_not_on_the_company(d):
    mechanism = JointDuchi(d, 1)
    inputs = np.resize([0.9, -0.9, 0.1, 0.0, 0.4], (300, d))
    whole = mechanism.perturb(inputs, mean_laws.noise_for(300))
    chosen = np.array([0, 5, 6, 199, 299])
    part = mechanism.perturb(inputs[chosen], UserNoise(1, "law", "x", chosen))
    np.testing.assert_array_equal(part, whole[chosen])
    assert (whole >> np.uint64(d - 1) >> np.uint64(1) == 0).all()
    np.testing.assert_array_equal(
        mechanism.tally(whole), mechanism.tally(whole[:7]) + mechanism.tally(whole[7:])
    )


def test_rows_of_a_transposed_matrix_are_users_too():
    mechanism, inputs = JointDuchi(3, 8), np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
    inputs.flags.writeable = False
    turned = np.asfortranarray(inputs)
    np.testing.assert_array_equal(
        mechanism.perturb(turned, mean_laws.noise_for(2)),
        mechanism.perturb(inputs, mean_laws.noise_for(2)),
    )
    assert mechanism.perturb(inputs[:0], mean_laws.noise_for(0)).shape == (0,)


def test_a_mechanism_is_a_value_with_its_plan():
    mechanism = JointDuchi(3, "1.0")
    assert mechanism == pickle.loads(pickle.dumps(mechanism)) == JointDuchi(3, 1)
    with localcontext(prec=40):
        cube_atoms = int(2**65 / (Decimal(1).exp() + 1)) + 1
    assert mechanism.parameters == (
        ("dimensions", 3), ("epsilon", "1"), ("cube_atoms", cube_atoms),
    )  # fmt: skip
    assert mechanism.loss.epsilon == 1
    assert (mechanism.tally_size, mechanism.report_bytes) == (3, 3 / 8)


@pytest.mark.parametrize("dimensions", [0, -1, 65, 2.0, True, "3"])
def test_bad_dimensions_are_refused_by_name(dimensions):
    with pytest.raises(InputError, match="dimensions must be"):
        JointDuchi(dimensions, 1)


def test_bad_inputs_are_refused():
    mechanism = JointDuchi(2, 1)
    for shape in [(3,), (3, 1), (3, 3), (3, 2, 1)]:
        with pytest.raises(InputError, match="inputs must have 2 columns"):
            mechanism.perturb(np.zeros(shape), mean_laws.noise_for(3))
    with pytest.raises(InputError, match="one input per user"):
        mechanism.perturb(np.zeros((3, 2)), mean_laws.noise_for(2))
    bad = np.array([[0.0, np.nan], [2.5, 1.0]])
    with pytest.raises(InputError, match=r"^2 of 4 numbers lie outside \[-1, 1\]$"):
        mechanism.perturb(bad, mean_laws.noise_for(2))
    with pytest.raises(InputError, match="channel needs dimensions <= 10"):
        JointDuchi(11, 1).channel()
    with pytest.raises(InputError, match="n must be"):
        mechanism.estimate(np.zeros(2, np.int64), 0)
    with pytest.raises(InputError, match="n must be"):
        mechanism.variance(0)
