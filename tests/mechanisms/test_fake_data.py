"""RS+FD: all reports of few attributes are enumerated exactly."""

import pickle
from fractions import Fraction
from itertools import pairwise, product
from math import exp, log, prod, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms._fake_kernels import count_columns
from dpsim.mechanisms.fake_data import FakeData
from tests.mechanisms import twins

ALL = 2**64
SMALL = [(2, 2), (3, 3, 3), (2, 5), (2, 3, 4), (6,), (1, 3), (2, 1, 7)]


def shares_of(size):
    firsts = [-(-place * ALL // size) for place in range(size + 1)]
    return [Fraction(b - a, ALL) for a, b in pairwise(firsts)]


def law_of(sizes, ratios, record):
    """The exact law of a report of one record, by the truth-to-lie atoms of each attribute."""
    told = [place for place, size in enumerate(sizes) if size > 1]
    chances = shares_of(len(told))
    fakes = [shares_of(size) for size in sizes]
    law = {}
    for report in product(*map(range, sizes)):
        total = Fraction(0)
        for chance, place in zip(chances, told, strict=True):
            truth, lie = ratios[place]
            rest = prod(fakes[j][y] for j, y in enumerate(report) if j != place)
            total += chance * rest * (truth if report[place] == record[place] else lie)
        law[report] = total
    return law


def atoms_of(mechanism):
    lies = iter(dict(mechanism.parameters)["lie_atoms"].split(","))
    ratios = []
    for size in mechanism.sizes:
        lie = Fraction(int(next(lies)), ALL) if size > 1 else Fraction(1)
        ratios.append((1 - (size - 1) * lie, lie))
    return ratios


def worst(sizes, ratios, differing):
    """The worst ratio over pairs of records that differ in so many attributes at most."""
    laws = {record: law_of(sizes, ratios, record) for record in product(*map(range, sizes))}
    return max(
        laws[a][report] / laws[b][report]
        for a, b in product(laws, repeat=2)
        if sum(x != y for x, y in zip(a, b, strict=True)) <= differing
        for report in laws[a]
    )


@pytest.mark.parametrize("sizes", SMALL)
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_one_changed_attribute_costs_exactly_the_real_epsilon(sizes, epsilon):
    mechanism = FakeData(sizes, epsilon)
    found = log(worst(sizes, atoms_of(mechanism), 1))
    assert found == pytest.approx(mechanism.real_epsilon, abs=1e-13)
    assert mechanism.real_epsilon == pytest.approx(float(epsilon), abs=1e-10)
    assert mechanism.real_epsilon <= mechanism.loss.epsilon
    assert mechanism.loss.unit == "attribute"


@pytest.mark.parametrize("sizes", SMALL)
def test_whole_records_cost_the_record_loss(sizes):
    mechanism = FakeData(sizes, 1)
    found = log(worst(sizes, atoms_of(mechanism), len(sizes)))
    assert found == pytest.approx(float(mechanism.record_loss.epsilon), abs=1e-10)
    assert found <= mechanism.record_loss.epsilon
    assert mechanism.record_loss.unit == "user"


@pytest.mark.parametrize(("d", "loss"), [(2, 1.490), (3, 1.817)])
def test_equal_sizes_give_the_published_amplification(d, loss):
    found = float(FakeData((5,) * d, 1).record_loss.epsilon)
    assert found == pytest.approx(log(d * (exp(1) - 1) + 1), abs=1e-9)
    assert found == pytest.approx(loss, abs=5e-4)


def test_the_published_amplification_breaks_epsilon_for_unequal_sizes():
    """Why e' is not d(e^ε - 1) + 1 here: with sizes 2 and 5 a claim of 1 costs 1.14."""
    sizes, odds = (2, 5), Fraction(2 * (exp(1) - 1) + 1)
    published = [(odds / (odds + size - 1), 1 / (odds + size - 1)) for size in sizes]
    assert log(worst(sizes, published, 1)) == pytest.approx(1.1380, abs=1e-4)
    assert log(worst(sizes, atoms_of(FakeData(sizes, 1)), 1)) <= 1


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=12),
    st.fractions(Fraction(1, 100), 30, max_denominator=10**4),
)
def test_the_real_epsilon_never_exceeds_epsilon_and_is_near_it(sizes, epsilon):
    mechanism = FakeData(sizes, epsilon)
    assert mechanism.real_epsilon <= mechanism.epsilon
    if max(sizes) > 1:
        assert mechanism.real_epsilon == pytest.approx(float(epsilon), rel=1e-4)
    assert mechanism.record_loss.epsilon >= mechanism.loss.epsilon * Fraction(999999, 10**6)


@pytest.mark.parametrize("sizes", SMALL)
def test_expected_tallies_of_every_record_are_estimated_as_the_record(sizes):
    mechanism = FakeData(sizes, 1)
    for record in product(*map(range, sizes)):
        expected: Any = np.zeros(mechanism.tally_size)
        for report, share in law_of(sizes, atoms_of(mechanism), record).items():
            places = np.cumsum([0, *sizes[:-1]]) + report
            expected[places] += float(share)
        estimates = mechanism.estimate(expected * 2**40, 2**40)
        for code, size, estimate in zip(record, sizes, estimates, strict=True):
            np.testing.assert_allclose(estimate, np.eye(size)[code], atol=1e-11)


@pytest.mark.parametrize(("sizes", "f"), [((2, 5), 0.0), ((3, 3, 3), 0.4), ((1, 4), 1.0)])
def test_variance_is_that_of_the_supports(sizes, f):
    mechanism = FakeData(sizes, 1)
    for place, size in enumerate(sizes):
        p, q = map(float, mechanism.support(place))
        exact = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2 / 7
        assert mechanism.variance(7, place, f) == pytest.approx(exact if size > 1 else 0)


def some_codes(n, sizes):
    rows = np.arange(n)[:, None] * 31 + np.arange(len(sizes)) * 17
    return (rows % np.array(sizes)).astype(np.uint16)


@pytest.mark.parametrize("sizes", [(4,), (2, 300), (5, 1, 3, 7), (3,) * 9])
def test_reports_equal_those_of_plain_integers(sizes):
    users = np.arange(200) * 5 + 2
    mechanism, codes = FakeData(sizes, 2), some_codes(200, sizes)
    noise = twins.noise_for(0, users=users)
    codes.flags.writeable = False
    reports = mechanism.perturb(codes, noise)
    assert reports.dtype == np.uint16
    expected = [row_of(mechanism, codes[i], noise.stream().key, u) for i, u in enumerate(users)]
    np.testing.assert_array_equal(reports, expected)
    counts = [
        np.bincount(column, minlength=size)
        for column, size in zip(reports.T, sizes, strict=True)
    ]
    np.testing.assert_array_equal(mechanism.tally(reports), np.concatenate(counts))


def row_of(mechanism, codes, key, user):
    steps = range(1 + len(codes) // 4)
    choice, *rest = [word for step in steps for word in twins.words(key, user, step)]
    told = [place for place, size in enumerate(mechanism.sizes) if size > 1]
    chosen = told[twins.place(choice, len(told))]
    ratios = atoms_of(mechanism)
    return [
        twins.respond(int(codes[j]), rest[j], int(ratios[j][0] * ALL), int(ratios[j][1] * ALL))
        if j == chosen
        else twins.place(rest[j], size)
        for j, size in enumerate(mechanism.sizes)
    ]


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [2, "1.7"])
def test_estimates_are_within_five_standard_errors_and_another_epsilon_is_not(wrong):
    n, sizes = 100_000, (2, 5, 3)
    perturbing, estimating = FakeData(sizes, wrong), FakeData(sizes, 2)
    codes = np.zeros((n, 3), np.uint8)
    codes[: n // 4, 1] = 3
    codes[n // 2 :, 2] = 1
    tally = perturbing.tally(perturbing.perturb(codes, twins.noise_for(n)))
    truths = ([1, 0], [0.75, 0, 0, 0.25, 0], [0.5, 0.5, 0])
    z = [
        abs(found - truth) / sqrt(estimating.variance(n, place, truth))
        for place, estimate in enumerate(estimating.estimate(tally, n))
        for found, truth in zip(estimate, truths[place], strict=True)
    ]
    assert (max(z) < 5) == (wrong == 2)


def test_attributes_with_one_code_are_told_for_nothing():
    mechanism = FakeData((1, 1), 1)
    codes = np.zeros((4, 2), np.uint8)
    reports = mechanism.perturb(codes, twins.noise_for(4))
    assert reports is not codes
    assert reports.tolist() == codes.tolist()
    assert (
        mechanism.loss.epsilon == mechanism.real_epsilon == mechanism.record_loss.epsilon == 0
    )
    assert [part.tolist() for part in mechanism.estimate(mechanism.tally(reports), 4)] == [
        [1],
        [1],
    ]


def test_an_empty_block_gives_an_empty_report():
    mechanism = FakeData((2, 3), 1)
    reports = mechanism.perturb(np.zeros((0, 2), np.uint8), twins.noise_for(0))
    assert reports.shape == (0, 2)
    assert mechanism.tally(reports).tolist() == [0] * 5
    assert count_columns(reports, np.array([0, 2, 5])).dtype == np.int64


def test_one_attribute_is_grr_and_permuted_attributes_are_permuted_losses():
    p, q = FakeData((10,), 1).support(0)
    assert float(p / q) == pytest.approx(exp(1), rel=1e-11)
    one, other = FakeData((2, 9, 4), 1), FakeData((4, 2, 9), 1)
    assert one.record_loss == other.record_loss
    assert one.support(1) == other.support(2)


def test_a_mechanism_is_a_value_with_a_complete_plan():
    mechanism = FakeData([2, 3], "1.0")
    assert mechanism == FakeData((2, 3), 1) == pickle.loads(pickle.dumps(mechanism))
    known = dict(mechanism.parameters)
    assert known["sizes"] == "2,3"
    assert known["epsilon"] == "1"
    assert [int(lie) for lie in str(known["lie_atoms"]).split(",")] == [
        round(ratio[1] * ALL) for ratio in atoms_of(mechanism)
    ]
    assert mechanism.report_bytes == 2
    assert FakeData((2, 300), 1).report_bytes == 3


def test_bad_parameters_are_refused_by_name():
    sizes: list[Any] = [(), (0,), (2, 1.5), (True,), (1_000_001,)]
    for bad in sizes:
        with pytest.raises(InputError, match="size"):
            FakeData(bad, 1)
    for wrong in (0, "nan", 31, True):
        with pytest.raises(InputError, match="epsilon must be"):
            FakeData((2, 2), wrong)
    with pytest.raises(InputError, match="epsilon is too small"):
        FakeData((2, 2), "1e-30")
    with pytest.raises(InputError, match="n must be"):
        FakeData((2,), 1).estimate(np.array([0, 0]), 0)


def test_bad_inputs_are_counted_and_never_echoed():
    mechanism = FakeData((2, 3), 1)
    with pytest.raises(InputError) as caught:
        mechanism.perturb(np.array([[1, 2], [77, 2]], np.uint8), twins.noise_for(2))
    assert str(caught.value) == "1 of 2 codes lie outside 0..1"
    with pytest.raises(InputError, match="a matrix of 2 columns"):
        mechanism.perturb(np.zeros((2, 3), np.uint8), twins.noise_for(2))
    with pytest.raises(InputError, match="a matrix of 2 columns"):
        mechanism.perturb(np.zeros(2, np.uint8), twins.noise_for(2))
    with pytest.raises(InputError, match="one input per user"):
        mechanism.perturb(np.zeros((2, 2), np.uint8), twins.noise_for(1))
