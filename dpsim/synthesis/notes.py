"""The last steps of DP2-Pub as its notes have them: their PRAM, and their metrics.

Kept for the presets that reproduce the notes; `pram` has the corrected step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.pram import redraw
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable


@dataclass(frozen=True, slots=True)
class NotesMetrics:
    """How far a table is from the truth, by the notes' three numbers; means over attributes."""

    tvd: float
    """``½ Σ |o - r| / n``, in [0, 1]: o and r are counts of the truth and of the table."""
    mse_counts: float
    """``Σ (o - r)² / s``: what the notes' tables print, in squared users."""
    mse_code: float
    """The same over n: what the notes' code returns."""


def keep_probabilities(shares: NDArray[np.float64], channel: GRR) -> NDArray[np.float64]:
    """``w = λ(p-q) / (q + λ(p-q))``: how often the notes' PRAM keeps each code.

    The notes shift the inverse of Q until it has no negative entry and divide its rows by
    their sums. For GRR this is the identity, so that the law they use is that of the reports.
    What is not kept is drawn from it.
    """
    kept = shares * channel.gap
    return kept / (channel.q + kept)


def redraw_as_notes(
    reports: SplitReports, budgets: Sequence[Fraction], noise: CentralNoise
) -> CodeTable:
    """The notes' PRAM of all users' first reports, attribute by attribute.

    User i takes draw i. The law is that of the whole table, so that no part of it will do.

    The budgets only shape Q, which is not the channel of the reports: they are no loss, and
    the result is not invariant. All of the loss is in the reports.
    """
    table = reports.table
    if len(budgets) != len(table.sizes) or table.n == 0:
        raise InputError(
            f"{len(table.sizes)} attributes need one budget each, and one user at least; "
            f"got {len(budgets)} budgets and {table.n} users"
        )
    codes = table.codes.copy()
    for attribute, (size, budget) in enumerate(zip(table.sizes, budgets, strict=True)):
        if size == 1:
            continue
        shares = joint_counts(table, (attribute,)) / table.n
        draws = noise.uniforms(Purpose.PUBLISH, f"notes pram:{attribute}", table.n)
        row = slice(attribute, attribute + 1)
        codes[row] = redraw(table.codes[row], shares, (GRR(size, budget),), draws)
    return CodeTable(table.sizes, codes)


def notes_metrics(truth: CodeTable, released: CodeTable) -> NotesMetrics:
    """TVD and both errors of one-way counts, for tables of as many users."""
    if truth.sizes != released.sizes or truth.n != released.n or truth.n == 0:
        raise InputError(
            f"tables must have the same domains and users; got {truth.n} and {released.n} users"
        )
    distances, squares = [], []
    for attribute, size in enumerate(truth.sizes):
        difference = joint_counts(truth, (attribute,)) - joint_counts(released, (attribute,))
        distances.append(float(np.abs(difference).sum()) / (2 * truth.n))
        squares.append(float((difference**2).sum()) / size)
    tvd, mse = float(np.mean(distances)), float(np.mean(squares))
    return NotesMetrics(tvd, mse, mse / truth.n)
