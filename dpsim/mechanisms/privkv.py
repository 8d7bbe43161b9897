"""PrivKV: randomized response on the key, then on the sign of its value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.pairs import OneKey, PairAtoms, require_pair
from dpsim.mechanisms.rounding import DIGITS, atoms_up, decimal_of, is_precise, log_of, loss_up


@dataclass(frozen=True, slots=True)
class PrivKV(OneKey):
    """Keep the key's bit with probability p₁ and the value's sign with p₂; fakes are fair.

    With p = e^x/(e^x + 1) for x = ε₁, ε₂: a present key is reported with probability p₁, its
    value as a sign that is kept with probability p₂; an absent one is reported with
    probability 1 - p₁ and either sign. Because fakes are fair, one report costs::

        max{ε₂, ε₁ + ln(2/(1 + e^-ε₂))} < ε₁ + ε₂

    so by default ε₂ = ε and ε₁ = ε - ln(2/(1 + e^-ε)). With a ``key_epsilon`` ε₁ below ε, the
    value gets the largest ε₂ that keeps the loss within ε. Fakes and flipped signs are
    rounded up to whole atoms, and the estimates invert the rounded channel, fakes removed.

    Guarantees ε under replacement of one user's pair: its value, its presence, or both.

    References:
        Ye, Hu, Meng, Zheng. PrivKV: key-value data collection with local differential
        privacy. IEEE S&P 2019. The loss and the mean without bias are not in it.
    """

    epsilon: Fraction
    key_epsilon: Fraction | None

    def __init__(self, epsilon: object, key_epsilon: object = None) -> None:
        object.__setattr__(self, "epsilon", require_epsilon(epsilon))
        key = None if key_epsilon is None else require_epsilon(key_epsilon, "key_epsilon")
        object.__setattr__(self, "key_epsilon", key)
        if key is not None and key >= self.epsilon:
            raise InputError(
                f"key_epsilon must be > 0 and < epsilon = {epsilon}, got {key_epsilon}"
            )
        _split_atoms(self.epsilon, key)

    @property
    def atoms(self) -> PairAtoms:
        """The integer channel."""
        return _split_atoms(self.epsilon, self.key_epsilon)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: ε."""
        return PrivacyLoss(self.epsilon)

    def estimate(self, tally: Counts, n: int) -> tuple[float, float | None]:
        """Frequency ``(N/n + p₁ - 1)/(2p₁ - 1)``, mean ``(n₊ - n₋)/((2p₂ - 1) n f̂ p₁)``."""
        return self.atoms.law.estimate(tally, n)

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of both estimates by the delta method, for users drawn independently."""
        return self.atoms.law.variance(n, frequency, mean)


class _BiasedMean(OneKey):
    """The mean as published: of all reported signs, those of fakes included."""

    __slots__ = ()

    def estimate(self, tally: Counts, n: int) -> tuple[float, float | None]:
        """Unbiased frequency; mean of the N reported signs, each sign's count clipped to 0..N.

        Fakes pull the mean towards theirs: ``E = (p₁ f m + (1-p₁)(1-f) μ) / (p₁ f +
        (1-p₁)(1-f))`` for a fake mean μ. No mean if nobody reported the key.
        """
        require_at_least(1, n=n)
        frequency = float(self.atoms.law.unbiased(tally[0], tally[1], n)[0])
        reported = int(tally[0] + tally[1])
        if reported == 0:
            return frequency, None
        kept = self.atoms.kept / (self.atoms.kept + self.atoms.flipped)
        positive, negative = (
            min(max(((kept - 1) * reported + int(count)) / (2 * kept - 1), 0), reported)
            for count in tally
        )
        return frequency, (positive - negative) / reported

    def variance(self, n: int, frequency: float, mean: float) -> tuple[float, float]:
        """Of both estimates by the delta method, for users drawn independently, unclipped.

        The biased mean varies around its own expectation: ``n·Var = (1 - r²)/(κ(2p₂-1)²)``,
        with κ = P[reported] and r the mean of the reported signs.
        """
        require_at_least(1, n=n)
        require_pair(frequency, mean)
        law, atoms = self.atoms.law, self.atoms
        reported = law.fake + frequency * (law.keep - law.fake)
        fakes = (atoms.fake_plus - atoms.fake_minus) / 2**atoms.draw_bits
        signs = (law.gain * frequency * mean + fakes * (1 - frequency)) / reported
        of_mean = (1 - signs**2) / (reported * (law.gain / law.keep) ** 2)
        return law.variance(n, frequency, mean)[0], of_mean / n


@dataclass(frozen=True, slots=True)
class FaithfulPrivKV(_BiasedMean):
    """PrivKV as published: two losses, and a mean that is biased by the fakes.

    The channel is that of `PrivKV`. The paper claims ε₁ + ε₂; charged is the tight loss
    max{ε₂, ε₁ + ln(2/(1 + e^-ε₂))}, in twelve places, rounded up.

    Guarantees it under replacement of one user's pair.

    References:
        Ye, Hu, Meng, Zheng. PrivKV: key-value data collection with local differential
        privacy. IEEE S&P 2019.
    """

    key_epsilon: Fraction
    value_epsilon: Fraction

    def __init__(self, key_epsilon: object, value_epsilon: object) -> None:
        object.__setattr__(self, "key_epsilon", require_epsilon(key_epsilon, "key_epsilon"))
        object.__setattr__(
            self, "value_epsilon", require_epsilon(value_epsilon, "value_epsilon")
        )
        _round_atoms(self.key_epsilon, self.value_epsilon, Fraction(0))

    @property
    def atoms(self) -> PairAtoms:
        """The integer channel."""
        return _round_atoms(self.key_epsilon, self.value_epsilon, Fraction(0))

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one report: the tight loss."""
        key, value = decimal_of(self.key_epsilon), decimal_of(self.value_epsilon)
        return PrivacyLoss(loss_up(_tight_loss(key, value, Decimal("0.5"))))


@dataclass(frozen=True, slots=True)
class PrivKVMRound(_BiasedMean):
    """One round of PrivKVM: fakes have the mean that the round before it estimated.

    The iteration ``μ ← estimate(...)[1]`` takes the expected mean towards the truth by the
    factor ρ = (1-f)(1-p₁) / (f p₁ + (1-f)(1-p₁)) per round, at a full loss each. Fakes are no
    longer fair, and a round costs up to ε₁ + ε₂, which is charged: how much less it is
    depends on μ, unknown when the rounds are planned. For study; one round of `PrivKV`, with
    its mean corrected, is better.

    Guarantees ε₁ + ε₂ under replacement of one user's pair.

    References:
        Ye, Hu, Meng, Zheng. PrivKV: key-value data collection with local differential
        privacy. IEEE S&P 2019.
    """

    key_epsilon: Fraction
    value_epsilon: Fraction
    fake_mean: Fraction

    def __init__(
        self, key_epsilon: object, value_epsilon: object, fake_mean: object = 0
    ) -> None:
        object.__setattr__(self, "key_epsilon", require_epsilon(key_epsilon, "key_epsilon"))
        object.__setattr__(
            self, "value_epsilon", require_epsilon(value_epsilon, "value_epsilon")
        )
        object.__setattr__(self, "fake_mean", exact(fake_mean, "fake_mean"))
        if not -1 <= self.fake_mean <= 1:
            raise InputError(f"fake_mean must be >= -1 and <= 1, got {fake_mean}")
        _round_atoms(self.key_epsilon, self.value_epsilon, self.fake_mean)

    @property
    def atoms(self) -> PairAtoms:
        """The integer channel."""
        return _round_atoms(self.key_epsilon, self.value_epsilon, self.fake_mean)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for one round: ε₁ + ε₂."""
        return PrivacyLoss(self.key_epsilon + self.value_epsilon)


def _kept(epsilon: Decimal) -> Decimal:
    return 1 / (1 + (-epsilon).exp())


def _tight_loss(key: Decimal, value: Decimal, positive: Decimal) -> Decimal:
    """max{ε₂, ε₁ + ln(p₂/min(π, 1-π))} for fakes that are positive with probability π."""
    with localcontext(prec=DIGITS):
        rarest = min(positive, 1 - positive)
        return max(value, key + (_kept(value) / rarest).ln())


@lru_cache(maxsize=1024)
def _split_atoms(epsilon: Fraction, key_epsilon: Fraction | None) -> PairAtoms:
    with localcontext(prec=DIGITS):
        whole = decimal_of(epsilon)
        tight = whole - (2 * _kept(whole)).ln()
        key = tight if key_epsilon is None else decimal_of(key_epsilon)
        value = whole if key <= tight else -(2 * (key - whole).exp() - 1).ln()
    return _narrowest(key, value, Decimal("0.5"), whole)


@lru_cache(maxsize=1024)
def _round_atoms(
    key_epsilon: Fraction, value_epsilon: Fraction, fake_mean: Fraction
) -> PairAtoms:
    key, value = decimal_of(key_epsilon), decimal_of(value_epsilon)
    with localcontext(prec=DIGITS):
        positive = (1 + decimal_of(fake_mean) * (2 * _kept(value) - 1)) / 2
    return _narrowest(key, value, positive, _tight_loss(key, value, positive))


def _narrowest(key: Decimal, value: Decimal, positive: Decimal, limit: Decimal) -> PairAtoms:
    """The channel on 32-bit draws, or on 64 where they would be too coarse."""
    for bits in (32, 64):
        atoms = _cut(key, value, positive, bits)
        lies = atoms.fake_plus + atoms.fake_minus
        if (
            is_precise(Fraction(atoms.kept + atoms.flipped, lies), key)
            and is_precise(Fraction(atoms.kept, atoms.flipped), value)
            and log_of(atoms.worst_ratio) <= limit
        ):
            return atoms
    raise InputError(
        f"the losses must be larger: {key:.3g} for the key and {value:.3g} for the value are "
        "lost in the rounding of 64-bit draws"
    )


def _cut(key: Decimal, value: Decimal, positive: Decimal, bits: int) -> PairAtoms:
    """Whole atoms: fakes and flipped signs rounded up, true reports get what remains."""
    with localcontext(prec=DIGITS):
        lie = 1 - _kept(key)
        fake_plus = atoms_up(lie * positive, bits)
        fake_minus = atoms_up(lie * (1 - positive), bits)
        flipped = atoms_up(_kept(key) * (1 - _kept(value)), bits)
    kept = 2**bits - fake_plus - fake_minus - flipped
    return PairAtoms(bits, kept, flipped, fake_plus, fake_minus)
