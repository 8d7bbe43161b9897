"""Generated users: made by index, from a law that is known exactly."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block, blocks_of
from dpsim.data.generated import (
    GeneratedTable,
    Node,
    _codes,
    thresholds_of,
    uniform_thresholds,
)
from dpsim.data.generators import planted_nodes, uniform_nodes, zipf_nodes
from tests import laws

PLANTED = GeneratedTable(planted_nodes(5, (2, 4), 2, seed=3), 2_003, 3, "", 500)
KINDS = {
    "uniform": GeneratedTable(uniform_nodes(3, (2, 300), seed=1), 2_003, 1, "", 500),
    "zipf": GeneratedTable(zipf_nodes(3, (2, 9), 1.0, seed=1), 2_003, 1, "", 500),
    "planted": PLANTED,
    "tiny": GeneratedTable(planted_nodes(4, (1, 2), 2, seed=6), 2_003, 6, "", 500),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def codes_of(table, block_size):
    blocks = blocks_of(table.n, block_size)
    return {
        name: np.concatenate([table.read(block).open(name) for block in blocks])
        for name in table.schema.names
    }


@every_kind
@given(block_size=st.integers(50, 2_100))
def test_the_table_is_the_same_for_any_block_size(kind, block_size):
    table = KINDS[kind]
    whole, parts = codes_of(table, table.n), codes_of(table, block_size)
    for attribute in table.schema:
        np.testing.assert_array_equal(parts[attribute.name], whole[attribute.name])
        assert whole[attribute.name].dtype == attribute.code_type
        assert whole[attribute.name].max() < attribute.size


@every_kind
def test_the_order_of_opening_changes_nothing(kind):
    table = KINDS[kind]
    records = table.read(Block(100, 50))
    whole = codes_of(table, table.n)
    for name in (*reversed(table.schema.names), *table.schema.names):
        np.testing.assert_array_equal(records.open(name), whole[name][100:150])


def test_the_table_is_frozen():
    """If this fails, every seeded result has changed: a line in *Changed results*."""
    firsts = {
        kind: [
            table.read(Block(700, 8)).open(name).tolist() for name in table.schema.names[-2:]
        ]
        for kind, table in KINDS.items()
    }
    assert firsts == {
        "uniform": [[165, 147, 13, 237, 225, 223, 198, 116], [85, 41, 62, 142, 56, 82, 112, 2]],
        "zipf": [[2, 2, 0, 6, 5, 5, 4, 1], [1, 0, 0, 3, 0, 1, 2, 0]],
        "planted": [[1, 0, 3, 0, 2, 1, 2, 2], [0, 1, 1, 1, 0, 1, 0, 1]],
        "tiny": [[1, 1, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]],
    }
    sizes = [[attribute.size for attribute in table.schema] for table in KINDS.values()]
    assert sizes == [[208, 264, 180], [7, 9, 6], [3, 4, 2, 4, 2], [1, 2, 2, 1]]


def brute_force(table, names):
    """The joint law of all attributes, record by record, then summed."""
    by_name = {node.name: node for node in table.nodes}
    order = [node.name for node in table.nodes]
    joint = np.zeros([by_name[name].size for name in order])
    for record in product(*(range(size) for size in joint.shape)):
        values, chance = dict(zip(order, record, strict=True)), 1.0
        for node in table.nodes:
            row = 0
            for parent in node.parents:
                row = row * by_name[parent].size + values[parent]
            chance *= node.law[row, values[node.name]]
        joint[record] = chance
    gone = tuple(place for place, name in enumerate(order) if name not in names)
    left = [name for name in order if name in names]
    return np.transpose(joint.sum(axis=gone), [left.index(name) for name in names])


@given(st.permutations(PLANTED.schema.names), st.integers(1, 5))
def test_the_planted_law_equals_its_enumeration(order, how_many):
    names = tuple(order[:how_many])
    marginal = PLANTED.marginal(names)
    np.testing.assert_allclose(marginal, brute_force(PLANTED, names), rtol=0, atol=1e-14)
    assert marginal.sum() == pytest.approx(1)


def counts_of(table, names):
    columns = table.read(Block(0, table.n))
    shape = [table.schema[name].size for name in names]
    places = np.ravel_multi_index([columns.open(name) for name in names], shape)
    return np.bincount(places, minlength=int(np.prod(shape)))


DEPENDENT = GeneratedTable(planted_nodes(4, (2, 3), 2, seed=8), 200_000, 8, "", 1 << 20)


@pytest.mark.statistical
@pytest.mark.parametrize("names", [("a3",), ("a0", "a3"), ("a1", "a2", "a3")])
def test_users_follow_the_planted_law(names):
    laws.assert_counts_follow(counts_of(DEPENDENT, names), DEPENDENT.marginal(names).ravel())


@pytest.mark.statistical
def test_users_do_not_follow_a_law_without_dependence():
    """The law of the same attributes if they did not depend on each other."""
    law = np.outer(DEPENDENT.marginal(("a0",)), DEPENDENT.marginal(("a3",))).ravel()
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(counts_of(DEPENDENT, ("a0", "a3")), law)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["uniform", "zipf"])
def test_independent_users_follow_their_law(kind):
    table = replace(KINDS[kind], n=50_000)
    for node in table.nodes:
        laws.assert_counts_follow(counts_of(table, (node.name,)), node.law[0])


@given(st.integers(1, 300), st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_uniform_thresholds_are_those_of_the_fast_path(size, draws):
    """The multiplication and the thresholds cut the draws at the same places."""
    thresholds = uniform_thresholds(size)
    places = {0, 2**32 - 1, *draws}
    for end in thresholds[0].tolist():
        places |= {end - 1, end}
    exact = np.array(sorted(places), np.uint64)
    fast = exact * np.uint64(size) >> np.uint64(32)
    assert fast.tolist() == np.searchsorted(thresholds[0], exact, side="right").tolist()


@pytest.mark.parametrize("node", [*zipf_nodes(1, (7, 7), 1.0, 0), *PLANTED.nodes])
def test_both_ends_of_each_interval_of_draws_make_its_code(node):
    """Every row of the law, atom by atom: a threshold belongs to the code above it."""
    by_name = {other.name: other for other in PLANTED.nodes}
    rows = list(product(*(range(by_name[parent].size) for parent in node.parents)))
    assert len(rows) == len(node.thresholds)
    for row, thresholds in zip(rows, node.thresholds.tolist(), strict=True):
        ends = [0, *thresholds, 2**32]
        for code, (first, after) in enumerate(pairwise(ends)):
            draws = np.array([first, after - 1], np.uint32)
            parents = [np.full(2, value, np.uint8) for value in row]
            assert _codes(node, draws, parents, by_name).tolist() == [code, code]


def test_zipf_weights_fall_as_the_power_of_the_rank():
    (node,) = zipf_nodes(1, (4, 4), 2.0, seed=0)
    weights = np.array([1, 1 / 4, 1 / 9, 1 / 16])
    np.testing.assert_allclose(node.law[0], weights / weights.sum(), atol=1e-9)


@given(st.integers(1, 8), st.integers(0, 3), st.integers(0, 1000))
def test_planted_parents_come_earlier_and_are_as_many_as_asked(d, parents, seed):
    nodes = planted_nodes(d, (2, 3), parents, seed)
    for place, node in enumerate(nodes):
        earlier = [other.name for other in nodes[:place]]
        assert len(set(node.parents)) == len(node.parents) == min(parents, place)
        assert set(node.parents) <= set(earlier)
        assert 2 <= node.size <= 3
        np.testing.assert_allclose(node.law.sum(axis=1), 1)


def test_thresholds_are_proportional_to_the_weights():
    assert thresholds_of(np.array([[1.0, 1.0, 2.0]])).tolist() == [[2**30, 2**31]]
    node = Node("a", 3, (), thresholds_of(np.array([[1.0, 1.0, 2.0]])))
    assert node.law.tolist() == [[0.25, 0.25, 0.5]]


@pytest.mark.parametrize(
    "change",
    [{"n": 2_004}, {"seed": 4}, {"nodes": PLANTED.nodes[:-1]}, {"nodes": PLANTED.nodes[::-1]}],
)
def test_the_fingerprint_changes_with_the_data(change):
    assert replace(PLANTED, **change).fingerprint != PLANTED.fingerprint


def test_the_fingerprint_does_not_change_with_the_block_size():
    assert replace(PLANTED, block_size=7).fingerprint == PLANTED.fingerprint


def test_the_seed_changes_the_users():
    other = replace(PLANTED, seed=4)
    assert any(
        (PLANTED.read(Block(0, 500)).open(name) != other.read(Block(0, 500)).open(name)).any()
        for name in PLANTED.schema.names
    )


def test_users_who_are_not_there_are_refused():
    with pytest.raises(InputError, match="there are 2003 users, not 2004"):
        PLANTED.read(Block(2_000, 4))


def test_a_law_too_large_to_sum_is_refused():
    with pytest.raises(InputError, match="the joint law of a0, a1, a2 has over 50 cells"):
        KINDS["uniform"].marginal(("a0", "a1", "a2"), cap=50)


def test_a_law_too_large_to_make_is_refused():
    with pytest.raises(InputError, match="use fewer parents or smaller domains"):
        planted_nodes(5, (1000, 1000), 3, seed=0)
