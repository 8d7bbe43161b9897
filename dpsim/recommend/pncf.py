"""Private neighbor collaborative filtering as it was described: without a guarantee.

Its noise is scaled by quantities that depend on the data, so no finite ε holds. It is here to
show what the method delivers and to be compared with; the ledger books an unbounded loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Literal

import numpy as np

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.exact import Number, exact
from dpsim.core.rng import CentralNoise
from dpsim.recommend.neighbors import Choice, NeighborModel, Predictions
from dpsim.recommend.ratings_matrix import Indices, RatingMatrix, RatingPiece
from dpsim.recommend.relevance_sensitivity import require_non_negative, shrink_factor
from dpsim.recommend.similarity import SIMILARITIES, Similarity

_TEXTS = {
    "similarity": SIMILARITIES,
    "neighbors": ("rated", "catalog"),
    "denominator": ("signed", "absolute"),
    "v": ("ratings", "candidates"),
}


@dataclass(frozen=True, slots=True)
class PNCF:
    """Choose k neighbors with noise, weigh them with noisy similarities, predict.

    For a user a and an item i, over the candidates j with s(i,j) > 0, B = e^-β RS::

        ω = min(s_k, (4 k max B / ε) ln(k (v - k) / ρ))      ŝ = max(s, s_k - ω)
        chosen: k without replacement, ∝ exp(ε ŝ(i,j) / (4 k B(i,j)))
        r̂ = r̄_i + Σ (s + Lap(2B/ε)) (r_aj - r̄_j) / Σ (s + Lap(2B/ε)), clipped to the scale

    s_k is the k-th largest candidate similarity, v the most ratings of any item or the number
    of candidates; k(v - k)/ρ counts as e below e. Draws belong to the query's user, item and
    the candidate, so a query has one answer, whatever else is asked.

    Guarantees nothing, under any neighbor relation: noise scales, means, candidates and s_k
    are exact functions of the data. Its nominal ε, if it held, would be (k + 1) ε/2 per query:
    ε/2 for the choice, and ε/2 for each of k similarities, which share the target's ratings.
    An ε of infinity is a path of its own: rank by s, no noise.

    References:
        Zhu, Li, Ren, Zhou, Xiong. Differential privacy for neighborhood-based collaborative
        filtering. ASONAM 2013.
    """

    epsilon: Number | None
    """Per query and nominal: an exact fraction, or None for infinity."""
    k: int | Literal["half"] = 20
    similarity: Similarity = "pearson"
    beta: float = 1.0
    rho: float = 0.5
    candidates: int | None = None
    """The most candidates of an item, best first; None for all."""
    min_candidates: int = 1
    """Below it the item's mean is the prediction."""
    neighbors: Literal["rated", "catalog"] = "rated"
    """Chosen per query among what the user rated, or once per item among all items."""
    denominator: Literal["signed", "absolute"] = "signed"
    v: Literal["ratings", "candidates"] = "ratings"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _epsilon(self.epsilon))
        if self.k != "half":
            require_at_least(1, k=self.k)
        if self.candidates is not None:
            require_at_least(1, candidates=self.candidates)
        require_at_least(0, min_candidates=self.min_candidates)
        for name, texts in _TEXTS.items():
            if getattr(self, name) not in texts:
                raise InputError(f"{name} must be one of {texts}, got {getattr(self, name)!r}")
        if exact(self.beta, "beta") < 0:
            raise InputError(f"beta must be >= 0, got {self.beta}")
        if exact(self.rho, "rho") <= 0:
            raise InputError(f"rho must be > 0, got {self.rho}")

    @property
    def guarantee(self) -> str:
        """What it guarantees."""
        return "none"

    def fit(self, matrix: RatingMatrix) -> PNCFModel:
        """The method on training ratings, which must all be in one trusted place."""
        if self.epsilon is not None:
            require_non_negative(matrix)
        choice = Choice(
            self.similarity,
            0 if self.k == "half" else self.k,
            self.neighbors,
            self.candidates,
            self.min_candidates,
            is_absolute=self.denominator == "absolute",
            epsilon=inf if self.epsilon is None else float(self.epsilon),
            shrink=shrink_factor(self.beta),
            rho=self.rho,
            is_v_ratings=self.v == "ratings",
        )
        return PNCFModel(self, NeighborModel(matrix, choice))

    def nominal_epsilon(self, made: Predictions, n_items: int) -> float:
        """``(k + 1) ε/2`` for every choice that was made: per query, or per item of a table.

        A sum of what the method claims, which is not what it delivers.
        """
        epsilon = _epsilon(self.epsilon)
        if epsilon is None:
            return inf
        if self.neighbors == "catalog" and self.k != "half":
            return float(n_items * (self.k + 1) * epsilon / 2)
        halves = np.maximum(1, made.candidates // 2)
        k = halves if self.k == "half" else np.full(made.ratings.size, self.k)
        return float(int((k + 1).sum()) * epsilon / 2)


@dataclass(frozen=True, slots=True, eq=False)
class PNCFModel:
    """Training ratings, ready to predict from."""

    method: PNCF
    neighbors: NeighborModel

    def predict(
        self,
        users: Indices,
        items: Indices,
        noise: CentralNoise | None = None,
        history: RatingPiece | None = None,
    ) -> Predictions:
        """One rating per pair of user and item, with diagnostics."""
        return self.neighbors.predict(users, items, noise, history)


def _epsilon(value: object) -> Fraction | None:
    if value is None or (isinstance(value, float) and value == inf):
        return None
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise InputError(f"epsilon must be > 0, got {value}")
    return epsilon
