"""Junction trees: connected, complete, small, and the same every time."""

from itertools import combinations, permutations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis.junction import JunctionTree, cells_in, junction_tree


@st.composite
def graphs(draw, most=7):
    sizes = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=most)))
    scope = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    scopes = draw(st.lists(scope.map(lambda found: tuple(sorted(found))), max_size=7))
    return sizes, tuple(scopes)


def eliminated_cells(sizes, scopes, order):
    """The cells of the maximal cliques that one order of elimination makes, by sets."""
    around = {a: {b for s in scopes if a in s for b in s} - {a} for a in range(len(sizes))}
    cliques = []
    for attribute in order:
        near = around.pop(attribute)
        cliques.append(near | {attribute})
        for other in near:
            around[other] = (around[other] | near) - {other, attribute}
    maximal = {frozenset(c) for c in cliques if not any(c < other for other in cliques)}
    return sum(prod(sizes[a] for a in clique) for clique in maximal)


@given(graphs())
def test_every_scope_and_attribute_is_inside_a_clique(graph):
    sizes, scopes = graph
    tree = junction_tree(sizes, scopes)
    assert all(any(set(scope) <= set(clique) for clique in tree.cliques) for scope in scopes)
    assert {a for clique in tree.cliques for a in clique} == set(range(len(sizes)))
    assert not any(set(a) <= set(b) for a, b in permutations(tree.cliques, 2))


@given(graphs())
def test_an_attributes_cliques_are_connected_and_parents_come_first(graph):
    sizes, scopes = graph
    tree = junction_tree(sizes, scopes)
    assert tree.parents[0] == -1
    assert all(0 <= parent < place for place, parent in enumerate(tree.parents) if place)
    for attribute in range(len(sizes)):
        holding = [place for place, c in enumerate(tree.cliques) if attribute in c]
        tops = [p for p in holding if tree.parents[p] not in holding]
        assert tops == [tree.homes[attribute]]


@given(graphs(most=6))
def test_the_cliques_are_those_of_an_order_of_elimination(graph):
    sizes, scopes = graph
    every = {eliminated_cells(sizes, scopes, o) for o in permutations(range(len(sizes)))}
    assert junction_tree(sizes, scopes).cells in every


def test_a_chain_keeps_its_pairs_and_a_ring_gets_one_chord():
    chain = junction_tree((2, 3, 4, 5), ((0, 1), (1, 2), (2, 3)))
    assert sorted(chain.cliques) == [(0, 1), (1, 2), (2, 3)]
    assert chain.cells == 6 + 12 + 20
    ring = junction_tree((2, 9, 2, 9), ((0, 1), (1, 2), (2, 3), (0, 3)))
    assert sorted(ring.cliques) == [(0, 1, 2), (0, 2, 3)]  # through the small ones
    assert sorted(ring.separators) == [(), (0, 2)]
    assert ring.layouts[1][:2] == (0, 2)


def test_the_smaller_of_two_trees_is_kept():
    scopes = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4))
    assert junction_tree((5, 2, 3, 3, 4), scopes).cells == 78  # fewest edges first: 84
    spokes = tuple((0, a) for a in range(1, 5))
    assert junction_tree((40, 2, 2, 2, 2), spokes).cells == 4 * 80


def test_the_home_of_a_scope_is_the_smallest_clique_that_holds_it():
    tree = JunctionTree((9, 2, 3), ((0, 1), (1, 2)), (-1, 0))
    assert tree.home_of((1,)) == 1
    assert tree.home_of((0, 1)) == 0
    assert tree.home_of((0, 2)) is None
    assert tree.home_of(()) == 1
    assert cells_in((0, 2), tree.sizes) == 27


def test_a_tree_that_is_too_large_is_refused_by_name():
    tree = junction_tree((4,) * 5, tuple(combinations(range(5), 2)))
    assert tree.cliques == ((0, 1, 2, 3, 4),)
    tree.require_at_most(1024)
    with pytest.raises(InputError, match=r"1,024 cells.*\[0, 1, 2, 3, 4\]: 1,024"):
        tree.require_at_most(1023)


def test_unknown_attributes_are_refused():
    with pytest.raises(InputError, match=r"clique \(0, 2\)"):
        junction_tree((2, 2), ((0, 2),))
