"""Subset selection: a random subset of the codes that probably holds the true one."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts
from dpsim.core.checks import require_at_least, require_codes
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._subset_kernels import random_subsets
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.packed import (
    count_packed,
    packed,
    require_enumerable,
    require_room,
    row_bytes,
)
from dpsim.mechanisms.pure import PureOracle
from dpsim.mechanisms.rounding import DIGITS, decimal_of, is_precise


@dataclass(frozen=True, slots=True, init=False)
class SubsetSelection(PureOracle):
    """Report w of the k codes: with probability p the true one and w - 1 others, else w others.

    The true code is included by exactly P of A = 2^32 atoms (2^64 where 32 bits would waste
    more than 1e-5 of ε)::

        p = P/A = w e^ε / (w e^ε + k - w), rounded down     q = (w - p) / (k - 1)

    Given that, all sets of others are equally likely, and one subset is ``p(k-w) / ((1-p)w)``
    times as likely for a code inside it as for one outside. Equally likely up to the draws:
    each of at most w draws names one of at most k - 1 places with a probability that is off by
    a factor within 1 ± (k-1)/2^64, and this can differ between two codes that are both inside
    or both outside. So the sampler itself may cost up to 2wk/2^64. That is part of the real
    loss, and P is made of ε less that amount. (It moves q by less than 1e-12.)

    Guarantees ε under replacement of one user's value.

    References:
        Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao. Mutual information optimally local private
        discrete distribution estimation. arXiv 1607.08025.
        Ye, Barg. Optimal schemes for discrete distribution estimation under locally
        differential privacy. IEEE Trans. Inf. Theory 2018.
    """

    subset_size: int

    def __init__(
        self, domain_size: int, epsilon: object, subset_size: int | None = None
    ) -> None:
        self._declare(domain_size, epsilon)
        if subset_size is None:
            subset_size = optimal_subset_size(self.domain_size, self.epsilon)
        most = max(1, self.domain_size - 1)
        if not 1 <= require_at_least(1, subset_size=subset_size) <= most:
            raise InputError(f"subset_size must be from 1 to {most:,}, got {subset_size:,}")
        object.__setattr__(self, "subset_size", int(subset_size))
        self._require_gap()

    @property
    def p(self) -> float:
        """Probability that the subset holds the true code."""
        bits, included = self._atoms
        return included / (1 << bits)

    @property
    def q(self) -> float:
        """Probability that the subset holds one given other code."""
        bits, included = self._atoms
        if self.domain_size == 1:
            return 0.0
        return ((self.subset_size << bits) - included) / ((self.domain_size - 1) << bits)

    @property
    def gap(self) -> float:
        """The difference p - q, from whole atoms."""
        bits, included = self._atoms
        above = self.domain_size * included - (self.subset_size << bits)
        return above / ((self.domain_size - 1) << bits)

    @property
    def odds(self) -> tuple[int, int]:
        """``P(k - w)`` and ``(A - P)w``, and what the sampler may add to their ratio."""
        bits, included = self._atoms
        w, k = self.subset_size, self.domain_size
        above, below = included * (k - w), ((1 << bits) - included) * w
        # e^x is at most 1 / (1 - x); here x = 2wk/2^64.
        return above * 2**64, below * (2**64 - 2 * w * k)

    @property
    def parameters(self) -> Parameters:
        """Domain, ε, subset size and the atoms made of them."""
        bits, included = self._atoms
        return (*parameters_of(self), ("draw_bits", bits), ("included_atoms", included))

    @property
    def report_bytes(self) -> float:
        """One bit per code, in whole words."""
        return row_bytes(self.domain_size)

    def perturb(self, inputs: Codes, noise: UserNoise) -> NDArray[Any]:
        """One row of packed bits per code, with exactly w ones."""
        require_codes(inputs, self.domain_size)
        require_room(inputs.size, self.domain_size)
        if self.domain_size == 1:
            return packed(np.ones((inputs.size, 1), np.uint64), 1)
        stream = noise.stream()
        bits, included = self._atoms
        words = random_subsets(
            inputs.astype(np.uint32),
            stream.users,
            (stream.key[0], stream.key[1]),
            np.uint64(included << (64 - bits)),
            self.domain_size,
            self.subset_size,
        )
        return packed(words, self.domain_size)

    def tally(self, reports: NDArray[Any]) -> Counts:
        """How many subsets hold each code."""
        return count_packed(reports, self.domain_size)

    def channel(self) -> NDArray[np.float64]:
        """The exact law: row v holds the probability of each subset given code v.

        Subsets come in the order of `itertools.combinations`.
        """
        if self.domain_size == 1:
            return np.ones((1, 1))
        require_enumerable(self.domain_size)
        k, w = self.domain_size, self.subset_size
        inside, outside = self.p / comb(k - 1, w - 1), (1 - self.p) / comb(k - 1, w)
        subsets = list(combinations(range(k), w))
        return np.array(
            [[inside if v in each else outside for each in subsets] for v in range(k)]
        )

    @property
    def _atoms(self) -> tuple[int, int]:
        if self.domain_size == 1:
            return 32, 2**32
        return _included_atoms(self.domain_size, self.epsilon, self.subset_size)


@lru_cache(maxsize=1024)
def optimal_subset_size(domain_size: int, epsilon: Fraction) -> int:
    """The whole number w with the smallest variance for a rare code.

    With e for e^ε, the variance is ``((w-1)e + k-w)(we + k-w-1) / (n w(k-w)(e-1)²)``. It rises
    from w = 1 on if k ≤ e, else its only minimum over real numbers is known::

        w = (sqrt((k - e)(ke² - e)) - (k - e)) / (e² - 1)
    """
    k = domain_size
    with localcontext(prec=DIGITS):
        e = exp_of(epsilon)
        if k <= e:
            return 1
        best = int((((k - e) * (k * e * e - e)).sqrt() - (k - e)) / (e * e - 1))

        def variance(w: int) -> Decimal:
            return ((w - 1) * e + k - w) * (w * e + k - w - 1) / (w * (k - w))

        near = {min(max(1, w), k - 1) for w in (best, best + 1)}
        return min(sorted(near), key=variance)


@lru_cache(maxsize=1024)
def _included_atoms(domain_size: int, epsilon: Fraction, subset_size: int) -> tuple[int, int]:
    """Bits per draw and the atoms that include the true code."""
    k, w = domain_size, subset_size
    with localcontext(prec=DIGITS):
        off = Fraction(2 * w * k, 2**64)
        spent = off + off * off  # at least -ln(1 - off)
        weight = w * exp_of(epsilon - spent)
        share = weight / (weight + k - w)
        included = int(share * 2**32)
        odds = Fraction(included * (k - w), (2**32 - included) * w)
        if is_precise(odds, decimal_of(epsilon)):
            return 32, included
        return 64, int(share * 2**64)
