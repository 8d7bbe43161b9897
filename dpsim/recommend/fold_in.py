"""Serving one user from the public model and the user's own ratings: local, at no loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.data.ratings import require_piece
from dpsim.recommend._pair_kernels import fold_rows
from dpsim.recommend.gram_settings import Head
from dpsim.recommend.ratings_matrix import RatingPiece, RatingScale
from dpsim.recommend.residuals import biases, places_of, residuals

Floats = NDArray[np.float64]
Items = NDArray[np.int32]

_RIDGE = 0.7
"""Variance of a rating around its prediction: a public guess."""


class PublicModel(Protocol):
    """What serving needs of a model: all of it is released."""

    @property
    def head(self) -> Head:
        """Whether ratings are predicted or items ranked."""

    @property
    def scale(self) -> RatingScale:
        """The public grid of ratings."""

    @property
    def bound(self) -> float:
        """Residuals are clipped to ± this."""

    @property
    def damping(self) -> float:
        """As many ratings at the mean pull a bias to 0."""

    @property
    def means(self) -> Floats:
        """Of each item of the catalog."""

    @property
    def counts(self) -> Floats:
        """Noisy count of each item."""

    @property
    def popular(self) -> Items:
        """Items with factors, ascending."""

    @property
    def factors(self) -> Floats:
        """One row per popular item."""


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """What the model makes of some users' own ratings; it belongs to them."""

    biases: Floats = field(repr=False)
    factors: Floats = field(repr=False)
    """One row per user: θ, or the sum of its items' factors for top-N."""


def fold_in(model: PublicModel, histories: RatingPiece) -> Folded:
    """Biases over all of each user's ratings, and θ over those of popular items.

    ``θ = (QᵀQ + 0.7 I)⁻¹ Qᵀx`` for ratings; ``Σ R_j`` over the user's items for top-N.
    """
    require_piece(histories, model.means.size, model.scale)
    places = places_of(model.popular, model.means.size)[histories.items]
    inside = histories.keep(places >= 0)
    kept = places[places >= 0]
    if model.head == "top_n":
        ends = np.concatenate(
            [np.zeros((1, model.factors.shape[1])), np.cumsum(model.factors[kept], axis=0)]
        )
        return Folded(np.zeros(histories.n), np.diff(ends[inside.indptr], axis=0))
    own = biases(histories, model.means, model.scale, model.damping)
    targets = residuals(inside, model.means, own, model.scale, model.bound)
    factors: Floats = fold_rows(inside.indptr, kept, targets, model.factors, _RIDGE)
    return Folded(own, factors)


def predict(
    model: PublicModel, histories: RatingPiece, users: NDArray[np.int64], items: Items
) -> Floats:
    """``clip(m_i + b_u + Q_i·θ_u)`` for pairs; users count from the histories' first."""
    if model.head != "ratings":
        raise InputError('this model ranks items; fit one with head = "ratings" to predict')
    if users.shape != items.shape:
        raise InputError("users and items must be pairs")
    if users.size and (users.min() < 0 or users.max() >= histories.n):
        raise InputError(f"users must lie in 0..{histories.n - 1}, places among the histories")
    if items.size and (items.min() < 0 or items.max() >= model.means.size):
        raise InputError(f"items must lie in 0..{model.means.size - 1}, the public catalog")
    folded = fold_in(model, histories)
    places = places_of(model.popular, model.means.size)[items]
    taste = np.zeros(users.size)
    known = places >= 0
    taste[known] = np.einsum(
        "ij,ij->i", model.factors[places[known]], folded.factors[users[known]]
    )
    low, high = float(model.scale.lo), float(model.scale.hi)
    return np.clip(model.means[items] + folded.biases[users] + taste, low, high)


def recommend(model: PublicModel, histories: RatingPiece, n: int) -> NDArray[np.int32]:
    """The n best items that each user has not rated, one row per user; -1 where none is left.

    Top-N: by co-count with the user's items, then items without a row in the Gram by noisy
    count; noisy popularity alone if the Gram showed nothing. Ratings: by prediction. Of equal
    items the first of the catalog comes first.
    """
    wanted = min(require_at_least(1, n=n), model.means.size)
    folded = fold_in(model, histories)
    best = np.full((histories.n, wanted), -1, np.int32)
    for user in range(histories.n):
        seen = histories.items[histories.indptr[user] : histories.indptr[user + 1]]
        order = _ranking(model, folded.factors[user])
        is_new = np.ones(model.means.size, np.bool_)
        is_new[seen] = False
        found = order[is_new[order]][:wanted]
        best[user, : found.size] = found
    return best


def _ranking(model: PublicModel, factors: Floats) -> NDArray[np.int64]:
    taste = model.factors @ factors
    if model.head == "ratings":
        scores = model.means.copy()
        scores[model.popular] += taste
        return np.argsort(-scores, kind="stable")
    if not factors.any():
        return np.argsort(-model.counts, kind="stable")
    scores = np.full(model.means.size, -np.inf)
    scores[model.popular] = taste
    return np.lexsort((np.arange(model.means.size), -model.counts, -scores))
