"""Averages over the posterior of classes."""

from typing import Any

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose, words_at
from dpsim.evaluation.distances import tvd
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.unary import OUE
from dpsim.synthesis import posterior as module
from dpsim.synthesis.classes import pack
from dpsim.synthesis.group_choice import auto_design
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.posterior import Prior, Walk, fit_posterior
from dpsim.synthesis.product_model import fit_product
from dpsim.synthesis.table import CodeTable
from tests.synthesis.group_laws import drawn_reports, expected_reports, marginal, mixture
from tests.synthesis.real_tables import real_table

NOISE = CentralNoise(4, "fit")
SHORT = Walk(chains=2, warm_up=150, kept=20, thin=4)
PAIRS = [(0, 1), (0, 2), (1, 2)]
STRONG = mixture(
    [0.6, 0.4],
    [[0.9, 0.1], [0.1, 0.9]],
    [[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]],
    [[0.9, 0.1], [0.2, 0.8]],
)


@pytest.mark.parametrize("make", [GRR, OUE])
def test_a_planted_mixture_is_found_without_being_told_its_classes(make):
    reports = [expected_reports(STRONG, pair, n=30_000, epsilon=2, make=make) for pair in PAIRS]
    model = fit_posterior(reports, STRONG.shape, NOISE, 4, SHORT)
    for pair in PAIRS:
        assert np.abs(model.marginal(pair) - marginal(STRONG, pair)).sum() / 2 < 0.02
    assert model.weights.size == 4 * 20 * 2
    assert model.weights.sum() == pytest.approx(1)


def test_one_code_with_a_normal_prior_has_the_posterior_mean_of_an_integral():
    """One class, one yes-or-no attribute: four normal numbers, by brute force."""
    oracle = GRR(2, 1)
    reports = [GroupReports((0,), oracle, 60, np.array([40, 20]))]
    scales = Prior().scales
    random = np.random.default_rng(0)
    draws = random.normal(size=(7, 400_000))
    tau = np.exp(scales[0] + scales[1] * draws[2])
    sigma = np.exp(scales[2] + scales[3] * draws[3] + scales[4] * draws[4])
    logit = tau * (draws[0] - draws[1]) + sigma * (draws[5] - draws[6])
    share = 1 / (1 + np.exp(-logit))
    rate = oracle.q + oracle.gap * share
    weight = rate**40 * (1 - rate) ** 20 * 2.0**60
    expected = (weight * share).sum() / weight.sum()
    walk = Walk(chains=2, warm_up=300, kept=1500, thin=2)
    found = fit_posterior(reports, (2,), NOISE, 1, walk).marginal((0,))
    assert found[0] == pytest.approx(expected, abs=0.015)


def test_the_same_noise_repeats_every_bit_and_other_noise_does_not():
    reports = [expected_reports(STRONG, pair, n=2_000) for pair in PAIRS]
    walk = Walk(chains=2, warm_up=10, kept=3, thin=1)
    one = fit_posterior(reports, STRONG.shape, NOISE, 2, walk)
    two = fit_posterior(reports, STRONG.shape, NOISE, 2, walk)
    other = fit_posterior(reports, STRONG.shape, CentralNoise(5, "fit"), 2, walk)
    np.testing.assert_array_equal(one.weights, two.weights)
    for left, right in zip(one.laws, two.laws, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(one.weights, other.weights)


def test_chains_have_draws_of_their_own():
    reports = [expected_reports(STRONG, pair, n=2_000) for pair in PAIRS]
    model = fit_posterior(reports, STRONG.shape, NOISE, 2, Walk(2, 10, 1, 1))
    assert not np.array_equal(model.weights[:2], model.weights[2:])


def test_the_normal_numbers_of_a_chain_are_standard_and_new_for_each_draw():
    evidence = pack([expected_reports(STRONG, (0, 1))], STRONG.shape)
    chain = module._Chain(evidence, STRONG.shape, 400, NOISE, "x")
    rows = np.array([chain._normals(row) for row in range(8)])
    assert rows.shape == (8, chain.length)
    assert abs(rows.mean()) < 5 / rows.size**0.5
    assert abs(rows.std() - 1) < 5 / (2 * rows.size) ** 0.5
    assert np.abs(np.corrcoef(rows) - np.eye(8)).max() < 5 / chain.length**0.5


class Recorder:
    """Noise that remembers which positions of which subject it gave out."""

    def __init__(self):
        self.given = []

    def uniforms(self, purpose, subject, n, start=0):
        self.given += [(purpose, subject, start + place) for place in range(n)]
        return NOISE.uniforms(purpose, subject, n, start)


def test_no_two_draws_share_a_number_and_none_is_for_privacy():
    recorder = Recorder()
    evidence = pack([expected_reports(STRONG, (0, 1))], STRONG.shape)
    noise: Any = recorder
    module._Chain(evidence, STRONG.shape, 2, noise, "x").run(Walk(1, 3, 2, 2))
    assert len(set(recorder.given)) == len(recorder.given)
    assert {purpose for purpose, _, _ in recorder.given} == {Purpose.START}


def test_a_chain_that_got_stuck_is_left_out(monkeypatch):
    fits = iter([-1000.0, -1049.0, -1051.0])

    class Stub:
        def __init__(self, *_):
            pass

        def run(self, _):
            fit = next(fits)
            return module._Kept(np.array([1.0]), np.full((1, 7), -fit), fit)

    monkeypatch.setattr(module, "_Chain", Stub)
    reports = [expected_reports(STRONG, (0, 1))]
    model = fit_posterior(reports, STRONG.shape, NOISE, 1)
    assert model.laws[0][:, 0].tolist() == [1000.0, 1049.0]
    assert model.weights.tolist() == [0.5, 0.5]


def test_a_rejected_draw_leaves_the_chain_where_it_was():
    evidence = pack([expected_reports(STRONG, (0, 1), n=10**6)], STRONG.shape)
    chain = module._Chain(evidence, STRONG.shape, 2, NOISE, "x")
    chain.step = 50.0
    place, state = chain.place.copy(), [part.copy() for part in chain.state]
    assert chain._draw(0, 5) == 0
    np.testing.assert_array_equal(chain.place, place)
    for part, old in zip(chain.state, state, strict=True):
        np.testing.assert_array_equal(part, old)


@pytest.mark.parametrize(
    "change", [{"chains": 0}, {"kept": 0}, {"thin": 0}, {"longest": 0}, {"warm_up": -1}]
)
def test_walks_that_lead_nowhere_are_refused(change):
    with pytest.raises(InputError, match="must be a whole number"):
        Walk(**change)


def test_no_classes_are_refused():
    with pytest.raises(InputError, match="classes must be"):
        fit_posterior([expected_reports(STRONG, (0, 1))], STRONG.shape, NOISE, 0)


def errors(fit, seeds=3):
    """Mean two-way distances of NLTCS at ε = 1, from real perturbed reports."""
    table = real_table("nltcs")
    design = auto_design(table.sizes, 1)
    found = []
    for seed in range(seeds):
        words = words_at((seed, Purpose.SAMPLE.value, "plan", "group"), 0, table.n)
        chosen = design.choose(words)
        reports = [
            drawn_reports(
                table.codes[:, chosen == place],
                table.sizes,
                group.attributes,
                group.mechanism,
                seed * 1000 + place,
            )
            for place, group in enumerate(design.groups)
        ]
        rows = fit(reports, table.sizes).sample(table.n, CentralNoise(seed, "rows"))
        found.append(tvd(table, CodeTable(table.sizes, rows), 2).mean)
    return float(np.mean(found))


@pytest.mark.statistical
def test_pairs_of_a_real_table_come_out_three_times_as_close_as_independent_ones():
    """The mean of many draws is .052 with a spread of .005 per draw; independent: .161."""

    def fit(reports, sizes):
        return fit_posterior(reports, sizes, NOISE, 5, SHORT)

    assert errors(fit) < 0.052 + 5 * 0.005 / 3**0.5
    assert errors(fit_product) > 0.15
