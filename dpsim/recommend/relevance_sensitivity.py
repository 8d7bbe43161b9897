"""Recommendation-aware sensitivity: how much one co-rater moves the cosine of two items.

It is what the private-neighbor method scales its noise by, and it is no sensitivity that
differential privacy could use: it depends on the data, and it looks at co-raters only.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.recommend._item_kernels import sensitivity_rows
from dpsim.recommend.ratings_matrix import RatingMatrix
from dpsim.recommend.similarity import MATRIX_BYTES, pair_matrix


def relevance_sensitivity(
    matrix: RatingMatrix, limit: int = MATRIX_BYTES
) -> NDArray[np.float32]:
    """RS of all pairs; 0 on the diagonal and where nobody rated both.

    In formulas::

        RS(i,j) = min(1, max over co-raters x of max{ r_xi r_xj / N', r_i·r_j (N - N')/(N N') })

    N = ‖r_i‖ ‖r_j‖, N' the same without x; a term with N' = 0 counts as 1. Removing x changes
    the cosine by the difference of the two parts, which are both ≥ 0: so by no more than RS.
    Ratings must therefore be ≥ 0, and users who rated one of the two items are overlooked.
    """
    require_non_negative(matrix)
    return pair_matrix(matrix, sensitivity_rows, "cosine", limit)


def require_non_negative(matrix: RatingMatrix) -> None:
    """Refuse a scale on which RS bounds nothing."""
    if matrix.scale.lo < 0:
        raise InputError(f"RS needs ratings >= 0, not a scale of {matrix.scale}")


def shrink_factor(beta: float) -> float:
    """``e^-β``: what the method multiplies RS by, and calls smoothing."""
    return exp(-beta)
