"""Networks: what they are, their exact law, and rows that follow it."""

import json
import pickle
from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis import bayes_net
from dpsim.synthesis._network_kernels import draw_codes
from dpsim.synthesis.bayes_net import BayesNet, NetworkModel
from tests import laws

REFERENCE = BayesNet((0, 1, 2, 3, 4), ((), (0,), (0, 1), (2,), (2, 3)))


@st.composite
def models(draw, most=5):
    """A random network, sizes and tables, zero rows included."""
    d = draw(st.integers(1, most))
    order = draw(st.permutations(range(d)))
    parents = [()] * d
    for place, child in enumerate(order):
        chosen = draw(st.lists(st.sampled_from(order), max_size=3, unique=True))
        parents[child] = tuple(sorted(set(chosen) & set(order[:place])))
    sizes = draw(st.lists(st.integers(1, 4), min_size=d, max_size=d))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    net = BayesNet(tuple(order), tuple(parents))
    tables = [rng.integers(0, 4, [sizes[a] for a in family]) / 1 for family in net.families]
    return NetworkModel(net, tuple(tables))


def joint_law(model):
    """Every record's probability, by multiplying."""
    law = np.zeros(model.sizes)
    for record in product(*map(range, model.sizes)):
        law[record] = np.prod(
            [
                table[tuple(record[a] for a in family)]
                for family, table in zip(model.net.families, model.tables, strict=True)
            ]
        )
    return law


def test_blankets_are_those_of_the_reference():
    assert REFERENCE.children(0) == (1, 2)
    assert REFERENCE.markov_blanket(0) == (1, 2)
    assert REFERENCE.markov_blanket(3) == (2, 4)
    assert REFERENCE.markov_blanket(2) == (0, 1, 3, 4)
    assert REFERENCE.ancestors([3]) == (0, 1, 2, 3)
    assert REFERENCE.edges == ((0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4))
    assert REFERENCE.families[4] == (2, 3, 4)


def test_a_blanket_holds_the_other_parents_of_a_child():
    net = BayesNet((0, 1, 2), ((), (), (0, 1)))
    assert net.markov_blanket(0) == (1, 2)


def test_a_network_survives_json_and_pickle_and_is_a_value():
    lists = json.loads(json.dumps(REFERENCE.to_lists()))
    assert BayesNet.from_lists(lists) == REFERENCE == pickle.loads(pickle.dumps(REFERENCE))
    other = BayesNet((2, 0, 1), ((2,), (0, 2), ()))
    assert BayesNet.from_lists(other.to_lists()) == other
    with pytest.raises(FrozenInstanceError):
        REFERENCE.order = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("order", "parents", "message"),
    [
        ((), (), "each of 0 attributes once"),
        ((0, 0), ((), ()), "each of 2 attributes once"),
        ((0, 1), ((),), "each of 1 attributes once"),
        ((0, 1), ((1,), ()), "attribute 0 must come after its parents"),
        ((0, 1), ((), (1,)), "attribute 1 must come after its parents"),
        ((0, 1, 2), ((), (), (1, 0)), "parents of attribute 2 must ascend"),
        ((0, 1), ((), (0, 0)), "parents of attribute 1 must ascend"),
        ((0, 1), ((), (7,)), "attribute 1 must come after its parents"),
    ],
)
def test_what_is_no_network_is_refused(order, parents, message):
    with pytest.raises(InputError, match=message):
        BayesNet(order, parents)


@pytest.mark.parametrize("lists", [[[0]], [[0, None]], [[1, []]], [[0, []], [0, []]], ["ab"]])
def test_lists_that_are_no_network_are_refused(lists):
    with pytest.raises(InputError, match="a network"):
        BayesNet.from_lists(lists)


@given(models(), st.data())
def test_marginals_are_those_of_the_whole_law(model, data):
    d = len(model.sizes)
    attributes = data.draw(st.lists(st.integers(0, d - 1), unique=True, max_size=d))
    law = joint_law(model)
    others = tuple(a for a in range(d) if a not in attributes)
    expected = law.sum(axis=others).transpose([sorted(attributes).index(a) for a in attributes])
    found = model.marginal(tuple(attributes))
    assert found.shape == tuple(model.sizes[a] for a in attributes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_tables_of_joint_counts_become_conditional_laws():
    net = BayesNet((0, 1), ((), (0,)))
    model = NetworkModel(net, (np.array([3, 1, 0.0]), np.array([[1, 2], [1, 0], [0, 0.0]])))
    np.testing.assert_allclose(model.tables[0], [0.75, 0.25, 0])
    # The last row has nobody: the child's margin (2, 2) stands in.
    np.testing.assert_allclose(model.tables[1], [[1 / 3, 2 / 3], [1.0, 0.0], [0.5, 0.5]])


def test_an_empty_row_follows_the_margin_and_an_empty_table_is_uniform():
    net = BayesNet((0, 1), ((), (0,)))
    model = NetworkModel(net, (np.zeros(2), np.array([[0, 0, 0], [1, 0, 3.0]])))
    assert model.tables[0].tolist() == [0.5, 0.5]
    assert model.tables[1].tolist() == [[0.25, 0, 0.75], [0.25, 0, 0.75]]


@given(models(), st.integers(0, 40), st.integers(0, 40))
def test_a_record_depends_on_its_index_and_nothing_else(model, start, n):
    noise = CentralNoise(5, "plan")
    whole = model.sample(start + n, noise)
    part = model.sample(n, noise, start)
    assert part.dtype == np.uint8
    assert part.shape == (len(model.sizes), n)
    np.testing.assert_array_equal(part, whole[:, start:])


def test_chunks_of_records_change_nothing(monkeypatch):
    weights = tuple(np.ones([a + 2 for a in family]) for family in REFERENCE.families)
    model = NetworkModel(REFERENCE, weights)
    whole = model.sample(500, CentralNoise(5, "plan"))
    monkeypatch.setattr(bayes_net, "_CHUNK", 7)
    np.testing.assert_array_equal(model.sample(500, CentralNoise(5, "plan")), whole)


@given(models())
def test_rows_are_the_inverse_of_the_law_at_one_uniform_each(model):
    """A plain twin: the first code whose cumulated law exceeds the uniform."""
    noise, n = CentralNoise(9, "plan"), 50
    codes = model.sample(n, noise)
    uniforms = [noise.uniforms(Purpose.PUBLISH, str(a), n) for a in range(len(model.sizes))]
    for i in range(n):
        for a, family in enumerate(model.net.families):
            law = model.tables[a][tuple(codes[p, i] for p in family[:-1])]
            expected = np.searchsorted(np.cumsum(law) / law.sum(), uniforms[a][i], "right")
            assert codes[a, i] == expected


def test_both_ends_of_every_code_belong_to_it():
    ends = np.array([[0.0, 0.25, 0.25, 1.0, 2.0], [0.5, 0.5, 0.5, 0.5, 2.0]])
    below, eighth = np.nextafter(0.25, 0), np.nextafter(1, 0)
    uniforms = np.array([1e-17, below, 0.25, eighth, 1.0, 0.25, 0.5])
    codes = np.zeros((2, 7), np.uint8)
    codes[0, 5:] = 1
    parents = (np.array([0], np.int16), np.array([2]))
    draw_codes(codes, 1, parents, ends, uniforms)
    assert codes[1].tolist() == [1, 1, 3, 3, 4, 0, 4]
    draw_codes(codes[:, :0], 1, parents, ends, uniforms[:0])


def test_codes_of_no_weight_are_never_drawn():
    """Rounding leaves a gap above the last possible code, and nobody may fall into it."""
    weights = np.array([0, 0.1, 0.2, 0.0, 0.3, 0.1, 0.2, 0.1, 0, 0])
    model = NetworkModel(BayesNet((0,), ((),)), (weights,))
    (_, ends) = model._sampler(0)
    assert ends[0, 0] == 0
    assert ends[0, 2] == ends[0, 3]
    assert ends[0, 7:].tolist() == [2, 2, 2]


def test_codes_beyond_eight_bits_have_the_type_that_holds_them():
    model = NetworkModel(BayesNet((0,), ((),)), (np.eye(300)[299],))
    codes = model.sample(3, CentralNoise(1, "plan"))
    assert codes.dtype == np.uint16
    assert codes.tolist() == [[299] * 3]


def frequencies(weight):
    child = np.array([[1, 1, 2], [weight, 1, 1.0]])
    model = NetworkModel(BayesNet((0, 1), ((), (0,))), (np.array([2, 1.0]), child))
    codes = model.sample(30_000, CentralNoise(3, "plan"))
    return np.bincount(codes[0] * 3 + codes[1], minlength=6)


@pytest.mark.statistical
def test_rows_follow_the_law():
    law = np.array([2 / 12, 2 / 12, 4 / 12, 2 / 12, 1 / 12, 1 / 12])
    laws.assert_counts_follow(frequencies(2), law)


@pytest.mark.statistical
def test_the_law_of_rows_has_power():
    law = np.array([2 / 12, 2 / 12, 4 / 12, 2 / 12, 1 / 12, 1 / 12])
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(frequencies(1.6), law)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ((np.ones(2),), "needs as many tables, got 1"),
        ((np.ones(2), np.ones(3)), "one axis for each of"),
        ((np.ones(2), np.ones((3, 2))), "one axis for each of"),
        ((np.ones(2), np.ones((2, 2)) * np.nan), "finite weights"),
        ((np.array([-1, 2.0]), np.ones((2, 2))), "table of attribute 0 must hold finite"),
        ((np.ones(0), np.ones((0, 2))), "finite weights"),
        ((np.ones(()), np.ones((2, 2))), "one axis for each of"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tables, message):
    with pytest.raises(InputError, match=message):
        NetworkModel(BayesNet((0, 1), ((), (0,))), tables)


def test_marginals_beyond_memory_are_refused_with_the_attributes(monkeypatch):
    d = 26
    net = BayesNet(tuple(range(d)), ((),) * d)
    model = NetworkModel(net, (np.ones(2),) * d)
    with pytest.raises(InputError, match="table of 33,554,432 cells"):
        model.marginal(tuple(range(25)))
    monkeypatch.setattr(bayes_net, "MAX_FACTOR_CELLS", 7)
    many = NetworkModel(
        BayesNet((0, 1, 2, 3), ((), (), (), (0, 1, 2))), (*(np.ones(2),) * 3, np.ones((2,) * 4))
    )
    with pytest.raises(InputError, match=r"16 cells over the attributes \(1, 2, 3, 0\)"):
        many.marginal((3,))


def test_a_long_chain_needs_small_tables_only():
    d = 200
    net = BayesNet(tuple(range(d)), ((), *((a - 1,) for a in range(1, d))))
    chain = np.array([[0.9, 0.1], [0.1, 0.9]])
    model = NetworkModel(net, (np.array([1.0, 0.0]), *(chain,) * (d - 1)))
    assert model.marginal((10,))[0] == pytest.approx((1 + 0.8**10) / 2)


@pytest.mark.parametrize(
    ("attributes", "message"), [((0, 0), "distinct"), ((5,), "no attribute")]
)
def test_marginals_of_what_is_not_there_are_refused(attributes, message):
    with pytest.raises(InputError, match=message):
        NetworkModel(BayesNet((0,), ((),)), (np.ones(2),)).marginal(attributes)


def test_tables_are_not_changed_and_cannot_be():
    weights = np.array([3.0, 1.0])
    model = NetworkModel(BayesNet((0,), ((),)), (weights,))
    assert weights.tolist() == [3, 1]
    with pytest.raises(ValueError, match="read-only"):
        model.tables[0][0] = 1
