"""Items' rating sums in two parts, and what is released of them: means, counts, popular items.

A rating r is split into a = (hi - r)/span and b = (r - lo)/span: both ≥ 0, and a + b = 1. So
A_i = Σ w a and B_i = Σ w b tell count and mean of item i, and one rating moves them by 1 in L1.
All sums are of whole units: any division of the users into pieces gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.data.ratings import require_piece
from dpsim.recommend.gram_budget import GramBudget
from dpsim.recommend.gram_settings import GramSettings, Protected
from dpsim.recommend.ratings_matrix import RatingPiece

Floats = NDArray[np.float64]

_TASTE_VARIANCE = 0.25
"""τ²: how much items' means differ; a public guess."""
_TYPICAL_WEIGHT: dict[Protected, float] = {"rating": 1.0, "user": 0.3}
"""w̄: the mean weight of a rating; a public guess where users are protected."""


def typical_weight(protects: Protected) -> float:
    """The mean weight of a rating, as guessed before any data."""
    return _TYPICAL_WEIGHT[protects]


@dataclass(frozen=True, slots=True, eq=False)
class ItemFacts:
    """What is public after the first round; whoever computes more needs nothing else."""

    global_mean: float
    users: float
    """How many users there are: known, or estimated where users are protected."""
    counts: Floats = field(repr=False)
    """Noisy weight of each item's ratings: C."""
    means: Floats = field(repr=False)
    """Each item's mean, drawn to the global one as far as noise and few ratings demand."""
    popular: NDArray[np.int32] = field(repr=False)
    """The m items of largest noisy count, ascending: P."""
    count_sd: float
    """Noise of one of an item's two sums, or of its count where there is but one."""


def totals(piece: RatingPiece, settings: GramSettings) -> Counts:
    """A piece's sums, in units: A and B of each item, then of all; or one count per item."""
    require_piece(piece, settings.n_items, settings.scale)
    items, high = piece.items.astype(np.int64), piece.codes.astype(np.int64)
    if settings.head == "top_n":
        ones = np.ones(items.size, np.int64)
        return _sums(items, _weighted(ones, 1, piece, settings), settings.n_items)
    levels = settings.levels
    parts = [levels - high, high]
    sums = [
        _sums(items, _weighted(part, levels, piece, settings), settings.n_items)
        for part in parts
    ]
    return np.concatenate([*sums, [_whole(piece, part, settings) for part in parts]])


def _weighted(part: Counts, whole: int, piece: RatingPiece, settings: GramSettings) -> Counts:
    """``⌊w · part/whole · unit⌋`` for each rating, w = min(1, c/√n) or 1; exact."""
    unit = settings.totals_unit
    if settings.protects == "rating":
        return part * (unit // whole)
    sizes, places = np.unique(piece.sizes, return_inverse=True)
    square = (settings.weight_cap * unit) ** 2
    weights = [min(unit, isqrt(square // max(int(size), 1))) for size in sizes]
    return np.repeat(np.array(weights, np.int64)[places], piece.sizes) * part // whole


def _sums(items: Counts, units: Counts, n_items: int) -> Counts:
    """Sums by item: floats hold them without error below 2^53, and else by integers."""
    if units.size and int(units.max()) * units.size >= 1 << 53:
        sums = np.zeros(n_items, np.int64)
        np.add.at(sums, items, units)
        return sums
    return np.bincount(items, units, n_items).astype(np.int64)


def _whole(piece: RatingPiece, part: Counts, settings: GramSettings) -> int:
    """The global sum: of all ratings, or of users' means (``⌊unit · Σ part/(L n)⌋`` each)."""
    if settings.protects == "rating":
        return int(part.sum()) * (settings.totals_unit // settings.levels)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(part)])
    sums, sizes = np.diff(ends[piece.indptr]), np.maximum(piece.sizes, 1)
    return int((sums * settings.totals_unit // (settings.levels * sizes)).sum())


def item_facts(noisy: Counts, settings: GramSettings, budget: GramBudget) -> ItemFacts:
    """Means, counts and popular items from noisy totals: post-processing, at no loss.

    ``m = G + τ² C D/(τ² C² + C w̄ + v)`` with D = (lo - G) A + (hi - G) B and v its noise.
    """
    if noisy.shape != (settings.totals_size,) or noisy.dtype != np.int64:
        raise InputError(
            f"noisy totals must be {settings.totals_size} whole numbers, got {noisy.shape}"
        )
    values, sd = noisy / settings.totals_unit, budget.sd("items")
    n_items = settings.n_items
    if settings.head == "top_n":
        middle = float(settings.scale.lo + settings.scale.hi) / 2
        means = np.full(n_items, middle)
        return _facts(settings, (middle, float(settings.n_users)), values, means, sd)
    low, high = float(settings.scale.lo), float(settings.scale.hi)
    below, above = values[:n_items], values[n_items:-2]
    users, center = _global(values[-2:], settings)
    counts = below + above
    weight = np.maximum(counts, 0.0)
    lean = (low - center) * below + (high - center) * above
    noise = ((low - center) ** 2 + (high - center) ** 2) * sd**2
    spread = _TASTE_VARIANCE * weight**2 + weight * typical_weight(settings.protects) + noise
    shift = _TASTE_VARIANCE * weight * lean / np.where(spread > 0, spread, 1.0)
    means = np.clip(center + shift, low, high)
    return _facts(settings, (center, users), counts, means, sd)


def _global(pair: Floats, settings: GramSettings) -> tuple[float, float]:
    """How many users there are, and the global mean: the scale's middle if all is noise."""
    low, high = float(settings.scale.lo), float(settings.scale.hi)
    weight = float(pair[0] + pair[1])
    center = (low * pair[0] + high * pair[1]) / weight if weight > 0 else (low + high) / 2
    users = settings.n_users if settings.protects == "rating" else max(weight, 1.0)
    return float(users), float(np.clip(center, low, high))


def _facts(
    settings: GramSettings, whole: tuple[float, float], counts: Floats, means: Floats, sd: float
) -> ItemFacts:
    order = np.argsort(-counts, kind="stable")[: settings.popular]
    popular = np.sort(order).astype(np.int32)
    return ItemFacts(whole[0], whole[1], counts, means, popular, sd)
