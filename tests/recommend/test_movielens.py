"""Your own copy of MovieLens 100k, where DPSIM_MOVIELENS names its folder: known figures."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsim.core.rng import CentralNoise
from dpsim.data.rating_files import read_ratings
from dpsim.evaluation.ratings import (
    Quartiles,
    ranking_scores,
    rating_errors,
    relevant_ratings,
)
from dpsim.recommend.bias import BiasModel, GlobalMean, ItemMean
from dpsim.recommend.knn import ItemKNN
from dpsim.recommend.pncf import PNCF
from dpsim.recommend.popularity import ItemCosine, Popularity
from dpsim.recommend.ratings_matrix import RatingMatrix
from dpsim.recommend.relevance_sensitivity import relevance_sensitivity
from dpsim.recommend.similarity import similarity_matrix

FOLDER = os.environ.get("DPSIM_MOVIELENS", "")
N_ITEMS = 1682


@pytest.fixture(scope="module")
def table():
    path = Path(FOLDER) / "u.data"
    if not FOLDER or not path.exists():
        pytest.skip("no u.data: set DPSIM_MOVIELENS to the folder of your ml-100k")
    table, notes = read_ratings(path, catalog=range(1, N_ITEMS + 1))
    if notes:
        pytest.skip(f"not the published ml-100k: {notes[0]}")
    return table


@pytest.fixture(scope="module")
def split(table):
    rows = np.random.default_rng(0).permutation(100_000)[:20_000]
    assert rows[:5].tolist() == [18836, 43996, 91795, 93254, 38314]
    train, test = table.split_rows(rows)
    return RatingMatrix(N_ITEMS, table.scale, train.piece), test.piece


def errors(split, predicted):
    matrix, test = split
    made = rating_errors(matrix.scale.values(test.codes), predicted, test.users)
    return made.rmse, made.mae


def test_the_file_is_the_known_one(table):
    assert (table.n, table.n_items, table.piece.items.size) == (943, N_ITEMS, 100_000)
    assert np.bincount(table.piece.codes).tolist() == [6110, 11370, 27145, 34174, 21201]
    assert (table.piece.sizes.min(), table.piece.sizes.max()) == (20, 737)
    assert np.bincount(table.piece.items).max() == 583


def test_pairs_of_the_training_ratings(split):
    matrix, test = split
    assert matrix.mean == pytest.approx(3.5278375)
    assert matrix.scale.values(test.codes).mean() == pytest.approx(3.53795)
    assert matrix.counts.max() == 469
    cosine, rs = similarity_matrix(matrix), relevance_sensitivity(matrix)
    pearson = similarity_matrix(matrix, "pearson")
    assert (cosine[49, 180], pearson[49, 180], rs[49, 180]) == pytest.approx(
        (0.705267, 0.474027, 0.003150), rel=2e-4
    )
    assert (cosine[0, 1], rs[0, 1]) == pytest.approx((0.319637, 0.009612), rel=1e-4)
    pairs = np.triu_indices(N_ITEMS, 1)
    upper = rs[pairs]
    assert np.count_nonzero(upper) == 850_215
    assert cosine[pairs].sum(dtype=np.float64) == pytest.approx(95652.27, rel=1e-4)
    assert upper.sum(dtype=np.float64) == pytest.approx(80648.28, rel=1e-4)
    quantiles = np.quantile(upper[upper > 0], (0.05, 0.25, 0.5, 0.75, 0.95))
    assert quantiles == pytest.approx((0.00987, 0.01947, 0.03186, 0.05810, 1.0), rel=1e-3)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (GlobalMean, (1.1218, 0.9432)),
        (ItemMean, (1.0230, 0.8162)),
        (BiasModel, (0.9402, 0.7458)),
        (ItemKNN(20).fit, (0.9064, 0.7098)),
        (ItemKNN(40).fit, (0.9106, 0.7144)),
        (ItemKNN(20, "cosine").fit, (0.9164, 0.7188)),
        (ItemKNN(40, "cosine").fit, (0.9208, 0.7240)),
    ],
)
def test_anchors_without_privacy(split, make, wanted):
    matrix, test = split
    made = errors(split, make(matrix).predict(test.users, test.items))
    assert made == pytest.approx(wanted, abs=0.0005)


@pytest.mark.parametrize(
    ("options", "wanted", "tolerance"),
    [
        ({"epsilon": 1, "k": 20, "similarity": "cosine"}, (0.952, 0.748), 0.004),
        ({"epsilon": 1, "k": 20, "denominator": "absolute"}, (0.942, 0.739), 0.004),
        ({"epsilon": 5, "k": 40}, (0.923, 0.726), 0.004),
        ({"epsilon": "0.1", "k": 20, "similarity": "cosine"}, (1.053, 0.811), 0.015),
        (
            {"epsilon": "0.1", "k": 20, "similarity": "cosine", "denominator": "absolute"},
            (0.984, 0.774),
            0.004,
        ),
    ],
)
@pytest.mark.statistical
def test_anchors_of_pncf(split, options, wanted, tolerance):
    matrix, test = split
    model = PNCF(**options).fit(matrix)
    made = [
        errors(split, model.predict(test.users, test.items, CentralNoise(seed, "")).ratings)
        for seed in range(4)
    ]
    assert np.mean(made, axis=0) == pytest.approx(wanted, abs=tolerance)


def test_catalog_wide_neighbors_are_hardly_usable(split):
    matrix, test = split
    options: dict[str, Any] = {"k": 20, "similarity": "cosine", "neighbors": "catalog"}
    made = PNCF(1, **options).fit(matrix).predict(test.users, test.items, CentralNoise(0, ""))
    assert errors(split, made.ratings) == pytest.approx((1.091, 0.847), abs=0.01)
    assert made.used.mean() == pytest.approx(3.4, abs=0.2)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda matrix: Popularity(matrix.counts), (0.132, 0.171, 0.651)),
        (lambda matrix: ItemCosine(matrix, 20), (0.220, 0.298, 0.805)),
        (lambda matrix: ItemCosine(matrix, 40), (0.230, 0.304, 0.808)),
    ],
)
def test_anchors_of_lists(split, make, wanted):
    matrix, test = split
    scores = ranking_scores(
        make(matrix).top_n(matrix.piece, 10), relevant_ratings(test, 3), N_ITEMS
    )
    made = scores.quality()
    assert made.users == 921
    assert (made.precision, made.ndcg, made.hit_rate) == pytest.approx(wanted, abs=0.001)


def test_activity_groups_have_the_printed_cuts(split):
    matrix, test = split
    made = Quartiles.of(matrix.piece.sizes)
    assert made.cuts == (27.0, 51.0, 118.0)
    assert np.bincount(made.groups).tolist() == [246, 226, 236, 235]
    per_rating = np.bincount(made.groups[test.users]).tolist()
    assert per_rating == [1289, 2199, 4861, 11651]
