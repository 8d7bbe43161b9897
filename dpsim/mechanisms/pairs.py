"""What the mechanisms for one key have in common: inputs, truth, response, estimates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from math import isnan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Draws
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._pair_kernels import count_outside, respond_states
from dpsim.mechanisms._philox import quick_draws
from dpsim.mechanisms.rounding import real_loss

Values: TypeAlias = NDArray[np.float64]
"""Numbers in [-1, 1], nan where the key is absent: one per user, or one row per user."""

ABSENT, POSITIVE, NEGATIVE = 0, 1, 2
"""The three reports about one key."""


def require_values(values: NDArray[Any], keys: int | None = None) -> Values:
    """The values, contiguous; others than [-1, 1] or nan are counted and never echoed.

    A vector for one key; with ``keys``, a matrix with one column per key.
    """
    if values.dtype != np.float64:
        raise InputError(f"values must be float64, got {values.dtype}")
    if values.ndim != (1 if keys is None else 2):
        raise InputError(f"values must be {_shape_of(keys)}, got {values.ndim} dimensions")
    if keys is not None and values.shape[1] != keys:
        raise InputError(f"values must be {_shape_of(keys)}, got {values.shape[1]} columns")
    values = np.ascontiguousarray(values)
    outside = count_outside(values.reshape(-1))
    if outside:
        raise InputError(f"{outside} of {values.size} values lie outside [-1, 1]")
    return values


def _shape_of(keys: int | None) -> str:
    return "a vector" if keys is None else f"a matrix of {keys} columns"


def require_draws(draws: Draws, bits: int, n: int) -> None:
    """Refuse draws of another width than the atoms, or not one per user."""
    if draws.dtype.itemsize * 8 != bits:
        raise InputError(f"draws must have {bits} bits, got {draws.dtype}")
    require_one_each(n, draws.size)


def require_one_each(inputs: int, users: int) -> None:
    """Refuse more or fewer inputs than users: a kernel would read beyond the shorter one."""
    if inputs != users:
        raise InputError(f"there must be one input per user, got {inputs} for {users} users")


def pair_truth(values: Values) -> tuple[float, float | None]:
    """The true frequency of one key and the mean of its values; None if nobody holds it."""
    held = require_values(values)
    held = held[~np.isnan(held)]
    require_at_least(1, n=values.size)
    return held.size / values.size, float(held.mean()) if held.size else None


@dataclass(frozen=True, slots=True)
class PairLaw:
    """How reports of one key depend on its frequency f and mean m: what both sides invert.

    A user who holds the key reports it with probability ``keep``, another one with ``fake``;
    the mean sign of a holder's report is ``gain · m``, that of another user's 0::

        f̂ = (N/n - fake) / (keep - fake)      m̂ = (n₊ - n₋) / (n · gain · f̂)      N = n₊ + n₋

    f̂ and m̂·f̂ are unbiased; m̂, their quotient, is so for large n.
    """

    keep: float
    fake: float
    gain: float

    def estimate(self, tally: Counts, n: int) -> tuple[float, float | None]:
        """f̂ and m̂; no mean where f̂ is not above 0."""
        require_at_least(1, n=n)
        frequency, signs = self.unbiased(tally[0], tally[1], n)
        return float(frequency), float(signs / frequency) if frequency > 0 else None

    def unbiased(self, plus: Any, minus: Any, n: int) -> tuple[Any, Any]:  # noqa: ANN401
        """f̂ and m̂·f̂, of numbers or arrays."""
        frequency = ((plus + minus) / n - self.fake) / (self.keep - self.fake)
        return frequency, (plus - minus) / (n * self.gain)

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of f̂ and m̂ by the delta method, for users drawn independently.

        With κ = P[reported] and μ = gain·f·m::

            n·Var[f̂] = κ(1-κ)/(keep-fake)²
            n·Var[m̂] = [(κ-μ²)/gain² - 2mμ(1-κ)/(gain·(keep-fake))] / f² + m²·n·Var[f̂]/f²
        """
        require_at_least(1, n=n)
        require_pair(frequency, mean)
        gap = self.keep - self.fake
        reported = self.fake + frequency * gap
        signs = self.gain * frequency * mean
        of_frequency = reported * (1 - reported) / gap**2
        if frequency == 0:
            return of_frequency / n, float("inf")
        of_signs = (reported - signs**2) / self.gain**2
        cross = 2 * mean * signs * (1 - reported) / (self.gain * gap)
        of_mean = (of_signs - cross + mean**2 * of_frequency) / frequency**2
        return of_frequency / n, of_mean / n


def require_pair(frequency: float, mean: float) -> None:
    """A frequency in [0, 1] and a mean in [-1, 1]."""
    if isnan(frequency) or not 0 <= frequency <= 1:
        raise InputError(f"frequency must be >= 0 and <= 1, got {frequency}")
    if isnan(mean) or not -1 <= mean <= 1:
        raise InputError(f"mean must be >= -1 and <= 1, got {mean}")


@dataclass(frozen=True, slots=True)
class PairAtoms:
    """One key's channel in atoms of 2^bits: three states in, three reports out.

    A value v in [-1, 1] is the state +1 with probability (1+v)/2, else -1. It is not drawn:
    its atoms lie between those of the two states, rounded to the nearest one.
    """

    draw_bits: int
    kept: int
    """Present, and the state's own sign."""
    flipped: int
    """Present, and the other sign."""
    fake_plus: int
    fake_minus: int

    @property
    def rows(self) -> tuple[tuple[int, int, int], ...]:
        """Atoms of absent, positive, negative reports, given those states in this order."""
        total = 1 << self.draw_bits
        silent = total - self.kept - self.flipped
        lies = self.fake_plus + self.fake_minus
        return (
            (total - lies, self.fake_plus, self.fake_minus),
            (silent, self.kept, self.flipped),
            (silent, self.flipped, self.kept),
        )

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of any report's atoms between any two states."""
        columns = list(zip(*self.rows, strict=True))
        return max(Fraction(max(column), min(column)) for column in columns)

    @property
    def law(self) -> PairLaw:
        """The law of the reports, for fair fakes."""
        total = 1 << self.draw_bits
        return PairLaw(
            keep=(self.kept + self.flipped) / total,
            fake=(self.fake_plus + self.fake_minus) / total,
            gain=(self.kept - self.flipped) / total,
        )

    def respond(self, values: Values, draws: Draws) -> NDArray[np.uint8]:
        """One report per value, from one draw per value."""
        values = require_values(values)
        require_draws(draws, self.draw_bits, values.size)
        either = self.kept + self.flipped
        lies = self.fake_plus + self.fake_minus
        table = (self.flipped, self.kept - self.flipped, either, self.fake_plus, lies)
        reports: NDArray[np.uint8] = respond_states(values, draws, np.array(table, np.uint64))
        return reports


class OneKey:
    """A mechanism whose report about one key is absent, positive or negative."""

    __slots__ = ()

    @property
    @abstractmethod
    def atoms(self) -> PairAtoms:
        """The integer channel."""

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: the worst log-ratio of the integer channel."""
        return real_loss(self.atoms.worst_ratio)

    @property
    def parameters(self) -> Parameters:
        """The fields, and the atoms made of them."""
        names = [item.name for item in fields(PairAtoms)]
        return (*parameters_of(self), *zip(names, astuple(self.atoms), strict=True))

    @property
    def tally_size(self) -> int:
        """Positive and negative reports; the others are absent ones."""
        return 2

    @property
    def report_bytes(self) -> float:
        """Two bits."""
        return 0.25

    def perturb(self, inputs: Values, noise: UserNoise) -> NDArray[np.uint8]:
        """One report per value: 0 absent, 1 positive, 2 negative."""
        return self.respond(inputs, quick_draws(noise.stream(), self.atoms.draw_bits))

    def respond(self, values: Values, draws: Draws) -> NDArray[np.uint8]:
        """One report per value, from one draw per value."""
        return self.atoms.respond(values, draws)

    def tally(self, reports: NDArray[np.uint8]) -> Counts:
        """How many reports are positive, and how many negative."""
        counts = [np.count_nonzero(reports == sign) for sign in (POSITIVE, NEGATIVE)]
        return np.array(counts, np.int64)

    def channel(self) -> NDArray[np.float64]:
        """The exact law: rows are the states absent, +1, -1, columns the reports 0, 1, 2."""
        total = 1 << self.atoms.draw_bits
        return np.array([[atoms / total for atoms in row] for row in self.atoms.rows])
