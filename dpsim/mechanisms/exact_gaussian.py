"""The discrete Gaussian by decimal arithmetic: what the fast loop must equal, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.mechanisms._noise_kernels import words_at_counter

_MORE = 1 << 63
"""Steps from here on hold further bits: no entry ever needs so many trials."""
_FIRST_DIGITS = 40
_GUARD = 10


def whole_law(n: int, digits: int) -> list[Decimal]:
    """P[K = k] ∝ exp(-k²/2) for k = 0..n-1, to that many digits."""
    with localcontext(prec=digits + _GUARD):
        odds, k = [Decimal(1)], 0
        while odds[-1] > Decimal(10) ** -(digits + _GUARD) or k < n:
            k += 1
            odds.append((Decimal(-k * k) / 2).exp())
        total = sum(odds, Decimal(0))
        return [odd / total for odd in odds[:n]]


@dataclass(slots=True)
class Uniform:
    """A uniform number in [0, 1) whose further bits are drawn when they matter."""

    bits: int
    length: int
    further: Callable[[int], int]
    """The r-th 64 bits behind the first ones."""
    read: int = 0

    def is_below(self, probability: Callable[[int], Decimal]) -> bool:
        """Whether the number is below a real one, given to as many digits as one asks for."""
        digits = _FIRST_DIGITS
        while True:
            with localcontext(prec=2 * digits + self.length):
                error = Decimal(10) ** -digits
                real, cell = probability(digits + 2), Decimal(2) ** -self.length
                if (self.bits + 1) * cell <= real - error:
                    return True
                if self.bits * cell >= real + error:
                    return False
            self.bits = (self.bits << 64) | self.further(self.read)
            self.length += 64
            self.read += 1
            digits += 20


def entry_at(entry: int, key: NDArray[np.uint64], sigma: Fraction) -> int:
    """The noise of one entry, from the words of its counters."""
    step = 0
    while True:
        words = _words(entry, step, key)
        outcome = _trial(words, sigma, _further(entry, step, key))
        if outcome is not None:
            return outcome
        step += 1


def _trial(
    words: tuple[int, int, int, int], sigma: Fraction, further: Callable[[int], int]
) -> int | None:
    """The value of one trial, or None if it is rejected."""
    top, bottom = sigma.numerator, sigma.denominator
    k = _whole(Uniform(words[0] >> 1, 63, lambda place: further(2 * place)))
    width = -(-top // bottom)
    if words[1] * width % 2**64 < 2**64 % width:
        return None
    size = -(-k * top // bottom) + (words[1] * width >> 64)
    above, is_negative = bottom * size - k * top, words[0] & 1
    if above >= top or (is_negative and size == 0):
        return None
    x = Fraction(above, top)
    exponent = -x * (2 * k + x) / 2

    def probability(digits: int) -> Decimal:
        with localcontext(prec=digits + _GUARD):
            return (Decimal(exponent.numerator) / exponent.denominator).exp()

    if not Uniform(words[2], 64, lambda place: further(2 * place + 1)).is_below(probability):
        return None
    return -size if is_negative else size


def _whole(uniform: Uniform) -> int:
    """How many whole σ: the first k with the number below P[K ≤ k]."""
    k = 0

    def end(digits: int) -> Decimal:
        with localcontext(prec=digits + _GUARD):
            return sum(whole_law(k + 1, digits + 2), Decimal(0))

    while not uniform.is_below(end):
        k += 1
    return k


def _words(entry: int, step: int, key: NDArray[np.uint64]) -> tuple[int, int, int, int]:
    first, second, third, fourth = words_at_counter(np.uint64(entry), np.uint64(step), key)
    return int(first), int(second), int(third), int(fourth)


def _further(entry: int, step: int, key: NDArray[np.uint64]) -> Callable[[int], int]:
    """Further bits for both decisions of a trial: 64 each per counter step, far behind."""

    def words(place: int) -> int:
        decision, lane = place % 2, place // 2
        return _words(entry, _MORE + (step << 20) + lane, key)[decision]

    return words
