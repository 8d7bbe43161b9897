"""Mutual information of pairs: by hand, and the figures of real tables."""

from math import log

import numpy as np
import pytest
from hypothesis import given

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.evaluation.baselines import bootstrap_table, independent_table
from dpsim.evaluation.dependence import dependence_error, mutual_information
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.table import CodeTable
from tests.evaluation.tables import table_of, tables

NOISE = CentralNoise(11, "dependence")


@given(tables(min_d=2))
def test_matrices_and_error_follow_the_formula(pair):
    found = dependence_error(*pair)
    for table, matrix in zip(pair, (found.truth, found.synthetic), strict=True):
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_array_equal(matrix, mutual_information(table))
        for a in range(len(table.sizes)):
            for b in range(a):
                joint = joint_counts(table, (a, b)) / table.n
                product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
                used = joint > 0
                value = (joint[used] * np.log(joint[used] / product[used])).sum()
                assert matrix[a, b] == pytest.approx(value, abs=1e-14)
                assert matrix[a, b] >= 0
    gaps = np.abs(found.truth - found.synthetic)[np.triu_indices(len(found.truth), 1)]
    assert found.error == pytest.approx(gaps.mean(), rel=1e-13, abs=1e-16)
    assert dependence_error(pair[0], pair[0]).error == 0


def test_a_copy_shares_its_entropy_and_independence_nothing():
    table = table_of((2, 2, 2), [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1])
    matrix = mutual_information(table)
    expected = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(matrix, np.array(expected) * log(2), atol=1e-15)


def test_pairs_outside_the_sample_are_left_open_and_not_counted():
    codes = np.random.default_rng(1).integers(0, 2, (142, 9), np.uint8)
    table = CodeTable((2,) * 142, codes)
    matrix = mutual_information(table)
    assert np.isnan(matrix[np.triu_indices(142, 1)]).sum() == 11
    assert not np.isnan(np.diag(matrix)).any()
    flat = CodeTable(table.sizes, np.zeros_like(codes))
    found = dependence_error(table, flat)
    assert found.error == pytest.approx(np.nanmean(found.truth[np.triu_indices(142, 1)]))


def test_one_attribute_has_no_dependence():
    with pytest.raises(InputError, match="2 to 10,000 attributes, got 1"):
        dependence_error(table_of((2,), [0]), table_of((2,), [1]))
    with pytest.raises(InputError, match="2 to 10,000 attributes, got 1"):
        mutual_information(table_of((2,), [0]))


def test_nltcs_has_the_information_of_the_reference(nltcs):
    matrix = mutual_information(nltcs)
    assert matrix[np.triu_indices(16, 1)].mean() == pytest.approx(0.090545, abs=1e-6)
    pairs = {(13, 14): 0.2300, (6, 8): 0.2293, (13, 15): 0.2197}
    best = sorted(((matrix[a, b], (a, b)) for b in range(16) for a in range(b)), reverse=True)
    assert [pair for _, pair in best[:3]] == list(pairs)
    for pair, value in pairs.items():
        assert matrix[pair] == pytest.approx(value, abs=5e-5)
    entropies = [0.4152, 0.5153, 0.5385, 0.6931]
    np.testing.assert_allclose(np.diag(matrix)[:4], entropies, atol=5e-5)


def test_adult_has_the_information_of_the_reference(adult):
    matrix = mutual_information(adult)
    assert matrix[np.triu_indices(15, 1)].mean() == pytest.approx(0.061454, abs=1e-6)
    for pair, value in {(3, 4): 2.0212, (5, 7): 0.7249, (7, 9): 0.2724}.items():
        assert matrix[pair] == pytest.approx(value, abs=5e-5)
    np.testing.assert_allclose(np.diag(matrix)[:4], [2.3725, 0.9844, 1.4124, 2.0212], atol=5e-5)
    rest = [a for a in range(15) if a not in (3, 4)]
    np.testing.assert_allclose(matrix[3, rest], matrix[4, rest], rtol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "bootstrap", "independent"), [("nltcs", 0.0019, 0.0905), ("adult", 0.0012, 0.0602)]
)
def test_the_errors_of_baselines_are_those_of_the_reference(
    name, bootstrap, independent, request
):
    truth = request.getfixturevalue(name)
    error = dependence_error(truth, bootstrap_table(truth, truth.n, NOISE)).error
    assert error == pytest.approx(bootstrap, abs=0.0005)
    error = dependence_error(truth, independent_table(truth, truth.n, NOISE)).error
    assert error == pytest.approx(independent, abs=0.0003)
