"""Duchi's mechanism in one dimension: exact in law, atom by atom."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.unit_interval import share_of, shares_of
from tests import laws
from tests.mechanisms import mean_laws

mechanisms = st.builds(Duchi, st.fractions(Fraction(1, 100), 30, max_denominator=10**6))
numbers = st.floats(-1, 1)
SIGNS = np.array([False, True])


@given(mechanisms)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(mechanism):
    laws.assert_is_stochastic(mechanism.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)


@given(mechanisms)
def test_the_real_epsilon_is_at_most_the_one_asked_for_and_near_it(mechanism):
    with localcontext(prec=50):
        atoms, lie = 2**mechanism.draw_bits, mechanism.lie_atoms
        asked = Decimal(mechanism.epsilon.numerator) / mechanism.epsilon.denominator
        assert Decimal(atoms - lie) / lie <= asked.exp()
        assert Decimal(atoms - lie + 1) / (lie - 1) > asked.exp() or lie == 1
    assert mechanism.real_epsilon <= mechanism.epsilon
    assert mechanism.epsilon - Fraction(mechanism.real_epsilon) <= 1.01e-5 * mechanism.epsilon


@given(mechanisms, st.lists(numbers, min_size=2, max_size=9))
def test_no_two_numbers_cost_more_than_the_ends(mechanism, inputs):
    channel = mechanism.channel(inputs)
    worst = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
    assert worst <= mechanism.real_epsilon + 1e-12


@given(mechanisms, numbers)
def test_the_mean_of_a_report_is_the_number(mechanism, number):
    """In fractions: half an atom, and what the share loses."""
    atoms = 2**mechanism.draw_bits
    mean = Fraction(2 * mechanism.plus_atoms(share_of(number)) - atoms, mechanism.gap_atoms)
    slack = Fraction(1, mechanism.gap_atoms) + Fraction(1, 2**31) + Fraction(1, 2**52)
    assert abs(mean - Fraction(number)) <= slack


@given(mechanisms, st.lists(numbers, min_size=1, max_size=5), st.integers(1, 10**6))
def test_mean_and_variance_are_the_channels(mechanism, inputs, n):
    inputs = np.array(inputs)
    means, variances = mean_laws.moments(mechanism, SIGNS, inputs)
    np.testing.assert_allclose(means, inputs, atol=(mechanism.bound + 1) * 2.0**-31)
    stated = mechanism.variance(n, inputs.mean(), (inputs**2).mean())
    scale = mechanism.bound**2
    np.testing.assert_allclose(variances.mean() / n, stated, atol=3e-9 * scale / n)


def test_the_variance_rejects_another_epsilon():
    _, variances = mean_laws.moments(Duchi(1), SIGNS, [0.25])
    assert abs(variances[0] / Duchi("1.001").variance(1, 0.25, 0.0625) - 1) > 1e-3


@pytest.mark.parametrize("epsilon", ["0.01", 1, 4, 16, 30])
@pytest.mark.parametrize("number", [-1.0, -0.999, -1e-9, 0.0, 0.3, 2 / 3, 1.0])
def test_reports_follow_the_channel_atom_by_atom(epsilon, number):
    """Plus owns the draws below its atoms, minus the others: both ends of both."""
    mechanism = Duchi(epsilon)
    plus = mechanism.plus_atoms(share_of(number))
    ends = [0, plus - 1, plus, 2**mechanism.draw_bits - 1]
    draws = np.array(ends, f"u{mechanism.draw_bits // 8}")
    reports = mechanism.respond(shares_of(np.full(4, number), 4), draws)
    assert reports.tolist() == [True, True, False, False]


def test_large_and_tiny_epsilons_use_64_bits():
    assert [Duchi(e).draw_bits for e in ("1e-6", "0.01", 1, 8, 20)] == [64, 32, 32, 32, 64]


@pytest.mark.parametrize(
    ("epsilon", "lie", "bound", "square"),
    [
        ("0.5", 1621524826, 4.082988, 16.670792), (1, 1155094610, 2.163953, 4.682694),
        (2, 511972652, 1.313035, 1.724062), (4, 77250184, 1.037315, 1.076022),
    ],
)  # fmt: skip
def test_numbers_are_those_of_the_tables(epsilon, lie, bound, square):
    mechanism = Duchi(epsilon)
    assert mechanism.lie_atoms == lie
    assert mechanism.bound == pytest.approx(bound, rel=1e-6)
    assert mechanism.variance(1) == pytest.approx(square, rel=1e-6)
    assert mechanism.variance(10, 0.5, 0.25) == pytest.approx((square - 0.25) / 10, rel=1e-6)


def test_the_plan_holds_every_number_that_determines_a_report():
    assert dict(Duchi("1.0").parameters) == {
        "epsilon": "1", "draw_bits": 32, "lie_atoms": 1155094610,
    }  # fmt: skip
    assert Duchi(1).report_bytes == 1 / 8


@pytest.mark.parametrize(("epsilon", "wrong"), [(1, np.uint64), (20, np.uint32)])
def test_draws_of_the_wrong_width_or_number_are_refused(epsilon, wrong):
    shares = np.zeros(3, np.uint32)
    with pytest.raises(InputError, match="draws must have"):
        Duchi(epsilon).respond(shares, np.zeros(3, wrong))
    with pytest.raises(InputError, match="draws must have"):
        Duchi(1).respond(shares, np.zeros(2, np.uint32))


@pytest.mark.statistical
def test_samples_follow_the_channel():
    assert_samples_follow(Duchi(1), Duchi(1))


@pytest.mark.statistical
def test_the_sampling_law_has_power():
    with pytest.raises(AssertionError):
        assert_samples_follow(Duchi(1), Duchi("1.2"))


def assert_samples_follow(stating, perturbing):
    for number in (-1.0, 0.25):
        reports = perturbing.perturb(np.full(50_000, number), mean_laws.noise_for(50_000))
        counts = np.bincount(reports, minlength=2)
        laws.assert_counts_follow(counts, stating.channel([number])[0])
