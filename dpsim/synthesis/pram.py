"""Invariant PRAM: reports are redrawn so that they follow the law estimated from them.

A report is replaced by a draw from what its true value may have been, given the report::

    Q'(j | i) ∝ π(j) Q(i | j)

with Q the channel that made the reports and π their most likely law. Then the new values follow
π again: ``λᵀQ' = πᵀ`` holds exactly if π is the maximum-likelihood law, and ``πᵀQQ' = πᵀ``
for every π. It is postprocessing of reports and costs no privacy. It must never see records.

References:
    Gouweleeuw, Kooiman, Willenborg, de Wolf. Post randomisation for statistical disclosure
    control. Journal of Official Statistics 1998.
    Jiang et al. DP2-Pub. TKDE 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.checks import require_codes
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis._pram_kernels import redraw_rows
from dpsim.synthesis.attribute_clustering import AttributeClustering
from dpsim.synthesis.law_entropy import require_law
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeMatrix, CodeTable

MAX_TABLE_CELLS = 1 << 24
"""Running sums that may be held: 2^axes for each cell, 8 bytes each."""
MAX_TRANSITION_CELLS = 4096


class _Tables(NamedTuple):
    """What the kernel reads: one row per set of kept axes, from all of them to none."""

    cumulative: NDArray[np.float64]
    weights: NDArray[np.float64]
    strides: NDArray[np.int64]
    lengths: NDArray[np.int64]


def transition(law: Frequencies, channels: Sequence[GRR]) -> NDArray[np.float64]:
    """The matrix Q': row i holds the law of the new compound code given report i."""
    _require_fitting(law, channels)
    if law.size > MAX_TRANSITION_CELLS:
        raise InputError(
            f"a transition matrix is for {MAX_TRANSITION_CELLS} cells at most, got {law.size}; "
            "redraw needs none"
        )
    channel: NDArray[Any] = np.ones((1, 1))
    for each in channels:
        channel = np.kron(channel, each.channel())
    joint = law.ravel()[:, None] * channel
    rows: NDArray[np.float64] = (joint / joint.sum(axis=0)).T
    return rows


def redraw(
    reports: CodeMatrix,
    law: Frequencies,
    channels: Sequence[GRR],
    draws: NDArray[np.float64],
) -> CodeMatrix:
    """New codes for reports with one row per axis of the law, from one draw per record.

    Exact without a matrix: the set T of axes on which the report is kept has weight
    ``Π_T (p-q) · Π_¬T q · π(i_T)``, and the cell is drawn from π given its codes in T.
    """
    _require_fitting(law, channels)
    if reports.shape != (law.ndim, draws.size):
        raise InputError(
            f"reports must have {law.ndim} rows of {draws.size} codes, got {reports.shape}"
        )
    for codes, channel in zip(reports, channels, strict=True):
        require_codes(codes, channel.domain_size)
    redrawn: CodeMatrix = redraw_rows(
        np.ascontiguousarray(reports), draws, *_tables(law, channels)
    )
    return redrawn


def redraw_cluster(
    reports: SplitReports,
    cluster: tuple[int, ...],
    law: Frequencies,
    noise: CentralNoise,
    start: int = 0,
) -> CodeMatrix:
    """New codes of one cluster's attributes, for the users from ``start`` on.

    User i takes draw i of the cluster's own subject: neither blocks nor other clusters
    change it.
    """
    subject = f"pram:{','.join(map(str, cluster))}"
    draws = noise.uniforms(Purpose.PUBLISH, subject, reports.table.n, start)
    codes = reports.table.codes[list(cluster)]
    return redraw(codes, law, reports.channels_of(cluster), draws)


def redraw_table(
    reports: SplitReports,
    clustering: AttributeClustering,
    laws: Sequence[Frequencies],
    noise: CentralNoise,
    start: int = 0,
) -> CodeTable:
    """A new table, cluster by cluster; singletons make it PRAM per attribute."""
    if clustering.attributes != len(reports.table.sizes) or len(laws) != len(clustering):
        raise InputError(
            f"a table of {len(reports.table.sizes)} attributes needs clusters of as many, "
            f"and one law per cluster; got {clustering.attributes} attributes in "
            f"{len(clustering)} clusters and {len(laws)} laws"
        )
    codes = np.empty_like(reports.table.codes)
    for cluster, law in zip(clustering.clusters, laws, strict=True):
        codes[list(cluster)] = redraw_cluster(reports, cluster, law, noise, start)
    return CodeTable(reports.table.sizes, codes)


def _require_fitting(law: Frequencies, channels: Sequence[GRR]) -> None:
    shape = tuple(channel.domain_size for channel in channels)
    if law.shape != shape or not shape:
        raise InputError(f"a law must have the channels' shape {shape}, got {law.shape}")
    require_law(law)
    if law.size << law.ndim > MAX_TABLE_CELLS:
        raise InputError(
            f"{law.size:,} cells on {law.ndim} axes are too many for one cluster; "
            "use smaller clusters"
        )


def _tables(law: Frequencies, channels: Sequence[GRR]) -> _Tables:
    axes = range(law.ndim)
    rows = []
    for mask in reversed(range(1 << law.ndim)):
        kept = [axis for axis in axes if mask >> axis & 1]
        free = [axis for axis in axes if not mask >> axis & 1]
        length = prod(law.shape[axis] for axis in free)
        blocks = law.transpose(kept + free).reshape(-1, length)
        weight = prod(channels[axis].gap if axis in kept else channels[axis].q for axis in axes)
        strides = np.zeros(law.ndim, np.int64)
        strides[kept] = _strides(law.shape, kept)
        strides[free] = np.negative(_strides(law.shape, free))
        rows.append((np.cumsum(blocks, axis=1).ravel(), weight, strides, length))
    cumulative, weights, strides_of, lengths = zip(*rows, strict=True)
    return _Tables(
        np.array(cumulative), np.array(weights), np.array(strides_of), np.array(lengths)
    )


def _strides(shape: tuple[int, ...], axes: list[int]) -> NDArray[np.int64]:
    """Of a mixed radix over some axes, the first leading."""
    sizes = [shape[axis] for axis in axes]
    return np.array([prod(sizes[place + 1 :]) for place in range(len(sizes))], np.int64)
