"""The report's program: its quirks as settings, its true cost, its redraws."""

from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.synthesis.mwem.faithful import QUIRKS, expected_redraws, faithful
from dpsim.synthesis.mwem.noise import measurer_of
from tests.synthesis.mwem.problems import ORACLES, child, child_run


def test_in_one_dimension_half_the_budget_is_unused():
    settings = faithful((14,), "0.1", 30)
    assert settings.loss.epsilon == Fraction(1, 20) * (1 + Fraction(1, 100_000))
    assert settings.faults == ("scores are divided by 100000",)
    assert (settings.is_shuffled, settings.is_clipped, settings.noise) == (
        False,
        False,
        "laplace",
    )


def test_in_two_dimensions_two_errors_cancel():
    settings = faithful((14, 4), 1, 200)
    assert settings.loss.epsilon == 1 + Fraction(5, 1_000_000)
    assert len(settings.faults) == 2
    assert settings.is_shuffled


@pytest.mark.parametrize(("shape", "scale"), [((14,), 60), ((14, 4), 30), ((2, 2, 2), 20)])
def test_the_noise_is_divided_by_the_number_of_attributes(shape, scale):
    assert measurer_of(faithful(shape, 1, 30), 1).scale == scale


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5", "10"])
def test_selection_is_all_but_uniform(epsilon):
    workload, _, _ = child(1)
    mwem, truth = child_run(1, settings=faithful(workload.shape, epsilon, 30))
    scores = mwem.scores(mwem.engine.answers(mwem.engine.start(float(truth.total))), truth)
    law = mwem.selector.probabilities(scores)
    distance = np.abs(law - 1 / 60).sum() / 2
    oracle = ORACLES["selection"]["faithful_1d_first_round"]["tv_from_uniform"][epsilon]
    assert distance == pytest.approx(oracle, rel=1e-4)
    sound, _ = child_run(1, epsilon)
    assert np.sort(sound.selector.probabilities(scores))[-2:].sum() > 0.99


@pytest.mark.parametrize(("dimensions", "n", "iterations"), [(1, 60, 30), (2, 400, 200)])
def test_redraws_of_a_uniform_selection_are_as_tabulated(dimensions, n, iterations):
    law = np.full(n, 1 / n)
    total = sum(expected_redraws(law, range(done)) for done in range(iterations))
    oracle = ORACLES["selection"]["faithful_1d_first_round"]["expected_redraws_if_uniform"]
    assert total == pytest.approx(oracle[f"{dimensions}d"], rel=1e-4)
    with pytest.raises(
        InputError, match=f"all {n} queries are measured: the program never ends"
    ):
        expected_redraws(law, range(n))


def test_every_quirk_is_told():
    assert len(QUIRKS) == 12
    assert sum(quirk.is_kept for quirk in QUIRKS) == 7
