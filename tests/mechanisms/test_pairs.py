"""Inputs, truth and response of one key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms._pair_kernels import count_outside, respond_states
from dpsim.mechanisms._pair_kernels import threshold as compiled
from dpsim.mechanisms.pairs import (
    PairAtoms,
    PairLaw,
    pair_truth,
    require_pair,
    require_values,
)
from tests.mechanisms import twins

NAN = float("nan")
ATOMS = PairAtoms(
    32, kept=2_000_000_000, flipped=700_000_000, fake_plus=5, fake_minus=600_000_000
)
numbers = st.floats(-1, 1) | st.just(NAN)


def test_truth_is_frequency_and_mean_of_the_holders():
    assert pair_truth(np.array([0.5, NAN, -1.0, NAN])) == (0.5, -0.25)
    assert pair_truth(np.array([NAN, NAN])) == (0.0, None)
    assert pair_truth(np.array([1.0])) == (1.0, 1.0)
    with pytest.raises(InputError, match="n must be"):
        pair_truth(np.zeros(0))


def test_values_outside_are_counted_and_never_echoed():
    values = np.array([0.5, 7.125, NAN, -1.0000001, np.inf, -np.inf, 1.0, -1.0])
    with pytest.raises(InputError) as caught:
        require_values(values)
    assert str(caught.value) == "4 of 8 values lie outside [-1, 1]"


def test_only_float64_of_the_right_shape_is_read():
    with pytest.raises(InputError, match="values must be float64, got float32"):
        require_values(np.zeros(3, np.float32))
    with pytest.raises(InputError, match="values must be a vector, got 2 dimensions"):
        require_values(np.zeros((3, 1)))
    with pytest.raises(
        InputError, match="values must be a matrix of 2 columns, got 1 dimensions"
    ):
        require_values(np.zeros(3), 2)
    with pytest.raises(InputError, match="values must be a matrix of 2 columns, got 3 columns"):
        require_values(np.zeros((3, 3)), 2)


def test_values_are_read_from_any_layout_and_never_copied_needlessly():
    matrix = np.array([[0.1, NAN], [0.3, 0.4]], order="F")
    np.testing.assert_array_equal(require_values(matrix, 2), matrix)
    np.testing.assert_array_equal(require_values(matrix[:, 1]), [NAN, 0.4])
    vector = np.zeros(4)
    assert require_values(vector) is vector


@given(st.lists(st.floats(), max_size=20))
def test_the_count_of_values_outside_equals_numpys(values):
    array = np.array(values, np.float64)
    assert count_outside(array) == np.count_nonzero((array < -1) | (array > 1))


@given(st.floats(-1, 1), st.integers(0, 2**62), st.integers(0, 2**63 - 1))
def test_thresholds_lie_between_those_of_the_states_and_near_the_line(value, low, span):
    atoms = int(compiled(value, np.uint64(low), np.uint64(span)))
    assert atoms == twins.threshold(value, low, span)
    assert low <= atoms <= low + span
    assert abs(atoms - low - (1 + value) / 2 * span) <= 0.5 + span * 2.0**-50
    assert compiled(1.0, np.uint64(low), np.uint64(span)) == low + span
    assert compiled(-1.0, np.uint64(low), np.uint64(span)) == low


@given(st.lists(st.tuples(numbers, st.integers(0, 2**32 - 1)), max_size=30))
def test_responses_equal_those_of_plain_integers(rows):
    values = np.array([value for value, _ in rows], np.float64)
    draws = np.array([draw for _, draw in rows], np.uint32)
    reports = ATOMS.respond(values, draws)
    assert reports.dtype == np.uint8
    assert reports.tolist() == [state_of(ATOMS, value, draw) for value, draw in rows]


def state_of(atoms, value, draw):
    if np.isnan(value):
        plus, either = atoms.fake_plus, atoms.fake_plus + atoms.fake_minus
    else:
        plus = twins.threshold(value, atoms.flipped, atoms.kept - atoms.flipped)
        either = atoms.kept + atoms.flipped
    return 1 if draw < plus else 2 if draw < either else 0


def test_an_empty_block_gives_no_reports():
    reports = ATOMS.respond(np.zeros(0), np.zeros(0, np.uint32))
    assert reports.shape == (0,)
    assert reports.dtype == np.uint8
    assert respond_states(np.zeros(0), np.zeros(0, np.uint64), np.zeros(5, np.uint64)).size == 0


def test_draws_of_another_width_or_number_are_refused():
    with pytest.raises(InputError, match="draws must have 32 bits, got uint64"):
        ATOMS.respond(np.zeros(3), np.zeros(3, np.uint64))
    with pytest.raises(InputError, match="one input per user, got 3 for 2 users"):
        ATOMS.respond(np.zeros(3), np.zeros(2, np.uint32))


def test_rows_and_the_worst_ratio_are_read_off_the_atoms():
    atoms = PairAtoms(4, kept=8, flipped=2, fake_plus=1, fake_minus=5)
    assert atoms.rows == ((10, 1, 5), (6, 8, 2), (6, 2, 8))
    assert atoms.worst_ratio == 8
    assert atoms.law == PairLaw(keep=10 / 16, fake=6 / 16, gain=6 / 16)


laws = st.builds(
    PairLaw, keep=st.floats(0.4, 0.9), fake=st.floats(0.05, 0.3), gain=st.floats(0.05, 0.4)
)


@given(laws, st.floats(0.05, 1), st.floats(-1, 1))
def test_variances_are_those_of_the_delta_method(law, frequency, mean):
    reported = law.fake + frequency * (law.keep - law.fake)
    sign = law.gain * frequency * mean
    shares = {
        (0, 0): 1 - reported, (1, 0): (reported + sign) / 2, (0, 1): (reported - sign) / 2
    }  # fmt: skip
    implied = twins.delta_variance(law.estimate, shares, 7)
    np.testing.assert_allclose(law.variance(7, frequency, mean), implied, rtol=1e-5)


def test_a_mean_is_unknown_where_nobody_seems_to_hold_the_key():
    law = PairLaw(keep=0.7, fake=0.3, gain=0.2)
    assert law.estimate(np.array([15, 15]), 100) == (0.0, None)
    assert law.estimate(np.array([1, 0]), 100)[1] is None
    assert list(law.estimate(np.array([20, 20]), 100)) == pytest.approx([0.25, 0.0])
    assert law.variance(10, 0.0, 0.5)[1] == np.inf


@pytest.mark.parametrize("n", [0, -1, True])
def test_estimates_and_variances_need_somebody(n):
    law = PairLaw(keep=0.7, fake=0.3, gain=0.2)
    with pytest.raises(InputError, match="n must be"):
        law.estimate(np.array([1, 1]), n)
    with pytest.raises(InputError, match="n must be"):
        law.variance(n, 0.5, 0.5)


@pytest.mark.parametrize(
    ("pair", "name"),
    [((-0.1, 0), "frequency"), ((NAN, 0), "frequency"), ((1, 1.1), "mean"), ((1, NAN), "mean")],
)  # fmt: skip
def test_a_pair_outside_its_range_is_refused_by_name(pair, name):
    with pytest.raises(InputError, match=f"{name} must be"):
        require_pair(*pair)
