"""Reports about groups: what they support, and what is refused."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.hadamard import HadamardResponse
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.mechanisms.unary import OUE
from dpsim.synthesis.group_reports import GroupReports, require_groups
from tests.synthesis.group_laws import drawn_reports

RNG = np.random.default_rng(3)


def group(attributes=(0, 1), mechanism=None, n=10, tally=None):
    mechanism = mechanism or GRR(6, 1)
    tally = np.zeros(mechanism.tally_size, np.int64) if tally is None else tally
    return GroupReports(attributes, mechanism, n, tally)


@pytest.mark.parametrize("make", [GRR, OUE, SubsetSelection, HadamardResponse])
def test_supports_are_what_the_estimate_inverts(make):
    codes = RNG.integers(0, 3, (2, 500)).astype(np.uint8)
    reports = drawn_reports(codes, (3, 3), (0, 1), make(9, 1), 1)
    oracle = reports.mechanism
    estimate = (reports.supports() / reports.n - oracle.q) / oracle.gap
    np.testing.assert_allclose(estimate, reports.estimate(), atol=1e-12)
    assert reports.supports().dtype == np.float64


def test_supports_of_hadamard_response_count_even_parities():
    codes = RNG.integers(0, 5, (1, 300)).astype(np.uint8)
    reports = drawn_reports(codes, (5,), (0,), HadamardResponse(5, 1), 1)
    indices = np.arange(reports.mechanism.order, dtype=np.uint64)
    rows = np.arange(1, 6, dtype=np.uint64)[:, None]
    even = np.bitwise_count(rows & indices) % 2 == 0
    np.testing.assert_allclose(reports.supports(), even @ reports.tally)


def test_only_reports_of_one_cell_have_an_exact_likelihood():
    assert group().names_one_cell
    assert group(mechanism=SubsetSelection(6, 3)).names_one_cell
    assert not group(mechanism=SubsetSelection(6, "0.5")).names_one_cell
    assert not group(mechanism=OUE(6, 1)).names_one_cell


def test_fixed_supports_have_a_dimension_less_of_noise():
    assert group(mechanism=SubsetSelection(6, "0.5")).freedom == 5 / 6
    assert group(mechanism=OUE(6, 1)).freedom == 1


def test_the_freedom_is_that_of_the_channels_noise():
    """Cov = σ²(I - J/m) for subsets of a uniform population: its diagonal is σ² times that."""
    oracle = SubsetSelection(6, "0.5")
    subsets = oracle.channel()
    from itertools import combinations

    holds = np.array([[v in s for v in range(6)] for s in combinations(range(6), 2)], float)
    assert oracle.subset_size == 2
    law = subsets.mean(axis=0)
    mean = law @ holds
    covariance = (holds.T * law) @ holds - np.outer(mean, mean)
    largest = np.linalg.eigvalsh(covariance)[-1]
    freedom = group(mechanism=oracle).freedom
    np.testing.assert_allclose(np.diag(covariance), largest * freedom)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attributes": ()}, "each once"),
        ({"attributes": (1, 1)}, "each once"),
        ({"n": -1}, "n must be"),
        ({"tally": np.zeros(5, np.int64)}, "must hold 6 whole counts"),
        ({"tally": np.zeros(6)}, "whole counts"),
    ],
)
def test_reports_that_fit_no_mechanism_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        group(**change)


@pytest.mark.parametrize(
    ("reports", "sizes", "words"),
    [
        ([group((0, 2))], (2, 3), r"outside 0\.\.1"),
        ([group((-1, 0))], (2, 3), r"outside 0\.\.1"),
        ([group()], (2, 4), "has 8 cells, and its mechanism knows 6"),
        ([group(n=0)], (2, 3), "no reports"),
        ([], (2, 3), "no reports"),
        ([group()], (), "sizes must be"),
        ([group()], (2, 3, 0), "sizes must be"),
    ],
)
def test_reports_that_fit_no_table_are_refused(reports, sizes, words):
    with pytest.raises(InputError, match=words):
        require_groups(reports, sizes)


def test_reports_that_fit_are_accepted():
    require_groups([group(), group((2,), GRR(2, 1), 0)], (2, 3, 2))
