"""Compiled loops over the users and the cells of marginals."""

from __future__ import annotations

from math import exp, lgamma, log, log1p, sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Codes = NDArray[np.unsignedinteger[Any]]
Cells = NDArray[np.int64]
Whole = NDArray[np.integer[Any]]


@njit(cache=True, nogil=True)
def extend_cells(cells: Whole, codes: Codes, size: int) -> Cells:
    """The compound codes of one attribute more, which counts fastest."""
    extended = np.empty(cells.size, np.int64)
    for i in range(cells.size):
        extended[i] = np.int64(cells[i]) * size + np.int64(codes[i])
    return extended


@njit(cache=True, nogil=True)
def count_cells(cells: Whole, codes: Codes, size: int, counts: Cells) -> None:
    """Add one to ``counts`` for each user, in the cell of compound code and code."""
    for i in range(cells.size):
        counts[np.int64(cells[i]) * size + np.int64(codes[i])] += 1


@njit(cache=True, nogil=True)
def mean_deviation(count: int, n: int, rows: int) -> float:
    """E|X - rows·p| of a binomial X of ``rows`` trials with p = count/n, exactly.

    De Moivre: with k = ⌊rows·p⌋ it is ``2 p^(k+1) (1-p)^(rows-k) rows! / (k! (rows-k-1)!)``.
    """
    if count <= 0 or count >= n:
        return 0.0
    whole = rows * count // n
    ways = lgamma(rows + 1.0) - lgamma(whole + 1.0) - lgamma(float(rows - whole))
    share = count / n
    return 2 * exp(ways + (whole + 1) * log(share) + (rows - whole) * log1p(-share))


@njit(cache=True, nogil=True)
def compare_cells(
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
) -> None:
    """Sums over the cells c of the truth (row 0) against c' of each other table (row j).

    ``whole[j]`` gets Σ|c n' - c' n|, Σ c c' and Σ c'²; ``real[j]`` gets Σ c' ln c' and
    Σ √(c' (n' - c')). Cells are added from the first to the last: neither empty cells nor the
    order of the users change a bit.
    """
    n = totals[0]
    for j in range(counts.shape[0]):
        rows = totals[j]
        apart = products = squares = 0
        logs = roots = 0.0
        for cell in range(counts.shape[1]):
            truth, other = counts[0, cell], counts[j, cell]
            apart += abs(truth * rows - other * n)
            products += truth * other
            if other > 0:
                squares += other * other
                logs += other * log(other)
                roots += sqrt(float(other) * float(rows - other))
        whole[j, 0], whole[j, 1], whole[j, 2] = apart, products, squares
        real[j, 0], real[j, 1] = logs, roots


@njit(cache=True, nogil=True)
def sum_deviations(counts: Cells, n: int, rows: int, known: NDArray[np.float64]) -> float:
    """Σ of `mean_deviation` over the cells; ``known`` remembers it by count, < 0 if unknown."""
    total = 0.0
    for cell in range(counts.size):
        count = counts[cell]
        if count > 0:
            if known[count] < 0:
                known[count] = mean_deviation(count, n, rows)
            total += known[count]
    return total
