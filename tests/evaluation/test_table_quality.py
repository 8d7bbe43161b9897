"""The whole table of numbers: each is the metric of its own function."""

import json

import numpy as np
import pytest
from hypothesis import given

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.evaluation import table_quality
from dpsim.evaluation.baselines import bootstrap_table, independent_table, uniform_table
from dpsim.evaluation.dependence import dependence_error
from dpsim.evaluation.distances import mse, mse_code, mse_counts, tvd, tvd_floor
from dpsim.evaluation.marginals import EVALUATION, survey
from dpsim.evaluation.table_quality import quality
from dpsim.evaluation.utility import LEARNERS, majority_error, misclassification, split_table
from dpsim.synthesis.table import CodeTable
from tests.evaluation.tables import table_of, tables

NOISE = CentralNoise(3, "quality")


def values(row):
    return [row.value, row.uniform, row.independent, row.bootstrap]


def all_tables(truth, synthetic, noise=EVALUATION):
    return [
        synthetic,
        uniform_table(truth.sizes, synthetic.n, noise),
        independent_table(truth, synthetic.n, noise),
        bootstrap_table(truth, synthetic.n, noise),
    ]


@given(tables(min_d=2))
def test_every_number_is_that_of_its_own_function(pair):
    truth, synthetic = pair
    found = quality(truth, synthetic)
    others = all_tables(truth, synthetic)
    alphas = [alpha for alpha in (1, 2, 3) if alpha <= len(truth.sizes)]
    for alpha in alphas:
        apart = [tvd(truth, each, alpha) for each in others]
        assert values(found[f"tvd_{alpha}"]) == [each.mean for each in apart]
        assert values(found[f"tvd_{alpha}_worst"]) == [each.worst for each in apart]
        assert values(found[f"mse_{alpha}"]) == [mse(truth, each, alpha) for each in others]
        assert found[f"tvd_{alpha}"].floor == tvd_floor(truth, alpha, synthetic.n)
        assert found.distances[alpha - 1] == apart[0]
    errors = [dependence_error(truth, each).error for each in others]
    assert values(found["mi_error"]) == errors
    if truth.n == synthetic.n:
        assert values(found["mse_counts"]) == [mse_counts(truth, each) for each in others]
        assert values(found["mse_code"]) == [mse_code(truth, each) for each in others]
    named = {row.metric for row in found.rows}
    assert ("mse_counts" in named) == ("mse_code" in named) == (truth.n == synthetic.n)
    assert len(named) == len(found.rows) == 3 * len(alphas) + 1 + 2 * (truth.n == synthetic.n)


def test_floors_of_squared_errors_are_expectations():
    truth = table_of((2,), [0, 0, 0, 1])
    found = quality(truth, truth)
    variance = 3 / 16
    assert found["mse_1"].floor == pytest.approx(variance / 4)
    assert found["mse_counts"].floor == pytest.approx(variance * 4)
    assert found["mse_code"].floor == pytest.approx(variance)
    assert found["tvd_1_worst"].floor is None


def test_the_marginals_asked_for_are_shown_and_single_attributes_always():
    table = CodeTable((2,) * 5, np.eye(5, dtype=np.uint8))
    names = [row.metric for row in quality(table, table, alphas=(4, 3, 9)).rows]
    assert [name for name in names if name.startswith("tvd") and "worst" not in name] == [
        "tvd_1",
        "tvd_3",
        "tvd_4",
    ]
    assert "mi_error" not in names
    lone = table_of((2,), [0, 1])
    assert [row.metric for row in quality(lone, lone).rows] == [
        "tvd_1", "tvd_1_worst", "mse_1", "mse_counts", "mse_code",
    ]  # fmt: skip


def test_baselines_are_the_same_for_every_method_and_follow_the_noise():
    rng = np.random.default_rng(1)
    truth, one, two = (
        CodeTable((3, 4), rng.integers(0, 3, (2, 50), np.uint8)) for _ in range(3)
    )
    first, second = quality(truth, one), quality(truth, two)
    assert first["tvd_2"].value != second["tvd_2"].value
    assert values(first["tvd_2"])[1:] == values(second["tvd_2"])[1:]
    other = quality(truth, one, noise=NOISE)
    assert other["tvd_2"].value == first["tvd_2"].value
    pairs = zip(values(other["tvd_2"])[1:], values(first["tvd_2"])[1:], strict=True)
    assert all(here != there for here, there in pairs)


def test_targets_show_all_learners_on_all_tables():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (3, 400), np.uint8)
    codes[2] = codes[0] | codes[1]
    train, test = split_table(CodeTable((2, 2, 2), codes), 0.8, NOISE)
    synthetic = bootstrap_table(train, 200, CentralNoise(9, "synthetic"))
    found = quality(train, synthetic, test=test, targets=(2, 0))
    others = all_tables(train, synthetic)
    for target in (2, 0):
        for learner in LEARNERS:
            row = found[f"error_{learner}_{target}"]
            errors = [misclassification(each, test, target, learner) for each in others]
            assert values(row) == errors
            assert row.floor == misclassification(train, test, target, learner)
        row = found[f"error_majority_{target}"]
        assert row.value == majority_error(train, test, target)
        assert {row.floor, row.uniform, row.independent, row.bootstrap} == {None}
    assert len(found.rows) == len(quality(train, synthetic).rows) + 6


def test_the_result_is_json_and_says_what_was_compared():
    truth = table_of((2, 3), [0, 1, 1, 0], [2, 1, 0, 0])
    synthetic = table_of((2, 3), [0, 1], [2, 1])
    found = quality(truth, synthetic)
    read = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert read["true_rows"] == 4
    assert read["synthetic_rows"] == 2
    assert read["attributes"] == 2
    assert read["rows"][0]["metric"] == "tvd_1"
    assert read["rows"][0]["value"] == found["tvd_1"].value
    assert read["distances"][1]["worst_subset"] == [0, 1]
    assert read["distances"][0]["subsets"] == 2


def test_bad_wishes_are_refused():
    truth = table_of((2, 3), [0, 1], [2, 1])
    with pytest.raises(InputError, match="split the truth with split_table before synthesis"):
        quality(truth, truth, targets=(1,))
    with pytest.raises(InputError, match="no metric 'f1'; there are: tvd_1"):
        quality(truth, truth)["f1"]
    with pytest.raises(InputError, match="alpha must be a whole number >= 1"):
        quality(truth, truth, alphas=(0,))
    with pytest.raises(InputError, match="same domain sizes"):
        quality(truth, table_of((2, 2), [0], [0]))
    with pytest.raises(InputError, match="a table without rows"):
        quality(truth, table_of((2, 3), [], []))


@pytest.mark.parametrize("name", ["nltcs", "adult"])
def test_a_real_table_is_nearest_to_its_bootstrap_and_farthest_from_uniform(name, request):
    truth = request.getfixturevalue(name)
    found = quality(truth, truth)
    for metric in ("tvd_2", "tvd_3", "mse_2", "mse_3"):
        row = found[metric]
        own, uniform, independent, bootstrap = values(row)
        assert own == 0 < bootstrap < independent < uniform
        assert row.bootstrap == pytest.approx(row.floor, rel=0.4)


def test_the_truth_is_surveyed_once_per_alpha(monkeypatch):
    seen = []

    def counted(truth, others, alpha, rows):
        seen.append(alpha)
        return survey(truth, others, alpha, rows)

    monkeypatch.setattr(table_quality, "survey", counted)
    truth = CodeTable((2,) * 4, np.eye(4, dtype=np.uint8))
    quality(truth, truth)
    assert seen == [1, 2, 3]
