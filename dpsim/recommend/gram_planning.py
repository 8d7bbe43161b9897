"""Whether a Gram is worth its share of ε: from public guesses, before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsim.core.errors import InputError
from dpsim.recommend.denoise import ACTIVITY, SEEN
from dpsim.recommend.gram_budget import budget_of
from dpsim.recommend.gram_settings import (
    MEANS_ONLY_SHARES,
    POPULARITY_SHARES,
    GramSettings,
)

_STRONGEST, _WEAKEST = 0.42, 0.18
"""Of the Gram that taste of equal directions would give: measured on generated ratings."""
_HALVINGS = 100


@dataclass(frozen=True, slots=True)
class TasteGuess:
    """What somebody believes about the ratings without having seen them."""

    ratings_per_user: float = 40.0
    taste_variance: float = 0.25
    """Of a rating, by all directions of taste together."""
    directions: int = 6
    popularity: float = 0.8
    """The item of rank r is rated in proportion to r^-popularity, and once at most."""

    def __post_init__(self) -> None:
        numbers = self.ratings_per_user, self.taste_variance, self.directions
        if not min(numbers) > 0 or self.popularity < 0:
            raise InputError("a guess needs numbers > 0, and a popularity >= 0")

    def concentration(self, n_items: int) -> float:
        """Σ p² over the items' shares p of all ratings."""
        weights = np.arange(1, n_items + 1, dtype=np.float64) ** -self.popularity
        wanted = min(self.ratings_per_user, 0.9 * n_items)
        low, high = 0.0, 1e9
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_low = float(-np.expm1(-middle * weights).sum()) < wanted
            low, high = (middle, high) if is_low else (low, middle)
        rated = -np.expm1(-low * weights)
        return float(((rated / rated.sum()) ** 2).sum())


@dataclass(frozen=True, slots=True)
class GramForecast:
    """What to expect of a Gram, and what it takes."""

    noise: float
    """σ√m: half of where the eigenvalues of pure noise end."""
    strengths: tuple[float, ...]
    """Eigenvalues that the guess implies, falling."""
    answer_bytes: int
    """Of a whole packed Gram."""
    draws: int

    @property
    def seen(self) -> int:
        """How many directions should stand out of the noise."""
        return sum(strength > SEEN * self.noise for strength in self.strengths)

    def __str__(self) -> str:
        verdict = (
            f"about {self.seen} of {len(self.strengths)} directions should be seen"
            if self.seen
            else "no direction should be seen: give the Gram's share to the means"
        )
        size = self.answer_bytes / 1e6
        return (
            f"noise σ√m = {self.noise:.4g}; {verdict}; {size:.3g} MB and {self.draws:,} draws"
        )


def forecast(settings: GramSettings, guess: TasteGuess | None = None) -> GramForecast:
    """The directions that a guess lets expect, against the noise of the settings.

    ``λ ≈ s · 1.3 U n̄^1.5 (f/d) Σp²`` where ratings are protected, ``s · U n̄ (f/d) Σp²`` where
    users are, s from 0.42 down to 0.18 over d directions. Co-counts have one direction with
    f/d = 1, popularity itself; about those of taste behind it nothing is guessed.
    """
    believed = guess or TasteGuess()
    ratings = believed.ratings_per_user
    weight = ACTIVITY * ratings**1.5 if settings.protects == "rating" else ratings
    base = settings.n_users * weight * believed.concentration(settings.n_items)
    if settings.head == "top_n":
        strengths: tuple[float, ...] = (base,)
    else:
        each = base * believed.taste_variance / believed.directions
        parts = np.linspace(_STRONGEST, _WEAKEST, believed.directions)
        strengths = tuple(float(each * part) for part in parts)
    noise = budget_of(settings).sd("gram") * sqrt(settings.popular)
    return GramForecast(noise, strengths, 8 * settings.triangle_size, settings.triangle_size)


def proposed(settings: GramSettings, guess: TasteGuess | None = None) -> GramSettings:
    """The settings, without a Gram if no direction should be seen."""
    is_hopeless = settings.has_gram and not forecast(settings, guess).seen
    if not is_hopeless or settings.epsilon is None:
        return settings
    shares = MEANS_ONLY_SHARES if settings.head == "ratings" else POPULARITY_SHARES
    return settings.but(shares=shares)
