"""Classes averaged over their posterior: what noisy reports say, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis._class_kernels import Evidence, leap, log_likelihood
from dpsim.synthesis.classes import ClassModel, pack, scratch
from dpsim.synthesis.group_reports import GroupReports, require_groups

Floats = NDArray[np.float64]

CLASSES = 8
"""More than the data need: the prior leaves idle classes near the common law."""

_FIRST_STEP = 0.02
_ADAPTATION = 0.1
_STUCK = 50.0  # nats below the best chain; good chains differ by ten or so


@dataclass(frozen=True, slots=True)
class Prior:
    """What is assumed about classes before the reports, in standard deviations of logits.

    The logits of class z are ``τ_a η_a + σ_a δ_za`` with η and δ standard normal: the law all
    classes share, and how a class differs from it. τ and σ are learned, by attribute.
    """

    common: tuple[float, float] = (0.7, 0.5)
    """Mean and spread of log τ."""
    deviation: tuple[float, float, float] = (0.6, 0.5, 0.35)
    """Of log σ: its mean, the spread of what attributes have in common, and of their own."""
    weights: float = 0.5
    """Spread of the logits of the classes' weights."""

    @property
    def scales(self) -> Floats:
        """All six numbers in one array, for the kernels."""
        return np.array([*self.common, *self.deviation, self.weights])


@dataclass(frozen=True, slots=True)
class Walk:
    """How long the sampler walks."""

    chains: int = 3
    warm_up: int = 300
    """Draws of a chain that only tune its step."""
    kept: int = 40
    """Draws of a chain that enter the average."""
    thin: int = 6
    """One of so many draws is kept."""
    longest: int = 20
    """A draw takes 1 to so many leapfrog steps, at random."""
    acceptance: float = 0.75
    """The share of draws to accept, which tunes the step."""

    def __post_init__(self) -> None:
        for name in ("chains", "kept", "thin", "longest"):
            require_at_least(1, **{name: getattr(self, name)})
        require_at_least(0, warm_up=self.warm_up)


def fit_posterior(
    reports: Sequence[GroupReports],
    sizes: tuple[int, ...],
    noise: CentralNoise,
    classes: int = CLASSES,
    walk: Walk = Walk(),
) -> ClassModel:
    """The posterior mean of a mixture of classes, given the reports of all groups at once.

    At small ε many mixtures explain the reports about equally well. Their average errs less
    than the likeliest one, and no number of classes is to be chosen: see `Prior`. It is a
    mixture itself, of all classes of all kept draws. The likelihood of reports that name one
    cell is exact; of others it is the binomial one of each cell, weighted for noise that has a
    dimension less. Hamiltonian Monte Carlo, in standard units; its draws have addresses, and
    as postprocessing of reports it costs no privacy. Chains that got stuck far below the best
    one are left out.

    References:
        Neal. MCMC using Hamiltonian dynamics. Handbook of Markov chain Monte Carlo, 2011.
        Papaspiliopoulos, Roberts, Sköld. A general framework for the parametrization of
        hierarchical models. Statistical Science 2007.
    """
    require_groups(reports, sizes)
    require_at_least(1, classes=classes)
    evidence = pack(reports, sizes)
    chains = [
        _Chain(evidence, sizes, classes, noise, f"classes {classes} chain {place}").run(walk)
        for place in range(walk.chains)
    ]
    best = max(chain.fit for chain in chains)
    good = [chain for chain in chains if chain.fit >= best - _STUCK]
    weights = np.concatenate([chain.weights for chain in good])
    laws = np.concatenate([chain.laws for chain in good])
    return ClassModel.of(weights / weights.sum(), laws, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """The kept draws of one chain, one after the other, and their mean log-likelihood."""

    weights: Floats
    laws: Floats
    fit: float


class _Chain:
    """One walk through the posterior; all its randomness comes from one subject."""

    def __init__(
        self,
        evidence: Evidence,
        sizes: tuple[int, ...],
        classes: int,
        noise: CentralNoise,
        subject: str,
    ) -> None:
        codes = sum(sizes)
        self.length = (classes + 1) * codes + 2 * len(sizes) + classes + 1
        self.setting = np.array(sizes, np.int64), Prior().scales, evidence
        self.work = scratch(evidence, classes)
        self.noise, self.subject = noise, subject
        self.place = 0.3 * self._normals(0)
        self.state = (
            np.zeros(classes),
            np.zeros((classes, codes)),
            np.zeros(classes),
            np.zeros((classes, codes)),
            np.zeros(self.length),  # read before it is written: 0 · nan would stay
        )
        self.step = _FIRST_STEP
        self.height = self._leap(self.place, np.zeros(self.length), 0.0, 1)

    def run(self, walk: Walk) -> _Kept:
        """Warm up, then keep one of every so many draws."""
        for draw in range(walk.warm_up):
            chance = self._draw(draw, walk.longest)
            self.step *= float(np.exp(_ADAPTATION * (chance - walk.acceptance)))
        kept = []
        for draw in range(walk.kept * walk.thin):
            self._draw(walk.warm_up + draw, walk.longest)
            if (draw + 1) % walk.thin == 0:
                weights, laws = self.state[0].copy(), self.state[1].copy()
                fit = log_likelihood(weights, laws, self.setting[2], self.work)
                kept.append((weights, laws, fit))
        return _Kept(
            np.concatenate([weights for weights, _, _ in kept]),
            np.concatenate([laws for _, laws, _ in kept]),
            float(np.mean([fit for _, _, fit in kept])),
        )

    def _draw(self, draw: int, longest: int) -> float:
        """Move or stay; returns the chance of moving."""
        momentum = self._normals(draw + 1)
        subject = f"{self.subject} moves"
        speed, length, coin = self.noise.uniforms(Purpose.START, subject, 3, 3 * draw)
        before = self.height - 0.5 * float((momentum * momentum).sum())
        place = self.place.copy()
        saved = [part.copy() for part in self.state]
        steps = 1 + int(length * longest)
        height = self._leap(place, momentum, self.step * (0.8 + 0.4 * speed), steps)
        gain = height - 0.5 * float((momentum * momentum).sum()) - before
        chance = float(np.exp(min(0.0, gain))) if np.isfinite(gain) else 0.0
        if coin < chance:
            self.place, self.height = place, height
        else:
            for part, old in zip(self.state, saved, strict=True):
                part[...] = old
        return chance

    def _leap(self, place: Floats, momentum: Floats, step: float, steps: int) -> float:
        return float(leap(place, momentum, self.setting, self.state, self.work, (step, steps)))

    def _normals(self, row: int) -> Floats:
        """Standard normal numbers, by Box and Muller."""
        half = (self.length + 1) // 2
        uniforms = self.noise.uniforms(Purpose.START, self.subject, 2 * half, 2 * half * row)
        radius, angle = np.sqrt(-2 * np.log(uniforms[:half])), 2 * np.pi * uniforms[half:]
        pairs = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))
        return pairs[: self.length]
