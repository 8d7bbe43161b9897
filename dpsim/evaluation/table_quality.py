"""One table of numbers about a synthetic table, beside its floors and its baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.evaluation.baselines import bootstrap_table, independent_table, uniform_table
from dpsim.evaluation.comparable import require_comparable
from dpsim.evaluation.dependence import dependence_error_of
from dpsim.evaluation.distances import (
    Distance,
    floor_of,
    mse_counts_of,
    mse_floor_of,
    mse_of,
    tvd_of,
)
from dpsim.evaluation.marginals import EVALUATION, MAX_SUBSETS, Survey, survey
from dpsim.evaluation.utility import LEARNERS, majority_error, misclassification
from dpsim.synthesis.table import CodeTable


@dataclass(frozen=True, slots=True)
class QualityRow:
    """One metric: its value, the least to expect of as many rows, and three baselines."""

    metric: str
    value: float
    floor: float | None
    """None where there is no formula: the bootstrap shows it."""
    uniform: float | None
    independent: float | None
    bootstrap: float | None


@dataclass(frozen=True, slots=True)
class TableQuality:
    """How good a synthetic table is; made of simple values only."""

    true_rows: int
    synthetic_rows: int
    attributes: int
    distances: tuple[Distance, ...]
    """Of the synthetic table: the worst subset of attributes, and how many were compared."""
    rows: tuple[QualityRow, ...]

    def __getitem__(self, metric: str) -> QualityRow:
        for row in self.rows:
            if row.metric == metric:
                return row
        known = ", ".join(row.metric for row in self.rows)
        raise InputError(f"no metric {metric!r}; there are: {known}")

    def as_dict(self) -> dict[str, Any]:
        """The same in dictionaries and tuples, ready for JSON."""
        return asdict(self)


def quality(
    truth: CodeTable,
    synthetic: CodeTable,
    alphas: Sequence[int] = (1, 2, 3),
    noise: CentralNoise = EVALUATION,
    test: CodeTable | None = None,
    targets: Sequence[int] = (),
) -> TableQuality:
    """Compare a synthetic table with the truth, and with tables that anybody could make.

    ============================  ===========================================================
    ``tvd_α``, ``tvd_α_worst``    total variation of marginals of α attributes; 1 always,
                                  others as asked, as far as there are so many attributes
    ``mse_α``                     mean squared error of their shares
    ``mi_error``                  mean error of pairwise mutual information, if α = 2 is asked
    ``mse_counts``, ``mse_code``  as DP2-Pub has them; only if both tables have as many rows
    ``error_svm_t``, …_tree_t     wrong predictions of target t in ``test``; the floor is what
                                  training on the truth gives
    ``error_majority_t``          the same for the truth's most frequent code
    ============================  ===========================================================

    Baselines have as many rows as the synthetic table, and come from ``noise``: the same ones
    for every method. Targets cost some seconds each, and need test rows that the synthesis has
    not seen: see `split_table`.
    """
    if targets and test is None:
        raise InputError(
            "targets need test rows: split the truth with split_table before synthesis, "
            "and pass its second part as test"
        )
    require_comparable((truth, synthetic))
    n, d = synthetic.n, len(truth.sizes)
    tables = (
        synthetic,
        uniform_table(truth.sizes, n, noise),
        independent_table(truth, n, noise),
        bootstrap_table(truth, n, noise),
    )
    wanted = sorted({1, *(alpha for alpha in alphas if alpha <= d)})
    found = {alpha: survey(truth, tables, alpha, n) for alpha in wanted}
    rows = [row for each in found.values() for row in _marginal_rows(each)]
    if 2 in found and d <= MAX_SUBSETS:  # noqa: PLR2004
        rows.append(_row("mi_error", lambda at: dependence_error_of(found[1], found[2], at)))
    if n == truth.n:
        rows += _count_rows(found[1])
    if test is not None:
        rows += [row for t in targets for row in _utility_rows(truth, tables, test, t)]
    distances = tuple(tvd_of(each) for each in found.values())
    return TableQuality(truth.n, n, d, distances, tuple(rows))


def _row(metric: str, value: Callable[[int], float], floor: float | None = None) -> QualityRow:
    """A metric of all tables, by their place: synthetic, uniform, independent, bootstrap."""
    own, *baselines = (value(at) for at in range(4))
    return QualityRow(metric, own, floor, *baselines)


def _marginal_rows(found: Survey) -> list[QualityRow]:
    alpha = found.alpha
    return [
        _row(f"tvd_{alpha}", lambda at: tvd_of(found, at).mean, floor_of(found)),
        _row(f"tvd_{alpha}_worst", lambda at: tvd_of(found, at).worst),
        _row(f"mse_{alpha}", lambda at: mse_of(found, at), mse_floor_of(found)),
    ]


def _count_rows(found: Survey) -> list[QualityRow]:
    n, floor = found.n, mse_floor_of(found) * found.n**2
    return [
        _row("mse_counts", lambda at: mse_counts_of(found, at), floor),
        _row("mse_code", lambda at: mse_counts_of(found, at) / n, floor / n),
    ]


def _utility_rows(
    truth: CodeTable, tables: Sequence[CodeTable], test: CodeTable, target: int
) -> list[QualityRow]:
    rows = [
        _row(
            f"error_{learner}_{target}",
            lambda at, by=learner: misclassification(tables[at], test, target, by),  # type: ignore[misc]
            misclassification(truth, test, target, learner),
        )
        for learner in LEARNERS
    ]
    majority = majority_error(truth, test, target)
    return [*rows, QualityRow(f"error_majority_{target}", majority, None, None, None, None)]
