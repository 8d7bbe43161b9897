"""What Gaussian noise costs: ρ kept, converted once, exactly; every figure rounded safely.

A stage with noise of σ on a vector of L2 sensitivity Δ has ρ = Δ²/(2σ²); stages add ρ, also
where a later one depends on what earlier ones released. All of them together are as private
as one Gaussian with μ = √(2ρ), whose trade-off is known without a gap (Balle and Wang)::

    δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)

**Whole noise.** Released are whole numbers with discrete Gaussian noise. Let f(z) be the ratio
of the rounded Gaussian's law (post-processing of the Gaussian) to the discrete one's at z::

    |ln f(z)| ≤ (1 + z²/σ²)/(8σ²)     f(z) = ∫_{-½}^{½} exp(-t²/(2σ²)) cosh(zt/σ²) dt

(cosh y ≤ e^{y²/2}, |t| ≤ ½). For N entries Σ z²/σ² ≤ 1.4N + 400 but for a part of e^-100, since
E exp(z²/(4σ²)) = √2. Both inputs' laws together move a log-ratio by at most::

    τ = (N + 200 + μ²)/σ²     σ in units of the grid, at least 16

So the whole release costs (ε + τ, δ(1 + 10^-6)). Sums of several discrete Gaussians differ from
one by less than 10 V exp(-π²σ²) (Kairouz, Liu, Steinke): for σ ≥ 16 less than e^-2500, within
the 10^-6.

References:
    Bun, Steinke. Concentrated differential privacy. TCC 2016.
    Balle, Wang. Improving the Gaussian mechanism for differential privacy. ICML 2018.
    Dong, Roth, Su. Gaussian differential privacy. JRSS B 2022.
    Kairouz, Liu, Steinke. The distributed discrete Gaussian mechanism. ICML 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, erfc, exp, isqrt, log, sqrt

from dpsim.core.errors import InputError
from dpsim.core.exact import exact

LEAST_SIGMA = 16
"""In units of the grid: below it the bounds for whole noise do not hold."""

_HALVINGS = 200
_SAFETY = 1e-6
_GRID = 10**12


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of the Gaussian mechanism with μ = Δ/σ."""
    if mu <= 0:
        return 0.0
    left = erfc((epsilon / mu - mu / 2) / sqrt(2))
    right = erfc((epsilon / mu + mu / 2) / sqrt(2))
    return max(0.0, (left - exp(epsilon) * right) / 2)


def largest_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest μ that (ε, δ) allows, rounded down."""
    _require(epsilon, delta)
    wanted, loss = float(delta) * (1 - _SAFETY), float(epsilon)
    low, high = 0.0, 1.0
    while gaussian_delta(loss, high) < wanted:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(loss, middle) <= wanted else (low, middle)
    return Fraction(int(low * _GRID), _GRID)


def gaussian_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε at δ of all Gaussian stages with ρ in total, exact but for rounding up."""
    _require(Fraction(1), delta)
    if rho <= 0:
        return Fraction(0)
    mu = sqrt(2 * float(rho)) * (1 + 1e-15)
    wanted = float(delta) * (1 - _SAFETY)
    low, high = 0.0, zcdp_epsilon(float(rho), float(delta)) + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, mu) <= wanted else (middle, high)
    return Fraction(ceil(high * _GRID), _GRID)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The bound ``ρ + 2√(ρ ln(1/δ))`` for anything with ρ: looser than `gaussian_epsilon`."""
    return rho + 2 * sqrt(rho * log(1 / delta))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The ρ that this bound allows: ``(√(L + ε) - √L)²`` with L = ln(1/δ)."""
    root = sqrt(log(1 / delta))
    return (sqrt(root**2 + epsilon) - root) ** 2


@dataclass(frozen=True, slots=True)
class GaussianStage:
    """A vector that gets Gaussian noise: its sensitivity in units of its grid, its length."""

    sensitivity: Fraction
    """L2, in units."""
    entries: int
    weight: Fraction
    """Its part of ρ, relative to the others'."""

    def sigma(self, rho: Fraction) -> int:
        """Whole units of noise for this stage's ρ, rounded up."""
        return isqrt(ceil(self.sensitivity**2 / (2 * rho))) + 1


def stage_sigmas(
    stages: Sequence[GaussianStage], epsilon: Fraction, delta: Fraction
) -> tuple[int, ...]:
    """The noise of each stage, such that all of them cost at most (ε, δ) together."""
    first = _sigmas(stages, largest_mu(epsilon, delta))
    if min(first) < LEAST_SIGMA:
        raise InputError(f"epsilon {float(epsilon):.6g} leaves noise below the grid; lower it")
    # With a smaller μ every σ grows, and with it τ shrinks: the first τ is a bound.
    slack = whole_noise_slack(stages, first)
    if slack >= epsilon / 2:
        raise InputError("the noise is too small for its grid; raise the fixed-point bits")
    return _sigmas(stages, largest_mu(epsilon - slack, delta))


def whole_noise_slack(stages: Sequence[GaussianStage], sigmas: Sequence[int]) -> Fraction:
    """τ: what whole noise may cost above the Gaussian's ε."""
    return sum(
        (
            (stage.entries + 200 + (stage.sensitivity / sigma) ** 2) / sigma**2
            for stage, sigma in zip(stages, sigmas, strict=True)
        ),
        Fraction(0),
    )


def _sigmas(stages: Sequence[GaussianStage], mu: Fraction) -> tuple[int, ...]:
    total = sum((stage.weight for stage in stages), Fraction(0))
    rho = mu**2 / 2
    return tuple(stage.sigma(rho * stage.weight / total) for stage in stages)


def _require(epsilon: Fraction, delta: Fraction) -> None:
    if exact(epsilon, "epsilon") <= 0:
        raise InputError(f"epsilon must be > 0, got {epsilon}")
    if not 0 < exact(delta, "delta") < 1:
        raise InputError(f"delta must be > 0 and < 1, got {delta}")
