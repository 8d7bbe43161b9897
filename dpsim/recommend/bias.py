"""Ratings predicted without neighbors: means, and what users and items are above them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpsim.recommend.ratings_matrix import (
    Floats,
    Indices,
    RatingMatrix,
    RatingPiece,
    require_indices,
)

_ITEM_PRIOR = 4.0
_USER_PRIOR = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class GlobalMean:
    """The mean of all ratings, for everyone."""

    matrix: RatingMatrix

    def predict(
        self,
        users: Indices,  # noqa: ARG002 - one signature for all predictors
        items: Indices,
        history: RatingPiece | None = None,  # noqa: ARG002
    ) -> Floats:
        """One rating per pair of user and item."""
        return np.full(np.shape(items), self.matrix.mean)


@dataclass(frozen=True, slots=True, eq=False)
class ItemMean:
    """The mean rating of the item; the mean of all ratings if it has none."""

    matrix: RatingMatrix

    def predict(
        self,
        users: Indices,  # noqa: ARG002 - one signature for all predictors
        items: Indices,
        history: RatingPiece | None = None,  # noqa: ARG002
    ) -> Floats:
        """One rating per pair of user and item."""
        means: Floats = self.matrix.item_means[
            require_indices(items, 0, self.matrix.n_items, "items")
        ]
        return means


@dataclass(frozen=True, slots=True, eq=False)
class BiasModel:
    """Item means drawn towards the mean G of all, and how far a user lies above them.

    In formulas::

        m_i = G + Σ (r - G) / (C_i + 4)
        b_u = Σ clip(r - m_i, ±span/2) / (n_u + 10)       r̂ = m_i + b_u, clipped to the scale

    It is the bias part of the private recommender at ε = ∞. No privacy.
    """

    matrix: RatingMatrix
    means: Floats = field(init=False, repr=False)
    """m_i of each item."""

    def __post_init__(self) -> None:
        matrix = self.matrix
        above = matrix.sums * matrix.unit - matrix.counts * matrix.mean
        object.__setattr__(self, "means", matrix.mean + above / (matrix.counts + _ITEM_PRIOR))

    def user_biases(self, history: RatingPiece | None = None) -> Floats:
        """b_u of each user of the history; of the training users without one."""
        piece = history or self.matrix.piece
        half = self.matrix.scale.span / 2
        above = self.matrix.scale.values(piece.codes) - self.means[piece.items]
        rows = piece.users - piece.start
        sums = np.bincount(rows, np.clip(above, -half, half), minlength=piece.n)
        biases: Floats = sums / (piece.sizes + _USER_PRIOR)
        return biases

    def residuals(self, history: RatingPiece | None = None) -> Floats:
        """What is left of each rating of the history: r - m_i - b_u."""
        piece = history or self.matrix.piece
        base = self.means[piece.items] + self.user_biases(piece)[piece.users - piece.start]
        return self.matrix.scale.values(piece.codes) - base

    def base(
        self, users: Indices, items: Indices, history: RatingPiece | None = None
    ) -> Floats:
        """``m_i + b_u`` per pair, not clipped."""
        piece = history or self.matrix.piece
        rows = require_indices(users, piece.start, piece.n, "users") - piece.start
        places = require_indices(items, 0, self.matrix.n_items, "items")
        base: Floats = self.means[places] + self.user_biases(history)[rows]
        return base

    def predict(
        self, users: Indices, items: Indices, history: RatingPiece | None = None
    ) -> Floats:
        """One rating per pair of user and item."""
        return self.matrix.clip(self.base(users, items, history))
