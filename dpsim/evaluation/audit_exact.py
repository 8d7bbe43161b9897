"""Exact checks: the stated law of a mechanism against its claim, and its reports against it.

The first needs no sampling and gives no false alarm. The second ties the law to the code: a
sampler that follows another law than the stated one is found whichever way it errs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc  # type: ignore[import-untyped]

from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.evaluation.audit_sampled import AuditSettings, Perturbs
from dpsim.mechanisms.interfaces import Reports

TOLERANCE = 1e-9
WORST_P = 1e-9
"""Below it a sample is taken as evidence against its law."""

_LEAST_EXPECTED = 5.0
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """What a mechanism states about its reports: one row of probabilities per input."""

    name: str
    mechanism: Perturbs
    inputs: NDArray[Any]
    channel: NDArray[np.float64]
    claim: Fraction | float
    column: Callable[[Reports], NDArray[Any]] = lambda reports: reports
    """The column of the channel that each report stands in."""


@dataclass(frozen=True, slots=True)
class ExactCheck:
    """The worst log-ratio of a channel, and how far its rows are from summing to one."""

    claim: float
    epsilon: float
    row_error: float

    @property
    def is_sound(self) -> bool:
        """Whether the rows are distributions and no report costs more than the claim."""
        return self.row_error <= TOLERANCE and self.epsilon <= self.claim + TOLERANCE


def check_channel(channel: NDArray[np.float64], claim: Fraction | float) -> ExactCheck:
    """All pairs of inputs, all reports: ``max |ln M[x, y] - ln M[x', y]|``."""
    row_error = float(np.abs(channel.sum(axis=1) - 1).max())
    return ExactCheck(
        float(claim), worst_log_ratio(channel), row_error if channel.min() >= 0 else inf
    )


def worst_log_ratio(channel: NDArray[np.float64]) -> float:
    """The loss of a channel: infinite if a report is possible for some inputs only."""
    high, low = channel.max(axis=0), channel.min(axis=0)
    possible = high > 0
    if (low[possible] <= 0).any():
        return inf
    return float(np.log(high[possible] / low[possible]).max(initial=0.0))


def bits_channel(p: float, q: float) -> NDArray[np.float64]:
    """The law of the two bits that tell two codes apart in a unary encoding.

    Each bit is one with probability p if its code is the user's, else q; all other bits have
    the same law for both codes and cancel. Columns: 00, 01, 10, 11, the first code's bit first.
    """
    own, other = np.array([1 - p, p]), np.array([1 - q, q])
    return np.array([np.outer(own, other).ravel(), np.outer(other, own).ravel()])


def product_channel(*channels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of independent reports: of several attributes of one user, or of rounds."""
    whole: NDArray[np.float64] = np.ones((1, 1))
    for channel in channels:
        whole = np.kron(whole, channel).astype(np.float64, copy=False)
    return whole


def sample_p_value(counts: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Chi-square of counts of reports against their law, both with one row per input.

    Zero if an impossible report occurs. Within a row, cells that expect fewer than five
    reports are taken together.
    """
    if counts.shape != law.shape:
        raise InputError(f"counts and law must match, got {counts.shape} and {law.shape}")
    if counts[law <= 0].any():
        return 0.0
    statistic, freedom = 0.0, 0
    for seen, shares in zip(counts, law, strict=True):
        expected = seen.sum() * shares
        is_rare = expected < _LEAST_EXPECTED
        found = np.append(seen[~is_rare], seen[is_rare].sum())
        wanted = np.append(expected[~is_rare], expected[is_rare].sum())
        found, wanted = found[wanted > 0], wanted[wanted > 0]
        statistic += float(((found - wanted) ** 2 / wanted).sum())
        freedom += max(0, wanted.size - 1)
    return float(gammaincc(freedom / 2, statistic / 2)) if freedom else 1.0


def sample_law(law: Law, settings: AuditSettings) -> float:
    """The p-value of the mechanism's reports under its law: inputs take turns."""
    rows, width = law.channel.shape
    counts = np.zeros((rows, width), np.int64)
    for start in range(0, settings.trials, _CHUNK):
        users = np.arange(start, min(start + _CHUNK, settings.trials))
        noise = UserNoise(settings.seed, "law", f"{law.name} {law.claim}", users)
        columns = law.column(law.mechanism.perturb(law.inputs[users % rows], noise))
        cells = (users % rows) * width + columns.astype(np.int64)
        counts += np.bincount(cells, minlength=counts.size).reshape(rows, width)
    return sample_p_value(counts, law.channel)
