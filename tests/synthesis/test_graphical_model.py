"""Graphical models: exact by enumeration, safe for any potentials, rows that follow the law."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis import beliefs as beliefs_module
from dpsim.synthesis.beliefs import margin, spread
from dpsim.synthesis.graphical_model import GraphicalModel, gather
from dpsim.synthesis.junction import junction_tree
from tests import laws

NOISE = CentralNoise(7, "model")


@st.composite
def models(draw, most=5, scale=3.0):
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=most)))
    scope = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    cliques = tuple(map(tuple, draw(st.lists(scope, max_size=6))))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    tables = [rng.normal(0, scale, [sizes[a] for a in clique]) for clique in cliques]
    return GraphicalModel(sizes, cliques, tuple(tables))


def joint_logs(model):
    """Every record's weight, by adding potentials cell by cell."""
    logs = np.zeros(model.sizes)
    for record in np.ndindex(*model.sizes):
        for clique, table in zip(model.cliques, model.potentials, strict=True):
            logs[record] += table[tuple(record[a] for a in clique)]
    return logs


def joint_law(model):
    logs = joint_logs(model)
    odds = np.exp(logs - logs.max())
    return odds / odds.sum()


@given(models())
@settings(deadline=None, max_examples=60)
def test_every_marginal_is_that_of_the_enumerated_law(model):
    law, axes = joint_law(model), tuple(range(len(model.sizes)))
    for ways in range(len(model.sizes) + 1):
        for scope in permutations(axes, ways):
            kept = [axis for axis in axes if axis in scope]
            summed = law.sum(axis=tuple(axis for axis in axes if axis not in scope))
            expected = np.transpose(summed, [kept.index(axis) for axis in scope])
            found = model.marginal(scope)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@given(models())
@settings(deadline=None)
def test_the_total_and_the_network_are_those_of_the_law(model):
    logs = joint_logs(model)
    total = np.log(np.exp(logs - logs.max()).sum()) + logs.max()
    assert abs(model.beliefs.log_total - total) < 1e-10
    everything = tuple(range(len(model.sizes)))
    np.testing.assert_allclose(
        model.network.marginal(everything), joint_law(model), rtol=0, atol=1e-13
    )


def test_paths_that_meet_below_the_root_are_summed_there():
    rng = np.random.default_rng(8)
    cliques = ((0, 1, 2), (2, 3), (3, 4), (3, 5))
    model = GraphicalModel(
        (2, 2, 3, 2, 2, 3),
        cliques,
        tuple(rng.normal(0, 1, s) for s in ((2, 2, 3), (3, 2), (2, 2), (2, 3))),
    )
    assert model.tree.home_of((4, 5)) is None
    np.testing.assert_allclose(model.marginal((4, 5)), joint_law(model).sum((0, 1, 2, 3)))
    np.testing.assert_allclose(
        model.marginal((5, 2, 4)), joint_law(model).sum((0, 1, 3)).transpose(2, 0, 1)
    )


def test_potentials_of_any_size_are_safe():
    # Each table alone underflows; together they cancel and leave an even law of attribute 1.
    steep = np.array([[0.0, 2000.0], [0.0, 2000.0]])
    model = GraphicalModel((2, 2, 2), ((0, 1), (1, 2)), (steep, -steep.T))
    np.testing.assert_allclose(model.marginal((1,)), [0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(model.marginal((0, 2)), np.full((2, 2), 0.25), atol=1e-12)


def test_a_model_without_cliques_is_uniform():
    model = GraphicalModel((2, 3), (), ())
    np.testing.assert_allclose(model.marginal((1, 0)), np.full((3, 2), 1 / 6))
    assert model.marginal(()).shape == ()


@given(models(scale=1.0), st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None, max_examples=30)
def test_a_record_depends_on_its_index_alone(model, start, n):
    whole = model.sample(80, NOISE)
    np.testing.assert_array_equal(model.sample(n, NOISE, start), whole[:, start : start + n])
    assert whole.shape == (len(model.sizes), 80)
    assert all(row.max() < size for row, size in zip(whole, model.sizes, strict=True))


RING = GraphicalModel(
    (2, 3, 2, 2),
    ((0, 1), (1, 2), (2, 3), (3, 0)),
    tuple(
        np.random.default_rng(5).normal(0, 1, shape)
        for shape in ((2, 3), (3, 2), (2, 2), (2, 2))
    ),
)


def counts_of(rows, sizes):
    return np.bincount(np.ravel_multi_index(tuple(rows), sizes), minlength=np.prod(sizes))


@pytest.mark.statistical
def test_rows_follow_the_law():
    rows = RING.sample(40_000, NOISE).astype(np.int64)
    laws.assert_counts_follow(counts_of(rows, RING.sizes), joint_law(RING).ravel())


@pytest.mark.statistical
def test_rows_of_a_model_without_one_edge_are_found_out():
    other = GraphicalModel(RING.sizes, RING.cliques[:3], RING.potentials[:3])
    rows = other.sample(40_000, NOISE).astype(np.int64)
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(counts_of(rows, RING.sizes), joint_law(RING).ravel())


def test_a_model_is_the_same_after_pickling():
    again = pickle.loads(pickle.dumps(RING))
    np.testing.assert_array_equal(again.marginal((3, 1)), RING.marginal((3, 1)))


def test_margin_and_spread_are_each_others_axes():
    table = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(margin(table, (5, 1, 3), (3, 5)), table.sum(axis=1).T)
    np.testing.assert_array_equal(
        spread(table, (5, 1, 3), (1, 2, 3, 5)), table.transpose(1, 2, 0)[:, None]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), (), ()), "sizes must be"),
        (((2, 0), (), ()), "sizes must be"),
        (((2, 2), ((0, 1),), ()), "1 cliques need as many potentials"),
        (((2, 2), ((0, 0),), (np.zeros((2, 2)),)), "distinct"),
        (((2, 2), ((0, 2),), (np.zeros((2, 2)),)), "no attribute 2"),
        (((2, 3), ((0, 1),), (np.zeros((3, 2)),)), r"the shape \(3, 2\)"),
        (((2,), ((0,),), (np.array([0, np.inf]),)), "must be finite"),
        (((9, 9), ((0, 1),), (np.zeros((9, 9)),), 80), r"81 cells.*\[0, 1\]: 81"),
    ],
)
def test_bad_models_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        GraphicalModel(*arguments)


def test_bad_marginals_are_refused(monkeypatch):
    with pytest.raises(InputError, match="distinct"):
        RING.marginal((1, 1))
    with pytest.raises(InputError, match="no attribute 4"):
        RING.marginal((4,))
    chain = GraphicalModel((9,) * 3, ((0, 1), (1, 2)), (np.zeros((9, 9)),) * 2)
    monkeypatch.setattr(beliefs_module, "MAX_FACTOR_CELLS", 80)
    with pytest.raises(InputError, match="81 cells over the attributes"):
        chain.marginal((0, 2))


def test_a_potential_outside_the_tree_is_refused():
    with pytest.raises(InputError, match=r"no clique.*\(0, 1\)"):
        gather(junction_tree((2, 2), ()), ((0, 1),), (np.zeros((2, 2)),))
