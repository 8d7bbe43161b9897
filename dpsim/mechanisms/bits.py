"""Bits and choices from integer draws: the parts that local mechanisms are made of.

All of them are pure functions of values and draws; one draw decides one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Draws
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.atoms import response_atoms
from dpsim.mechanisms.rounding import log_of, loss_up, real_loss


def keep_probability(epsilon: object, values: int = 2) -> float:
    """``e^ε / (e^ε + k - 1)`` for k values, in the form that no ε overflows."""
    loss = exact(epsilon, "epsilon")
    if loss < 0:
        raise InputError(f"epsilon must be >= 0, got {epsilon}")
    return 1 / (1 + (require_at_least(1, values=values) - 1) * exp(-loss))


def keep_atoms(epsilon: object, values: int = 2) -> tuple[int, int, int]:
    """Bits per draw, atoms that keep a value, atoms of one given other value."""
    return response_atoms(require_at_least(2, values=values), require_epsilon(epsilon))


def discretize(
    values: NDArray[np.float64], draws: Draws, low: float = 0.0, high: float = 1.0
) -> NDArray[np.float64]:
    """Each value as one of the two ends of its range, with the same mean.

    ``high`` with probability ``(value - low) / (high - low)``, to the nearest of 2^32 atoms.
    """
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(f"low must be below high and both finite, got {low} and {high}")
    _require_draws(draws, values.shape, 32)
    inside = (values >= low) & (values <= high)
    if not inside.all():
        outside = int(inside.size - np.count_nonzero(inside))
        raise InputError(f"{outside} of {values.size} values lie outside {low}..{high}")
    atoms = np.rint((values - low) / (high - low) * 2.0**32).astype(np.uint64)
    return np.where(draws < atoms, high, low)


def bernoulli(atoms: int, draws: Draws) -> NDArray[np.bool_]:
    """True where a draw is one of the first so many atoms: with probability atoms/A exactly."""
    everything = 1 << 8 * draws.dtype.itemsize
    if not 0 <= require_at_least(0, atoms=atoms) <= everything:
        raise InputError(f"atoms must be <= {everything}, got {atoms}")
    if atoms == everything:
        return np.ones(draws.shape, np.bool_)
    return np.asarray(draws < draws.dtype.type(atoms), np.bool_)


def cumulative_atoms(shares: Sequence[object], bits: int = 32) -> tuple[int, ...]:
    """Where each choice but the last one ends, on 2^bits atoms; the last takes the rest."""
    weights = [exact(share, "share") for share in shares]
    if not weights or min(weights) < 0 or sum(weights) == 0:
        raise InputError("shares must be >= 0 and not all 0")
    total = sum(weights)
    return tuple(int((1 << bits) * part / total) for part in accumulate(weights[:-1]))


def categorical(ends: Sequence[int], draws: Draws) -> NDArray[np.intp]:
    """The choice that owns each draw, given where each but the last one ends."""
    # Half-open intervals: a draw at an end belongs to the next choice that is not empty.
    everything = 1 << 8 * draws.dtype.itemsize
    if any(left > right for left, right in zip((0, *ends), (*ends, everything), strict=True)):
        raise InputError(f"ends must rise from 0 to {everything}")
    inner = [end for end in ends if end < everything]
    return np.searchsorted(np.array(inner, draws.dtype), draws, side="right")


@dataclass(frozen=True, slots=True)
class RandomizedBits:
    """Randomized response on bits, in arrays of any shape: one draw per bit.

    A report is 1 with probability ``p = p_atoms/A`` where the bit is 1, and with
    ``q = q_atoms/A`` where it is 0, on A = 2^draw_bits atoms. One bit costs::

        max(|ln(p/q)|, |ln((1-p)/(1-q))|)

    Guarantees that loss per bit under replacement of the bit; bits of one user add up.

    References:
        Warner. Randomized response. JASA 1965.
    """

    p_atoms: int
    q_atoms: int
    draw_bits: int = 32

    def __post_init__(self) -> None:
        if self.draw_bits not in (32, 64):
            raise InputError(f"draw_bits must be 32 or 64, got {self.draw_bits!r}")
        for name in ("p_atoms", "q_atoms"):
            atoms = getattr(self, name)
            if require_at_least(1, **{name: atoms}) >= (1 << self.draw_bits):
                raise InputError(f"{name} must be below 2^{self.draw_bits}, got {atoms}")
        if self.p_atoms == self.q_atoms:
            raise InputError("p_atoms and q_atoms must differ: no report would tell bits apart")

    @classmethod
    def symmetric(cls, epsilon: object) -> RandomizedBits:
        """Keep each bit with probability ``e^ε / (e^ε + 1)``."""
        bits, keep, change = keep_atoms(epsilon)
        return cls(keep, change, bits)

    @property
    def p(self) -> float:
        """Probability that a 1 stays 1."""
        return self.p_atoms / (1 << self.draw_bits)

    @property
    def q(self) -> float:
        """Probability that a 0 becomes 1."""
        return self.q_atoms / (1 << self.draw_bits)

    @property
    def real_epsilon(self) -> float:
        """What one bit really costs."""
        return real_loss(self._odds)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one bit: the real loss, rounded up to a fraction."""
        return PrivacyLoss(loss_up(log_of(self._odds)))

    def respond(self, bits: NDArray[Any], draws: Draws) -> NDArray[np.bool_]:
        """One report per bit, from one draw per bit: never from a row that bits share."""
        _require_draws(draws, bits.shape, self.draw_bits)
        ones = np.asarray(bits == 1, np.bool_)
        if not (ones | (bits == 0)).all():
            raise InputError("bits must be 0 or 1")
        high, low = (draws < draws.dtype.type(atoms) for atoms in (self.p_atoms, self.q_atoms))
        return np.where(ones, high, low)

    def estimate(self, ones: int, n: int) -> float:
        """The unbiased share of bits that are 1, from how many of n reports are 1."""
        require_at_least(1, n=n)
        return (ones / n - self.q) * (1 << self.draw_bits) / (self.p_atoms - self.q_atoms)

    @property
    def _odds(self) -> Fraction:
        """The likelier way to a report over the less likely one, at its worst."""
        low, high = sorted((self.p_atoms, self.q_atoms))
        atoms = 1 << self.draw_bits
        return max(Fraction(high, low), Fraction(atoms - low, atoms - high))


def _require_draws(draws: Draws, shape: tuple[int, ...], bits: int) -> None:
    if draws.shape != shape or draws.dtype.itemsize * 8 != bits:
        raise InputError(
            f"draws must be {bits} bits each in shape {shape}, got {draws.dtype} {draws.shape}"
        )
