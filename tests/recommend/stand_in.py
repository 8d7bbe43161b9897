"""Ratings with planted taste, small and quick: what the recommenders' tests are made of."""

from itertools import pairwise

import numpy as np

from dpsim.recommend.gram_budget import budget_of
from dpsim.recommend.ratings_matrix import RatingPiece, RatingScale

SCALE = RatingScale(1, 5, 1)


def piece_of(rows, start=0):
    """A piece from one dictionary of item to rating per user."""
    items = [np.array(sorted(row), np.int32) for row in rows]
    codes = [np.array([row[item] - 1 for item in sorted(row)], np.uint8) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([part.size for part in items])]).astype(np.int64)
    empty = np.zeros(0)
    return RatingPiece(
        start,
        indptr,
        np.concatenate([*items, empty]).astype(np.int32),
        np.concatenate([*codes, empty]).astype(np.uint8),
    )


def stand_in(n_users, n_items=500, mean=40, seed=0, dimensions=6):
    """Section 2.8 of the reference: popularity, biases, a few planted directions of taste."""
    rng = np.random.default_rng(seed)
    popularity = -0.8 * np.log(rng.permutation(n_items) + 1)
    item_bias = rng.normal(0, 0.5, n_items)
    item_taste = rng.normal(0, 1, (n_items, dimensions))
    parts = []
    for start in range(0, n_users, 5_000):
        n = min(5_000, n_users - start)
        sizes = np.clip(rng.lognormal(np.log(mean) - 0.32, 0.8, n), 10, 0.6 * n_items)
        keys = popularity + rng.gumbel(0, 1, (n, n_items)).astype(np.float32)
        order = np.argsort(-keys, axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(n_items)[None, :], axis=1)
        chosen = rank < sizes.astype(int)[:, None]
        user_bias = rng.normal(0, 0.4, n)
        taste = rng.normal(0, 1, (n, dimensions)) @ item_taste.T
        rating = 3.5 + item_bias + user_bias[:, None] + 0.5 * taste / dimensions**0.5
        rating += rng.normal(0, 0.75, (n, n_items)).astype(np.float32)
        codes = np.clip(np.rint(rating), 1, 5).astype(np.uint8) - 1
        users, items = np.nonzero(chosen)
        indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
        parts.append((indptr, items.astype(np.int32), codes[users, items]))
    sizes = np.concatenate([np.diff(part[0]) for part in parts])
    return RatingPiece(
        0,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


def split(piece, tests, seed=1):
    """Training ratings, and the users, items and ratings of as many others."""
    rng = np.random.default_rng(seed)
    taken = np.zeros(piece.items.size, np.bool_)
    taken[rng.choice(piece.items.size, tests, replace=False)] = True
    users = np.repeat(np.arange(piece.n), piece.sizes)[taken]
    return piece.keep(~taken), (users, piece.items[taken], SCALE.values(piece.codes[taken]))


def cut(piece, n):
    """The piece in n pieces of about as many users each."""
    from dpsim.core.records import Block

    borders = [number * piece.n // n for number in range(n + 1)]
    return [piece.part(Block(low, high - low)) for low, high in pairwise(borders)]


def noise_of(settings, stage):
    """The noise of a stage that has one."""
    return budget_of(settings).of(stage)


def rmse(model, train, test):
    users, items, ratings = test
    return float(np.sqrt(np.mean((model.predict(train, users, items) - ratings) ** 2)))
