"""Piecewise on a grid, exact in law; and in floats, where it leaks."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from math import exp, inf, log1p

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.piecewise import FloatPiecewise, Piecewise
from dpsim.mechanisms.piecewise_atoms import WORD
from dpsim.mechanisms.unit_interval import share_of
from tests import laws
from tests.mechanisms import mean_laws

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
grids = st.sampled_from([2, 4, 8, 32, 128])
mechanisms = st.builds(Piecewise, epsilons, grids)
usual = st.builds(Piecewise, st.fractions("0.1", 12, max_denominator=1000), grids)
numbers = st.floats(-1, 1)


def points_of(mechanism):
    return np.arange(mechanism.points, dtype=np.uint16)


def exact_moment(mechanism, number):
    """What rounding at random adds to the variance, in squared points: f(1-f)."""
    room = mechanism.points - mechanism.layout.width
    fraction = share_of(number) * room % 2**31 / 2**31
    return fraction * (1 - fraction)


@given(mechanisms)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(mechanism):
    laws.assert_is_stochastic(mechanism.channel())
    laws.assert_loss_is(mechanism.channel(), mechanism.real_epsilon)


@given(mechanisms, st.lists(numbers, min_size=2, max_size=6))
def test_no_two_numbers_cost_more_than_the_ends(mechanism, inputs):
    """In whole draws: all 2^64 of them are given away, and no ratio exceeds e^ε."""
    rows = [mechanism.layout.place_atoms(share_of(number)) for number in inputs]
    assert {sum(row) for row in rows} == {WORD}
    worst = max(Fraction(max(cells), min(cells)) for cells in zip(*rows, strict=True))
    assert worst <= 1 + mechanism.layout.excess


@given(epsilons, st.sampled_from([2, 8, 128, 2**16]))
@example(Fraction("0.9"), 16)  # whole positions need one atom more than the formula
@example(Fraction("1.381"), 1024)
def test_the_real_epsilon_is_at_most_the_one_asked_for_and_near_it(epsilon, points):
    mechanism = Piecewise(epsilon, points)
    layout = mechanism.layout
    with localcontext(prec=60):
        asked = Decimal(epsilon.numerator) / epsilon.denominator
        excess = Decimal(layout.excess.numerator) / layout.excess.denominator
        assert 1 + excess <= asked.exp()
        assert asked - (1 + excess).ln() <= Decimal("1e-5") * asked
    assert mechanism.real_epsilon <= epsilon
    share = layout.anywhere_atoms / 2**layout.atom_bits
    ideal = log1p((1 - share) / share * points / layout.width)
    assert mechanism.real_epsilon == pytest.approx(ideal, rel=1e-8)


@given(usual, numbers)
def test_the_mean_of_a_report_is_the_number(mechanism, number):
    means, _ = mean_laws.moments(mechanism, points_of(mechanism), [number])
    assert means[0] == pytest.approx(number, abs=3 * mean_laws.SHARE)


@given(usual, st.lists(numbers, min_size=1, max_size=4), st.integers(1, 10**6))
def test_variance_is_the_channels_but_for_the_rounding(mechanism, inputs, n):
    inputs = np.array(inputs)
    _, variances = mean_laws.moments(mechanism, points_of(mechanism), inputs)
    stated = mechanism.variance(n, inputs.mean(), (inputs**2).mean()) * n
    layout = mechanism.layout
    step = 2 * WORD / (layout.near * (layout.points - layout.width))
    rounding = np.mean([1 / 4 - exact_moment(mechanism, number) for number in inputs])
    rounding *= step**2 * layout.near / WORD
    assert stated - variances.mean() == pytest.approx(rounding, abs=1e-7 * step**2 + 1e-8)
    assert stated >= variances.mean() * (1 - 1e-7)


def test_moments_reject_another_epsilon():
    other, mechanism = Piecewise("1.01", 64), Piecewise(1, 64)
    law = mechanism.channel([0.5])[0]
    values = mean_laws.values_of(other, points_of(other))
    assert abs(law @ values - 0.5) > 100 * mean_laws.SHARE
    assert abs(law @ values**2 - 0.25 - mechanism.variance(1, 0.5, 0.25)) > 0.01


@given(mechanisms, numbers)
def test_reports_follow_the_channel_draw_by_draw(mechanism, number):
    """Each point owns two intervals of draws, or every N-th one: both ends of all of them."""
    layout, share = mechanism.layout, share_of(number)
    points, common = mechanism.points, layout.anywhere // mechanism.points
    assert common * points == layout.anywhere
    owned = [atoms - common for atoms in layout.place_atoms(share)]
    starts = list(accumulate(owned, initial=layout.anywhere))
    assert starts[-1] == WORD
    for place in range(points):
        draws = [place, layout.anywhere - points + place]
        if owned[place]:
            draws += [starts[place], starts[place + 1] - 1]
        shares = np.full(len(draws), share, np.uint32)
        reports = mechanism.respond(shares, np.array(draws, np.uint64))
        assert reports.dtype == np.uint16
        assert reports.tolist() == [place] * len(draws)


@pytest.mark.parametrize(
    ("epsilon", "width", "anywhere", "at_zero", "at_one"),
    [
        ("0.5", 28693, 3344929073, 17.701757, 21.222569),
        (1, 24743, 2605008853, 3.682103, 5.223597),
        (2, 17625, 1580049719, 0.645588, 1.227565),
        (4, 7812, 581265936, 0.084836, 0.241354),
    ],
)
def test_numbers_are_those_of_the_tables(epsilon, width, anywhere, at_zero, at_one):
    mechanism = Piecewise(epsilon)
    assert mechanism.layout == (2**16, width, 32, anywhere)
    assert mechanism.variance(1) == pytest.approx(at_zero, rel=3e-4)
    assert mechanism.variance(1, 1, 1) == pytest.approx(at_one, rel=3e-4)
    floats = FloatPiecewise(epsilon)
    assert floats.variance(1) == pytest.approx(at_zero, rel=1e-5)
    assert floats.variance(10, 1, 1) == pytest.approx(at_one / 10, rel=1e-5)


def test_the_bounds_are_those_of_the_table():
    bounds = {"0.5": 8.041623, 1: 4.082988, 2: 2.163953, 4: 1.313035}
    for epsilon, bound in bounds.items():
        assert FloatPiecewise(epsilon).bound == pytest.approx(bound, rel=1e-6)
        assert Piecewise(epsilon).bound == pytest.approx(bound, rel=3e-4)
        ends = mean_laws.values_of(Piecewise(epsilon), np.array([0, 2**16 - 1], np.uint16))
        assert ends.tolist() == pytest.approx(
            [-Piecewise(epsilon).bound, Piecewise(epsilon).bound]
        )


@pytest.mark.parametrize("epsilon", ["0.05", 1, 8])
def test_the_grid_costs_no_accuracy(epsilon):
    for square in (0.0, 0.3, 1.0):
        grid, floats = Piecewise(epsilon), FloatPiecewise(epsilon)
        assert grid.variance(1, 0, square) == pytest.approx(
            floats.variance(1, 0, square), rel=3e-4
        )


def test_the_default_grid_has_the_law_it_states():
    mechanism = Piecewise(1)
    channel = mechanism.channel([-1.0, 0.3])
    laws.assert_is_stochastic(channel)
    values = (2 * np.arange(2.0**16) - (2**16 - 1)) / (2**16 - 1) * mechanism.bound
    np.testing.assert_allclose(channel @ values, [-1, 0.3], atol=1e-9)
    variances = channel @ values**2 - [1, 0.09]
    expected = [mechanism.variance(1, 0, 1), mechanism.variance(1, 0, 0.09)]
    np.testing.assert_allclose(variances, expected, rtol=1e-7)


def test_extreme_epsilons_use_more_atoms_and_the_tiniest_are_refused():
    bits = [Piecewise(epsilon).layout.atom_bits for epsilon in ("2e-5", 1, 8, 30)]
    assert bits == [48, 32, 32, 48]
    with pytest.raises(InputError, match="epsilon is too small"):
        Piecewise("1e-6")


@pytest.mark.parametrize("points", [3, 100, 65_535])
def test_a_grid_must_be_a_power_of_two(points):
    with pytest.raises(InputError, match="points must be a power of 2 up to 65536"):
        Piecewise(1, points)


def test_the_plan_holds_every_number_that_determines_a_report():
    assert dict(Piecewise("1.0").parameters) == {
        "epsilon": "1", "points": 65536, "width": 24743, "atom_bits": 32,
        "anywhere_atoms": 2605008853,
    }  # fmt: skip
    assert Piecewise(1).report_bytes == 2
    assert Piecewise(1, 16).report_bytes == 1 / 2


def test_draws_of_the_wrong_width_or_number_are_refused():
    for draws in (np.zeros(3, np.uint32), np.zeros(2, np.uint64)):
        with pytest.raises(InputError, match="draws must have 64 bits"):
            Piecewise(1).respond(np.zeros(3, np.uint32), draws)


@pytest.mark.statistical
def test_samples_follow_the_channel():
    assert_samples_follow(Piecewise(1, 16), Piecewise(1, 16))


@pytest.mark.statistical
def test_the_sampling_law_has_power():
    with pytest.raises(AssertionError):
        assert_samples_follow(Piecewise(1, 16), Piecewise("1.2", 16))


def assert_samples_follow(stating, perturbing, n=50_000):
    for number in (-1.0, 0.3):
        reports = perturbing.perturb(np.full(n, number), mean_laws.noise_for(n))
        counts = np.bincount(reports, minlength=stating.points)
        laws.assert_counts_follow(counts, stating.channel([number])[0])


def test_floats_are_labeled_as_unsound():
    mechanism = FloatPiecewise(1)
    assert mechanism.is_sound is False
    assert mechanism.real_epsilon == inf
    assert mechanism.loss.epsilon == 1


@pytest.mark.statistical
def test_floats_leak_the_number_in_their_low_bits_and_points_do_not():
    """Near 0 some floats are reported for 0.5 and never for -0.5: a loss without limit."""
    fine = {}
    for number in (-0.5, 0.5):
        noise = mean_laws.noise_for(100_000)
        reports = FloatPiecewise(1).perturb(np.full(100_000, number), noise)
        small = reports[np.abs(reports) < 1 / 4]
        fine[number] = np.mean(small * 2.0**52 % 1 != 0)
    assert fine[0.5] > 0.4
    assert fine[-0.5] == 0
    law = Piecewise(1, 64).channel([-0.5, 0.5])
    assert law.min() > 0


@pytest.mark.statistical
def test_float_reports_follow_the_density():
    n, number = 100_000, 0.4
    mechanism = FloatPiecewise(2)
    reports = mechanism.perturb(np.full(n, number), mean_laws.noise_for(n))
    bound = mechanism.bound
    left = (bound + 1) / 2 * number - (bound - 1) / 2
    inside = (reports >= left) & (reports <= left + bound - 1)
    share = exp(1) / (exp(1) + 1)
    assert abs(inside.mean() - share) < 5 * (share * (1 - share) / n) ** 0.5
    assert np.abs(reports).max() <= bound
