"""Similarities of items: cosine and Pearson's correlation, from exact sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError, ResourceError
from dpsim.recommend._item_kernels import inverse_norms, similarity_rows
from dpsim.recommend.ratings_matrix import Floats, RatingMatrix

Similarity: TypeAlias = Literal["cosine", "pearson"]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "pearson")
MATRIX_BYTES = 1_600_000_000
"""The most that one item-by-item matrix may take: 20,000 items in float32."""
_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class PairFacts:
    """A similarity as ``(c · r_i·r_j - a_i a_j) / (b_i b_j)``, over all users, missing = 0.

    Cosine: c = 1, a = 0, b = ‖r‖. Pearson, with population moments over n users: c = n, a the
    sums and b = √(n ‖r‖² - a²); an item that does not vary has similarity 0.
    """

    factor: float
    shifts: Floats
    scales: Floats
    norms: Floats

    @classmethod
    def of(cls, matrix: RatingMatrix, similarity: Similarity) -> PairFacts:
        """What the similarity needs to know about each item."""
        norms = np.sqrt(matrix.squares)
        if similarity == "cosine":
            return cls(1.0, np.zeros(matrix.n_items), norms, norms)
        if similarity == "pearson":
            spread = matrix.n_users * matrix.squares - matrix.sums**2
            return cls(float(matrix.n_users), matrix.sums, np.sqrt(spread), norms)
        raise InputError(f"similarity must be one of {SIMILARITIES}, got {similarity!r}")

    @property
    def arrays(self) -> tuple[float, Floats, Floats, Floats]:
        """As kernels take them."""
        return self.factor, self.shifts, self.scales, self.norms


def kernel_model(matrix: RatingMatrix, similarity: Similarity, *, is_private: bool) -> Any:  # noqa: ANN401 - nested tuples of arrays
    """All that a kernel needs of the training ratings; inverse norms only for sensitivities."""
    piece, nothing = matrix.piece, np.zeros(0)
    inverses = (nothing, nothing)
    if is_private:
        item_of = np.repeat(np.arange(matrix.n_items, dtype=np.int32), matrix.counts)
        inverses = (
            inverse_norms(matrix.units, piece.items, matrix.squares),
            inverse_norms(matrix.item_units, item_of, matrix.squares),
        )
    return (
        (matrix.item_ends, matrix.item_users, matrix.item_units),
        (piece.indptr, piece.items, matrix.units),
        inverses,
        PairFacts.of(matrix, similarity).arrays,
        matrix.item_means / matrix.unit,
    )


def similarity_matrix(
    matrix: RatingMatrix, similarity: Similarity = "cosine", limit: int = MATRIX_BYTES
) -> NDArray[np.float32]:
    """All pairs; 1 on the diagonal. Refused where it would take more bytes than the limit."""
    return pair_matrix(matrix, similarity_rows, similarity, limit)


def pair_matrix(
    matrix: RatingMatrix,
    kernel: Callable[[int, NDArray[np.float32], Any], None],
    similarity: Similarity,
    limit: int,
) -> NDArray[np.float32]:
    """An item-by-item matrix from a kernel that fills rows, in blocks of rows."""
    size = 4 * matrix.n_items**2
    if size > limit:
        raise ResourceError(
            f"a matrix of all pairs of {matrix.n_items:,} items takes {size / 1e9:.1f} GB, "
            f"more than the limit of {limit / 1e9:.1f} GB; predictions need no such matrix"
        )
    model = kernel_model(matrix, similarity, is_private=kernel is not similarity_rows)
    pairs = np.empty((matrix.n_items, matrix.n_items), np.float32)
    for first in range(0, matrix.n_items, _ROWS):
        kernel(first, pairs[first : first + _ROWS], model)
    return pairs
