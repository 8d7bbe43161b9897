"""The likeliest classes: maximum likelihood, and AIC."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.unary import OUE
from dpsim.synthesis import likely_classes as module
from dpsim.synthesis.classes import pack
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.likely_classes import fit_classes, likely_classes
from tests.synthesis.group_laws import expected_reports, marginal, mixture

NOISE = CentralNoise(1, "fit")
PAIRS = [(0, 1), (0, 2), (1, 2)]
STRONG = mixture(
    [0.6, 0.4],
    [[0.9, 0.1], [0.1, 0.9]],
    [[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]],
    [[0.9, 0.1], [0.2, 0.8]],
)


def test_one_class_of_one_attribute_is_the_reference_mle():
    """Section 3.2: the raw inverse is negative there, and its projection another law."""
    tally = np.array([15, 25, 28, 32]) * 10**6
    reports = [GroupReports((0,), GRR(4, 1), int(tally.sum()), tally)]
    found = likely_classes(reports, (4,), 1, NOISE).model.marginal((0,))
    np.testing.assert_allclose(found, [0, 0.225650, 0.322565, 0.451785], atol=1e-3)


@pytest.mark.parametrize("make", [GRR, OUE])
def test_two_planted_classes_are_found_by_aic(make):
    reports = [expected_reports(STRONG, pair, n=20_000, epsilon=2, make=make) for pair in PAIRS]
    found = fit_classes(reports, STRONG.shape, NOISE, most=3)
    assert found.model.weights.size == 2
    for pair in PAIRS:
        expected = marginal(STRONG, pair)
        assert np.abs(found.model.marginal(pair) - expected).sum() / 2 < 0.02


def test_independent_attributes_are_one_class():
    even = mixture([1], [[0.3, 0.7]], [[0.2, 0.3, 0.5]], [[0.6, 0.4]])
    reports = [expected_reports(even, pair, n=5_000) for pair in PAIRS]
    assert fit_classes(reports, even.shape, NOISE, most=3).model.weights.size == 1


def test_aic_counts_the_free_parameters():
    reports = [expected_reports(STRONG, pair, n=5_000) for pair in PAIRS]
    for classes, free in ((1, 4), (2, 9), (3, 14)):
        found = likely_classes(reports, STRONG.shape, classes, NOISE)
        assert found.log_likelihood - found.aic == pytest.approx(free)


def test_more_steps_never_lose_likelihood(monkeypatch):
    """The prior weighs as one report: next to nothing against 10^9."""
    reports = [expected_reports(STRONG, pair) for pair in PAIRS]
    evidence = pack(reports, STRONG.shape)
    base = np.array([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5])
    start = module._first_laws(base, STRONG.shape, 2, (NOISE, 0))
    heights = []
    for steps in (0, 1, 2, 5, 20, 100):
        monkeypatch.setattr(module, "_STEPS", steps)
        heights.append(module._climb(evidence, STRONG.shape, start, base)[0])
    assert heights == sorted(heights)
    assert heights[-1] > heights[0]


def test_a_step_is_the_references(monkeypatch):
    """Section 2.9, one pair: M, L, G, and the expected counts A and W, in whole matrices."""
    oracle, counts = GRR(6, 1), np.array([[30, 20, 10], [15, 5, 20]])
    reports = [GroupReports((0, 1), oracle, 100, counts.ravel())]
    base = np.array([0.6, 0.4, 0.5, 0.2, 0.3])
    laws = module._first_laws(base, (2, 3), 2, (NOISE, 0))
    left, right, weights = laws[:, :2], laws[:, 2:], np.array([0.5, 0.5])
    model = np.einsum("z,zi,zj->ij", weights, left, right)
    signal = oracle.gap * counts / (oracle.q + oracle.gap * model)
    ones = np.einsum("z,zi,ij,zj->zi", weights, left, signal, right) + base[:2]
    twos = np.einsum("z,zi,ij,zj->zj", weights, left, signal, right) + base[2:]
    heavy = np.einsum("z,zi,ij,zj->z", weights, left, signal, right)
    monkeypatch.setattr(module, "_STEPS", 1)
    _, found, after = module._climb(pack(reports, (2, 3)), (2, 3), laws, base)
    np.testing.assert_allclose(found, heavy / heavy.sum())
    np.testing.assert_allclose(after[:, :2], ones / ones.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(after[:, 2:], twos / twos.sum(axis=1, keepdims=True))


def test_the_best_start_wins_and_starts_have_addresses():
    reports = [expected_reports(STRONG, pair, n=3_000) for pair in PAIRS]
    one = likely_classes(reports, STRONG.shape, 3, NOISE, starts=1)
    many = likely_classes(reports, STRONG.shape, 3, NOISE, starts=4)
    again = likely_classes(reports, STRONG.shape, 3, NOISE, starts=4)
    other = likely_classes(reports, STRONG.shape, 3, CentralNoise(2, "fit"), starts=1)
    assert many.log_likelihood >= one.log_likelihood
    assert again.log_likelihood == many.log_likelihood
    assert other.log_likelihood != one.log_likelihood


def test_groups_without_users_are_skipped():
    reports = [expected_reports(STRONG, pair, n=3_000) for pair in PAIRS]
    empty = GroupReports((0, 1, 2), GRR(12, 1), 0, np.zeros(12, np.int64))
    found = likely_classes([*reports, empty], STRONG.shape, 2, NOISE)
    assert found.aic == likely_classes(reports, STRONG.shape, 2, NOISE).aic


@pytest.mark.parametrize("change", [{"most": 0}, {"starts": 0}])
def test_no_classes_and_no_starts_are_refused(change):
    reports = [expected_reports(STRONG, pair, n=3_000) for pair in PAIRS]
    with pytest.raises(InputError, match="must be a whole number >= 1"):
        fit_classes(reports, STRONG.shape, NOISE, **change)


def test_an_attribute_that_nobody_told_about_is_named():
    with pytest.raises(InputError, match=r"no reports on attributes \[2\]"):
        fit_classes([expected_reports(STRONG, (0, 1))], STRONG.shape, NOISE)
