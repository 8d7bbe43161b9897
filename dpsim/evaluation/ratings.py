"""How good predicted ratings and recommended items are: sees the truth, so evaluation only.

What these functions return is computed from private test ratings and is not private.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.recommend.ratings_matrix import RatingPiece

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class RatingErrors:
    """Errors of predictions over test ratings."""

    n: int
    mae: float
    rmse: float
    user_rmse: float
    """The mean over users of each one's own RMSE."""
    coverage: float
    """The share of ratings that were predicted from more than a mean."""


def rating_errors(
    truth: Floats,
    predicted: Floats,
    users: Indices,
    is_covered: NDArray[np.bool_] | None = None,
) -> RatingErrors:
    """Errors of predictions of the users' test ratings; nan if there are none."""
    errors = _same(truth, predicted, users)
    if not errors.size:
        return RatingErrors(0, *[float("nan")] * 4)
    _, places, sizes = np.unique(users, return_inverse=True, return_counts=True)
    own = np.bincount(places, errors**2) / sizes
    covered = 1.0 if is_covered is None else float(np.mean(is_covered))
    return RatingErrors(
        errors.size,
        float(np.mean(np.abs(errors))),
        float(np.sqrt(np.mean(errors**2))),
        float(np.mean(np.sqrt(own))),
        covered,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Quartiles:
    """Users by activity or items by popularity: four groups by training counts."""

    cuts: tuple[float, ...]
    """The largest count of each group but the last: groups are closed on the right."""
    groups: NDArray[np.int64] = field(repr=False)
    """The group 0..3 of each user or item."""

    @classmethod
    def of(cls, counts: Indices) -> Quartiles:
        """Groups by the quartiles of the counts."""
        if not np.size(counts):
            raise InputError("quartiles need at least one count")
        cuts = np.quantile(counts, (0.25, 0.5, 0.75))
        groups = np.searchsorted(cuts, np.asarray(counts), side="left")
        return cls(tuple(float(cut) for cut in cuts), groups.astype(np.int64))


def rating_errors_by(
    groups: Indices, truth: Floats, predicted: Floats, users: Indices
) -> tuple[RatingErrors, ...]:
    """Errors of each of the groups 0..3; one group per test rating is given."""
    _same(truth, predicted, users)
    masks = [np.asarray(groups) == group for group in range(4)]
    return tuple(rating_errors(truth[m], predicted[m], users[m]) for m in masks)


@dataclass(frozen=True, slots=True)
class RankingQuality:
    """How well lists of n items find the relevant ones; means over users with at least one."""

    users: int
    precision: float
    recall: float
    ndcg: float
    hit_rate: float
    coverage: float
    """Distinct recommended items, as a share of the catalog."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingScores:
    """The measures of each user with at least one relevant item, to be averaged by group."""

    users: NDArray[np.int64] = field(repr=False)
    """Places of these users in the piece."""
    hits: NDArray[np.int64] = field(repr=False)
    precision: Floats = field(repr=False)
    recall: Floats = field(repr=False)
    ndcg: Floats = field(repr=False)
    coverage: float

    def quality(self, kept: NDArray[np.bool_] | None = None) -> RankingQuality:
        """Means over all of these users, or some; nan if there are none."""
        chosen = np.ones(self.users.size, np.bool_) if kept is None else kept
        columns = (self.precision, self.recall, self.ndcg, (self.hits > 0).astype(float))
        n = int(np.count_nonzero(chosen))
        precision, recall, ndcg, hit_rate = (
            float(np.mean(column[chosen])) if n else float("nan") for column in columns
        )
        return RankingQuality(n, precision, recall, ndcg, hit_rate, self.coverage)

    def quality_by(self, groups: Indices) -> tuple[RankingQuality, ...]:
        """Means over each of the groups 0..3; one group per user of the piece is given."""
        mine = np.asarray(groups)[self.users]
        return tuple(self.quality(mine == group) for group in range(4))


def relevant_ratings(test: RatingPiece, least_code: int) -> RatingPiece:
    """The test ratings that count as relevant: those with at least this code."""
    return test.keep(test.codes >= least_code)


def ranking_scores(
    ranked: NDArray[np.int32], relevant: RatingPiece, n_items: int
) -> RankingScores:
    """Precision, recall, NDCG and hits of each user's list of N items, -1 for none.

    P = hits/N, R = hits/#relevant, NDCG = Σ hit_p / log2(p + 1), divided by the same sum for
    min(N, #relevant) leading hits.
    """
    hits, sizes = _hits(ranked, relevant), relevant.sizes
    length = ranked.shape[1]
    gains = 1 / np.log2(np.arange(2, length + 2))
    best = np.concatenate([[0.0], np.cumsum(gains)])
    users = np.flatnonzero(sizes > 0)
    found, sizes = hits[users].sum(axis=1), sizes[users]
    distinct = np.unique(ranked[ranked >= 0]).size
    return RankingScores(
        users,
        found,
        found / length,
        found / sizes,
        hits[users] @ gains / best[np.minimum(sizes, length)],
        distinct / n_items,
    )


def recall_by_popularity(
    ranked: NDArray[np.int32], relevant: RatingPiece, item_groups: Indices
) -> tuple[float, ...]:
    """Of the relevant ratings of items in each of the groups 0..3, the share that was found."""
    groups = np.asarray(item_groups)
    hits = _hits(ranked, relevant)
    found = np.bincount(groups[ranked[hits]], minlength=4)
    wanted = np.bincount(groups[relevant.items], minlength=4)
    return tuple(
        float(part / whole) if whole else float("nan")
        for part, whole in zip(found, wanted, strict=True)
    )


def _hits(ranked: NDArray[np.int32], relevant: RatingPiece) -> NDArray[np.bool_]:
    if ranked.ndim != 2 or ranked.shape[0] != relevant.n:  # noqa: PLR2004 - a matrix
        raise InputError(f"there must be {relevant.n} lists, one per user of the piece")
    require_at_least(1, n=ranked.shape[1])
    size = int(max(ranked.max(initial=0), relevant.items.max(initial=0))) + 1
    wanted = (relevant.users - relevant.start) * size + relevant.items
    listed = np.arange(relevant.n)[:, None] * size + ranked
    return np.isin(listed, wanted) & (ranked >= 0)


def _same(truth: Floats, predicted: Floats, users: Indices) -> Floats:
    if not np.shape(truth) == np.shape(predicted) == np.shape(users):
        raise InputError("truth, predicted and users must have the same length")
    errors: Floats = np.asarray(predicted, np.float64) - truth
    return errors
