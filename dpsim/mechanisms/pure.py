"""The pure frame: reports that support each code with one of two probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.schema import MAX_DOMAIN_SIZE
from dpsim.mechanisms.rounding import real_loss


@dataclass(frozen=True, slots=True, init=False)
class PureOracle(ABC):
    """A frequency oracle whose reports support the true code with p, any other with q.

    The number C of reports that support a code has mean ``f p + (1 - f) q`` per user, so that
    ``(C/n - q) / (p - q)`` is unbiased, with the variance of independent reports. One code
    only: nothing is drawn and nothing is lost, and its frequency is 1.

    References:
        Wang, Blocki, Li, Jha. Locally differentially private protocols for frequency
        estimation. USENIX Security 2017.
    """

    domain_size: int
    epsilon: Fraction

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports the true code."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports one given other code."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """The difference p - q, from whole atoms."""

    @property
    @abstractmethod
    def odds(self) -> tuple[int, int]:
        """Atoms of the likelier and of the less likely way to one report, at its worst."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε, or nothing if there is one code only."""
        return PrivacyLoss(self.epsilon if self.domain_size > 1 else Fraction(0))

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: the log of the odds, at most the loss."""
        if self.domain_size == 1:
            return 0.0
        return real_loss(Fraction(*self.odds))

    @property
    def tally_size(self) -> int:
        """One count per code."""
        return self.domain_size

    def estimate(self, tally: Counts, n: int) -> Frequencies:
        """Unbiased frequencies ``(C/n - q) / (p - q)``; negative values are kept."""
        require_at_least(1, n=n)
        if self.domain_size == 1:
            return np.ones(1)
        return (tally / n - self.q) / self.gap

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """``q(1-q) / (n(p-q)²) + f(1-p-q) / (n(p-q))``: fixed population, true frequency f."""
        require_at_least(1, n=n)
        if self.domain_size == 1:
            return 0.0
        floor = self.q * (1 - self.q) / self.gap**2
        return (floor + frequency * (1 - self.p - self.q) / self.gap) / n

    def _declare(self, domain_size: int, epsilon: object) -> None:
        object.__setattr__(self, "domain_size", require_at_least(1, domain_size=domain_size))
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        if domain_size > MAX_DOMAIN_SIZE:
            raise InputError(f"domain_size must be <= {MAX_DOMAIN_SIZE:,}, got {domain_size:,}")

    @property
    def _tells_codes_apart(self) -> bool:
        return self.gap > 0

    def _require_gap(self) -> None:
        if self.domain_size > 1 and not self._tells_codes_apart:
            raise InputError(
                f"epsilon is too small for {self.domain_size} codes: "
                "no draw would tell them apart"
            )
