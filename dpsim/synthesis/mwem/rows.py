"""Synthetic records from a guess: sampled one by one, or rounded to whole counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis.mwem.atoms import spread_evenly
from dpsim.synthesis.mwem.state import Guess
from dpsim.synthesis.table import CodeMatrix, code_type

_CELL, _ROWS = "mwem cell", "mwem rows"
_MANTISSA, _SHIFT = np.uint64(12), np.uint64(32)


@dataclass(frozen=True, eq=False)
class HistogramModel:
    """The law of records that a guess stands for: a `TableModel`."""

    guess: Guess

    def __post_init__(self) -> None:
        if not (np.isfinite(self.guess.masses).all() and self.guess.masses.min() >= 0):
            raise InputError("masses must be finite and >= 0")
        if not self.guess.masses.sum() > 0:
            raise InputError("masses must not all be zero: there is no law to sample from")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        if self.guess.edges:
            return tuple(int(edges[-1]) for edges in self.guess.edges)
        return self.guess.masses.shape

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        return np.cumsum(self.guess.masses.reshape(-1))

    def sample(self, n: int, noise: CentralNoise, start: int = 0) -> CodeMatrix:
        """Records ``start .. start + n - 1``: each depends on its index and the noise only.

        A word chooses the cell or atom; in an atom, a word per attribute chooses the place.
        """
        count, first = require_at_least(0, n=n), require_at_least(0, start=start)
        uniforms = _uniforms(noise, _CELL, count, first)
        sums = self._cumulative
        at = np.searchsorted(sums, uniforms * sums[-1], side="right")
        last = int(np.flatnonzero(self.guess.masses.reshape(-1))[-1])
        cells = np.unravel_index(np.minimum(at, last), self.guess.masses.shape)
        codes = np.empty((len(self.sizes), count), code_type(self.sizes))
        for axis, cell in enumerate(cells):
            codes[axis] = self._inside(axis, cell, noise, first)
        return codes

    def _inside(
        self, axis: int, slabs: NDArray[np.intp], noise: CentralNoise, start: int
    ) -> NDArray[np.int64]:
        if not self.guess.edges:
            return slabs
        edges = self.guess.edges[axis]
        words = noise.words(Purpose.PUBLISH, f"mwem {axis}", slabs.size, start) >> _SHIFT
        widths = np.diff(edges).astype(np.uint64)[slabs]
        return edges[slabs] + ((words * widths) >> _SHIFT).astype(np.int64)

    def marginal(self, attributes: tuple[int, ...]) -> Frequencies:
        """The exact law of some attributes, one axis each, in the order given."""
        if len(set(attributes)) < len(attributes):
            raise InputError(f"a marginal names each attribute once, got {attributes}")
        others = tuple(set(range(len(self.sizes))) - set(attributes))
        kept = sorted(attributes)
        edges = tuple(self.guess.edges[axis] for axis in kept) if self.guess.edges else ()
        table = spread_evenly(Guess(self.guess.masses.sum(axis=others), edges))
        order = [kept.index(attribute) for attribute in attributes]
        return np.asarray(np.transpose(table, order) / self.guess.masses.sum())

    def rounded(self, n: int, noise: CentralNoise) -> Counts:
        """Whole counts per cell that sum to n: differences of ⌊C + u⌋, C the running sum.

        One uniform u for all: any contiguous range of cells is off by less than 1, and every
        count is right on average. Sampling would add √(n p (1 - p)).
        """
        count = require_at_least(0, n=n)
        masses = spread_evenly(self.guess)
        sums = np.cumsum(masses.reshape(-1))
        places = np.floor(sums * (count / sums[-1]) + _uniforms(noise, _ROWS, 1, 0))
        places[-1] = count
        counts = np.diff(np.minimum(places, count), prepend=0).astype(np.int64)
        return np.asarray(counts.reshape(masses.shape))

    def rounded_rows(self, n: int, noise: CentralNoise) -> CodeMatrix:
        """Records with the counts of `rounded`, in the order of the cells."""
        counts = self.rounded(n, noise)
        cells = np.unravel_index(np.arange(counts.size), counts.shape)
        codes = [np.repeat(cell, counts.reshape(-1)) for cell in cells]
        return np.array(codes, code_type(self.sizes))


def _uniforms(noise: CentralNoise, subject: str, n: int, start: int) -> NDArray[np.float64]:
    words = noise.words(Purpose.PUBLISH, subject, n, start) >> _MANTISSA
    return (words.astype(np.float64) + 0.5) * 2.0**-52
