"""Ratings as recommenders see them: sparse rows by user, and the same ratings by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.data.ratings import RatingPiece, RatingScale, require_piece
from dpsim.recommend._item_kernels import by_item

__all__ = ["Floats", "Indices", "RatingMatrix", "RatingPiece", "RatingScale", "require_indices"]

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]
"""Users or items, by their index."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RatingMatrix:
    """The ratings of all users 0..n-1 in one place, as a trusted host holds them.

    Ratings are counted in the scale's units, so that sums of ratings and of their products
    are whole numbers: exact, and the same in any order.
    """

    n_items: int
    scale: RatingScale
    piece: RatingPiece
    units: Floats = field(init=False)
    """Each rating, in units, in the order of the piece."""
    item_ends: NDArray[np.int64] = field(init=False)
    item_users: NDArray[np.int32] = field(init=False)
    item_units: Floats = field(init=False)
    """Item i is rated by ``item_users[item_ends[i]:item_ends[i + 1]]``, who ascend."""
    counts: NDArray[np.int64] = field(init=False)
    sums: Floats = field(init=False)
    squares: Floats = field(init=False)
    """Per item: how many ratings, their sum in units and that of their squares."""

    def __post_init__(self) -> None:
        piece = require_piece(self.piece, self.n_items, self.scale)
        units = self.scale.units(piece.codes)
        columns = by_item(self.n_items, piece.indptr, piece.items, units)
        fields = ("item_ends", "item_users", "item_units", "counts", "sums", "squares")
        for name, value in zip(fields, columns, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "units", units)

    @property
    def n_users(self) -> int:
        """How many users."""
        return self.piece.n

    @property
    def n_ratings(self) -> int:
        """How many ratings."""
        return self.piece.items.size

    @property
    def unit(self) -> float:
        """What one unit is worth on the scale."""
        return float(self.scale.unit)

    @property
    def mean(self) -> float:
        """The mean of all ratings; the middle of the scale if there are none."""
        if not self.n_ratings:
            return float((self.scale.lo + self.scale.hi) / 2)
        return float(self.sums.sum()) / self.n_ratings * self.unit

    @property
    def item_means(self) -> Floats:
        """The mean rating of each item; the mean of all ratings if it has none."""
        means: Floats = self.sums / np.maximum(self.counts, 1) * self.unit
        return np.where(self.counts > 0, means, self.mean)

    def clip(self, ratings: Floats) -> Floats:
        """The nearest numbers within the scale."""
        return np.clip(ratings, float(self.scale.lo), float(self.scale.hi))

    def __repr__(self) -> str:
        shape = f"{self.n_users} users, {self.n_items} items, {self.n_ratings} ratings"
        return f"RatingMatrix({shape})"


def require_indices(values: Indices, start: int, n: int, name: str) -> NDArray[np.int64]:
    """A list of indices from ``start`` to ``start + n - 1``."""
    indices = np.asarray(values, np.int64)
    if indices.ndim != 1:
        raise InputError(f"{name} must be a list of indices")
    if indices.size and (int(indices.min()) < start or int(indices.max()) >= start + n):
        raise InputError(f"{name} must lie in {start}..{start + n - 1}")
    return indices
