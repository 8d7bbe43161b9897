"""Errors over a workload, and their spread over trials."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.synthesis.mwem.errors import QueryErrors, error_table
from tests.synthesis.mwem.problems import ORACLES, child


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5", "10"])
def test_the_reports_printed_runs_have_the_printed_errors(epsilon):
    run = ORACLES["printed_runs_1d"][epsilon]
    workload, histogram, _ = child(1)
    answers = workload.answers(np.array(run["synthetic"]))
    found = QueryErrors.of(answers, workload.answers(histogram))
    largest, least, mse, mean = run["printed"]
    assert found.max == pytest.approx(largest, abs=2e-3)
    assert found.min == pytest.approx(least, abs=2e-3)
    assert found.mse == pytest.approx(mse, rel=5e-6)
    assert found.mean == pytest.approx(mean, abs=2e-3)


def test_the_table_is_the_mean_of_each_figure_with_its_standard_error():
    answers = np.array([[1.0, 5.0], [4.0, 2.0], [0.0, 0.0]])
    rows = error_table(answers, np.array([0, 1]))
    assert [row.metric for row in rows] == ["max", "min", "mse", "mean"]
    maxima = np.array([4.0, 4.0, 1.0])
    assert rows[0].mean == maxima.mean()
    assert rows[0].deviation == pytest.approx(maxima.std(ddof=1))
    assert rows[0].standard_error == pytest.approx(maxima.std(ddof=1) / 3**0.5)
    assert rows[2].mean == pytest.approx((17 / 2 + 17 / 2 + 1 / 2) / 3)
    assert rows[3].trials == 3


def test_one_trial_has_no_standard_error():
    rows = error_table(np.array([1.0, 5.0]), np.array([0, 1]))
    assert rows[3].mean == 2.5
    assert np.isnan(rows[3].standard_error)


def test_no_query_has_no_error():
    with pytest.raises(InputError, match="one query at least"):
        QueryErrors.of(np.zeros(0), np.zeros(0))
