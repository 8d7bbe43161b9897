"""How far a release is from the truth, query by query: for evaluation only."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QueryErrors:
    """Of |q(A) - q(B)| over a workload's queries: the largest, least, mean square, mean."""

    max: float
    min: float
    mse: float
    mean: float

    @classmethod
    def of(cls, answers: Floats, truth: NDArray[np.number]) -> QueryErrors:
        """The errors of one release."""
        misses = np.abs(np.asarray(answers, np.float64) - truth)
        if not misses.size:
            raise InputError("errors need one query at least, got none")
        figures = misses.max(), misses.min(), (misses * misses).mean(), misses.mean()
        return cls(*map(float, figures))


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One figure over many trials: its mean, the standard error of that, the sd of a trial."""

    metric: str
    mean: float
    standard_error: float
    deviation: float
    trials: int


def error_table(answers: Floats, truth: NDArray[np.number]) -> tuple[ErrorRow, ...]:
    """One row per figure: ``max`` is a mean of maxima, and so on. One row of answers per trial.

    With one trial there is no standard error: it is not a number.
    """
    figures = np.array([astuple(QueryErrors.of(row, truth)) for row in np.atleast_2d(answers)])
    n = len(figures)
    spread = figures.std(axis=0, ddof=1) if n > 1 else np.full(4, np.nan)
    return tuple(
        ErrorRow(name, float(mean), float(deviation / np.sqrt(n)), float(deviation), n)
        for name, mean, deviation in zip(
            QueryErrors.__dataclass_fields__, figures.mean(axis=0), spread, strict=True
        )
    )
