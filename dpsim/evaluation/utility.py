"""What a synthetic table is good for: train on it, test on true rows nobody has seen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from dpsim.core.errors import InputError
from dpsim.core.exact import Number, exact
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.evaluation.comparable import require_comparable
from dpsim.synthesis.table import CodeTable

Learner = Literal["svm", "tree"]
LEARNERS: tuple[Learner, ...] = ("svm", "tree")


@dataclass(frozen=True, slots=True)
class Utility:
    """Shares of the test rows whose target is predicted wrongly."""

    target: int
    learner: Learner
    synthetic: float
    """Trained on synthetic rows."""
    truth: float
    """Trained on the true rows that the synthetic ones were made from."""
    majority: float
    """Always the most frequent code of the true rows."""


def split_table(
    table: CodeTable, share: Number, noise: CentralNoise
) -> tuple[CodeTable, CodeTable]:
    """Rows to learn from and rows to test on: a share of them, drawn by address.

    Split first and synthesize from the first part only: else the test rows have been seen.
    Rows keep their order; the first part has ``⌊share · n + ½⌋`` of them.
    """
    wanted = exact(share, "share")
    kept = floor(wanted * table.n + Fraction(1, 2))
    if not 1 <= kept < table.n:
        raise InputError(
            f"share must leave rows on both sides of the split of {table.n} rows, got {share}"
        )
    order = np.argsort(noise.words(Purpose.START, "split", table.n), kind="stable")
    parts = (np.sort(order[:kept]), np.sort(order[kept:]))
    train, test = (CodeTable(table.sizes, table.codes[:, users]) for users in parts)
    return train, test


def utility(
    truth: CodeTable, synthetic: CodeTable, test: CodeTable, target: int
) -> tuple[Utility, ...]:
    """Both learners' errors on the test rows, and the majority rule's."""
    majority = majority_error(truth, test, target)
    return tuple(
        Utility(
            target,
            learner,
            misclassification(synthetic, test, target, learner),
            misclassification(truth, test, target, learner),
            majority,
        )
        for learner in LEARNERS
    )


def majority_error(train: CodeTable, test: CodeTable, target: int) -> float:
    """The error of always naming the most frequent code; the lowest of equally frequent."""
    _require_target(train, test, target)
    common = np.bincount(train.codes[target]).argmax()
    return float(np.mean(test.codes[target] != common))


def misclassification(
    train: CodeTable, test: CodeTable, target: int, learner: Learner = "svm"
) -> float:
    """The share of test rows whose target a learner gets wrong, from all other attributes.

    ``svm`` is a linear support vector machine with C = 1; ``tree`` a decision tree whose leaves
    hold 20 rows at least. Both see one indicator per code, for codes have no order. If the
    training rows have one target code only, it is the prediction. The result depends on the
    tables alone: no sampling, no threads.

    References:
        Jiang, Zhou, Guo, Wang. DP2-Pub: differentially private high-dimensional data
        publication with invariant post randomization. TKDE 2023.
    """
    _require_target(train, test, target)
    known, wanted = train.codes[target], test.codes[target]
    if known.min() == known.max():
        return float(np.mean(wanted != known[0]))
    model = _model(learner).fit(_indicators(train, target), known)
    return float(np.mean(model.predict(_indicators(test, target)) != wanted))


def _model(learner: Learner) -> Any:  # noqa: ANN401 - scikit-learn is untyped
    if learner == "svm":
        # With more rows than indicators it solves the primal: no random order, and no need of
        # thousands of passes to converge.
        return LinearSVC(C=1.0, dual="auto", max_iter=20_000, random_state=0)
    if learner == "tree":
        return DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    raise InputError(f"learner must be one of {', '.join(LEARNERS)}, got {learner!r}")


def _indicators(table: CodeTable, target: int) -> csr_matrix:
    """One row per user, one column per code of every attribute but the target."""
    others = [a for a in range(len(table.sizes)) if a != target]
    sizes = np.array([table.sizes[a] for a in others])
    starts = np.cumsum(sizes) - sizes
    columns: NDArray[np.int32] = (table.codes[others] + starts[:, None]).T.astype(np.int32)
    ends = np.arange(0, columns.size + 1, len(others))
    shape = (table.n, int(sizes.sum()))
    return csr_matrix((np.ones(columns.size), columns.ravel(), ends), shape=shape)


def _require_target(train: CodeTable, test: CodeTable, target: int) -> None:
    require_comparable((train, test))
    d = len(train.sizes)
    if d < 2:  # noqa: PLR2004
        raise InputError("a target is predicted from other attributes, and there are none")
    if not 0 <= target < d:
        raise InputError(f"target must be an attribute 0..{d - 1}, got {target}")
