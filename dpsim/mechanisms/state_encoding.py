"""State encoding: a pair is one of three states, perturbed by randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.atoms import response_atoms
from dpsim.mechanisms.pairs import OneKey, PairAtoms


@dataclass(frozen=True, slots=True)
class StateEncoding(OneKey):
    """Report one of the states absent, +1 and -1: the true one with probability p.

    A value v in [-1, 1] becomes the state +1 with probability (1+v)/2, else -1; then
    generalized randomized response over k = 3 states, with the atoms of `GRR`::

        f̂ = 1 - ĝ₀      m̂ = (ĝ₊ - ĝ₋) / f̂      ĝ = (c/n - q) / (p - q)

    With default parameters no other mechanism for one key is more accurate, in frequency or
    mean; `PrivKV` can trade the mean for the frequency by its ``key_epsilon``.

    Guarantees ε under replacement of one user's pair: its value, its presence, or both.

    References:
        Kairouz, Bonawitz, Ramage. Discrete distribution estimation under local privacy.
        ICML 2016: the response.
    """

    epsilon: Fraction

    def __init__(self, epsilon: object) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        if self.atoms.kept <= self.atoms.flipped:
            raise InputError("epsilon is too small: no draw would tell the states apart")

    @property
    def atoms(self) -> PairAtoms:
        """The integer channel."""
        bits, truth, lie = response_atoms(3, self.epsilon)
        return PairAtoms(bits, truth, lie, lie, lie)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    def estimate(self, tally: Counts, n: int) -> tuple[float, float | None]:
        """Frequency and mean from the estimated shares of the states."""
        return self.atoms.law.estimate(tally, n)

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of both estimates by the delta method, for users drawn independently."""
        return self.atoms.law.variance(n, frequency, mean)
