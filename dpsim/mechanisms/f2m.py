"""F2M: key and value perturbed side by side, absent keys with a value set for all."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Draws
from dpsim.core.checks import require_at_least, require_epsilon, require_share
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._pair_kernels import respond_both, threshold
from dpsim.mechanisms._philox import quick_draws
from dpsim.mechanisms.pairs import Values, require_draws, require_pair, require_values
from dpsim.mechanisms.rounding import DIGITS, atoms_up, decimal_of, is_precise, real_loss

_KEY, _PLUS = 2, 1


@dataclass(frozen=True, slots=True)
class F2M:
    """Randomized response on the key's bit, and a mean of values whoever holds the key.

    Of the loss ε, the share ``split`` goes to the key, the rest to the value. The value, or
    ``set_value`` = s where the key is absent, becomes a sign (+1 with probability (1+v)/2)
    that is kept with probability e^ε₂/(e^ε₂ + 1), as by Duchi et al.; both bits are sent::

        f̂ = (c/n - q)/(1 - 2q)      m̂ = (m̂_all - (1 - f̂) s) / f̂

    For comparison: prefer `StateEncoding`, which pays once for both bits.

    Guarantees ε = ε₁ + ε₂ under replacement of one user's pair; with s = 0 it really costs
    less, see `real_epsilon`.
    """

    epsilon: Fraction
    split: Fraction
    set_value: Fraction

    def __init__(self, epsilon: object, split: object = "1/2", set_value: object = 0) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        object.__setattr__(self, "split", require_share(split, "split"))
        object.__setattr__(self, "set_value", exact(set_value, "set_value"))
        if self.split == 0:
            raise InputError(f"split must be > 0 and < 1, got {split}")
        if not -1 <= self.set_value <= 1:
            raise InputError(f"set_value must be >= -1 and <= 1, got {set_value}")
        _both_atoms(self.epsilon, self.split)

    @property
    def draw_bits(self) -> int:
        """Bits per draw: 32, or 64 where they would be too coarse."""
        return _both_atoms(self.epsilon, self.split)[0]

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: the worst log-ratio of the integer channel."""
        columns = zip(*self._rows, strict=True)
        return real_loss(max(Fraction(max(column), min(column)) for column in columns))

    @property
    def parameters(self) -> Parameters:
        """The fields, and the atoms made of them."""
        names = ("draw_bits", "true_key", "flipped_if_true", "flipped_if_false")
        atoms = _both_atoms(self.epsilon, self.split)
        return (*parameters_of(self), *zip(names, atoms, strict=True))

    @property
    def tally_size(self) -> int:
        """Reports with the key, and reports with a positive sign."""
        return 2

    @property
    def report_bytes(self) -> float:
        """Two bits."""
        return 0.25

    def perturb(self, inputs: Values, noise: UserNoise) -> NDArray[np.uint8]:
        """One report per value: two if the key is reported, plus one for a positive sign."""
        return self.respond(inputs, quick_draws(noise.stream(), self.draw_bits))

    def respond(self, values: Values, draws: Draws) -> NDArray[np.uint8]:
        """One report per value, from one draw per value."""
        values = require_values(values)
        require_draws(draws, self.draw_bits, values.size)
        bits, true_key, if_true, if_false = _both_atoms(self.epsilon, self.split)
        false_key = 2**bits - true_key
        spans = true_key - 2 * if_true, false_key - 2 * if_false
        table = np.array([true_key, if_true, spans[0], if_false, spans[1]], np.uint64)
        reports: NDArray[np.uint8] = respond_both(values, draws, table, float(self.set_value))
        return reports

    def tally(self, reports: NDArray[np.uint8]) -> Counts:
        """How many reports have the key, and how many a positive sign."""
        return np.array([np.count_nonzero(reports & bit) for bit in (_KEY, _PLUS)], np.int64)

    def estimate(self, tally: Counts, n: int) -> tuple[float, float | None]:
        """The unbiased frequency, and the mean; None if the frequency is not above 0."""
        require_at_least(1, n=n)
        key_gap, sign_gap, _ = self._gaps
        frequency = float((2 * tally[0] / n - 1) / key_gap + 1) / 2
        if frequency <= 0:
            return frequency, None
        fill = float(self.set_value)
        everybody = float(2 * tally[1] / n - 1) / sign_gap
        return frequency, (everybody - (1 - frequency) * fill) / frequency

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of both estimates by the delta method, for users drawn independently.

        With x the key's bit, s the sign, gaps a = 1-2q of the bit and b of the sign, and
        r = m - set_value: ``n·Var[m̂] = Var[s/b - r x/a] / f²``.
        """
        require_at_least(1, n=n)
        require_pair(frequency, mean)
        key_gap, sign_gap, (gain_true, gain_false) = self._gaps
        fill, absent = float(self.set_value), 1 - frequency
        key = (1 - key_gap) / 2 + frequency * key_gap
        sign = sign_gap * (frequency * mean + absent * fill)
        both = frequency * mean * gain_true + absent * fill * gain_false
        of_frequency = key * (1 - key) / key_gap**2
        if frequency == 0:
            return of_frequency / n, float("inf")
        rest = mean - fill
        cross = 2 * rest * (both - key * sign) / (key_gap * sign_gap)
        of_mean = (1 - sign**2) / sign_gap**2 - cross + rest**2 * of_frequency
        return of_frequency / n, of_mean / frequency**2 / n

    def channel(self) -> NDArray[np.float64]:
        """The exact law: rows are the states absent, +1, -1, columns the reports 0 to 3."""
        total = 1 << self.draw_bits
        return np.array([[atoms / total for atoms in row] for row in self._rows])

    @property
    def _gaps(self) -> tuple[float, float, tuple[float, float]]:
        """Of the key's bit, of the sign, and of the sign among true and among false keys."""
        bits, true_key, if_true, if_false = _both_atoms(self.epsilon, self.split)
        total, false_key = 1 << bits, (1 << bits) - true_key
        gains = (true_key - 2 * if_true) / total, (false_key - 2 * if_false) / total
        return (true_key - false_key) / total, gains[0] + gains[1], gains

    @property
    def _rows(self) -> tuple[tuple[int, ...], ...]:
        """Atoms of the reports 0 to 3 given the states absent, +1 and -1."""
        bits, true_key, if_true, if_false = _both_atoms(self.epsilon, self.split)
        false_key = 2**bits - true_key
        plus_true, plus_false = (
            int(threshold(float(self.set_value), np.uint64(flip), np.uint64(key - 2 * flip)))
            for key, flip in ((true_key, if_true), (false_key, if_false))
        )
        kept_true, kept_false = true_key - if_true, false_key - if_false
        return (
            (true_key - plus_true, plus_true, false_key - plus_false, plus_false),
            (if_false, kept_false, if_true, kept_true),
            (kept_false, if_false, kept_true, if_true),
        )


@lru_cache(maxsize=1024)
def _both_atoms(epsilon: Fraction, split: Fraction) -> tuple[int, int, int, int]:
    """Bits per draw, atoms of a true key, and of a flipped sign beside a true, a false key."""
    with localcontext(prec=DIGITS):
        key, value = decimal_of(epsilon * split), decimal_of(epsilon * (1 - split))
        lie, flip = 1 / (1 + key.exp()), 1 / (1 + value.exp())
    for bits in (32, 64):
        false_key = atoms_up(lie, bits)
        true_key = 2**bits - false_key
        with localcontext(prec=DIGITS):
            if_true, if_false = atoms_up(true_key * flip, 0), atoms_up(false_key * flip, 0)
        if (
            is_precise(Fraction(true_key, false_key), key)
            and is_precise(Fraction(true_key - if_true, if_true), value)
            and is_precise(Fraction(false_key - if_false, if_false), value)
        ):
            return bits, true_key, if_true, if_false
    raise InputError(
        f"epsilon must be larger: {key:.3g} for the key and {value:.3g} for the value are "
        "lost in the rounding of 64-bit draws"
    )
