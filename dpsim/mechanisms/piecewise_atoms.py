"""The whole numbers behind the Piecewise mechanism: draws of 64 bits shared out to a grid."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dpsim.core.errors import InputError
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.unit_interval import SHARE_BITS

WORD = 1 << 64
_TOLERATED_DEFICIT = Decimal("1e-5")
"""The part of ε that rounding to 2^32 atoms may cost; beyond it 2^64/N are used."""


class Layout(NamedTuple):
    """What each of the 2^64 draws does, on a grid of N points.

    The first ``anywhere`` draws report any point. The c-th of the others adds the position
    ``⌊c · stretch / 2^64⌋``, in 2^-31 of a point and below W, to the number's own.
    """

    points: int
    width: int
    """Points near a number: W."""
    atom_bits: int
    anywhere_atoms: int
    """Atoms, of 2^atom_bits, whose report does not depend on the number: B."""

    @property
    def anywhere(self) -> int:
        """Draws whose report does not depend on the number; N divides them."""
        return self.anywhere_atoms << (64 - self.atom_bits)

    @property
    def near(self) -> int:
        """Draws whose report does."""
        return WORD - self.anywhere

    @property
    def stretch(self) -> int:
        """The largest factor that keeps every position below W."""
        return (self.width << (64 + SHARE_BITS)) // self.near

    @property
    def excess(self) -> Fraction:
        """The worst ratio of two probabilities of one point, minus 1.

        No point owns more positions than 0 does for the number -1, and for 1 it owns none.
        """
        return Fraction(self._draws_below(1 << SHARE_BITS) * self.points, self.anywhere)

    def place_atoms(self, share: int) -> list[int]:
        """Draws that report each point, for the number with this share of 2^31."""
        start = share * (self.points - self.width)
        ends = [self._draws_below((j << SHARE_BITS) - start) for j in range(self.points + 1)]
        anywhere = self.anywhere // self.points
        return [anywhere + end - begin for begin, end in pairwise(ends)]

    def _draws_below(self, position: int) -> int:
        """How many near draws have a smaller position: ``⌈position · 2^64 / stretch⌉``."""
        return min(self.near, max(0, -(-position * WORD // self.stretch)))


@lru_cache(maxsize=4096)
def piecewise_layout(epsilon: Fraction, points: int) -> Layout:
    """W near the best width ``N / (e^(ε/2) + 1)``, and the least B that keeps the loss ≤ ε."""
    with localcontext(prec=60):
        asked = Decimal(epsilon.numerator) / epsilon.denominator
        best = points / (exp_of(epsilon / 2) + 1)
        width = max(1, int(best.to_integral_value(rounding=ROUND_HALF_EVEN)))
        layout = None
        for bits in (32, 65 - points.bit_length()):
            layout = _fit(exp_of(epsilon), points, width, bits)
            if layout and asked - _ratio(layout).ln() <= _TOLERATED_DEFICIT * asked:
                return layout
    if layout is None:
        raise InputError("epsilon is too small: no draw would tell two numbers apart")
    return layout


def _fit(limit: Decimal, points: int, width: int, bits: int) -> Layout | None:
    """``B = ⌈A / (1 + (e^ε - 1) W/N)⌉``, or a few more where whole positions need it."""
    share, anywhere = Decimal(width) / points, 0
    while True:
        least = Decimal(1 << bits) / (1 + (limit - 1) * share)
        anywhere = max(anywhere + 1, int(least.to_integral_value(rounding=ROUND_CEILING)))
        layout = Layout(points, width, bits, anywhere)
        if anywhere >= 1 << bits or layout.stretch >= WORD:
            return None
        if _ratio(layout) <= limit:
            return layout
        share = Decimal(layout.near) / int(layout.excess * layout.anywhere)


def _ratio(layout: Layout) -> Decimal:
    return 1 + Decimal(layout.excess.numerator) / layout.excess.denominator
