"""Random sampling with fake data: one attribute perturbed, uniform values for all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dpsim.core.arrays import Codes, Counts, Frequencies
from dpsim.core.checks import require_at_least, require_codes, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.plan import Parameters
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.core.schema import MAX_DOMAIN_SIZE
from dpsim.mechanisms._fake_kernels import count_columns, respond_or_fake
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.pairs import require_one_each
from dpsim.mechanisms.rounding import DIGITS, atoms_up, log_of, loss_up, real_loss

_ATOMS = 1 << 64
_MAX_ATTRIBUTES = 10_000
_HALVINGS = 190
"""Enough to find e' to far less than one atom."""


@dataclass(frozen=True, slots=True)
class FakeData:
    """Perturb one sampled attribute with an amplified loss, send uniform fakes for the others.

    Each of d attributes is the sampled one with probability 1/d (those with one code have
    nothing to tell, and are neither sampled nor counted); its code is perturbed by
    generalized randomized response with ratio e' of truth to lie. Nobody sees which one was
    sampled, so a change of one attribute costs ε < ln e'. With p and q of that response::

        f̂ = (C/n - q/d - (1-1/d)/k) / ((p - q)/d)

    Published is e' = d(e^ε - 1) + 1, which is right if all domains have one size. Else a
    change in the largest one stands out against the fakes of the smaller ones and costs more
    than ε. Here e' is the largest ratio whose worst case over all attributes is ε::

        (e' - 1) · max_j a_j ≤ (e^ε - 1) · Σ_j a_j      a = k/(e' + k - 1)

    which is the published one for equal sizes. Lies are rounded up to atoms of 2^-64, and
    2^-40 of e^ε - 1 pays for places ⌊word·k/2^64⌋ that are uniform but for one word.

    Guarantees ε under replacement of **one attribute** of one user only; between whole records
    it is ln e', see `record_loss`.

    References:
        Arcolezi, Couchot, Al Bouna, Xiao. Random sampling plus fake data: multidimensional
        frequency estimates with local differential privacy. CIKM 2021.
    """

    sizes: tuple[int, ...]
    epsilon: Fraction

    def __init__(self, sizes: Sequence[int], epsilon: object) -> None:
        known = tuple(require_at_least(1, size=size) for size in sizes)
        if not 1 <= len(known) <= _MAX_ATTRIBUTES:
            raise InputError(f"sizes must be 1 to {_MAX_ATTRIBUTES:,}, got {len(known):,}")
        if max(known) > MAX_DOMAIN_SIZE:
            raise InputError(f"size must be <= {MAX_DOMAIN_SIZE:,}, got {max(known):,}")
        object.__setattr__(self, "sizes", known)
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        if any(truth <= lie for _, truth, lie in self._table):
            raise InputError("epsilon is too small: no draw would tell the codes apart")

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report, if one attribute may differ: ε."""
        return PrivacyLoss(self._charge(self.epsilon), unit="attribute")

    @property
    def record_loss(self) -> PrivacyLoss:
        """What one report costs if whole records may differ: ln e', rounded up."""
        return PrivacyLoss(self._charge(loss_up(log_of(_odds(self._told, self.epsilon)))))

    def _charge(self, epsilon: Fraction) -> Fraction:
        return epsilon if self._told else Fraction(0)

    @property
    def real_epsilon(self) -> float:
        """What one report really costs if one attribute differs: worst of all attributes.

        All other attributes show a lie, so that this one weighs most; both laws are compared
        with pure fakes, in the exact numbers of words.
        """
        d = len(self._told)
        chances = [-(-_ATOMS * (j + 1) // d) - -(-_ATOMS * j // d) for j in range(d)]
        lies = [
            Fraction(chance * lie, -(-_ATOMS // size))
            for chance, (size, _, lie) in zip(chances, self._table, strict=True)
        ]
        worst = Fraction(1)
        for chance, silent, (size, truth, lie) in zip(chances, lies, self._table, strict=True):
            rarest = _ATOMS // size
            rest = sum(lies) - silent + Fraction(chance * lie, rarest)
            worst = max(worst, 1 + Fraction(chance * (truth - lie), rarest) / rest)
        return real_loss(worst)

    @property
    def parameters(self) -> Parameters:
        """Sizes, ε and the atoms of one lie per attribute that can be sampled."""
        lies = ",".join(str(lie) for _, _, lie in self._table)
        sizes = ",".join(map(str, self.sizes))
        return ("sizes", sizes), ("epsilon", text_of(self.epsilon)), ("lie_atoms", lies)

    @property
    def tally_size(self) -> int:
        """One count per code of each attribute, one attribute after the other."""
        return sum(self.sizes)

    @property
    def report_bytes(self) -> float:
        """One code per attribute."""
        return float(sum(np.min_scalar_type(size - 1).itemsize for size in self.sizes))

    def perturb(self, inputs: Codes, noise: UserNoise) -> Codes:
        """One row of codes per user."""
        stream = noise.stream()
        if inputs.ndim != 2 or inputs.shape[1] != len(self.sizes):  # noqa: PLR2004
            raise InputError(f"codes must be a matrix of {len(self.sizes)} columns")
        require_one_each(len(inputs), stream.users.size)
        for column, size in enumerate(self.sizes):
            require_codes(inputs[:, column], size)
        sampled = np.flatnonzero(np.array(self.sizes) > 1)
        if not sampled.size:
            return inputs.copy()
        table = np.ones((len(self.sizes), 3), np.uint64)
        table[sampled] = self._table
        reports: Codes = respond_or_fake(
            np.ascontiguousarray(inputs), table, sampled, stream.users, stream.key
        )
        return reports

    def tally(self, reports: Codes) -> Counts:
        """How often each code of each attribute was reported."""
        starts = np.array([0, *accumulate(self.sizes)])
        counts: Counts = count_columns(np.ascontiguousarray(reports), starts)
        return counts

    def estimate(self, tally: Counts, n: int) -> tuple[Frequencies, ...]:
        """Unbiased frequencies of every attribute's codes; negative values are kept."""
        require_at_least(1, n=n)
        parts = np.split(tally, list(accumulate(self.sizes))[:-1])
        return tuple(self._invert(part / n, j) for j, part in enumerate(parts))

    def _invert(self, shares: Frequencies, attribute: int) -> Frequencies:
        p, q = self.support(attribute)
        return (shares - float(q)) / float(p - q)

    def support(self, attribute: int) -> tuple[Fraction, Fraction]:
        """Probability that a report shows the true code, and that it shows a given other."""
        size, d = self.sizes[attribute], len(self._told)
        if size == 1:
            return Fraction(1), Fraction(0)
        truth, lie = next(row[1:] for row in self._table if row[0] == size)
        fake = Fraction(d - 1, d * size)
        return fake + Fraction(truth, _ATOMS * d), fake + Fraction(lie, _ATOMS * d)

    def variance(self, n: int, attribute: int, frequency: float = 0.0) -> float:
        """Of one estimated frequency of an attribute: fixed population, true frequency f.

        ``q(1-q) / (n(p-q)²) + f(1-p-q) / (n(p-q))`` with p and q of `support`.
        """
        require_at_least(1, n=n)
        p, q = self.support(attribute)
        gap = p - q
        return (float(q * (1 - q) / gap**2) + frequency * float((1 - p - q) / gap)) / n

    @property
    def _told(self) -> tuple[int, ...]:
        """Sizes of the attributes that can be sampled."""
        return tuple(size for size in self.sizes if size > 1)

    @property
    def _table(self) -> tuple[tuple[int, int, int], ...]:
        """Size, atoms of the truth and of one lie, of each attribute that can be sampled."""
        return _response_table(self._told, self.epsilon)


@lru_cache(maxsize=64)
def _response_table(
    sizes: tuple[int, ...], epsilon: Fraction
) -> tuple[tuple[int, int, int], ...]:
    with localcontext(prec=DIGITS):
        odds = _odds(sizes, epsilon)
        lies = {size: atoms_up(1 / (odds + size - 1), 64) for size in set(sizes)}
    return tuple((size, _ATOMS - (size - 1) * lies[size], lies[size]) for size in sizes)


@lru_cache(maxsize=64)
def _odds(sizes: tuple[int, ...], epsilon: Fraction) -> Decimal:
    """e', by bisection: the loss of the largest attribute's change grows with it."""
    if not sizes:
        return Decimal(1)
    counts = Counter(sizes)
    with localcontext(prec=DIGITS):
        gain = (exp_of(epsilon) - 1) * (1 - Decimal(2) ** -40)
        low, high = Decimal(1), gain * len(sizes) + 1
        for _ in range(_HALVINGS):
            odds = (low + high) / 2
            weights = {size: size / (odds + size - 1) for size in counts}
            total = sum(many * weights[size] for size, many in counts.items())
            if (odds - 1) * weights[max(sizes)] <= gain * total:
                low = odds
            else:
                high = odds
        return low
