"""What all mechanisms for means share: addresses, refusals, values, errors of their size."""

import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.duchi_joint import JointDuchi
from dpsim.mechanisms.hybrid import Hybrid
from dpsim.mechanisms.laplace import LocalLaplace
from dpsim.mechanisms.piecewise import FloatPiecewise, Piecewise
from tests.mechanisms import mean_laws

KINDS = [Duchi, Piecewise, FloatPiecewise, Hybrid, LocalLaplace]
INPUTS = np.array([-1.0, -0.8, -0.25, 0.0, 0.1, 1 / 3, 0.9, 1.0])
INPUTS.flags.writeable = False
GRIDS = [Piecewise, Hybrid, LocalLaplace]

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize("epsilon", ["0.3", 2, 16])
def test_a_report_depends_on_the_user_and_not_on_the_company(kind, epsilon):
    mechanism, inputs = kind(epsilon), np.tile(INPUTS, 50)
    whole = mechanism.perturb(inputs, mean_laws.noise_for(400))
    chosen = np.array([3, 4, 77, 250, 399])
    part = mechanism.perturb(inputs[chosen], UserNoise(1, "law", "x", chosen))
    np.testing.assert_array_equal(part, whole[chosen])
    assert part.dtype == whole.dtype
    other = mechanism.perturb(inputs, mean_laws.noise_for(400, plan="another"))
    assert (other != whole).any()


@every_kind
@pytest.mark.parametrize("epsilon", ["0.3", 2])
def test_tallies_of_disjoint_users_add_up(kind, epsilon):
    mechanism, inputs = kind(epsilon), np.tile(INPUTS, 50)
    reports = mechanism.perturb(inputs, mean_laws.noise_for(400))
    whole = mechanism.tally(reports)
    assert whole.dtype == np.int64
    assert whole.shape == (mechanism.tally_size,)
    np.testing.assert_array_equal(
        whole, mechanism.tally(reports[:123]) + mechanism.tally(reports[123:])
    )
    nobody = mechanism.tally(mechanism.perturb(inputs[:0], mean_laws.noise_for(0)))
    assert nobody.tolist() == [0] * mechanism.tally_size


@every_kind
@pytest.mark.parametrize("epsilon", ["0.3", 2])
@pytest.mark.statistical
def test_squared_errors_are_those_of_the_variance_formula(kind, epsilon):
    ratio = mean_laws.squared_error_ratio(kind(epsilon), kind(epsilon), INPUTS, 5000)
    assert abs(ratio - 1) < 5 * (2.5 / 5000) ** 0.5


@every_kind
@pytest.mark.statistical
def test_squared_errors_reject_another_epsilon(kind):
    ratio = mean_laws.squared_error_ratio(kind("1.2"), kind(2), INPUTS, 5000)
    assert abs(ratio - 1) > 5 * (2.5 / 5000) ** 0.5


@every_kind
@pytest.mark.statistical
def test_estimates_are_unbiased_and_reject_another_number(kind):
    mechanism, n = kind(2), 200_000
    reports = mechanism.perturb(np.full(n, 0.4), mean_laws.noise_for(n))
    estimate = mechanism.estimate(mechanism.tally(reports), n)
    deviation = mechanism.variance(n, 0.4, 0.16) ** 0.5
    assert abs(estimate - 0.4) < 5 * deviation < 0.02
    assert abs(estimate - 0.45) > 5 * deviation


@every_kind
def test_the_ledger_is_charged_what_was_declared(kind):
    assert kind("1/14").loss.epsilon == Fraction(1, 14)
    assert kind(0.1).loss.epsilon == Fraction(1, 10)


@every_kind
def test_a_mechanism_is_a_value(kind):
    assert kind(1) == kind("1.0") == pickle.loads(pickle.dumps(kind(1))) != kind(2)
    assert hash(kind(1)) == hash(kind(1.0))
    with pytest.raises(FrozenInstanceError):
        kind(1).epsilon = Fraction(2)
    assert replace(kind(1), epsilon="2") == kind(2)


@every_kind
def test_the_plan_tells_mechanisms_apart(kind):
    assert dict(kind(1).parameters)["epsilon"] == "1"
    assert kind(1).parameters != kind(2).parameters


@pytest.mark.parametrize("kind", [*KINDS, lambda epsilon: JointDuchi(3, epsilon)])
@pytest.mark.parametrize("epsilon", [0, -1, "nan", float("inf"), True, None, "30.001", "x"])
def test_a_bad_epsilon_is_refused_by_name(kind, epsilon):
    with pytest.raises(InputError, match="epsilon must be"):
        kind(epsilon)


@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid, lambda value: JointDuchi(3, value)])
def test_an_epsilon_below_the_atoms_is_refused(kind):
    with pytest.raises(InputError, match="epsilon is too small"):
        kind("1e-21")


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("points", [1, 0, 2.0, True, "4", 65_537])
def test_a_bad_grid_is_refused_by_name(kind, points):
    with pytest.raises(InputError, match="points must be"):
        kind("0.1", points)


@every_kind
def test_numbers_outside_are_counted_and_never_echoed(kind):
    numbers = np.array([0.5, 1.0000001, np.nan, -7.25, 1.0, -1.0, np.inf])
    with pytest.raises(InputError) as caught:
        kind(2).perturb(numbers, mean_laws.noise_for(7))
    assert str(caught.value) == "4 of 7 numbers lie outside [-1, 1]"


@every_kind
@pytest.mark.parametrize("wrong", [np.float32, np.int64, np.uint8])
def test_numbers_of_another_type_are_refused(kind, wrong):
    with pytest.raises(InputError, match="numbers must be float64"):
        kind(2).perturb(np.zeros(3, wrong), mean_laws.noise_for(3))


@every_kind
def test_more_numbers_than_users_are_refused(kind):
    with pytest.raises(InputError, match="one input per user, got 3 for 2"):
        kind(2).perturb(np.zeros(3), mean_laws.noise_for(2))


@every_kind
def test_strided_numbers_are_read_as_they_stand(kind):
    numbers = np.tile(INPUTS, 4)
    wide = np.stack([numbers, -numbers], axis=1)[:, 0]
    np.testing.assert_array_equal(
        kind(2).perturb(wide, mean_laws.noise_for(32)),
        kind(2).perturb(numbers, mean_laws.noise_for(32)),
    )


@every_kind
@pytest.mark.parametrize("n", [0, -1])
def test_estimates_and_variances_need_somebody(kind, n):
    mechanism = kind(2)
    with pytest.raises(InputError, match="n must be"):
        mechanism.estimate(np.zeros(mechanism.tally_size, np.int64), n)
    with pytest.raises(InputError, match="n must be"):
        mechanism.variance(n)
