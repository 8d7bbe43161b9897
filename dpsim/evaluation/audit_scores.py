"""How to tell the reports of two inputs apart: the events of largest likelihood ratio.

A score is 1 for a report that speaks for input 1, -1 for one that speaks for input 0, and 0
for one that should be passed over: guessing on reports that tell little dilutes an audit.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsim.evaluation.audit_exact import Law
from dpsim.evaluation.audit_sampled import AuditCase, Score
from dpsim.mechanisms.interfaces import Reports

_SAME = 1e-6
"""Log-ratios that differ by this part of them are one: atoms are rounded."""


def sign(speaks_for_one: NDArray[np.bool_], for_zero: NDArray[np.bool_]) -> NDArray[np.int8]:
    """1, -1 or 0 per report."""
    return speaks_for_one.astype(np.int8) - for_zero.astype(np.int8)


def code(zero: int, one: int) -> Score:
    """The report is one of the two codes."""
    return lambda reports: sign(reports == one, reports == zero)


def one_sided(one: int) -> Score:
    """The report is the code of input 1: the other input's reports tell little."""
    return lambda reports: (reports == one).astype(np.int8)


def all_equal(zero: int, one: int) -> Score:
    """All attributes, or all rounds, report the same of the two codes."""
    return lambda reports: sign((reports == one).all(axis=1), (reports == zero).all(axis=1))


def ones(zero: int, one: int) -> Score:
    """Exactly one of two bits is set; one column per bit."""
    return lambda reports: sign(
        reports[:, one] > reports[:, zero], reports[:, one] < reports[:, zero]
    )


def packed_ones(zero: int, one: int) -> Score:
    """Exactly one of two bits is set, in rows of packed words.

    With an axis of rounds before the words: set in all rounds, and the other one in none.
    """

    def score(reports: Reports) -> NDArray[np.int8]:
        rounds = reports.reshape(len(reports), -1, reports.shape[-1])
        first, second = bit_of(rounds, zero), bit_of(rounds, one)
        only_first = np.logical_and.reduce(first & ~second, axis=1)
        return sign(np.logical_and.reduce(second & ~first, axis=1), only_first)

    return score


def bit_of(reports: Reports, place: int) -> NDArray[np.bool_]:
    """One bit of each report; the words are the last axis, 64 bits each."""
    word, lane = divmod(place, 64)
    return np.asarray((reports[..., word] >> lane) & 1, np.bool_)


def tails(low: float, high: float) -> Score:
    """The report is at most low, or at least high."""
    return lambda reports: sign(reports >= high, reports <= low)


def worst_case(law: Law) -> AuditCase:
    """The two inputs of a law that its reports tell apart best, and the reports that do.

    Of all pairs, those with the largest log-ratio; of these, the one whose telling reports
    are the most frequent. Theory only: nothing has been sampled.
    """
    pairs = list(combinations(range(len(law.channel)), 2))
    tables = [_telling(law.channel[[row0, row1]]) for row0, row1 in pairs]
    best = max(
        range(len(pairs)), key=lambda place: (round(tables[place][1], 6), tables[place][2])
    )
    (row0, row1), (guesses, ratio, _) = pairs[best], tables[best]
    return AuditCase(
        law.name,
        law.mechanism,
        law.inputs[row0],
        law.inputs[row1],
        lambda reports: guesses[law.column(reports).astype(np.intp)],
        law.claim,
        ratio,
    )


def _telling(rows: NDArray[np.float64]) -> tuple[NDArray[np.int8], float, float]:
    """A guess per report, the log-ratio of those that tell most, and how frequent they are."""
    possible = rows.min(axis=0) > 0
    ratios = np.zeros(rows.shape[1])
    ratios[possible] = np.log(rows[1, possible] / rows[0, possible])
    one_only = ~possible & (rows.max(axis=0) > 0)
    ratios[one_only] = np.where(rows[1, one_only] > 0, np.inf, -np.inf)
    worst = float(np.abs(ratios).max())
    least = worst * (1 - _SAME)
    guesses = sign((ratios >= least) & (worst > 0), (ratios <= -least) & (worst > 0))
    return guesses, worst, float(rows[:, guesses != 0].sum())
