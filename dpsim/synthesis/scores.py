"""How well parents tell a child: scores of candidates, and how far one record moves them.

A task measures subsets of attributes; what it returns becomes the scores of every member as
the child of the others. Sensitivities hold when one record is replaced and n is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.synthesis._network_kernels import informations
from dpsim.synthesis.contingency import (
    Grid,
    Subsets,
    independence_distances,
    subset_entropies,
)
from dpsim.synthesis.table import CodeTable

Scores: TypeAlias = NDArray[np.float64]
"""One row per subset, one column per member as the child of the others; nan: no candidate."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Subsets of one size, and what was measured of each."""

    subsets: Subsets
    values: NDArray[np.float64]


class Score(Protocol):
    """A way to score (child, parents); a value, since tasks take it along."""

    @property
    def grows(self) -> bool:
        """Whether a further parent never lowers it; else parent sets of all sizes compete."""

    def measure(self, table: CodeTable, subsets: Subsets) -> NDArray[np.float64]:
        """In a task: one value, or one per member, for each subset."""

    def scores(self, measured: Sequence[Measured], sizes: Sequence[int], n: int) -> Scores:
        """Scores of the last subsets; those of one member less come before, and so on."""

    def sensitivity(self, n: int, *, is_narrow: bool) -> float:
        """The most that replacing one of n records moves it.

        Narrow: of child and compound parent one has at most two values.
        """


@dataclass(frozen=True, slots=True)
class Information:
    """Mutual information I(x; Π) = H(x) + H(Π) - H(x,Π) of the counted table, in nats."""

    grows = True

    def measure(self, table: CodeTable, subsets: Subsets) -> NDArray[np.float64]:
        """The entropy of each subset."""
        return subset_entropies(table, subsets)

    def scores(self, measured: Sequence[Measured], sizes: Sequence[int], n: int) -> Scores:  # noqa: ARG002
        """I of each member given the others."""
        top, below, singles = measured[-1], measured[-2], measured[0]
        single = np.full(len(sizes), np.nan)
        single[singles.subsets[:, 0]] = singles.values
        sets = (below.subsets, below.values)
        found: Scores = informations(top.subsets, top.values, sets, single)
        return found

    def sensitivity(self, n: int, *, is_narrow: bool) -> float:
        """`information_sensitivity`, and what rounding may add to two scores."""
        return information_sensitivity(n, is_narrow=is_narrow) + 6 * Grid(n).error


@dataclass(frozen=True, slots=True)
class CorrectedInformation(Information):
    """Mutual information less its bias: I - (s_x - 1)(|Ω_Π| - 1) / 2n, after Miller and Madow.

    The bias is that of independent attributes all of whose cells are in use. It depends on
    public sizes only, so the sensitivity is that of I.
    """

    grows = False

    def scores(self, measured: Sequence[Measured], sizes: Sequence[int], n: int) -> Scores:
        """I of each member given the others, less its bias."""
        plain = Information.scores(self, measured, sizes, n)
        own = np.array(sizes, np.float64)[measured[-1].subsets]
        others = own.prod(axis=1, keepdims=True) / own
        bias: Scores = (own - 1) * (others - 1) / (2 * n)
        return plain - bias


@dataclass(frozen=True, slots=True)
class Distance:
    """R = ½ Σ |P(x,π) - P(x)P(π)|: how far the table is from independence.

    References:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao. PrivBayes: private data release via
        Bayesian networks. ACM TODS 2017.
    """

    grows = True

    def measure(self, table: CodeTable, subsets: Subsets) -> NDArray[np.float64]:
        """R of each member given the others."""
        return independence_distances(table, subsets)

    def scores(self, measured: Sequence[Measured], sizes: Sequence[int], n: int) -> Scores:  # noqa: ARG002
        """As measured."""
        return measured[-1].values

    def sensitivity(self, n: int, *, is_narrow: bool) -> float:
        """`distance_sensitivity`, and what the last division may add to two scores."""
        return distance_sensitivity(n, is_narrow=is_narrow) + 2.0**-50


SCORES: dict[str, Score] = {
    "information": Information(),
    "corrected": CorrectedInformation(),
    "distance": Distance(),
}


def score_of(score: str | Score) -> Score:
    """One of the scores by its name; another way to score as it is."""
    if not isinstance(score, str):
        return score
    if score not in SCORES:
        raise InputError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    return SCORES[score]


def information_sensitivity(n: int, *, is_narrow: bool) -> float:
    """The most that replacing one of n records moves mutual information, in nats.

    Narrow: ln(n)/n + ((n-1)/n) ln(n/(n-1)), attained. Else
    (2/n) ln((n+1)/2) + ((n-1)/n) ln((n+1)/(n-1)), attained for odd n.

    References:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao. PrivBayes: private data release via
        Bayesian networks. SIGMOD 2014, lemma 4.1.
    """
    require_at_least(2, n=n)
    if is_narrow:
        return log(n) / n + (n - 1) / n * log(n / (n - 1))
    return 2 / n * log((n + 1) / 2) + (n - 1) / n * log((n + 1) / (n - 1))


def distance_sensitivity(n: int, *, is_narrow: bool) -> float:
    """The most that replacing one of n records moves R: 3/n - 2/n², narrow 2/n - 1/n².

    PrivBayes states 3/n + 2/n². Proof of less: let record (x,π) become (y,ρ), let D be
    P(x,π) - P(x)P(π) as a table, A the child's margin before and B the parents' after the
    change, and T(x,π) = δ_(x,π) - δ_x⊗B - A⊗δ_π. Then n ΔD = T(y,ρ) - T(x,π), and R moves by
    ½ ‖ΔD‖ at most (L1 norm). T(x,π) holds 1-a-b in its own cell, -(1-b) in the rest of its
    row and -(1-a) in the rest of its column, with a = A(x), b = B(π), so that
    ‖T(x,π)‖ = max(3 - 2a - 2b, 1).

    General: A(x) ≥ 1/n as the old record is there, B(ρ) ≥ 1/n as the new one is: both norms
    are at most 3 - 2/n. Narrow: say the child has two values (parents: the same, transposed).
    If it changes, A(x) + A(y) = 1 and ½(‖T(x,π)‖ + ‖T(y,ρ)‖) ≤ 2 - 1/n, whichever term of
    each maximum holds. If it stays, n ΔD = (δ_x - A)⊗(δ_ρ - δ_π), half of whose norm is
    2 (1 - A(x)) ≤ 2 - 2/n.
    """
    require_at_least(2, n=n)
    return 2 / n - 1 / n**2 if is_narrow else 3 / n - 2 / n**2
