"""Fit a graphical model to noisy marginals: the simplest law that explains them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsim.core.errors import InputError
from dpsim.synthesis.beliefs import Beliefs, Floats, calibrate, margin, spread
from dpsim.synthesis.graphical_model import gather, tree_of
from dpsim.synthesis.junction import Clique, JunctionTree

_LEAST = 1e-300
_NEWTON_STEPS = 6
_POLISHING_STEPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What a marginal should be, and how far it may stay away from it."""

    attributes: Clique
    shares: Floats
    """A distribution, one axis per attribute."""
    ridge: float
    """r > 0: the variance of a share, times the weight of simplicity."""


@dataclass(frozen=True, eq=False)
class ScalingFit:
    """The law p that minimizes ``KL(p ‖ uniform) + Σ_i |M_i p - y_i|² / (2 r_i)``.

    y_i are the targets and M_i p the law's marginals. Such a p has one potential per target,
    ``p ∝ exp(Σ θ_i)``, and these minimize the dual::

        F(θ) = ln Σ_x exp(Σ θ_i(x_i)) - Σ θ_i·y_i + Σ r_i |θ_i|² / 2

    Targets are visited in turn, clique by clique of a junction tree. With ln z ≤ z - 1, F lies
    below a sum over the target's cells, and each cell's part has its smallest value at
    p e^δ + r (θ + δ) = y, p being the marginal now. So no step ever increases F, cells with
    a target of 0 are no obstacle, and for r → 0 it is iterative proportional fitting.

    References:
        Deming, Stephan. On a least squares adjustment of a sampled frequency table when the
        expected marginal totals are known. Annals of Mathematical Statistics 1940.
        Jiroušek, Přeučil. On the effective implementation of the iterative proportional
        fitting procedure. Computational Statistics and Data Analysis 1995.
        McKenna, Sheldon, Miklau. Graphical-model based estimation and inference for
        differential privacy. ICML 2019.
    """

    sizes: tuple[int, ...]
    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        for target in self.targets:
            if target.shares.shape != tuple(self.sizes[a] for a in target.attributes):
                raise InputError(
                    f"the target over {target.attributes} must have one axis per attribute, "
                    f"with their sizes; got the shape {target.shares.shape}"
                )
            if not 0 < target.ridge < np.inf or not np.isfinite(target.shares).all():
                raise InputError(
                    f"the target over {target.attributes} must be finite, its ridge > 0"
                )

    @cached_property
    def scopes(self) -> tuple[Clique, ...]:
        """The attributes of each target."""
        return tuple(target.attributes for target in self.targets)

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree that holds all targets."""
        return tree_of(self.sizes, self.scopes)

    @cached_property
    def _inside(self) -> tuple[tuple[int, ...], ...]:
        """By clique: which targets are fitted there, in the order given."""
        homes = [self.tree.home_of(scope) for scope in self.scopes]
        return tuple(
            tuple(target for target, home in enumerate(homes) if home == place)
            for place in range(len(self.tree.cliques))
        )

    @cached_property
    def _walk(self) -> tuple[int, ...]:
        """A way along the tree's edges that visits every clique and returns to the root."""
        children: dict[int, list[int]] = {place: [] for place in range(len(self._inside))}
        for place, parent in enumerate(self.tree.parents[1:], start=1):
            children[parent].append(place)
        path, at = [0], 0
        while at or children[0]:
            at = children[at].pop(0) if children[at] else self.tree.parents[at]
            path.append(at)
        return tuple(path)

    def start(self, known: Sequence[Floats] = ()) -> tuple[Floats, ...]:
        """Potentials to begin with: those of the first targets where known, else zeros."""
        rest = self.targets[len(known) :]
        return (*known, *(np.zeros(target.shares.shape) for target in rest))

    def beliefs(self, potentials: Sequence[Floats]) -> Beliefs:
        """The exact laws of the tree's cliques under some potentials."""
        return calibrate(self.tree, gather(self.tree, self.scopes, potentials))

    def value(self, potentials: Sequence[Floats]) -> float:
        """F(θ)."""
        total = self.beliefs(potentials).log_total
        for target, theta in zip(self.targets, potentials, strict=True):
            squares = target.ridge * float((theta * theta).sum()) / 2
            total += squares - float((theta * target.shares).sum())
        return total

    def gradient(self, potentials: Sequence[Floats]) -> tuple[Floats, ...]:
        """dF/dθ_i = M_i p - y_i + r_i θ_i."""
        beliefs = self.beliefs(potentials)
        return tuple(
            beliefs.marginal(target.attributes) - target.shares + target.ridge * theta
            for target, theta in zip(self.targets, potentials, strict=True)
        )

    def fit(self, potentials: Sequence[Floats], sweeps: int) -> tuple[Floats, ...]:
        """The potentials after so many sweeps over all targets."""
        found = tuple(potentials)
        for _ in range(sweeps):
            found = self.sweep(found)
        return found

    def sweep(self, potentials: Sequence[Floats]) -> tuple[Floats, ...]:
        """Fit every target once; the law follows along the tree."""
        tree, found = self.tree, list(potentials)
        laws = list(self.beliefs(potentials).laws)
        shared = [
            margin(laws[i], tree.layouts[i], tree.separators[i]) for i in range(len(laws))
        ]
        seen: set[int] = set()
        last = -1
        for place in self._walk:
            if last >= 0:
                edge = max(last, place)  # children come after their parents
                now = margin(laws[last], tree.layouts[last], tree.separators[edge])
                known = np.maximum(shared[edge], _LEAST)
                ratio = spread(now / known, tree.separators[edge], tree.layouts[place])
                laws[place] = laws[place] * ratio
                shared[edge] = now
            last = place
            if place not in seen:
                seen.add(place)
                for number in self._inside[place]:
                    laws[place], found[number] = _fit_one(
                        laws[place], tree.layouts[place], self.targets[number], found[number]
                    )
        return tuple(found)


def _fit_one(
    law: Floats, layout: Clique, target: Target, theta: Floats
) -> tuple[Floats, Floats]:
    """A clique's law and a target's potential after the target's step."""
    p = np.maximum(margin(law, layout, target.attributes), _LEAST)
    change = cell_steps(p, theta, target)
    scaled = law * spread(np.exp(change), target.attributes, layout)
    return scaled / scaled.sum(), theta + change


def cell_steps(p: Floats, theta: Floats, target: Target) -> Floats:
    """The δ of each cell with p e^δ + r (θ + δ) = y.

    With u + ln u = ln(p/r) + y/r - θ it is y/r - θ - u. Where r is tiny these are two large
    numbers; Newton's steps on the equation itself give back the digits that are lost.
    """
    y, r = target.shares, target.ridge
    pull = y / r - theta
    change = pull - wright_omega(np.log(p / r) + pull)
    for _ in range(_POLISHING_STEPS):
        odds = p * np.exp(change)
        change = change - np.clip((odds + r * (theta + change) - y) / (odds + r), -1.0, 1.0)
    return change


def wright_omega(values: Floats) -> Floats:
    """The u > 0 with u + ln u = value, for each value.

    References:
        Corless, Jeffrey. The Wright ω function. AISC 2002.
    """
    large = np.maximum(values, 1.0)
    small = np.exp(np.clip(values, -690.0, 1.0))
    u: Floats = np.where(values > 1, large - np.log(large), small)
    for _ in range(_NEWTON_STEPS):
        u = np.maximum(u * (1 + values - np.log(u)) / (1 + u), _LEAST)
    # Far below 0 the logarithm's rounding is larger than u itself.
    return np.where(values < -30, small, u)  # noqa: PLR2004
