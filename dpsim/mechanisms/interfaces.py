"""What every mechanism of a family offers."""

from __future__ import annotations

from typing import Protocol

from dpsim.core.arrays import Codes, Counts, Draws, Frequencies
from dpsim.core.plan import Parameters
from dpsim.core.privacy import PrivacyLoss


class FrequencyOracle(Protocol):
    """Perturbs one code per user and estimates how frequent each code is.

    One frozen value serves client and server, so that neither can hold another probability
    than its peer.
    """

    @property
    def domain_size(self) -> int:
        """The number of codes k."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: exact, and never below the real loss."""

    @property
    def real_epsilon(self) -> float:
        """The worst log-ratio of the integer channel: what one report really costs."""

    @property
    def parameters(self) -> Parameters:
        """All numbers that determine a report, for the plan."""

    @property
    def draw_bits(self) -> int:
        """Bits of randomness per user: 32 or 64."""

    def perturb(self, codes: Codes, draws: Draws) -> Codes:
        """One report per code."""

    def tally(self, reports: Codes) -> Counts:
        """How often each code was reported; tallies of disjoint users add up."""

    def estimate(self, counts: Counts, n: int) -> Frequencies:
        """Unbiased frequencies of the true codes; negative values are kept."""

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Of one estimated frequency, for a fixed population."""
