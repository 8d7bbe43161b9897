"""A mixture of classes for binary attributes: its law, its rows, its fit to pairs."""

from itertools import product

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.binary_classes import (
    BinaryClasses,
    agreements_of,
    fit_classes,
    pair_tables,
    starts,
)

MODEL = BinaryClasses(
    np.array([0.5, 0.3, 0.2]),
    np.array([[0.1, 0.2, 0.9, 0.5], [0.8, 0.7, 0.1, 0.5], [0.5, 0.95, 0.4, 0.5]]),
)
NOISE = CentralNoise(1, "classes")


def law_by_definition(model):
    law = np.zeros(model.sizes)
    for record in product((0, 1), repeat=len(model.sizes)):
        for weight, ones in zip(model.weights, model.ones, strict=True):
            law[record] += weight * np.prod(
                [o if x else 1 - o for x, o in zip(record, ones, strict=True)]
            )
    return law


def test_marginals_are_sums_of_the_whole_law():
    whole = law_by_definition(MODEL)
    np.testing.assert_allclose(MODEL.marginal((0, 1, 2, 3)), whole, atol=1e-15)
    np.testing.assert_allclose(MODEL.marginal((2, 0)), whole.sum(axis=(1, 3)).T, atol=1e-15)
    assert MODEL.marginal(()).item() == pytest.approx(1)


def test_agreement_is_the_diagonal_of_the_pair():
    for a, b in ((0, 1), (1, 3), (2, 0)):
        assert agreements_of(MODEL)[a, b] == pytest.approx(np.trace(MODEL.marginal((a, b))))


def test_pair_tables_are_found_again_from_ones_and_agreement():
    ones = np.array([MODEL.marginal((a,))[1] for a in range(4)])
    square = pair_tables(ones, agreements_of(MODEL))
    for a, b in product(range(4), repeat=2):
        block = square[2 * a : 2 * a + 2, 2 * b : 2 * b + 2]
        expected = MODEL.marginal((a, b)) if a != b else np.zeros((2, 2))
        np.testing.assert_allclose(block, expected, atol=1e-12)


def test_impossible_agreements_are_cut_to_what_margins_allow():
    square = pair_tables(np.array([0.3, 0.4]), np.array([[1, 1.7], [1.7, 1]]))
    np.testing.assert_allclose(square[:2, 2:], [[0.6, 0.1], [0, 0.3]], atol=1e-11)
    square = pair_tables(np.array([0.3, 0.4]), np.array([[1, -0.7], [-0.7, 1]]))
    np.testing.assert_allclose(square[:2, 2:], [[0.3, 0.4], [0.3, 0]], atol=1e-11)


def test_the_fit_finds_the_pairs_of_a_mixture():
    ones = np.array([MODEL.marginal((a,))[1] for a in range(4)])
    square = pair_tables(ones, agreements_of(MODEL))
    fitted = fit_classes(square, 3, starts(NOISE, 3, 0, 4), steps=4000)
    for a, b in ((0, 1), (0, 2), (1, 2), (2, 3)):
        np.testing.assert_allclose(fitted.marginal((a, b)), MODEL.marginal((a, b)), atol=2e-3)
    alone = fit_classes(square, 1, starts(NOISE, 1, 0, 4))
    np.testing.assert_allclose(alone.ones[0], ones, atol=1e-9)


def test_one_more_step_never_lowers_the_likelihood():
    random = np.random.default_rng(2)
    records = random.random((6, 400)) < random.random((6, 1)) * random.random(400)
    ones = records.mean(axis=1)
    agreed = (records[:, None] == records[None]).mean(axis=2)
    square, draws = pair_tables(ones, agreed), starts(NOISE, 4, 1, 6)

    def fit(steps):
        model = fit_classes(square, 4, draws, steps)
        laws = np.stack((1 - model.ones, model.ones), axis=2).reshape(4, 12)
        pairs = np.einsum("z,zi,zj->ij", model.weights, laws, laws)
        return (square * np.log(pairs)).sum()

    values = [fit(steps) for steps in range(1, 30)]
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0] + 1e-3


def test_rows_depend_on_their_index_only():
    whole = MODEL.sample(1000, NOISE)
    assert whole.dtype == np.uint8
    assert whole.shape == (4, 1000)
    np.testing.assert_array_equal(MODEL.sample(300, NOISE, 450), whole[:, 450:750])
    assert MODEL.sample(0, NOISE).shape == (4, 0)


@pytest.mark.statistical
def test_rows_follow_the_law():
    n = 200_000
    rows = MODEL.sample(n, NOISE)
    counts = np.bincount(rows.T @ [8, 4, 2, 1], minlength=16)
    law = law_by_definition(MODEL).ravel()
    assert (np.abs(counts - n * law) < 5 * np.sqrt(n * law * (1 - law))).all()
    wrong = BinaryClasses(MODEL.weights[[1, 0, 2]], MODEL.ones)
    other = law_by_definition(wrong).ravel()
    assert not (np.abs(counts - n * other) < 5 * np.sqrt(n * other * (1 - other))).all()


def test_classes_need_a_row_each():
    with pytest.raises(InputError, match="2 classes need a row"):
        BinaryClasses(np.ones(2), np.ones((3, 4)))
