"""Whether a synthetic table keeps what binds attributes together: mutual information."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.evaluation.marginals import MAX_SUBSETS, Survey, survey
from dpsim.synthesis.table import CodeTable

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DependenceError:
    """How far the pairwise mutual information of a table is from the truth's, in nats."""

    error: float
    """The mean over pairs of |I - I'|."""
    truth: Matrix
    synthetic: Matrix


def mutual_information(table: CodeTable) -> Matrix:
    """I(a; b) = H(a) + H(b) - H(a, b) of all pairs, plug-in, in nats; H(a) on the diagonal.

    Above 10,000 pairs those of a fixed sample; the others are nan.
    """
    singles, pairs = (survey(table, (), alpha, table.n) for alpha in _both(table))
    return _matrix(singles, pairs, 0)


def dependence_error(truth: CodeTable, synthetic: CodeTable) -> DependenceError:
    """The mean error of pairwise mutual information, and both matrices for figures.

    Plug-in on both sides: the bias of few rows is in both, but does not cancel. So a bootstrap
    of the truth shows an error above 0.
    """
    rows = synthetic.n
    singles, pairs = (survey(truth, (synthetic,), alpha, rows) for alpha in _both(truth))
    error = dependence_error_of(singles, pairs)
    return DependenceError(error, _matrix(singles, pairs, 0), _matrix(singles, pairs, 1))


def dependence_error_of(singles: Survey, pairs: Survey, table: int = 0) -> float:
    """The error of one of the tables of two surveys, of attributes and of pairs."""
    truth, other = (_information(singles, pairs, column) for column in (0, table + 1))
    return fsum(np.abs(truth - other)) / truth.size


def _both(table: CodeTable) -> tuple[int, int]:
    """One and two attributes: the marginals that mutual information is made of."""
    if not 2 <= len(table.sizes) <= MAX_SUBSETS:  # noqa: PLR2004
        raise InputError(
            f"dependence needs 2 to {MAX_SUBSETS:,} attributes, got {len(table.sizes):,}"
        )
    return 1, 2


def _information(singles: Survey, pairs: Survey, column: int) -> NDArray[np.float64]:
    """The mutual information of each compared pair."""
    own = singles.entropies[:, column]
    one, other = np.array(pairs.subsets).T
    # Rounding may leave independent attributes a last bit below 0.
    found: NDArray[np.float64] = own[one] + own[other] - pairs.entropies[:, column]
    return np.maximum(found, 0.0)


def _matrix(singles: Survey, pairs: Survey, column: int) -> Matrix:
    matrix = np.full((singles.d, singles.d), np.nan)
    np.fill_diagonal(matrix, singles.entropies[:, column])
    one, other = np.array(pairs.subsets).T
    matrix[one, other] = matrix[other, one] = _information(singles, pairs, column)
    return matrix
