"""What the notes' metrics are on their own data, whatever ε: the sampling floor.

The generated data are uniform and independent. At the notes' ε per attribute a report names the
truth hardly more often than chance, and the metrics show the noise of two samples. The means
are exact sums over the laws of counts; standard deviations take the joint law of two cells as
normal with correlation -1/(s-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import asin, fsum, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError

_WIDTH = 12
"""Standard deviations on either side of a mean, beyond which a count has no weight."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Mean and standard deviation of both metrics."""

    tvd: float
    tvd_sd: float
    mse_counts: float
    mse_counts_sd: float


@lru_cache(maxsize=4096)
def floor_of_report(size: int, n: int, keep: float) -> Expected:
    """A report that is the truth with probability ``keep``, of n users uniform on s codes.

    The difference of a code's counts is D, a sum of n steps +1, -1 with probability
    ``a = (1-p)/s`` each. Of M ~ Bin(n, 2a) steps, ``E|D| = M C(M-1, ⌊(M-1)/2⌋) / 2^(M-1)``::

        E TVD = s E|D| / 2n          E MSE = E D² = 2n(1-p)/s
    """
    _require_case(size, n)
    if not 0 <= keep <= 1:
        raise InputError(f"keep must be >= 0 and <= 1, got {keep}")
    step = 2 * (1 - keep) / size
    least, chances = _binomial(n, step)
    pairs = (np.arange(least, least + chances.size) + 1) // 2
    # 2k C(2k,k)/4^k, by its ratios (2j-1)/2j
    ratios = (2 * np.arange(1, pairs[-1] + 1) - 1) / (2 * np.arange(1, pairs[-1] + 1))
    central = np.concatenate(([1.0], np.cumprod(ratios)))
    mean = float((chances * 2 * pairs * central[pairs]).sum())
    second = n * step
    return _expected(size, n, mean, second, second + 3 * n * (n - 1) * step**2)


@lru_cache(maxsize=4096)
def floor_of_resampling(size: int, n: int) -> Expected:
    """Codes drawn from the shares of a sample that knows nothing of the truth.

    The limit of the notes' PRAM for a small ε: of r of n reports that have a code, Bin(n, r/n)
    are drawn again. TVD is √(3/2) times that of a report at chance, within a few per mille.
    """
    _require_case(size, n)
    least, sampled = _binomial(n, 1 / size)
    laws = [_binomial(n, (least + place) / n) for place in range(sampled.size)]
    drawn = np.zeros(max(first + law.size for first, law in laws))
    for chance, (first, law) in zip(sampled, laws, strict=True):
        drawn[first : first + law.size] += chance * law
    truths = np.arange(least, least + sampled.size)
    differences = truths[:, None] - np.arange(drawn.size)
    weights = sampled[:, None] * drawn
    moments = [float((weights * np.abs(differences) ** k).sum()) for k in (1, 2, 4)]
    return _expected(size, n, *moments)


def floor_of_mean(parts: Sequence[Expected]) -> Expected:
    """The mean over independent attributes, one part each."""
    _require_parts(parts)
    tvd_sd = sqrt(fsum(part.tvd_sd**2 for part in parts)) / len(parts)
    mse_sd = sqrt(fsum(part.mse_counts_sd**2 for part in parts)) / len(parts)
    return Expected(
        fsum(part.tvd for part in parts) / len(parts), tvd_sd,
        fsum(part.mse_counts for part in parts) / len(parts), mse_sd,
    )  # fmt: skip


def floor_of_drawn_sizes(parts: Sequence[Expected], attributes: int) -> Expected:
    """The mean over attributes whose sizes are drawn uniformly from those of the parts.

    As the generator of the notes draws them; the spread between sizes adds to that within.
    """
    _require_parts(parts)
    require_at_least(1, attributes=attributes)
    tvd, tvd_variance = _mixture([(part.tvd, part.tvd_sd) for part in parts])
    mse, mse_variance = _mixture([(part.mse_counts, part.mse_counts_sd) for part in parts])
    return Expected(tvd, sqrt(tvd_variance / attributes), mse, sqrt(mse_variance / attributes))


def _mixture(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    mean = fsum(each for each, _ in parts) / len(parts)
    return mean, fsum(sd**2 + (each - mean) ** 2 for each, sd in parts) / len(parts)


def _expected(size: int, n: int, mean: float, second: float, fourth: float) -> Expected:
    """From moments of one cell's |D|, and the normal law of two."""
    others, correlation = size - 1, -1 / (size - 1)
    pull = sqrt(1 - correlation**2) + correlation * asin(correlation) - 1
    absolute = second - mean**2 + others * 2 / pi * second * pull
    square = fourth - second**2 + others * 2 * (correlation * second) ** 2
    return Expected(
        size * mean / (2 * n), sqrt(max(0.0, size * absolute)) / (2 * n),
        second, sqrt(max(0.0, square / size)),
    )  # fmt: skip


def _binomial(n: int, chance: float) -> tuple[int, NDArray[np.float64]]:
    """The first count with any weight, and the law from there on."""
    if chance <= 0 or chance >= 1:
        return (n if chance >= 1 else 0), np.ones(1)
    spread = _WIDTH * sqrt(n * chance * (1 - chance)) + 4 * _WIDTH
    low, high = max(0, int(n * chance - spread)), min(n, int(n * chance + spread) + 1)
    counts = np.arange(low, high)
    steps = np.log((n - counts) / (counts + 1)) + (log(chance) - log1p(-chance))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    law = np.exp(logs - logs.max())
    return low, law / law.sum()


def _require_case(size: int, n: int) -> None:
    require_at_least(2, size=size)
    require_at_least(1, n=n)


def _require_parts(parts: Sequence[Expected]) -> None:
    if not parts:
        raise InputError("a mean needs one attribute at least")
