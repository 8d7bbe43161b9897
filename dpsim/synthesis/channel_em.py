"""The law of a cluster of attributes under which its reports are most likely.

A function of reports: it costs no privacy. Channels are the mechanisms that made the reports,
with the probabilities that they really have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.postprocess import grr_mle
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.law_entropy import require_law
from dpsim.synthesis.split_reports import SplitReports

MAX_STEPS = 300
TOLERANCE = 1e-6
_UNIFORM_PART = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class LawFit:
    """A law, one axis per attribute, and how it was found."""

    law: Frequencies
    steps: int
    """Steps taken: 0 for a closed form."""
    change: float
    """The L1 change of the last step."""
    is_settled: bool
    """Whether the steps stopped by themselves. A law stopped early lies towards its start."""


def through_channels(law: Frequencies, channels: Sequence[GRR]) -> Frequencies:
    """The law of the reports: on each axis ``t → (p-q) t + q Σ t``, without a matrix."""
    for axis, channel in enumerate(channels):
        total = law.sum(axis=axis, keepdims=True)
        law = channel.gap * law + channel.q * total
    return law


def most_likely_law(
    counts: Counts,
    channels: Sequence[GRR],
    start: Frequencies | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> LawFit:
    """Maximum likelihood by expectation and maximization, from one GRR report per axis.

    With λ the shares of the reports and C the channels of all axes::

        π ← π ∘ C(λ / C(π))

    Each step costs two passes over the cells. It starts from the uniform law if no other is
    given and ends when π moves by less than the tolerance in L1. One axis has a closed form.

    References:
        Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM algorithm.
        JRSS B 1977.
        Agrawal, Aggarwal. On the design and quantification of privacy preserving data mining
        algorithms. PODS 2001.
    """
    _require_counts(counts, tuple(channel.domain_size for channel in channels))
    if counts.ndim == 1:
        return LawFit(grr_mle(counts, channels[0]), 0, 0.0, True)
    shares = counts / counts.sum()
    law = _start(counts.shape, start)
    change, step = np.inf, 0
    while change >= tolerance and step < max_steps:
        moved = em_step(law, shares, channels)
        change, step = float(np.abs(moved - law).sum()), step + 1
        law = moved
    return LawFit(law / law.sum(), step, change, change < tolerance)


def em_step(law: Frequencies, shares: Frequencies, channels: Sequence[GRR]) -> Frequencies:
    """One step: it raises the likelihood of the shares, unless the law is at its maximum."""
    step: Frequencies = law * through_channels(
        shares / through_channels(law, channels), channels
    )
    return step


def most_likely_compound(counts: Counts, oracle: GRR) -> LawFit:
    """Maximum likelihood from one GRR report of a compound code: a closed form.

    The counts keep one axis per attribute; the oracle's domain is all of their cells. The
    result is the fixed point of ``π ← normalize(π ∘ λ / (q + (p-q) π))``.
    """
    _require_counts(counts.ravel(), (oracle.domain_size,))
    return LawFit(grr_mle(counts.ravel(), oracle).reshape(counts.shape), 0, 0.0, True)


def cluster_law(reports: SplitReports, cluster: tuple[int, ...]) -> LawFit:
    """The most likely joint law of some attributes, one axis each, in the order given.

    The steps start from independence. Where reports say little they stop long before the
    maximum: then the law keeps its margins and lacks correlation, instead of being uniform.
    """
    counts = joint_counts(reports.table, cluster)
    channels = reports.channels_of(cluster)
    return most_likely_law(counts, channels, independent_law(counts, channels))


def independent_law(counts: Counts, channels: Sequence[GRR]) -> Frequencies:
    """The product of each axis' most likely law, with a twentieth of it uniform.

    So no cell is empty: what a step multiplies would stay so.
    """
    axes = range(counts.ndim)
    law = np.ones(())
    for axis, channel in enumerate(channels):
        margin = grr_mle(counts.sum(axis=tuple(each for each in axes if each != axis)), channel)
        law = np.multiply.outer(law, (1 - _UNIFORM_PART) * margin + _UNIFORM_PART / margin.size)
    return law


def _require_counts(counts: Counts, shape: tuple[int, ...]) -> None:
    if counts.shape != shape:
        raise InputError(f"counts must have the channels' shape {shape}, got {counts.shape}")
    if not shape or counts.min() < 0 or counts.sum() < 1:
        raise InputError("counts must be >= 0, with one report at least")


def _start(shape: tuple[int, ...], start: Frequencies | None) -> Frequencies:
    if start is None:
        return np.full(shape, 1 / np.prod(shape))
    if start.shape != shape:
        raise InputError(f"start must have the counts' shape {shape}, got {start.shape}")
    require_law(start)
    return start
