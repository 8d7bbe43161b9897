"""How a Gram recommender spends its loss: one noise law per stage, and the parts to charge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, sqrt

from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.discrete_gaussian import DiscreteGaussian
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.recommend.gaussian_accounting import GaussianStage, stage_sigmas
from dpsim.recommend.gram_sensitivity import (
    global_sensitivity,
    gram_sensitivity,
    item_sensitivity,
)
from dpsim.recommend.gram_settings import GramSettings

STAGES = "global", "items", "gram"


@dataclass(frozen=True, slots=True)
class StageNoise:
    """The noise of one stage: one law, drawn once, or by each of several parties."""

    law: DiscreteLaplace | DiscreteGaussian
    unit: int
    """Units per whole."""
    parties: int = 1
    users: int = 1
    """Users who add the law's noise by themselves: their sum is drawn at once."""

    @property
    def sd(self) -> float:
        """Of one entry of the sum, in wholes."""
        return sqrt(self.law.variance * self.parties * self.users) / self.unit

    @property
    def summed(self) -> DiscreteLaplace | DiscreteGaussian:
        """What an aggregator adds in one draw: the law, or the sum of all users' noise.

        A sum of discrete Gaussians is one of the summed variance but for e^-2500.
        """
        if self.users == 1 or isinstance(self.law, DiscreteLaplace):
            return self.law
        sigma = isqrt(ceil(self.law.sigma**2 * self.users))
        return DiscreteGaussian(sigma, self.law.sensitivity)


@dataclass(frozen=True, slots=True)
class LossPart:
    """What is charged before anything is asked: one line of the ledger."""

    stages: tuple[str, ...]
    loss: PrivacyLoss
    rho: Fraction = Fraction(0)
    """Of the Gaussian stages in it, in zero-concentrated privacy."""


@dataclass(frozen=True, slots=True)
class GramBudget:
    """The noise of each stage, and the parts whose sum is the model's loss."""

    parts: tuple[LossPart, ...]
    noise: tuple[tuple[str, StageNoise], ...]

    def of(self, stage: str) -> StageNoise | None:
        """The noise of a stage; None if it has none."""
        return dict(self.noise).get(stage)

    def sd(self, stage: str) -> float:
        """The noise of one entry of a stage, in wholes; 0 without noise."""
        noise = self.of(stage)
        return noise.sd if noise else 0.0


def budget_of(settings: GramSettings) -> GramBudget:
    """Laws and parts for the settings; all of them together cost exactly (ε, δ).

    One rating, trusted aggregator: Laplace noise on sums at plain ε, Gaussian on the Gram. One
    user: Laplace on the global pair, one Gaussian loss for items and Gram, ρ divided by their
    shares. Without a trusted aggregator all noise is Gaussian, because its shares add up.
    """
    if settings.epsilon is None:
        return GramBudget((), ())
    plain = _laplace_stages(settings)
    whole = settings.epsilon
    parts = [LossPart((name,), _loss(settings, whole * share)) for name, share, _ in plain]
    noise = [
        (name, StageNoise(DiscreteLaplace(whole * share, sensitivity), settings.totals_unit))
        for name, share, sensitivity in plain
    ]
    stages = {
        name: stage
        for name, stage in _gaussian_stages(settings).items()
        if name not in dict(noise) and stage.weight > 0
    }
    if stages:
        rest = whole * sum((stage.weight for stage in stages.values()), Fraction(0))
        sigmas = stage_sigmas(tuple(stages.values()), rest, settings.delta)
        laws = {
            name: DiscreteGaussian(sigma, stage.sensitivity)
            for (name, stage), sigma in zip(stages.items(), sigmas, strict=True)
        }
        rho = sum((law.rho for law in laws.values()), Fraction(0))
        parts.append(LossPart(tuple(laws), _loss(settings, rest, settings.delta), rho))
        noise += [(name, _shared(settings, law, name)) for name, law in laws.items()]
    return GramBudget(tuple(parts), tuple(noise))


def _laplace_stages(settings: GramSettings) -> list[tuple[str, Fraction, int]]:
    """Stage, share of ε and L1 sensitivity."""
    if settings.trust != "central":
        return []
    sensitivities = [("global", settings.shares[0], global_sensitivity(settings))]
    if settings.protects == "rating":
        sensitivities.append(("items", settings.shares[1], item_sensitivity(settings)))
    return [(name, share, int(value)) for name, share, value in sensitivities if share > 0]


def _gaussian_stages(settings: GramSettings) -> dict[str, GaussianStage]:
    items = settings.totals_size - (2 if settings.head == "ratings" else 0)
    shares = dict(zip(STAGES, settings.shares, strict=True))
    return {
        "global": GaussianStage(global_sensitivity(settings), 2, shares["global"]),
        "items": GaussianStage(item_sensitivity(settings), items, shares["items"]),
        "gram": GaussianStage(
            gram_sensitivity(settings), settings.triangle_size, shares["gram"]
        ),
    }


def _shared(settings: GramSettings, law: DiscreteGaussian, stage: str) -> StageNoise:
    unit = 4**settings.bits if stage == "gram" else settings.totals_unit
    if settings.trust == "local":
        return StageNoise(law, unit, users=settings.n_users)
    if settings.trust == "central":
        return StageNoise(law, unit)
    honest = settings.parties - settings.colluders
    share = isqrt(ceil(law.sigma**2 / honest)) + 1
    return StageNoise(DiscreteGaussian(share, law.sensitivity), unit, settings.parties)


def _loss(
    settings: GramSettings, epsilon: Fraction, delta: Fraction | None = None
) -> PrivacyLoss:
    return PrivacyLoss(
        epsilon, delta or Fraction(0), unit=settings.protects, neighbors=settings.neighbors
    )
