"""Similarities: the printed values, the definitions, and a matrix that is not too large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError, ResourceError
from dpsim.data.ratings import RatingScale
from dpsim.recommend.similarity import SIMILARITIES, similarity_matrix
from tests.recommend.plain import NONE, T, codes_tables, matrix_of, similarities, units_of

PAIRS = np.triu_indices(4, 1)


def test_the_printed_values_of_the_small_table():
    cosine = [0.728478, 0.342245, 0.169660, 0.285732, 0.322031, 0.910032]
    pearson = [0.327231, -0.873923, -0.954545, -0.708450, -0.373979, 0.822516]
    assert similarity_matrix(matrix_of(T))[PAIRS] == pytest.approx(cosine, abs=1e-6)
    found = similarity_matrix(matrix_of(T), "pearson")[PAIRS]
    assert found == pytest.approx(pearson, abs=1e-6)


def test_the_printed_values_of_two_items():
    codes = np.array([[4, 5], [5, 4], [2, 0], [0, 3], [3, 1]]) - 1
    assert similarity_matrix(matrix_of(codes))[0, 1] == pytest.approx(0.819382, abs=1e-6)
    pearson = similarity_matrix(matrix_of(codes), "pearson")[0, 1]
    assert pearson == pytest.approx(0.413665, abs=1e-6)


@given(codes_tables(), st.sampled_from(SIMILARITIES))
def test_a_matrix_is_symmetric_bounded_and_as_defined(codes, kind):
    made = similarity_matrix(matrix_of(codes), kind)
    assert made.dtype == np.float32
    assert np.array_equal(made, made.T)
    assert np.abs(made).max() <= 1
    wanted = similarities(codes, kind).astype(np.float32)
    np.fill_diagonal(wanted, 1)
    assert np.array_equal(made, wanted)


@given(codes_tables(users=(2, 7)))
def test_pearson_is_numpys_correlation_of_zero_filled_columns(codes):
    units = units_of(codes)
    varied = units.std(axis=0) > 0
    made = similarity_matrix(matrix_of(codes), "pearson")
    with np.errstate(invalid="ignore"):
        wanted = np.atleast_2d(np.corrcoef(units[:, varied].T))
    kept = made[np.ix_(varied, varied)]
    if varied.any():
        np.testing.assert_allclose(kept, wanted, atol=1e-6)
    assert not made[np.ix_(varied, ~varied)].any()


def test_an_item_that_does_not_vary_has_no_correlation():
    """Ten tenths, summed as floats, would seem to vary."""
    scale = RatingScale("0.1", "0.5", "0.1")
    codes = np.column_stack([np.full(10, 0), np.arange(10) % 5])
    assert similarity_matrix(matrix_of(codes, scale), "pearson")[0, 1] == 0


def test_an_item_without_ratings_is_like_nothing():
    codes = np.column_stack([T, np.full(5, NONE)])
    for kind in SIMILARITIES:
        assert not similarity_matrix(matrix_of(codes), kind)[4, :4].any()


def test_the_unit_of_a_scale_does_not_matter():
    halves = RatingScale("0.5", "2.5", "0.5")
    for kind in SIMILARITIES:
        made = similarity_matrix(matrix_of(T, halves), kind)
        assert np.array_equal(made, similarity_matrix(matrix_of(T), kind))


def test_blocks_of_rows_do_not_show():
    rng = np.random.default_rng(1)
    codes = np.where(rng.random((9, 600)) < 0.3, rng.integers(0, 5, (9, 600)), NONE)
    made = similarity_matrix(matrix_of(codes))
    wanted = similarities(codes, "cosine").astype(np.float32)
    np.fill_diagonal(wanted, 1)
    assert np.array_equal(made, wanted)


def test_a_matrix_that_is_too_large_is_refused_with_its_size():
    with pytest.raises(ResourceError, match=r"4 items takes 0.0 GB, more than the limit"):
        similarity_matrix(matrix_of(T), limit=63)
    assert similarity_matrix(matrix_of(T), limit=64).nbytes == 64


def test_an_unknown_similarity_is_refused():
    with pytest.raises(InputError, match="similarity must be one of"):
        similarity_matrix(matrix_of(T), "jaccard")  # type: ignore[arg-type]
