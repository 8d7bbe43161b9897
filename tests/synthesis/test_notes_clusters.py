"""The notes' overlapping clusters, and what they spend."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.attribute_clustering import drawn_head, relatives_of
from dpsim.synthesis.notes_clusters import (
    OverlappingClusters,
    blanket_list,
    notes_clusters,
    one_term_entropy,
)

NETWORK = ((), (0,), (0, 1), (2,), (2, 3))


@st.composite
def overlapping(draw):
    d = draw(st.integers(1, 8))
    parents = [
        draw(st.lists(st.integers(0, child - 1), max_size=3, unique=True)) if child else []
        for child in range(d)
    ]
    sizes = draw(st.lists(st.integers(2, 200), min_size=d, max_size=d))
    return notes_clusters(parents, sizes, CentralNoise(draw(st.integers(0, 99)), "x")), parents


@pytest.mark.parametrize(
    ("size", "value"),
    [(1, 0), (2, 0.346574), (3, 0.366204), (100, 0.046052), (125, 0.038627), (150, 0.033404)],
)
def test_one_term_entropies(size, value):
    assert one_term_entropy(size) == pytest.approx(value, abs=1e-6)


def test_one_term_entropy_reverses_the_order_of_importance():
    values = [one_term_entropy(size) for size in range(3, 200)]
    assert values == sorted(values, reverse=True)


def test_the_lists_of_a_small_network():
    assert blanket_list(NETWORK, 0) == (1, 2, 0)
    assert blanket_list(NETWORK, 3) == (2, 4, 3)
    assert blanket_list(NETWORK, 4) == (4, 2, 3)
    assert blanket_list(((), ()), 1) == (1,)


def test_parents_stay_in_the_order_of_the_network():
    assert blanket_list(((), (), (1, 0)), 2) == (2, 1, 0)


def test_the_vectors_of_five_attributes():
    clusters = OverlappingClusters((2, 3, 4, 5, 6), ((1, 2, 0), (2, 4, 3)))
    assert clusters.importances == pytest.approx((0.630617, 0.575694), abs=1e-6)
    assert sum(clusters.importances) == pytest.approx(1.206310, abs=1e-6)
    assert clusters.coefficients == pytest.approx((0.477235, 0.522765), abs=1e-6)
    for rule in ("first", "smallest"):
        budgets = [float(each) for each in clusters.budgets(Fraction(1), rule)]
        assert budgets == pytest.approx([0.159078] * 3 + [0.174255] * 2, abs=1e-6)
        assert float(clusters.used_share(rule)) == pytest.approx(0.825745, abs=1e-6)


def test_the_rules_differ_for_a_shared_member():
    clusters = OverlappingClusters((5, 3, 2), ((0, 1), (1, 2)))
    assert clusters.coefficients == pytest.approx((0.508811, 0.491189), abs=1e-6)
    first = [float(each) for each in clusters.budgets(Fraction(1), "first")]
    assert first == pytest.approx([0.254405, 0.254405, 0.245595], abs=1e-6)
    smallest = [float(each) for each in clusters.budgets(Fraction(1), "smallest")]
    assert smallest == pytest.approx([0.254405, 0.245595, 0.245595], abs=1e-6)
    assert float(clusters.used_share("first")) == pytest.approx(0.754405, abs=1e-6)
    assert float(clusters.used_share("smallest")) == pytest.approx(0.745595, abs=1e-6)


def test_of_equal_coefficients_the_first_cluster_serves():
    clusters = OverlappingClusters((3, 3, 3), ((0, 1), (1, 2)))
    assert clusters.serving("smallest") == clusters.serving("first") == (0, 0, 1)


@given(overlapping(), st.fractions(Fraction(1, 100), 20, max_denominator=1000))
def test_a_second_report_costs_sigma_and_never_more_than_epsilon(drawn, epsilon):
    clusters, _ = drawn
    for rule in ("first", "smallest"):
        budgets = clusters.budgets(epsilon, rule)
        assert sum(budgets) == epsilon * clusters.used_share(rule)
        assert 0 < clusters.used_share(rule) <= 1
        assert min(budgets) > 0
    assert clusters.used_share("smallest") <= clusters.used_share("first")


@given(overlapping())
def test_clusters_are_whole_blankets_of_heads_that_were_left(drawn):
    clusters, parents = drawn
    covered: set[int] = set()
    for cluster in clusters.clusters:
        new = set(cluster) - covered
        assert any({head, *relatives_of(parents, head)} == set(cluster) for head in new)
        covered |= set(cluster)
    assert covered == set(range(len(parents)))


def test_heads_come_from_the_draws_of_their_step():
    noise = CentralNoise(3, "x")
    clusters = notes_clusters(NETWORK, (2,) * 5, noise)
    left = list(range(5))
    for step, cluster in enumerate(clusters.clusters):
        assert cluster == blanket_list(NETWORK, drawn_head(noise, step, left))
        left = [each for each in left if each not in cluster]
    assert not left
    other = {notes_clusters(NETWORK, (2,) * 5, CentralNoise(s, "x")).clusters for s in range(9)}
    assert len(other) > 1


def test_a_constant_attribute_spends_nothing():
    clusters = OverlappingClusters((1, 4, 1), ((0, 1), (2,)))
    assert list(clusters.budgets(Fraction(1), "first")) == [0, Fraction(1, 2), 0]


@pytest.mark.parametrize("clusters", [((0, 1),), ((0, 1), (2, 3)), ((0, 0, 1), (2,))])
def test_attributes_in_no_cluster_are_refused(clusters):
    with pytest.raises(InputError, match="cluster"):
        OverlappingClusters((2, 2, 2), clusters)
