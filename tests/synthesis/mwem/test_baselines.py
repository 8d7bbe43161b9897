"""Baselines: closed forms as tabulated, exact noise, and the outlook from public numbers."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem.baselines import (
    laplace_errors,
    laplace_histogram,
    mean_abs_sum,
    outlook,
    without_selection,
)
from dpsim.synthesis.mwem.linear import LinearWorkload
from dpsim.synthesis.mwem.random_workload import random_boxes
from dpsim.synthesis.mwem.settings import MWEMSettings
from tests.synthesis.mwem.problems import NOISE, ORACLES, box_masks, child, child_run, every_box


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 14, 300])
def test_the_mean_of_a_sum_of_noise_is_the_exact_fraction(cells):
    exact = Fraction(2 * cells * comb(2 * cells, cells), 4**cells)
    assert mean_abs_sum(cells) == pytest.approx(float(exact), rel=1e-12)
    assert mean_abs_sum(0) == 0


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize(("neighbors", "scale"), [("replace", 2), ("add_remove", 1)])
def test_closed_forms_are_as_tabulated(dimensions, neighbors, scale):
    oracle = ORACLES["laplace_histogram"][f"{dimensions}d"]
    mean, mse = laplace_errors(child(dimensions)[0], 1, neighbors)
    assert mean == pytest.approx(scale * oracle["mean_factor"], rel=1e-8)
    assert mse == pytest.approx(scale**2 * oracle["mse_factor"], rel=1e-8)


def test_rows_and_boxes_have_one_closed_form():
    boxes = every_box((6,))
    rows = LinearWorkload.of((6,), box_masks(boxes).astype(float))
    assert laplace_errors(rows, 1, "replace") == pytest.approx(
        laplace_errors(boxes, 1, "replace")
    )
    with pytest.raises(InputError, match="0/1 queries"):
        laplace_errors(LinearWorkload.of((2,), np.array([[0.5, 1]])), 1, "replace")


@pytest.mark.statistical
def test_the_noisy_histogram_errs_as_the_closed_form_says():
    workload, histogram, _ = child(1)
    truth = workload.answers(histogram)
    errors = [
        np.abs(
            workload.answers(
                laplace_histogram(histogram, "0.1", "replace", CentralNoise(s, "h"))
            )
            - truth
        ).mean()
        for s in range(400)
    ]
    mean, _ = laplace_errors(workload, "0.1", "replace")
    assert abs(np.mean(errors) - mean) < 5 * np.std(errors) / 20
    assert abs(np.mean(errors) - 1.2 * mean) > 5 * np.std(errors) / 20


def test_the_noisy_histogram_holds_whole_numbers_of_the_same_shape():
    histogram = child(2)[1]
    noisy = laplace_histogram(histogram, 1, "replace", NOISE)
    assert noisy.dtype == np.int64
    assert noisy.shape == histogram.shape
    assert not np.array_equal(noisy, histogram)


def test_no_selection_measures_all_queries_if_told_to():
    mwem, truth = child_run(1)
    settings = without_selection(mwem.settings, 60)
    run, _ = child_run(1, settings=settings)
    state = run.run(truth, NOISE)
    assert sorted(state.queries) == list(range(60))
    assert list(state.queries) != list(range(60))
    assert settings.loss.epsilon == 1


def test_on_the_reports_data_the_histogram_is_expected_to_win():
    mwem, truth = child_run(1)
    seen = outlook(mwem.settings, mwem.workload, truth.total)
    assert seen.laplace_error == pytest.approx(4.4966742)
    assert seen.noise_error == 60
    assert seen.crowding == pytest.approx(1_013_184 / 14**0.5)
    assert seen.histogram_is_finer
    assert seen.is_crowded
    assert seen.is_unlikely_to_win


def test_on_a_large_sparse_domain_mwem_is_expected_to_win():
    workload = random_boxes((1000, 1000), 200, NOISE)
    settings = MWEMSettings(
        shape=(1000, 1000), neighbors="add_remove", epsilon=Fraction(1), iterations=10
    )
    unknown = outlook(settings, workload)
    assert unknown.crowding is None
    assert not unknown.is_unlikely_to_win
    assert outlook(settings, workload, 1e4).crowding == pytest.approx(10)
    assert outlook(settings, workload, 1e6).is_crowded


def test_fractional_queries_have_an_outlook_by_crowding_only():
    workload = LinearWorkload.of((2,), np.array([[0.5, 1]]))
    settings = MWEMSettings(
        shape=(2,), neighbors="replace", epsilon=Fraction(1), iterations=1, noise="laplace"
    )
    assert outlook(settings, workload).laplace_error is None
    assert outlook(settings, workload, 1000).is_unlikely_to_win
