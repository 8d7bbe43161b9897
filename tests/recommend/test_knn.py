"""Item-based neighbors without noise: printed values, the definition, new users."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.data.generated_ratings import GeneratedRatings
from dpsim.data.rating_split import RatingSplit
from dpsim.data.ratings import read_users
from dpsim.recommend.bias import BiasModel
from dpsim.recommend.knn import ItemKNN
from dpsim.recommend.pncf import PNCF
from dpsim.recommend.ratings_matrix import RatingMatrix
from tests.recommend import plain
from tests.recommend.plain import NONE, T, codes_tables, matrix_of, piece_of_codes

KINDS = ("cosine", "pearson", "residual")


def test_the_printed_predictions():
    assert ItemKNN(2, "cosine").fit(matrix_of(T)).predict([4], [1]) == pytest.approx(4.282778)
    assert ItemKNN(2, "pearson").fit(matrix_of(T)).predict([4], [1]) == pytest.approx(4.916667)


def residual_prediction(codes, user, item, k):
    """By the definition, on dense arrays."""
    matrix = matrix_of(codes)
    bias = BiasModel(matrix)
    x = np.zeros(codes.shape)
    x[codes != NONE] = bias.residuals()
    norms = np.sqrt((x**2).sum(axis=0))
    s = np.divide(x.T @ x, np.outer(norms, norms), out=np.zeros((len(norms),) * 2),
                  where=np.outer(norms, norms) > 0)[item]  # fmt: skip
    near = [j for j in range(s.size) if j != item and s[j] > 1e-9 and codes[user, j] != NONE]
    near = sorted(near, key=lambda j: (-s[j], j))[:k]
    left = sum(s[j] * x[user, j] for j in near) / sum(s[j] for j in near) if near else 0.0
    return min(max(bias.base([user], [item])[0] + left, 1), 5)


@given(codes_tables(users=(3, 7), items=(3, 6)))
def test_residual_neighbors_are_as_defined(codes):
    users, items = (axis.ravel() for axis in np.indices(codes.shape))
    # Every neighbor takes part, so that no tie can fall either way.
    made = ItemKNN(9, "residual").fit(matrix_of(codes)).predict(users, items)
    for place, (user, item) in enumerate(zip(users, items, strict=True)):
        wanted = residual_prediction(codes, user, item, 9)
        assert made[place] == pytest.approx(wanted, abs=1e-6)


def test_only_the_k_nearest_residuals_take_part():
    rng = np.random.default_rng(4)
    codes = np.where(rng.random((30, 12)) < 0.7, rng.integers(0, 5, (30, 12)), NONE)
    model = ItemKNN(3, "residual").fit(matrix_of(codes))
    users, items = (axis.ravel() for axis in np.indices(codes.shape))
    wanted = [residual_prediction(codes, u, i, 3) for u, i in zip(users, items, strict=True)]
    np.testing.assert_allclose(model.predict(users, items), wanted, atol=1e-9)


@given(codes_tables(users=(2, 7), items=(3, 6)), st.integers(1, 4), st.sampled_from(KINDS[:2]))
def test_every_prediction_is_the_plain_one(codes, k, kind):
    users, items = (axis.ravel() for axis in np.indices(codes.shape))
    made = ItemKNN(k, kind).fit(matrix_of(codes)).predict(users, items)
    for place, query in enumerate(zip(users, items, strict=True)):
        wanted = plain.predict(codes, query, PNCF(None, k, kind), None)[0]
        assert made[place] == pytest.approx(wanted)
    assert made.min() >= 1
    assert made.max() <= 5


@pytest.mark.parametrize("kind", KINDS)
def test_relabeling_items_permutes_predictions(kind):
    rng = np.random.default_rng(2)
    codes = np.where(rng.random((30, 12)) < 0.6, rng.integers(0, 5, (30, 12)), NONE)
    order = rng.permutation(12)
    users, items = (axis.ravel() for axis in np.indices(codes.shape))
    made = ItemKNN(3, kind).fit(matrix_of(codes)).predict(users, items).reshape(codes.shape)
    there = ItemKNN(3, kind).fit(matrix_of(codes[:, order])).predict(users, items)
    # Equal cosines of small tables may fall the other way: few, and only those.
    same = np.isclose(made[:, order], there.reshape(codes.shape))
    assert same.mean() > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_user_is_served_without_a_new_fit(kind):
    matrix = matrix_of(T)
    model = ItemKNN(2, kind).fit(matrix)
    history = piece_of_codes(T[[4]], start=100)
    assert model.predict([100], [1], history) == model.predict([4], [1])
    nothing = piece_of_codes([[NONE] * 4], start=7)
    base = BiasModel(matrix).means if kind == "residual" else matrix.item_means
    assert model.predict([7] * 4, range(4), nothing) == pytest.approx(base)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_an_item_without_ratings_gets_the_mean_of_all(kind):
    matrix = matrix_of(np.column_stack([T, np.full(5, NONE)]))
    assert ItemKNN(2, kind).fit(matrix).predict([0], [4]) == pytest.approx(48 / 14)


@pytest.mark.statistical
def test_planted_tastes_are_found():
    """Residual neighbors gain on the bias model, which gains on item means."""
    source = GeneratedRatings(2_000, 200)
    train, test = (
        read_users(RatingSplit(source, "0.2", is_held_out=side), Block(0, 2_000))
        for side in (False, True)
    )
    matrix, truth = RatingMatrix(200, source.scale, train), source.scale.values(test.codes)

    def rmse(predicted):
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))

    bias = rmse(BiasModel(matrix).predict(test.users, test.items))
    near = rmse(ItemKNN(40, "residual").fit(matrix).predict(test.users, test.items))
    assert near < bias - 0.02
    assert bias < rmse(matrix.item_means[test.items]) - 0.02


@pytest.mark.parametrize("change", [{"k": 0}, {"similarity": "none"}])
def test_a_bad_parameter_is_refused(change):
    with pytest.raises(InputError, match="must be"):
        ItemKNN(**change)
