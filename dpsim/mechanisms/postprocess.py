"""Make estimates plausible: it costs no privacy, and adds a bias.

Each step is a pure function of published numbers. Intervals belong to the raw estimates; after
any of these steps there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR


def norm(estimates: Frequencies, total: float = 1.0) -> Frequencies:
    """Add the same amount to all, so that they sum to the total; some may stay negative."""
    _require_vector(estimates)
    missing = (total - float(estimates.sum())) / estimates.size
    return estimates + missing


def base_pos(estimates: Frequencies) -> Frequencies:
    """Negative estimates become 0; the sum is no longer 1."""
    _require_vector(estimates)
    return np.maximum(estimates, 0.0)


def norm_mul(estimates: Frequencies) -> Frequencies:
    """Negative estimates become 0, and the others are scaled to sum to 1.

    Over-estimates rare codes. Where no estimate is positive, all codes are equally frequent.
    """
    positive = base_pos(estimates)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(positive.shape, 1 / positive.size)


def norm_sub(estimates: Frequencies) -> Frequencies:
    """The nearest distribution: the Euclidean projection on the simplex.

    Subtracts one number from all and cuts at 0; the number is found by sorting.

    References:
        Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li. Locally differentially private frequency
        estimation with consistency. NDSS 2020.
    """
    _require_vector(estimates)
    falling = np.sort(estimates)[::-1]
    shifts = (np.cumsum(falling) - 1) / np.arange(1, falling.size + 1)
    kept = np.flatnonzero(falling > shifts)[-1]
    return np.maximum(estimates - float(shifts[kept]), 0.0)


def norm_cut(estimates: Frequencies) -> Frequencies:
    """Negative estimates become 0; of the others the largest are kept until they sum to 1.

    The one that crosses 1 is cut. A sum below 1 stays as it is.
    """
    positive = base_pos(estimates)
    order = np.argsort(-positive, kind="stable")
    room = 1 - np.concatenate(([0.0], np.cumsum(positive[order])[:-1]))
    result = np.zeros_like(positive)
    result[order] = np.clip(positive[order], 0, np.maximum(room, 0))
    return result


def base_cut(estimates: Frequencies, standard_error: float, alpha: float = 0.05) -> Frequencies:
    """Estimates below ``Φ⁻¹(1 - α/k)`` standard errors become 0.

    With no code in use, one of the k estimates passes with probability α at most.
    """
    _require_vector(estimates)
    if not (standard_error >= 0 and np.isfinite(standard_error)):
        raise InputError(f"standard_error must be finite and >= 0, got {standard_error}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be > 0 and < 1, got {alpha}")
    limit = NormalDist().inv_cdf(1 - alpha / estimates.size) * standard_error
    return np.where(estimates < limit, 0.0, estimates)


def grr_mle(tally: Counts, oracle: GRR) -> Frequencies:
    """The distribution under which a tally of GRR reports is most likely.

    Reported shares σ are ``max(q, C/λ)`` with λ such that they sum to 1; then
    ``f = (σ - q) / (p - q)``. λ is found by sorting: with a codes above q it is the sum of the
    a largest counts over ``1 - (k - a) q``.
    """
    size = oracle.domain_size
    if tally.shape != (size,) or tally.min() < 0 or tally.sum() < 1:
        raise InputError(f"tally must hold {size} counts >= 0, and one report at least")
    if size == 1:
        return np.ones(1)
    falling = np.sort(tally)[::-1].astype(np.float64)
    above = np.arange(1, size + 1)
    scales = np.cumsum(falling) / (1 - (size - above) * oracle.q)
    kept = np.flatnonzero(falling > oracle.q * scales)[-1]
    shares = np.maximum(tally / float(scales[kept]) - oracle.q, 0.0)
    return shares / float(shares.sum())


def consistent(
    estimates: Sequence[Frequencies], variances: Sequence[float]
) -> tuple[Frequencies, float]:
    """One estimate of what several independent ones estimate, and its variance.

    The mean weighted by inverse variances: the unbiased combination with the least variance,
    which is ``1 / Σ(1/variance)``.
    """
    weights = _weights(variances, len(estimates))
    if len({each.shape for each in estimates}) != 1:
        raise InputError("estimates of the same marginal must have the same shape")
    combined: Frequencies = np.tensordot(weights / weights.sum(), np.stack(estimates), axes=1)
    return combined, float(1 / weights.sum())


def same_total(
    estimates: Sequence[Frequencies], variances: Sequence[float]
) -> tuple[Frequencies, ...]:
    """Estimates of several attributes, each moved evenly to the total that fits all best.

    The sum over an attribute's k codes estimates one total, with variance k times that of one
    code; the common total is their mean weighted by inverse variances.
    """
    weights = _weights(variances, len(estimates)) / [each.size for each in estimates]
    totals = np.array([each.sum() for each in estimates])
    common = float(weights @ totals / weights.sum())
    return tuple(norm(each, common) for each in estimates)


def _weights(variances: Sequence[float], n: int) -> NDArray[np.float64]:
    values = np.asarray(variances, np.float64)
    if values.shape != (n,) or not n or not (np.isfinite(values) & (values > 0)).all():
        raise InputError("variances must be finite and > 0, one per estimate")
    return 1 / values


def _require_vector(estimates: Frequencies) -> None:
    if estimates.ndim != 1 or not estimates.size or not np.isfinite(estimates).all():
        raise InputError("estimates must be finite numbers, one per code, and one at least")
