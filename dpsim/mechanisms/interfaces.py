"""What every mechanism of a family offers.

One frozen value serves client and server, so that neither can hold another probability than its
peer. Reports are arrays with one row per user; tallies are int64 vectors, and tallies of
disjoint users add up.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.plan import Parameters
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CountGenerator, UserNoise

Reports: TypeAlias = NDArray[Any]
"""Perturbed values as sent, one row per user."""


class Randomizer(Protocol):
    """Perturbs one input per user, locally, and adds reports up."""

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
    def tally_size(self) -> int:
        """Length of a tally."""

    @property
    def report_bytes(self) -> float:
        """What one user sends, in bytes."""

    def perturb(self, inputs: NDArray[Any], noise: UserNoise) -> Reports:
        """One report per user; inputs outside the domain are refused, never echoed."""

    def tally(self, reports: Reports) -> Counts:
        """The sum of some reports."""


class FrequencyOracle(Randomizer, Protocol):
    """Perturbs one code per user and estimates how frequent each code is."""

    @property
    def domain_size(self) -> int:
        """The number of codes k."""

    def estimate(self, tally: Counts, n: int) -> Frequencies:
        """Unbiased frequencies of the true codes; negative values are kept."""

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Of one estimated frequency, for a fixed population."""


@runtime_checkable
class CountLaw(Protocol):
    """A frequency oracle whose tally has a known law given the true counts."""

    def simulate(self, histogram: Counts, generator: CountGenerator) -> Counts:
        """A tally drawn exactly from its law, whatever the number of users."""


@runtime_checkable
class Memoized(Protocol):
    """A frequency oracle whose users draw a permanent answer once and perturb that again."""

    def average_variance(self, rounds: int, n: int, frequency: float = 0.0) -> float:
        """Of the average of several rounds' estimates of one frequency."""

    def loss_after(self, reports: int) -> float:
        """What so many reports on one value have cost: at most the loss that is charged."""


class MeanMechanism(Randomizer, Protocol):
    """Perturbs one number in [-1, 1] per user and estimates their mean."""

    def estimate(self, tally: Counts, n: int) -> float:
        """The unbiased mean."""

    def variance(self, n: int, mean: float = 0.0, mean_square: float = 0.0) -> float:
        """Of the estimate, for a fixed population with this mean and mean square."""


class KeyValueMechanism(Randomizer, Protocol):
    """Perturbs presence and value of one key: inputs in [-1, 1], nan where it is absent."""

    def estimate(self, tally: Counts, n: int) -> tuple[float, float | None]:
        """The unbiased frequency of the key, and the mean of its values; None if unknown."""

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of both estimates, by the delta method."""
