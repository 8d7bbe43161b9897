"""Loops over pairs of one user's items, and over one user's few equations."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def add_pairs(
    indptr: NDArray[np.int64],
    places: NDArray[np.int32],
    values: NDArray[np.int32],
    rows: tuple[int, int],
    size: int,
    packed: NDArray[np.int64],
) -> None:
    """Add each user's products of pairs to the packed rows ``first .. stop - 1``."""
    first, stop = rows
    origin = first * (2 * size - first - 1) // 2
    for user in range(indptr.size - 1):
        end = indptr[user + 1]
        for left in range(indptr[user], end):
            row = np.int64(places[left])
            if row < first or row >= stop:
                continue
            base = row * (2 * size - row - 1) // 2 - row - 1 - origin
            value = np.int64(values[left])
            for right in range(left + 1, end):
                packed[base + places[right]] += value * np.int64(values[right])


@njit(inline="always")
def _solve(matrix: Floats, vector: Floats) -> None:
    """Turn the vector b into x with ``(L Lᵀ) x = b``, given the lower half of L Lᵀ."""
    rank = vector.size
    for row in range(rank):
        for column in range(row + 1):
            left = matrix[row, column]
            for inner in range(column):
                left -= matrix[row, inner] * matrix[column, inner]
            matrix[row, column] = sqrt(left) if row == column else left / matrix[column, column]
        for inner in range(row):
            vector[row] -= matrix[row, inner] * vector[inner]
        vector[row] /= matrix[row, row]
    for row in range(rank - 1, -1, -1):
        for inner in range(row + 1, rank):
            vector[row] -= matrix[inner, row] * vector[inner]
        vector[row] /= matrix[row, row]


@njit(cache=True, nogil=True)
def fold_rows(
    indptr: NDArray[np.int64],
    places: NDArray[np.int32],
    targets: Floats,
    factors: Floats,
    ridge: float,
) -> Floats:
    """Each user's θ = (QᵀQ + ridge I)⁻¹ Qᵀx over its own items, by Cholesky's method."""
    rank = factors.shape[1]
    thetas = np.zeros((indptr.size - 1, rank))
    matrix = np.empty((rank, rank))
    for user in range(indptr.size - 1):
        theta = thetas[user]
        matrix[:] = 0.0
        for row in range(rank):
            matrix[row, row] = ridge
        for at in range(indptr[user], indptr[user + 1]):
            factor = factors[places[at]]
            for row in range(rank):
                theta[row] += factor[row] * targets[at]
                for column in range(row + 1):
                    matrix[row, column] += factor[row] * factor[column]
        _solve(matrix, theta)
    return thetas
