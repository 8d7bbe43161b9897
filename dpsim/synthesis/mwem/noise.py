"""The noise of a run: which words serve which query of which iteration, and by which law.

Positions name iteration and query, or its part: iteration t owns ``t · Q .. (t + 1) · Q - 1``.
So an iteration made twice repeats its bits, and two different choices in it never share noise.
Trial r of an evaluation has the plan ``hash/r``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.mechanisms.selection import ExponentialSelection, PermuteAndFlip
from dpsim.synthesis.mwem.settings import MWEMSettings

SUBJECT = "mwem"
_TOTAL = "mwem total"
_ORDER = "mwem order"
_MANTISSA = np.uint64(12)
_ONE = np.uint64(1)

Floats = NDArray[np.float64]


def trial_noise(noise: CentralNoise, trial: int) -> CentralNoise:
    """The noise of one trial: independent of the others, whatever chunk it runs in."""
    return CentralNoise(noise.seed, f"{noise.plan_hash}/{trial}")


@dataclass(frozen=True, slots=True)
class FloatLaplace:
    """Laplace noise in floats, for answers that are not whole numbers.

    Scale b = Δ/ε, variance 2b². Guarantees ε up to the rounding of floats, which shows in the
    low bits of an answer: use `DiscreteLaplace` for whole counts.
    """

    epsilon: Fraction
    sensitivity: int

    @property
    def scale(self) -> Fraction:
        """The b of the noise."""
        return self.sensitivity / self.epsilon

    @property
    def variance(self) -> float:
        """Of one answer: 2b²."""
        return 2 * float(self.scale) ** 2

    def measure(
        self, answers: NDArray[Any], noise: CentralNoise, subject: str, start: int = 0
    ) -> Floats:
        """The answers with the noise of the positions from ``start`` on."""
        words = noise.words(Purpose.MEASURE, subject, answers.size, start)
        sizes = -np.log(((words >> _MANTISSA).astype(np.float64) + 0.5) * 2.0**-52)
        signs = np.where(words & _ONE, 1.0, -1.0)
        return np.asarray(answers + float(self.scale) * signs * sizes)


@dataclass(frozen=True, slots=True)
class RandomSelection:
    """Choose any candidate, whatever its score: free of charge."""

    def keys(self, scores: Floats, noise: CentralNoise, subject: str, start: int = 0) -> Floats:
        """The largest key is the choice."""
        return noise.words(Purpose.START, subject, scores.size, start).astype(np.float64)

    def scaled(self, scores: Floats) -> Floats:
        """Scores count for nothing."""
        return np.zeros(scores.size)


Selector = ExponentialSelection | PermuteAndFlip | RandomSelection
Measurer = DiscreteLaplace | FloatLaplace


def selector_of(settings: MWEMSettings, sensitivity: int) -> Selector:
    """The mechanism that selects; a divisor of scores acts as a larger sensitivity."""
    if settings.selection == "random":
        return RandomSelection()
    scaled = settings.select_epsilon, sensitivity * settings.score_divisor
    if settings.selection == "exponential":
        return ExponentialSelection(*scaled)
    return PermuteAndFlip(*scaled)


def measurer_of(settings: MWEMSettings, sensitivity: int) -> Measurer:
    """The mechanism that measures; a divisor of noise acts as a larger ε."""
    epsilon = settings.measure_epsilon * settings.noise_divisor
    kind = DiscreteLaplace if settings.noise == "discrete" else FloatLaplace
    return kind(epsilon, sensitivity)


def measure_total(total: int, settings: MWEMSettings, noise: CentralNoise) -> float:
    """The number of records: as it is where public, else noisy and 1 at least."""
    if settings.neighbors == "replace":
        return float(total)
    counts: Counts = np.array([total], np.int64)
    noisy = DiscreteLaplace(settings.total_epsilon, 1).measure(counts, noise, _TOTAL)
    return float(max(1, noisy[0]))


def order_words(noise: CentralNoise, replays: int, first: int, n: int) -> NDArray[np.uint64]:
    """The words that shuffle the replays of ``n`` iterations from ``first`` on.

    Iteration t shuffles t + 1 measurements in each replay: it owns ``replays · (t + 1)`` words.
    """
    start = replays * first * (first + 1) // 2
    stop = replays * (first + n) * (first + n + 1) // 2
    return noise.words(Purpose.START, _ORDER, stop - start, start)
