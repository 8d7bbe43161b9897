"""Ratings predicted from similar items: the machinery that private and exact methods share."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose, key_of
from dpsim.recommend._query_kernels import predict_catalog, predict_rated
from dpsim.recommend.ratings_matrix import (
    Floats,
    Indices,
    RatingMatrix,
    RatingPiece,
    require_indices,
)
from dpsim.recommend.similarity import Similarity, kernel_model

Pool: TypeAlias = Literal["rated", "catalog"]
Key: TypeAlias = tuple[np.uint64, np.uint64]
NO_KEYS: tuple[Key, Key] = ((np.uint64(0), np.uint64(0)), (np.uint64(0), np.uint64(0)))


@dataclass(frozen=True, slots=True)
class Choice:
    """How neighbors are chosen and weighed; without ε, the most similar and exactly."""

    similarity: Similarity
    k: int
    """How many; 0 for half of the candidates."""
    pool: Pool = "rated"
    candidates: int | None = None
    min_candidates: int = 1
    is_absolute: bool = False
    epsilon: float = inf
    shrink: float = 1.0
    rho: float = 0.5
    is_v_ratings: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predicted ratings, one per query, and how they came about."""

    ratings: Floats = field(repr=False)
    used: NDArray[np.int64] = field(repr=False)
    """How many neighbors took part; with 0 of them, the item's mean is the prediction."""
    candidates: NDArray[np.int64] = field(repr=False)
    omega_active: NDArray[np.bool_] = field(repr=False)
    """Whether the truncation did anything: ω < s_k."""
    sensitivities: NDArray[np.int64] = field(repr=False)
    """Candidates by RS, in equal bins from 0 to 1."""

    @property
    def is_covered(self) -> NDArray[np.bool_]:
        """Whether a neighbor took part."""
        return self.used > 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NeighborModel:
    """Training ratings, ready to predict from. Rows of pairs are made when they are asked for.

    Memory is that of the ratings: no item-by-item matrix is ever held.
    """

    matrix: RatingMatrix
    choice: Choice
    _model: Any = field(init=False)

    def __post_init__(self) -> None:
        is_private = self.choice.epsilon < inf
        model = kernel_model(self.matrix, self.choice.similarity, is_private=is_private)
        object.__setattr__(self, "_model", model)

    def predict(
        self,
        users: Indices,
        items: Indices,
        noise: CentralNoise | None = None,
        history: RatingPiece | None = None,
    ) -> Predictions:
        """One rating per pair of user and item.

        What the user rated is taken from ``history`` if it is given: so users who were not in
        the training ratings are served, too. A prediction depends on its query alone, not on
        what else is asked.
        """
        matrix, choice = self.matrix, self.choice
        queries = queries_of(users, items, history or matrix.piece, matrix.n_items)
        kernel = predict_rated if choice.pool == "rated" else predict_catalog
        units, counts, active, bins = kernel(
            queries, self._model, self._history(history), self._settings, self._keys(noise)
        )
        ratings = matrix.clip(units * matrix.unit)
        return Predictions(ratings, counts[0], counts[1], active, bins)

    @property
    def _settings(self) -> tuple[float, float, float, float, int, int, int, int, bool]:
        choice, matrix = self.choice, self.matrix
        v = float(matrix.counts.max(initial=0)) if choice.is_v_ratings else 0.0
        limit = matrix.n_items if choice.candidates is None else choice.candidates
        width = 3 if choice.epsilon < inf else 1
        return (
            choice.epsilon, choice.shrink, choice.rho, v, choice.k, choice.min_candidates,
            limit, width, choice.is_absolute,
        )  # fmt: skip

    def _history(self, history: RatingPiece | None) -> tuple[Any, Any, Any]:
        if history is None:
            return self._model[1]  # type: ignore[no-any-return]
        return history.indptr, history.items, self.matrix.scale.units(history.codes)

    def _keys(self, noise: CentralNoise | None) -> tuple[Key, Key]:
        if self.choice.epsilon == inf:
            return NO_KEYS
        if noise is None:
            raise InputError("a finite epsilon needs noise: pass CentralNoise(seed, plan hash)")
        return self._key(noise, Purpose.SELECT), self._key(noise, Purpose.MEASURE)

    def _key(self, noise: CentralNoise, purpose: Purpose) -> Key:
        subject = f"neighbors {self.choice.pool}"
        first, second = key_of((noise.seed, purpose.value, noise.plan_hash, subject))
        return first, second


def queries_of(
    users: Indices,
    items: Indices,
    history: RatingPiece,
    n_items: int,
) -> tuple[NDArray[np.int64], ...]:
    """The order by item, then per query the user's row, the noise's place and the item."""
    who = require_indices(users, history.start, history.n, "users")
    what = require_indices(items, 0, n_items, "items")
    if who.size != what.size:
        raise InputError("users and items must be two lists of the same length")
    rows = who - history.start
    return np.argsort(what, kind="stable"), rows, who * n_items + what, what
