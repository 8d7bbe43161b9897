"""Private selection: the best of many candidates, chosen with noise on their scores.

Both mechanisms add noise to scaled scores and take the largest. The noise belongs to the
candidate's position, so that tasks may look at ranges of candidates and keep their best key.
The noise is in floats: exact in law up to their rounding, which a simulation may accept and a
release should say.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CentralNoise, Purpose

Scores = NDArray[np.float64]
_MANTISSA = np.uint64(12)
_MOST_NODES = 200


def _uniforms(noise: CentralNoise, subject: str, n: int, start: int) -> Scores:
    """``(k + ½)/2^52`` for 52 random bits k: never 0, and never rounded to 1."""
    high = noise.words(Purpose.SELECT, subject, n, start) >> _MANTISSA
    return (high.astype(np.float64) + 0.5) * 2.0**-52


def _require_scores(scores: Scores) -> Scores:
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError("scores must be finite numbers, one per candidate, and one at least")
    return values


@dataclass(frozen=True, slots=True)
class _Selection:
    """What both mechanisms share: ε, the scores' sensitivity Δ, scaled scores."""

    epsilon: Fraction
    sensitivity: Fraction

    def __init__(self, epsilon: object, sensitivity: object) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        delta = exact(sensitivity, "sensitivity")
        if delta <= 0:
            raise InputError(f"sensitivity must be > 0, got {sensitivity}")
        object.__setattr__(self, "sensitivity", delta)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one selection: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def parameters(self) -> Parameters:
        """ε and Δ."""
        return parameters_of(self)

    def scaled(self, scores: Scores) -> Scores:
        """``ε · score / (2Δ)``: log-odds of the candidates."""
        return _require_scores(scores) * float(self.epsilon / (2 * self.sensitivity))

    def select(self, scores: Scores, noise: CentralNoise, subject: str, start: int = 0) -> int:
        """The position of the chosen candidate in ``scores``; the lowest of equal ones."""
        return int(np.argmax(self.keys(scores, noise, subject, start)))

    def keys(self, scores: Scores, noise: CentralNoise, subject: str, start: int = 0) -> Scores:
        """Scaled scores with the noise of the candidates from ``start`` on.

        The largest key of all ranges is the choice: no split of the candidates changes it.
        """
        scaled = self.scaled(scores)
        first = require_at_least(0, start=start)
        return scaled + self._noise(_uniforms(noise, subject, scaled.size, first))

    def _noise(self, uniforms: Scores) -> Scores:
        raise NotImplementedError


class ExponentialSelection(_Selection):
    """Choose a candidate with probability ∝ exp(ε · score / (2Δ)).

    The largest of ``ε · score / (2Δ) + G``, G independent Gumbel noise -ln(-ln u): the same
    law without a single power, so scores of any size may be given.

    Guarantees ε, and ε²/8 of zero-concentrated privacy, if one user's replacement changes no
    score by more than Δ.

    References:
        McSherry, Talwar. Mechanism design via differential privacy. FOCS 2007.
        Cesar, Rogers. Bounding, concentrating, and truncating: unifying privacy loss
        composition for data analytics. ALT 2021.
    """

    __slots__ = ()

    @property
    def rho(self) -> Fraction:
        """The loss in zero-concentrated privacy: ε²/8."""
        return self.epsilon**2 / 8

    def probabilities(self, scores: Scores) -> NDArray[np.float64]:
        """The exact law of the choice."""
        scaled = self.scaled(scores)
        odds = np.exp(scaled - scaled.max())
        law: Scores = odds / odds.sum()
        return law

    def _noise(self, uniforms: Scores) -> Scores:
        return -np.log(-np.log(uniforms))


class PermuteAndFlip(_Selection):
    """Look at candidates in random order; take one with probability exp(ε (score - best)/(2Δ)).

    The largest of ``ε · score / (2Δ) + E``, E independent exponential noise -ln u: the same
    law. Its expected score is never below that of `ExponentialSelection`, and its chance to
    miss the best by any amount never above.

    Guarantees ε if one user's replacement changes no score by more than Δ. In
    zero-concentrated privacy it costs ε²/2, four times what the exponential mechanism does.

    References:
        McKenna, Sheldon. Permute-and-flip: a new mechanism for differentially private
        selection. NeurIPS 2020.
        Ding, Kifer, Saghaian, Steinke, Wang, Xiao, Zhang. The permute-and-flip
        mechanism is identical to report-noisy-max with exponential noise. 2021.
    """

    __slots__ = ()

    @property
    def rho(self) -> Fraction:
        """The loss in zero-concentrated privacy: ε²/2."""
        return self.epsilon**2 / 2

    def probabilities(self, scores: Scores) -> NDArray[np.float64]:
        """The exact law: with q_i = exp(scaled - largest), q_i ∫₀¹ Π_{j≠i} (1 - q_j u) du.

        The integrand is a polynomial; Gauss's rule has no error for up to 400 candidates.
        """
        scaled = self.scaled(scores)
        odds = np.exp(scaled - scaled.max())
        nodes, weights = np.polynomial.legendre.leggauss(min(odds.size // 2 + 1, _MOST_NODES))
        misses = 1 - np.outer((nodes + 1) / 2, odds)
        wins = odds * (weights @ (misses.prod(axis=1, keepdims=True) / misses))
        law: Scores = wins / wins.sum()
        return law

    def _noise(self, uniforms: Scores) -> Scores:
        return -np.log(uniforms)
