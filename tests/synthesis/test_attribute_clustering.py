"""Attribute clusters are a partition, whatever the network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.attribute_clustering import (
    AttributeClustering,
    ClusterCaps,
    cluster_at_random,
    cluster_by_entropy,
    drawn_head,
    relatives_of,
)

NETWORK = ((), (0,), (0, 1), (2,), (2, 3))
WIDE = ClusterCaps(10**6, 99)


@st.composite
def networks(draw):
    d = draw(st.integers(1, 8))
    parents = [
        draw(st.lists(st.integers(0, child - 1), max_size=3, unique=True)) if child else []
        for child in range(d)
    ]
    sizes = draw(st.lists(st.integers(1, 9), min_size=d, max_size=d))
    return parents, sizes


def blanket_by_definition(parents, attribute):
    """Neighbors in the moral graph: joined by an edge, or by a common child."""
    families = [{child, *of_child} for child, of_child in enumerate(parents)]
    related = set().union(*(family for family in families if attribute in family))
    direct = {
        other
        for other in related
        if other in parents[attribute]
        or attribute in parents[other]
        or any({attribute, other} <= set(of_child) for of_child in parents)
    }
    return direct - {attribute}


@given(networks())
def test_a_blanket_is_the_neighborhood_in_the_moral_graph(network):
    parents, _ = network
    for attribute in range(len(parents)):
        blanket = relatives_of(parents, attribute)
        assert len(set(blanket)) == len(blanket)
        assert set(blanket) == blanket_by_definition(parents, attribute)
        for other in blanket:
            assert attribute in relatives_of(parents, other)


def test_blankets_of_a_small_network():
    assert [relatives_of(NETWORK, each) for each in range(5)] == [
        (1, 2), (0, 2), (0, 1, 3, 4), (2, 4), (2, 3),
    ]  # fmt: skip


@given(networks(), st.integers(1, 4), st.integers(1, 100), st.integers(0, 99))
def test_clusters_are_a_partition_within_the_caps_and_a_blanket(network, members, cells, seed):
    parents, sizes = network
    caps = ClusterCaps(cells, members)
    rng = np.random.default_rng(seed)
    entropies, information = list(rng.random(len(sizes))), rng.random((len(sizes),) * 2)
    for clustering in (
        cluster_by_entropy(parents, entropies, sizes, caps, information),
        cluster_by_entropy(parents, entropies, sizes, caps),
        cluster_at_random(parents, CentralNoise(seed, "x"), sizes, caps),
    ):
        assert sorted(sum(clustering.clusters, ())) == list(range(len(sizes)))
        for cluster in clustering.clusters:
            assert len(cluster) == 1 or caps.allow([sizes[each] for each in cluster])
            assert any({head, *relatives_of(parents, head)} >= set(cluster) for head in cluster)


def test_heads_go_by_entropy_and_members_by_information():
    information = np.zeros((5, 5))
    information[2, [0, 1, 3, 4]] = 0.1, 0.4, 0.2, 0.3
    entropies = [0.5, 0.1, 0.9, 0.2, 0.3]
    clusters = cluster_by_entropy(NETWORK, entropies, (2,) * 5, ClusterCaps(8), information)
    assert clusters.clusters == ((1, 2, 4), (0,), (3,))


def test_without_information_relatives_go_by_kinship():
    clusters = cluster_by_entropy(NETWORK, [0, 0, 1, 0, 0], (2,) * 5, ClusterCaps(8))
    assert clusters.clusters == ((0, 1, 2), (3, 4))


def test_a_member_that_is_too_wide_is_passed_over():
    sizes = (2, 50, 2, 2, 2)
    information = np.tile([0.1, 0.9, 0.0, 0.5, 0.2], (5, 1))
    clusters = cluster_by_entropy(NETWORK, [0, 0, 1, 0, 0], sizes, ClusterCaps(8), information)
    assert clusters.clusters[0] == (2, 3, 4)
    assert (1,) in clusters.clusters


def test_equal_scores_go_by_index_though_their_last_bits_differ():
    bit = 2e-15
    entropies = [0.7, 0.7 + bit, 0.7 + 2 * bit]
    information = np.array([[0, 0.3, 0.3 + bit], [0.3, 0, 0], [0.3, 0, 0]])
    star = ((), (0,), (0,))
    clusters = cluster_by_entropy(star, entropies, (2,) * 3, ClusterCaps(4), information)
    assert clusters.clusters == ((0, 1), (2,))


def test_a_wide_attribute_is_a_cluster_by_itself():
    clusters = cluster_by_entropy(((), (0,)), [1, 0], (100, 2), ClusterCaps.for_users(50))
    assert clusters == AttributeClustering.singletons(2)


@pytest.mark.parametrize(("n", "cells"), [(0, 0), (44, 8), (99_999, 19_999), (10**6, 20_000)])
def test_caps_leave_five_users_per_cell(n, cells):
    assert ClusterCaps.for_users(n) == ClusterCaps(cells, 3)


def test_caps_are_reached_and_not_passed():
    caps = ClusterCaps(12, 3)
    assert caps.allow((3, 4))
    assert caps.allow((2, 2, 3))
    assert not caps.allow((13,))
    assert not caps.allow((1, 1, 1, 1))


def test_random_heads_are_uniform_and_addressed_by_the_cluster():
    left = [3, 5, 8]
    heads = [drawn_head(CentralNoise(seed, "x"), 2, left) for seed in range(600)]
    assert all(abs(heads.count(each) - 200) < 5 * (600 * 2 / 9) ** 0.5 for each in left)
    steps = [drawn_head(CentralNoise(1, "x"), step, range(1000)) for step in range(5)]
    assert len(set(steps)) == 5
    clusters = cluster_at_random(((),) * 5, CentralNoise(1, "x"), (2,) * 5, WIDE)
    left, expected = list(range(5)), []
    for step in range(5):
        head = drawn_head(CentralNoise(1, "x"), step, left)
        expected.append((head,))
        left.remove(head)
    assert clusters.clusters == tuple(expected)


def test_permuting_the_attributes_permutes_the_clusters():
    entropies = [0.5, 0.1, 0.9, 0.2, 0.3]
    information = np.random.default_rng(1).random((5, 5))
    first = cluster_by_entropy(NETWORK, entropies, (2,) * 5, ClusterCaps(8), information)
    order = [3, 0, 4, 2, 1]  # attribute a is called order[a]
    parents: list[tuple[int, ...]] = [()] * 5
    renamed, turned = [0.0] * 5, np.zeros((5, 5))
    for attribute in range(5):
        parents[order[attribute]] = tuple(order[each] for each in NETWORK[attribute])
        renamed[order[attribute]] = entropies[attribute]
    turned[np.ix_(order, order)] = information
    second = cluster_by_entropy(parents, renamed, (2,) * 5, ClusterCaps(8), turned)
    assert [sorted(order[each] for each in cluster) for cluster in first.clusters] == [
        list(cluster) for cluster in second.clusters
    ]


@pytest.mark.parametrize(
    ("clusters", "fault"),
    [
        (((0, 1), (1, 2)), "twice: 1"), (((0,), (2,)), "missing: 1"), (((0, 1),), "missing: 2"),
        (((0, 1), (2, 3)), "unknown: 3"), (((0, 1, 2), ()), "one attribute at least"),
    ],
)  # fmt: skip
def test_what_is_no_partition_is_refused(clusters, fault):
    with pytest.raises(InputError, match=fault):
        AttributeClustering(3, clusters)


def test_lists_of_another_length_are_refused():
    with pytest.raises(InputError, match="5 attributes need"):
        cluster_by_entropy(NETWORK, [1.0], (2,) * 5, WIDE)
    with pytest.raises(InputError, match="4 attributes need"):
        cluster_at_random(NETWORK, CentralNoise(1, "x"), (2,) * 4, WIDE)
    with pytest.raises(InputError, match="attributes must be"):
        AttributeClustering(0, ())
