"""PCKV: several keys at once; each user samples one pair of a padded set and perturbs it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.core.schema import MAX_DOMAIN_SIZE
from dpsim.mechanisms._pair_kernels import respond_each, respond_sampled
from dpsim.mechanisms._unary_kernels import count_bits
from dpsim.mechanisms.atoms import exp_of
from dpsim.mechanisms.pairs import PairLaw, Values, require_one_each, require_values
from dpsim.mechanisms.rounding import DIGITS, atoms_up, real_loss

_ATOMS = 1 << 64


class _Sampled:
    """What both variants share: inputs are a matrix, one row per user, nan where absent."""

    __slots__ = ()
    keys: int
    epsilon: Fraction
    pad_length: int

    def _set(self, keys: int, epsilon: object, pad_length: int) -> None:
        object.__setattr__(self, "keys", require_at_least(1, keys=keys))
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        object.__setattr__(self, "pad_length", require_at_least(1, pad_length=pad_length))
        for name in ("keys", "pad_length"):
            value = getattr(self, name)
            if value > MAX_DOMAIN_SIZE:
                raise InputError(f"{name} must be <= {MAX_DOMAIN_SIZE:,}, got {value:,}")

    @property
    @abstractmethod
    def law(self) -> PairLaw:
        """The law of one key's reports, for users who hold at most ``pad_length`` keys."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    @property
    def tally_size(self) -> int:
        """Positive reports of each key, then negative ones."""
        return 2 * self.keys

    def estimate(self, tally: Counts, n: int) -> tuple[Frequencies, Frequencies]:
        """Frequency and mean of every key; the mean is nan where the frequency is not above 0.

        Unbiased if nobody holds more than ``pad_length`` keys; else frequencies are too low.
        """
        require_at_least(1, n=n)
        frequencies, signs = self.law.unbiased(tally[: self.keys], tally[self.keys :], n)
        means = np.full(self.keys, np.nan)
        np.divide(signs, frequencies, out=means, where=frequencies > 0)
        return frequencies, means

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of one key's estimates by the delta method, for users drawn independently."""
        return self.law.variance(n, frequency, mean)


@dataclass(frozen=True, slots=True)
class PCKVUE(_Sampled):
    """Sample one pair of the padded set, then perturb presence and sign of every key.

    A set of fewer than l = ``pad_length`` keys is padded with dummies to l; one pair is drawn
    uniformly. The sampled key is reported with probability a = 1/2, its sign kept with
    p = e/(e+1) (e = e^ε); every other key with b = 2/(e+3) and a fair sign::

        f̂ = l (N/n - b)/(a - b)      m̂ = l (n₊ - n₋)/(n a (2p-1) f̂)

    b and the flipped sign are rounded up to atoms of 2^-64. Dummies are not reported, which
    takes nothing from the estimates. A place is drawn as ⌊word·l/2^64⌋: its probability is
    off by less than 2^-64, which cannot raise the loss (the report's law is a mixture over
    places, whatever their weights) and biases f̂ by less than l·2^-64 of itself.

    Guarantees ε under replacement of one user's whole set. l is public, part of the plan.

    References:
        Gu, Li, Cheng, Xiong, Cao. PCKV: locally differentially private correlated
        key-value data collection with optimized utility. USENIX Security 2020.
    """

    keys: int
    epsilon: Fraction
    pad_length: int

    def __init__(self, keys: int, epsilon: object, pad_length: int) -> None:
        self._set(keys, epsilon, pad_length)
        _require_gap(self.law)

    @property
    def law(self) -> PairLaw:
        """The law of one key's reports, for users who hold at most ``pad_length`` keys."""
        flipped, other = _each_atoms(self.epsilon)
        fake, half = Fraction(2 * other, _ATOMS), Fraction(1, 2)
        keep = fake + (half - fake) / self.pad_length
        gain = (half - Fraction(2 * flipped, _ATOMS)) / self.pad_length
        return PairLaw(float(keep), float(fake), float(gain))

    @property
    def real_epsilon(self) -> float:
        """What one report really costs, to the last digit of a float.

        Given a report, each sampled key multiplies the probability of pure noise by a factor:
        high for its own sign; low for the other sign or for silence, equal but for rounding.
        Two sets of c = min(d, l) pairs can differ in all of them; dummies have factor 1.
        """
        flipped, other = _each_atoms(self.epsilon)
        high = Fraction(_ATOMS // 2 - flipped, other)
        low = min(Fraction(flipped, other), Fraction(_ATOMS // 2, _ATOMS - 2 * other))
        pairs = min(self.keys, self.pad_length)
        dummies = self.pad_length - pairs
        return real_loss((pairs * high + dummies) / (pairs * low + dummies))

    @property
    def parameters(self) -> Parameters:
        """The fields, and the atoms made of them."""
        flipped, other = _each_atoms(self.epsilon)
        return (*parameters_of(self), ("flipped_atoms", flipped), ("other_atoms", other))

    @property
    def report_bytes(self) -> float:
        """Two bits per key."""
        return self.keys / 4

    def perturb(self, inputs: Values, noise: UserNoise) -> NDArray[np.uint64]:
        """One row of bits per user, 64 per word: positive keys, then negative keys."""
        values, stream = require_values(inputs, self.keys), noise.stream()
        require_one_each(len(values), stream.users.size)
        flipped, other = _each_atoms(self.epsilon)
        span = _ATOMS // 2 - 2 * flipped
        atoms = np.uint64(flipped), np.uint64(span), np.uint64(2 * other)
        reports: NDArray[np.uint64] = respond_each(
            values, np.int64(self.pad_length), atoms, stream.users, stream.key
        )
        return reports

    def tally(self, reports: NDArray[np.uint64]) -> Counts:
        """How often each key was reported as positive, then as negative."""
        counts: Counts = count_bits(reports, 64 * reports.shape[1]).reshape(2, -1)
        return counts[:, : self.keys].reshape(-1)


@dataclass(frozen=True, slots=True)
class PCKVGRR(_Sampled):
    """Sample one pair of the padded set, and report one of all pairs of key and sign.

    As `PCKVUE`, but the sampled key or dummy is sent with its sign by generalized randomized
    response over 2(d+l) codes. The user's other l-1 pairs hide the sampled one, so that ratio
    e' = 1 + l(e^ε - 1) of truth to lie costs only ε. With q the share of one lie and p of the
    truth::

        f̂ = l (N/n - 2q)/(p - q)      m̂ = l (n₊ - n₋)/(n (p - q) f̂)

    which are the a, b and p of the paper: a = p + q, b = 2q. A lie is rounded up to atoms of
    2^-64. A place is drawn as ⌊word·l/2^64⌋: the most likely one has ⌈2^64/l⌉ words, and e'
    is made for that one, so that the loss is within ε without exception.

    Guarantees ε under replacement of one user's whole set. l is public, part of the plan.

    References:
        Gu, Li, Cheng, Xiong, Cao. PCKV: locally differentially private correlated
        key-value data collection with optimized utility. USENIX Security 2020.
    """

    keys: int
    epsilon: Fraction
    pad_length: int

    def __init__(self, keys: int, epsilon: object, pad_length: int) -> None:
        self._set(keys, epsilon, pad_length)
        _require_gap(self.law)

    @property
    def lie_atoms(self) -> int:
        """Words that name one given false pair of key and sign."""
        return _sampled_atoms(self.keys + self.pad_length, self.epsilon, self.pad_length)

    @property
    def truth_atoms(self) -> int:
        """Words that tell the true pair."""
        return _ATOMS - (2 * (self.keys + self.pad_length) - 1) * self.lie_atoms

    @property
    def law(self) -> PairLaw:
        """The law of one key's reports, for users who hold at most ``pad_length`` keys."""
        gain = Fraction(self.truth_atoms - self.lie_atoms, _ATOMS * self.pad_length)
        fake = Fraction(2 * self.lie_atoms, _ATOMS)
        return PairLaw(float(fake + gain), float(fake), float(gain))

    @property
    def real_epsilon(self) -> float:
        """What one report really costs: ``ln(1 + w(T/m - 1))``, w the largest place's share."""
        place = Fraction(-(-_ATOMS // self.pad_length), _ATOMS)
        return real_loss(1 + place * (Fraction(self.truth_atoms, self.lie_atoms) - 1))

    @property
    def parameters(self) -> Parameters:
        """The fields, and the atoms made of them."""
        return (*parameters_of(self), ("lie_atoms", self.lie_atoms))

    @property
    def report_bytes(self) -> float:
        """One code."""
        return np.min_scalar_type(2 * (self.keys + self.pad_length) - 1).itemsize

    def perturb(self, inputs: Values, noise: UserNoise) -> NDArray[np.uint32]:
        """One code per user: twice a key, or dummy, plus one if the sign is negative."""
        values, stream = require_values(inputs, self.keys), noise.stream()
        require_one_each(len(values), stream.users.size)
        atoms = np.uint64(self.lie_atoms), np.uint64(self.truth_atoms - self.lie_atoms)
        reports: NDArray[np.uint32] = respond_sampled(
            values, np.int64(self.pad_length), atoms, stream.users, stream.key
        )
        return reports

    def tally(self, reports: NDArray[np.uint32]) -> Counts:
        """How often each key was reported as positive, then as negative; dummies are left."""
        counts = np.bincount(reports, minlength=2 * self.keys)[: 2 * self.keys]
        return np.ascontiguousarray(counts.reshape(-1, 2).T.reshape(-1), np.int64)


def _require_gap(law: PairLaw) -> None:
    if law.gain <= 0 or law.keep <= law.fake:
        raise InputError("epsilon is too small for so many keys: all reports would look alike")


@lru_cache(maxsize=1024)
def _each_atoms(epsilon: Fraction) -> tuple[int, int]:
    """Atoms of the sampled key's flipped sign, and of one sign of another key."""
    with localcontext(prec=DIGITS):
        odds = exp_of(epsilon)
        return atoms_up(1 / (2 * (odds + 1)), 64), atoms_up(1 / (odds + 3), 64)


@lru_cache(maxsize=1024)
def _sampled_atoms(keys: int, epsilon: Fraction, pad_length: int) -> int:
    """Atoms of one false pair, for so many keys and dummies."""
    with localcontext(prec=DIGITS):
        odds = 1 + (exp_of(epsilon) - 1) * _ATOMS / -(-_ATOMS // pad_length)
        return atoms_up(1 / (odds + 2 * keys - 1), 64)
