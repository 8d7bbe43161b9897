"""Lists of unseen items: the most popular ones, random ones, those next to what was rated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.recommend._item_kernels import rank_by_cosine, rank_unseen
from dpsim.recommend.ratings_matrix import Floats, RatingMatrix, RatingPiece

Ranked = NDArray[np.int32]
"""One row of items per user, best first; -1 where there are no more."""
_SCORES_AT_ONCE = 1 << 22


def rank(scores: Floats, seen: RatingPiece, n: int) -> Ranked:
    """The n unseen items with the largest scores, the lower item if equal.

    ``scores`` has a column per item and a row per user, or one row for all users.
    """
    require_at_least(1, n=n)
    if scores.ndim != 2 or scores.shape[0] not in (1, seen.n):  # noqa: PLR2004 - a matrix
        raise InputError(f"scores must have 1 row or {seen.n}, one per user")
    if not np.isfinite(scores).all():
        raise InputError("scores must be finite numbers")
    return rank_unseen(scores, seen.indptr, seen.items, n)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Popularity:
    """Items by how many ratings they have: of the truth, or of a private release."""

    counts: NDArray[np.int64] | Floats

    def top_n(self, history: RatingPiece, n: int) -> Ranked:
        """The n most rated items that each user has not rated."""
        return rank(np.asarray(self.counts, np.float64)[None], history, n)


@dataclass(frozen=True, slots=True)
class RandomItems:
    """Uniformly random unseen items, by the user's index."""

    n_items: int
    noise: CentralNoise

    def top_n(self, history: RatingPiece, n: int) -> Ranked:
        """Random items that each user has not rated, n of them."""
        require_at_least(1, n=n)
        lists = [np.zeros((0, n), np.int32)]
        for block in history.block.parts(max(1, _SCORES_AT_ONCE // self.n_items)):
            size, start = block.n * self.n_items, block.start * self.n_items
            scores = self.noise.uniforms(Purpose.START, "random items", size, start)
            lists.append(rank(scores.reshape(block.n, -1), history.part(block), n))
        return np.concatenate(lists)


@dataclass(frozen=True, slots=True, eq=False)
class ItemCosine:
    """Items next to what the user rated: the sum of the k largest cosines.

    The cosine of two items is that of their 0/1 columns: |both| / √(|i| |j|). It takes a
    step per item of the catalog and rating of the history, and the memory of one row of pairs.

    References:
        Deshpande, Karypis. Item-based top-N recommendation algorithms. ACM TOIS 22, 2004.
    """

    matrix: RatingMatrix
    k: int = 20

    def __post_init__(self) -> None:
        require_at_least(1, k=self.k)

    def top_n(self, history: RatingPiece, n: int) -> Ranked:
        """The n best items that each user has not rated."""
        require_at_least(1, n=n)
        matrix, ones = self.matrix, np.ones(self.matrix.n_ratings)
        columns = (matrix.item_ends, matrix.item_users, ones)
        rows = (matrix.piece.indptr, matrix.piece.items, ones)
        seen = (history.indptr, history.items)
        return rank_by_cosine(self.k, n, columns, rows, seen)  # type: ignore[no-any-return]
