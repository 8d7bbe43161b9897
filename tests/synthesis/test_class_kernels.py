"""Kernels of the classes against numpy: values, derivatives, dtypes, empty input."""

from itertools import pairwise

import numpy as np
import pytest

from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.mechanisms.unary import OUE
from dpsim.synthesis._class_kernels import (
    draw_in_class,
    leap,
    likelihood_gradient,
    log_likelihood,
    pull_back,
    spread,
)
from dpsim.synthesis.classes import pack, scratch
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.posterior import Prior

SIZES = (2, 3, 4)
ENDS = np.array([0, 2, 5, 9])
RNG = np.random.default_rng(8)


def group(attributes, make, epsilon):
    oracle = make(int(np.prod([SIZES[a] for a in attributes])), epsilon)
    rates = RNG.dirichlet(np.ones(oracle.domain_size)) * oracle.gap + oracle.q
    return GroupReports(attributes, oracle, 500, np.rint(500 * rates).astype(np.int64))


REPORTS = [
    group((0,), GRR, 1),
    group((2, 0), GRR, 2),
    group((1, 2), SubsetSelection, 1),
    group((2, 0, 1), OUE, 1),
    group((0, 1, 2), GRR, 4),
    GroupReports((0,), GRR(2, 1), 0, np.zeros(2, np.int64)),
]


def some_classes(classes=3):
    weights = RNG.dirichlet(np.ones(classes))
    laws = [RNG.dirichlet(np.ones(size), classes) for size in SIZES]
    return weights, np.concatenate(laws, axis=1)


def twin(weights, laws, reports=REPORTS):
    """The log-likelihood, written with whole tables."""
    total = 0.0
    for each in reports:
        if not each.n:
            continue
        model = np.zeros(each.cells)
        for z, weight in enumerate(weights):
            part = np.array(weight)
            for a in each.attributes:
                part = np.multiply.outer(part, laws[z, ENDS[a] : ENDS[a + 1]])
            model = model + part.ravel()
        oracle = each.mechanism
        rate = oracle.q + oracle.gap * model
        if each.names_one_cell:
            total += (each.tally * np.log(rate)).sum()
        else:
            no = (each.n - each.tally) * np.log(1 - rate)
            total += each.freedom * (each.tally * np.log(rate) + no).sum()
    return total


def gradient(weights, laws, evidence):
    by_weight, by_law = np.full(weights.size, np.nan), np.full(laws.shape, np.nan)
    work = scratch(evidence, weights.size)
    likelihood_gradient(weights, laws, evidence, work, by_weight, by_law)
    return by_weight, by_law


@pytest.mark.parametrize("classes", [1, 3])
def test_the_likelihood_equals_its_twin(classes):
    weights, laws = some_classes(classes)
    evidence = pack(REPORTS, SIZES)
    found = log_likelihood(weights, laws, evidence, scratch(evidence, classes))
    assert found == pytest.approx(twin(weights, laws), rel=1e-12)


def test_the_gradient_is_the_likelihoods():
    weights, laws = some_classes()
    by_weight, by_law = gradient(weights, laws, pack(REPORTS, SIZES))
    step = 1e-6
    for z in range(weights.size):
        up, down = weights.copy(), weights.copy()
        up[z] += step
        down[z] -= step
        slope = (twin(up, laws) - twin(down, laws)) / (2 * step)
        assert by_weight[z] == pytest.approx(slope, rel=1e-5, abs=1e-3)
        for i in range(laws.shape[1]):
            up, down = laws.copy(), laws.copy()
            up[z, i] += step
            down[z, i] -= step
            slope = (twin(weights, up) - twin(weights, down)) / (2 * step)
            assert by_law[z, i] == pytest.approx(slope, rel=1e-5, abs=1e-3)


def test_no_reports_have_a_flat_likelihood():
    weights, laws = some_classes()
    evidence = pack(REPORTS[-1:], SIZES)
    assert log_likelihood(weights, laws, evidence, scratch(evidence, 3)) == 0
    by_weight, by_law = gradient(weights, laws, evidence)
    assert not by_weight.any()
    assert not by_law.any()


def test_attributes_of_one_code_need_room_too():
    sizes = (2, 1, 1, 1, 1, 2)
    reports = [GroupReports((0, 1, 2, 3, 4), GRR(2, 1), 90, np.array([60, 30]))]
    evidence = pack(reports, sizes)
    laws = np.array([[0.3, 0.7, 1, 1, 1, 1, 0.5, 0.5]])
    work = scratch(evidence, 1)
    needed = 1 + 2 + 2 + 2 + 2  # the empty product, then of the first four axes
    assert work[0].shape[1] >= needed
    rates = GRR(2, 1).q + GRR(2, 1).gap * np.array([0.3, 0.7])
    expected = 60 * np.log(rates[0]) + 30 * np.log(rates[1])
    assert log_likelihood(np.ones(1), laws, evidence, work) == pytest.approx(expected)


def place_of(classes, seed=1):
    length = (classes + 1) * 9 + 2 * 3 + classes + 1
    return np.random.default_rng(seed).normal(size=length)


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def test_a_place_spreads_into_weights_and_laws_as_the_prior_says():
    classes, scales, place = 2, Prior().scales, place_of(2)
    weights, laws = np.empty(classes), np.empty((classes, 9))
    tau, sigma = spread(place, np.array(SIZES), scales, weights, laws)
    np.testing.assert_allclose(tau, np.exp(scales[0] + scales[1] * place[9:12]))
    common = scales[2] + scales[3] * place[-1]
    np.testing.assert_allclose(sigma, np.exp(common + scales[4] * place[30:33]))
    np.testing.assert_allclose(weights, softmax(scales[5] * place[33:35]))
    delta = place[12:30].reshape(2, 9)
    for a, (begin, end) in enumerate(pairwise(ENDS)):
        logits = tau[a] * place[begin:end] + sigma[a] * delta[:, begin:end]
        np.testing.assert_allclose(laws[:, begin:end], softmax(logits))


def height(place, classes, evidence):
    weights, laws = np.empty(classes), np.empty((classes, 9))
    spread(place, np.array(SIZES), Prior().scales, weights, laws)
    return twin(weights, laws) - 0.5 * (place**2).sum()


def test_the_slope_is_that_of_the_log_posterior():
    classes, place = 2, place_of(2)
    evidence = pack(REPORTS, SIZES)
    weights, laws, slope = np.empty(classes), np.empty((classes, 9)), np.empty(place.size)
    sizes, scales = np.array(SIZES), Prior().scales
    tau, sigma = spread(place, sizes, scales, weights, laws)
    by_weight, by_law = gradient(weights, laws, evidence)
    values = weights, laws, tau, sigma
    pull_back(place, sizes, scales, values, (by_weight, by_law, slope))
    for i in range(place.size):
        up, down = place.copy(), place.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        expected = (height(up, classes, evidence) - height(down, classes, evidence)) / 2e-5
        assert slope[i] == pytest.approx(expected, rel=1e-5, abs=1e-4)


def walker(classes=2):
    evidence = pack(REPORTS, SIZES)
    setting = np.array(SIZES), Prior().scales, evidence
    length = place_of(classes).size
    shapes = [classes, (classes, 9), classes, (classes, 9), length]
    return setting, tuple(np.empty(shape) for shape in shapes), scratch(evidence, classes)


def test_a_leap_there_and_back_returns_and_keeps_the_energy():
    setting, state, work = walker()
    place, momentum = place_of(2), place_of(2, 2)
    before = leap(place, np.zeros(place.size), setting, state, work, (0.0, 1))
    assert before == pytest.approx(height(place, 2, setting[2]))
    energy = before - 0.5 * (momentum**2).sum()
    here = place.copy()
    after = leap(place, momentum, setting, state, work, (1e-3, 12))
    assert abs(after - before) > 1e-2
    assert after - 0.5 * (momentum**2).sum() == pytest.approx(energy, abs=2e-2)
    momentum *= -1
    back = leap(place, momentum, setting, state, work, (1e-3, 12))
    np.testing.assert_allclose(place, here, atol=1e-9)
    assert back == pytest.approx(before)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_codes_are_drawn_as_by_comparison(kind):
    ends = np.cumsum(RNG.dirichlet(np.ones(7), 5), axis=1)
    ends[:, -1] = 2
    classes, uniforms = RNG.integers(0, 5, 300), RNG.random(300)
    codes = np.full(300, 99, kind)
    draw_in_class(classes, uniforms, ends, codes)
    expected = (uniforms[:, None] >= ends[classes]).sum(axis=1)
    np.testing.assert_array_equal(codes, expected)
    assert codes.dtype == kind
    draw_in_class(classes[:0], uniforms[:0], ends, codes[:0])


def test_a_uniform_on_a_border_belongs_to_the_code_above_it():
    codes = np.zeros(2, np.uint8)
    draw_in_class(np.zeros(2, np.int64), np.array([0.25, 0.2]), np.array([[0.25, 2.0]]), codes)
    assert codes.tolist() == [1, 0]
