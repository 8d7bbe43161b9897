"""Trees and networks from reports: exact where the reports are, and nothing from noise."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, UserNoise
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.mechanisms.unary import OUE
from dpsim.synthesis import tree_model as module
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.tree_model import (
    cluster_net,
    family_table,
    fit_network,
    fit_tree,
    groups_of_few,
)
from tests.synthesis.group_laws import expected_reports, marginal

RNG = np.random.default_rng(2)
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def chain_law():
    """3 - 1 - 0 - 2: each attribute mostly copies its neighbor."""
    copy = np.array([[0.8, 0.2], [0.2, 0.8]])
    first = np.array([0.6, 0.4])
    wide = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    return np.einsum("a,ab,ac,bd->abcd", first, copy, wide, copy)


CHAIN = chain_law()


@pytest.mark.parametrize("make", [GRR, OUE, SubsetSelection])
def test_a_chain_is_found_and_reproduced(make):
    reports = [expected_reports(CHAIN, pair, make=make) for pair in PAIRS]
    model = fit_tree(reports, CHAIN.shape)
    assert set(map(frozenset, model.net.edges)) == {
        frozenset(edge) for edge in ((0, 1), (0, 2), (1, 3))
    }
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3)), CHAIN, atol=1e-3)


def test_larger_groups_tell_about_their_pairs():
    reports = [expected_reports(CHAIN, group) for group in ((3, 0, 1), (2, 1, 0))]
    model = fit_tree(reports, CHAIN.shape)
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3)), CHAIN, atol=1e-3)


def test_independent_attributes_have_no_edge():
    even = np.multiply.outer([0.3, 0.7], [0.2, 0.3, 0.5])
    reports = [expected_reports(even, (0, 1), n=1_000)]
    model = fit_tree(reports, (2, 3))
    assert model.net.edges == ()
    np.testing.assert_allclose(model.marginal((0, 1)), even, atol=1e-2)


def test_the_shrinkage_is_the_formulas():
    """2 x 2: y is one number, thus |y|² = 4 y², and df = 1."""
    oracle = GRR(4, 1)
    group = GroupReports((0, 1), oracle, 400, np.array([130, 80, 90, 100]))
    margins = [np.array([0.55, 0.45]), np.array([0.5, 0.5])]
    found = family_table([group], (0, 1), margins)
    assert found is not None
    t = group.estimate().reshape(2, 2)
    deviation = (t - np.outer(*margins))[[0, 0, 1, 1], [0, 1, 0, 1]] @ [1, -1, -1, 1] / 4
    rates = group.tally / 400
    noise = (rates * (1 - rates)).mean() / 0.75 / (400 * oracle.gap**2)
    assert found.kept == pytest.approx(1 - noise / (4 * deviation**2))
    np.testing.assert_allclose(found.law.sum(axis=1), margins[0])
    np.testing.assert_allclose(found.law.sum(axis=0), margins[1])
    shift = found.law - np.outer(*margins)
    np.testing.assert_allclose(shift, found.kept * deviation * np.array([[1, -1], [-1, 1]]))


def test_wider_tables_lose_the_noise_of_all_their_dimensions():
    """2 x 3: two of them."""
    group = GroupReports((0, 1), GRR(6, 1), 600, np.array([170, 60, 90, 60, 100, 120]))
    margins = [np.array([0.5, 0.5]), np.array([0.3, 0.3, 0.4])]
    found = family_table([group], (0, 1), margins)
    assert found is not None
    table, variance = module._marginal_table(group, (0, 1), [2, 3])
    power = (module._interaction(table - np.outer(*margins)) ** 2).sum()
    assert found.kept == pytest.approx(1 - 2 * variance / power)
    assert 0 < found.kept < 1


def noise_ratios(make, sizes, family):
    """|y|² over df v of independent attributes: 1 on average if v is right."""
    cells, n, ratios = int(np.prod(sizes)), 2_000, []
    oracle = make(cells, "0.5")
    for seed in range(200):
        codes = np.random.default_rng(seed).integers(0, cells, n).astype(np.uint8)
        tally = oracle.tally(oracle.perturb(codes, UserNoise(seed, "p", "x", np.arange(n))))
        group = GroupReports(tuple(range(len(sizes))), oracle, n, tally)
        table, variance = module._marginal_table(group, family, list(sizes))
        freedom = np.prod([sizes[a] - 1 for a in family])
        ratios.append((module._interaction(table) ** 2).sum() / (freedom * variance))
    return np.array(ratios)


@pytest.mark.statistical
@pytest.mark.parametrize("make", [GRR, OUE, SubsetSelection])
@pytest.mark.parametrize(("sizes", "family"), [((2, 3), (0, 1)), ((2, 3, 2), (1, 0))])
def test_noise_alone_has_the_power_that_is_taken_off(make, sizes, family):
    ratios = noise_ratios(make, sizes, family)
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / 200**0.5


@pytest.mark.statistical
def test_the_test_of_noise_rejects_a_variance_that_is_half():
    ratios = 2 * noise_ratios(GRR, (2, 3), (0, 1))
    assert abs(ratios.mean() - 1) > 5 * ratios.std() / 200**0.5


def test_interactions_have_no_margins():
    found = module._interaction(RNG.random((2, 3, 4)))
    for axis in range(3):
        others = tuple(other for other in range(3) if other != axis)
        np.testing.assert_allclose(found.sum(axis=others), 0, atol=1e-12)


def test_pooled_groups_weigh_by_precision_whatever_the_order_of_their_axes():
    one = expected_reports(CHAIN, (2, 0), n=10**6, epsilon=1)
    two = expected_reports(CHAIN, (0, 2), n=10**9, epsilon=2)
    margins = [marginal(CHAIN, (a,)) for a in range(4)]
    found = family_table([one, two], (0, 2), margins)
    assert found is not None
    np.testing.assert_allclose(found.law, marginal(CHAIN, (0, 2)), atol=1e-3)
    assert family_table([one, two], (0, 1), margins) is None


def test_codes_that_nobody_holds_stay_empty():
    law = np.array([[0.4, 0.1, 0.0], [0.1, 0.4, 0.0]])
    model = fit_tree([expected_reports(law, (0, 1))], (2, 3))
    np.testing.assert_allclose(model.marginal((0, 1)), law, atol=1e-3)


def test_records_are_drawn_whichever_way_an_edge_points():
    """A part is rooted at its lowest index: 0 -> 2 -> 1 turns the table of the pair (1, 2)."""
    law = np.einsum("a,ac,cb->abc", [0.7, 0.3], [[0.9, 0.1], [0.1, 0.9]], 0.5 + 0.3 * SIGNS)
    reports = [expected_reports(law, pair) for pair in ((0, 1), (0, 2), (1, 2))]
    model = fit_tree(reports, (2, 2, 2))
    assert model.net.edges == ((0, 2), (2, 1))
    np.testing.assert_allclose(model.marginal((0, 1, 2)), law, atol=1e-3)
    assert model.sample(10, CentralNoise(1, "rows")).shape == (3, 10)


SIGNS = np.array([[1, -1], [-1, 1]])


def test_equal_information_goes_to_the_lowest_indices():
    copies = np.zeros((2, 2, 2))
    copies[0, 0, 0], copies[1, 1, 1] = 0.5, 0.5
    reports = [expected_reports(copies, pair) for pair in ((1, 2), (0, 2), (0, 1))]
    assert fit_tree(reports, (2, 2, 2)).net.edges == ((0, 1), (0, 2))


def test_a_given_network_gets_its_families_tables():
    net = BayesNet((1, 0, 3, 2), ((1,), (), (0, 1), (1,)))
    reports = [expected_reports(CHAIN, group) for group in ((1, 0, 2), (1, 3))]
    model = fit_network(reports, CHAIN.shape, net)
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3)), CHAIN, atol=1e-3)


def test_clusters_are_complete_inside_and_independent_outside():
    net = cluster_net([(2, 0), (1, 3)], 4)
    assert net.parents == ((), (), (0,), (1,))
    reports = [expected_reports(CHAIN, group) for group in ((0, 2), (1, 3))]
    model = fit_network(reports, CHAIN.shape, net)
    expected = np.einsum("ac,bd->abcd", marginal(CHAIN, (0, 2)), marginal(CHAIN, (1, 3)))
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3)), expected, atol=1e-3)


def test_a_family_that_no_group_holds_is_named():
    reports = [expected_reports(CHAIN, pair) for pair in ((0, 1), (2, 3))]
    with pytest.raises(InputError, match=r"no group holds the attributes \(0, 2\)"):
        fit_network(reports, CHAIN.shape, BayesNet((0, 1, 2, 3), ((), (), (0,), ())))
    with pytest.raises(InputError, match="has 2 attributes and the table 4"):
        fit_network(reports, CHAIN.shape, BayesNet((0, 1), ((), ())))


@pytest.mark.parametrize("clusters", [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (3,)]])
def test_clusters_that_are_no_partition_are_refused(clusters):
    with pytest.raises(InputError, match="each of 3 attributes exactly once"):
        cluster_net(clusters, 3)


def test_groups_of_few_users_are_named_and_of_fewer_refused():
    def group(attributes, n):
        size = 2 ** len(attributes)
        return GroupReports(attributes, GRR(size, 1), n, np.full(size, n // size))

    assert groups_of_few([group((0, 1), 99), group((0,), 5), group((1, 2), 100)]) == ((0, 1),)
    with pytest.raises(InputError, match=r"group \(0, 1\) has 29 users"):
        fit_tree([group((0, 1), 29)], (2, 2))
    fit_tree([group((0, 1), 30)], (2, 2))
