"""Means and biases: the printed values of the small table."""

import numpy as np
import pytest
from hypothesis import given

from dpsim.core.errors import InputError
from dpsim.data.ratings import RatingScale
from dpsim.recommend.bias import BiasModel, GlobalMean, ItemMean
from tests.recommend.plain import NONE, T, codes_tables, matrix_of, piece_of_codes

MEANS = [3.589286, 3.530612, 3.214286, 3.387755]
BIASES = [-0.009223, -0.009223, 0.030612, 0.066719, 0.016369]


def test_the_printed_means_and_biases():
    model = BiasModel(matrix_of(T))
    assert model.matrix.mean == pytest.approx(3.428571, abs=1e-6)
    assert model.means == pytest.approx(MEANS, abs=1e-6)
    assert model.user_biases() == pytest.approx(BIASES, abs=1e-6)
    assert model.predict([4, 0], [1, 2]) == pytest.approx(
        [MEANS[1] + BIASES[4], MEANS[2] + BIASES[0]], abs=1e-6
    )


@given(codes_tables())
def test_biases_are_as_defined(codes):
    matrix, has = matrix_of(codes, RatingScale(1, 9, 2)), codes != NONE
    ratings = np.where(has, 1.0 + 2 * codes, 0.0)
    mean = ratings.sum() / has.sum()
    means = mean + np.where(has, ratings - mean, 0).sum(axis=0) / (has.sum(axis=0) + 4)
    above = np.where(has, np.clip(ratings - means, -4, 4), 0).sum(axis=1)
    model = BiasModel(matrix)
    assert model.means == pytest.approx(means)
    assert model.user_biases() == pytest.approx(above / (has.sum(axis=1) + 10))
    left = (ratings - means - model.user_biases()[:, None])[has]
    assert model.residuals() == pytest.approx(left)


def test_a_new_user_has_a_bias_of_its_own():
    model = BiasModel(matrix_of(T))
    history = piece_of_codes(T[[3]], start=50)
    assert model.predict([50], [0], history) == model.predict([3], [0])
    nobody = piece_of_codes([[NONE] * 4], start=8)
    assert model.predict([8], [0], nobody) == pytest.approx(MEANS[0], abs=1e-6)


def test_predictions_stay_on_the_scale():
    codes = np.full((60, 30), 4)
    codes[:, 0] = 4
    codes[0, 1:] = 0
    predicted = BiasModel(matrix_of(codes)).predict([1, 0], [0, 1])
    assert (predicted >= 1).all()
    assert (predicted <= 5).all()


def test_means_predict_themselves():
    matrix = matrix_of(T)
    assert GlobalMean(matrix).predict([0, 1], [2, 3]) == pytest.approx([48 / 14] * 2)
    assert ItemMean(matrix).predict([0, 1], [2, 0]) == pytest.approx([3, 15 / 4])


def test_users_and_items_who_are_not_there_are_refused():
    """A negative index would count from the end."""
    matrix = matrix_of(T)
    with pytest.raises(InputError, match="users must lie in 0"):
        BiasModel(matrix).predict([-1], [0])
    with pytest.raises(InputError, match="items must lie in 0"):
        ItemMean(matrix).predict([0], [-1])
    with pytest.raises(InputError, match="list of indices"):
        BiasModel(matrix).predict(np.zeros((1, 1), np.int64), [0])
