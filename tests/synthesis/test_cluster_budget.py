"""A loss is divided exactly."""

from fractions import Fraction
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.attribute_clustering import AttributeClustering
from dpsim.synthesis.cluster_budget import (
    budgets_by_importance,
    budgets_evenly,
    cif,
    exact_shares,
    pbc,
    public_entropy,
)

SIZES = (2, 3, 4, 5, 6)
entropies = st.lists(st.floats(0.01, 5), min_size=1, max_size=12)
losses = st.fractions(Fraction(1, 100), 20, max_denominator=10**4)


def test_the_vectors_of_five_attributes_in_two_clusters():
    clustering = AttributeClustering(5, ((0, 1, 2), (3, 4)))
    public = [public_entropy(size) for size in SIZES]
    importances = cif(clustering.clusters, public)
    assert importances == pytest.approx((0.483042, 0.516958), abs=1e-6)
    assert pbc(importances) == pytest.approx((0.516958, 0.483042), abs=1e-6)
    budgets = budgets_by_importance(clustering, public, Fraction(1))
    assert [float(each) for each in budgets] == pytest.approx(
        [0.172319] * 3 + [0.241521] * 2, abs=1e-6
    )
    assert sum(budgets) == 1


@given(entropies, losses, st.integers(1, 4))
def test_budgets_sum_to_exactly_the_loss(values, epsilon, width):
    d = len(values)
    clusters = tuple(tuple(range(a, min(a + width, d))) for a in range(0, d, width))
    budgets = budgets_by_importance(AttributeClustering(d, clusters), values, epsilon)
    assert sum(budgets) == epsilon
    assert min(budgets) > 0
    assert max(each.denominator for each in budgets) <= 12 * 10**9 * epsilon.denominator
    for cluster in clusters:
        assert len({budgets[each] for each in cluster}) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50).filter(lambda each: sum(each) > 0.01))
def test_exact_shares_sum_to_one_and_are_next_to_the_coefficients(coefficients):
    shares = exact_shares(coefficients)
    assert sum(shares) == 1
    total = sum(map(Fraction, coefficients))
    for share, each in zip(shares, coefficients, strict=True):
        assert abs(share - Fraction(each) / total) < Fraction(1, 10**9)


def test_what_rounding_leaves_goes_to_the_first_of_equal_shares():
    units = [share * 10**9 for share in exact_shares([1 / 3] * 3)]
    assert units == [333_333_334, 333_333_333, 333_333_333]


def test_a_constant_attribute_gets_nothing_and_takes_from_nobody():
    clustering = AttributeClustering(4, ((0, 1), (2,), (3,)))
    budgets = budgets_by_importance(clustering, [0, log(2), log(2), 0], Fraction(1))
    assert list(budgets) == [0, Fraction(1, 2), Fraction(1, 2), 0]


def test_an_even_budget_counts_attributes_with_two_codes():
    assert list(budgets_evenly((2, 1, 5), Fraction(1))) == [Fraction(1, 2), 0, Fraction(1, 2)]
    assert sum(budgets_evenly((2,) * 14, Fraction(1))) == 1


@given(entropies.filter(lambda values: len(values) > 1))
def test_more_entropy_gives_a_smaller_budget(values):
    clustering = AttributeClustering.singletons(len(values))
    budgets = budgets_by_importance(clustering, values, Fraction(1))
    high, low = values.index(max(values)), values.index(min(values))
    assert budgets[high] <= budgets[low]


def test_faults_are_named():
    one = AttributeClustering(1, ((0,),))
    with pytest.raises(InputError, match="one entropy each"):
        budgets_by_importance(one, [1.0, 2.0], Fraction(1))
    with pytest.raises(InputError, match="no attribute has two codes"):
        budgets_by_importance(one, [0.0], Fraction(1))
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="entropies must be"):
            cif(((0,),), [bad])
    with pytest.raises(InputError, match="no cluster"):
        pbc([0.0])
    for coefficients in ([], [0.0], [-1.0, 2.0]):
        with pytest.raises(InputError, match="coefficients must be"):
            exact_shares(coefficients)
    with pytest.raises(InputError, match="weights must be"):
        budgets_evenly((1, 1), Fraction(1))
