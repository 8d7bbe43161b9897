"""Item-based neighbors without privacy: what the private methods are measured against."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import numpy as np

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.recommend._item_kernels import by_item
from dpsim.recommend._query_kernels import predict_rated
from dpsim.recommend.bias import BiasModel
from dpsim.recommend.neighbors import NO_KEYS, Choice, NeighborModel, queries_of
from dpsim.recommend.ratings_matrix import Floats, Indices, RatingMatrix, RatingPiece
from dpsim.recommend.similarity import SIMILARITIES


@dataclass(frozen=True, slots=True)
class ItemKNN:
    """Predict from the k most similar items that the user rated.

    With the cosine or Pearson's correlation of ratings, missing = 0::

        r̂ = r̄_i + Σ_j s(i,j) (r_aj - r̄_j) / Σ_j s(i,j), clipped to the scale

    With ``residual``, s is the cosine of what the bias model leaves, x = r - m_i - b_u::

        r̂ = m_i + b_a + Σ_j s(i,j) x_aj / Σ_j s(i,j), clipped to the scale

    j runs over the k largest s(i,j) > 0, of equal ones the item that comes first; without such
    an item the sum is left out. Ratings themselves also carry who rates what, which helps on
    catalogs where people rate what they like; residuals carry tastes alone. No privacy.

    References:
        Sarwar, Karypis, Konstan, Riedl. Item-based collaborative filtering recommendation
        algorithms. WWW 2001.
        Koren. Factor in the neighbors: scalable and accurate collaborative filtering. ACM
        TKDD 4, 2010.
    """

    k: int = 20
    similarity: Literal["cosine", "pearson", "residual"] = "pearson"

    def __post_init__(self) -> None:
        require_at_least(1, k=self.k)
        if self.similarity not in (kinds := (*SIMILARITIES, "residual")):
            raise InputError(f"similarity must be one of {kinds}, got {self.similarity!r}")

    def fit(self, matrix: RatingMatrix) -> RatingNeighbors | ResidualNeighbors:
        """The method on training ratings."""
        if self.similarity == "residual":
            return ResidualNeighbors(self.k, BiasModel(matrix))
        return RatingNeighbors(NeighborModel(matrix, Choice(self.similarity, self.k)))


@dataclass(frozen=True, slots=True, eq=False)
class RatingNeighbors:
    """Training ratings, ready to predict from by similar ratings."""

    model: NeighborModel

    def predict(
        self, users: Indices, items: Indices, history: RatingPiece | None = None
    ) -> Floats:
        """One rating per pair of user and item."""
        return self.model.predict(users, items, history=history).ratings


@dataclass(frozen=True, slots=True, eq=False)
class ResidualNeighbors:
    """Training ratings, ready to predict from by similar residuals."""

    k: int
    bias: BiasModel
    _model: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix, left, nothing = self.bias.matrix, self.bias.residuals(), np.zeros(0)
        ends, users, values, _, _, squares = by_item(
            matrix.n_items, matrix.piece.indptr, matrix.piece.items, left
        )
        norms, zeros = np.sqrt(squares), np.zeros(matrix.n_items)
        rows = (matrix.piece.indptr, matrix.piece.items, left)
        facts = (1.0, zeros, norms, norms)
        model = ((ends, users, values), rows, (nothing, nothing), facts, zeros)
        object.__setattr__(self, "_model", model)

    def predict(
        self, users: Indices, items: Indices, history: RatingPiece | None = None
    ) -> Floats:
        """One rating per pair of user and item."""
        matrix, rows = self.bias.matrix, self._model[1]
        queries = queries_of(users, items, history or matrix.piece, matrix.n_items)
        if history is not None:
            rows = (history.indptr, history.items, self.bias.residuals(history))
        settings = (inf, 1.0, 0.5, 0.0, self.k, 1, matrix.n_items, 1, False)
        left = predict_rated(queries, self._model, rows, settings, NO_KEYS)[0]
        return matrix.clip(self.bias.base(users, items, history) + left)
