"""What a user adds to the Gram: residuals on popular items, weighted, on a grid of 2^-q."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.data.ratings import require_piece
from dpsim.recommend.gram_sensitivity import weight_caps
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.ratings_matrix import RatingPiece, RatingScale

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ResidualRows:
    """Sparse rows of whole numbers: each user's values at places of the popular items."""

    indptr: NDArray[np.int64] = field(repr=False)
    places: NDArray[np.int32] = field(repr=False)
    values: NDArray[np.int32] = field(repr=False)

    @property
    def n(self) -> int:
        """How many users."""
        return self.indptr.size - 1


def places_of(popular: NDArray[np.int32], n_items: int) -> NDArray[np.int32]:
    """Each item's place among the popular ones; -1 elsewhere."""
    places = np.full(n_items, -1, np.int32)
    places[popular] = np.arange(popular.size, dtype=np.int32)
    return places


def biases(piece: RatingPiece, means: Floats, scale: RatingScale, damping: float) -> Floats:
    """Each user's ``Σ clip(r - m, ±span/2)/(n + β)`` over the piece's ratings; 0 without any.

    Ratings are summed one after the other: the bits depend on the user alone.
    """
    half = scale.span / 2
    shares = np.clip(scale.values(piece.codes) - means[piece.items], -half, half)
    users = np.repeat(np.arange(piece.n), piece.sizes)
    sums = np.bincount(users, shares, piece.n)
    weights = piece.sizes + damping
    return np.where(piece.sizes > 0, sums / np.where(weights > 0, weights, 1), 0.0)


def residuals(
    piece: RatingPiece, means: Floats, user_biases: Floats, scale: RatingScale, bound: float
) -> Floats:
    """Each rating's ``clip(r - m - b, ±B)``."""
    expected = means[piece.items] + np.repeat(user_biases, piece.sizes)
    return np.clip(scale.values(piece.codes) - expected, -bound, bound)


def residual_rows(
    piece: RatingPiece, popular: NDArray[np.int32], means: Floats, settings: GramSettings
) -> ResidualRows:
    """The piece's rows ``trunc(2^q √w x)``; x is 1 for co-counts.

    Only ratings of popular items count, for n and b too: others cannot move the Gram.
    Truncation is towards 0, and no entry exceeds ⌊2^q B √w⌋, so that no norm grows.
    """
    _require_request(popular, means, settings)
    require_piece(piece, settings.n_items, settings.scale)
    places = places_of(popular, settings.n_items)
    inside = piece.keep(places[piece.items] >= 0)
    sizes = np.repeat(inside.sizes, inside.sizes)
    is_count = settings.head == "top_n"
    largest = Fraction(1) if is_count else settings.bound
    caps = weight_caps(settings.protects, settings.bits, largest, settings.popular)[sizes]
    if is_count:
        values = caps
    else:
        bound, scale = float(settings.bound), settings.scale
        user_biases = biases(inside, means, scale, float(settings.damping))
        power = -0.5 if settings.protects == "user" else -0.25
        roots = np.maximum(sizes, 1).astype(np.float64) ** power * 2.0**settings.bits
        exact_values = residuals(inside, means, user_biases, scale, bound) * roots
        values = np.clip(np.trunc(exact_values).astype(np.int64), -caps, caps)
    return ResidualRows(inside.indptr, places[inside.items], values.astype(np.int32))


def _require_request(popular: NDArray[np.int32], means: Floats, settings: GramSettings) -> None:
    if popular.shape != (settings.popular,) or np.any(np.diff(popular) <= 0):
        raise InputError(f"popular items must be {settings.popular}, ascending")
    if popular[0] < 0 or popular[-1] >= settings.n_items:
        raise InputError(f"popular items must lie in 0..{settings.n_items - 1}")
    if means.shape != (settings.n_items,) or not np.isfinite(means).all():
        raise InputError(f"means must be {settings.n_items} finite numbers, one per item")
