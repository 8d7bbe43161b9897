"""Tables of yes and no as a mixture of classes: the model, and its fit to pair tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis.table import CodeMatrix

Shares = NDArray[np.float64]
_LEAST = 1e-12
_SPREAD = 0.4
_LOOK = 10  # steps between two looks at the fit
_GAIN = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class BinaryClasses:
    """``Pr[x] = Σ_z w_z Π_a θ_za^x_a (1 - θ_za)^(1 - x_a)``: independent within each class."""

    weights: Shares
    """w, one per class."""
    ones: Shares
    """θ: by class and attribute, the share of code 1."""

    def __post_init__(self) -> None:
        if self.ones.ndim != 2 or self.weights.shape != self.ones.shape[:1]:  # noqa: PLR2004
            raise InputError(
                f"{self.weights.size} classes need a row of shares each, got an array of "
                f"shape {self.ones.shape}"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        return (2,) * int(self.ones.shape[1])

    def sample(self, n: int, noise: CentralNoise, start: int = 0) -> CodeMatrix:
        """Records ``start .. start + n - 1``: a class, then each attribute by itself."""
        require_at_least(0, n=n)
        ends = np.cumsum(self.weights)
        drawn = noise.uniforms(Purpose.PUBLISH, "class", n, start) * ends[-1]
        classes = np.minimum(np.searchsorted(ends, drawn, "right"), ends.size - 1)
        codes = np.empty((self.ones.shape[1], n), np.uint8)
        for attribute, shares in enumerate(self.ones.T):
            uniforms = noise.uniforms(Purpose.PUBLISH, str(attribute), n, start)
            codes[attribute] = uniforms < shares[classes]
        return codes

    def marginal(self, attributes: tuple[int, ...]) -> Frequencies:
        """The exact law of some attributes, one axis each, in the order given."""
        law = np.zeros((2,) * len(attributes))
        for weight, shares in zip(self.weights, self.ones, strict=True):
            sides = [np.array([1 - shares[a], shares[a]]) for a in attributes]
            law += weight * reduce(np.multiply.outer, sides, np.ones(()))
        return law / float(self.weights.sum())


def pair_tables(ones: Shares, agreements: Shares) -> Shares:
    """The law of every pair from shares of ones and of agreement, as one square of 2d rows.

    Row 2a + x and column 2b + y hold Pr[x_a = x, x_b = y]; an attribute with itself has none.
    A pair's one free number is cut to what its margins allow.
    """
    d = ones.size
    left, right = ones[:, None], ones[None, :]
    least, most = np.maximum(0.0, left + right - 1), np.minimum(left, right)
    both = np.clip((agreements + left + right - 1) / 2, least + _LEAST, most - _LEAST)
    square = np.empty((d, 2, d, 2))
    square[:, 1, :, 1] = both
    square[:, 1, :, 0], square[:, 0, :, 1] = left - both, right - both
    square[:, 0, :, 0] = 1 - left - right + both
    square[np.arange(d), :, np.arange(d), :] = 0.0
    return np.maximum(square, 0.0).reshape(2 * d, 2 * d)


def agreements_of(model: BinaryClasses) -> Shares:
    """By pair of attributes: the share of records in which both have the same code."""
    signs, weights = 2 * model.ones - 1, model.weights / model.weights.sum()
    agreed: Shares = (1 + np.einsum("z,za,zb->ab", weights, signs, signs)) / 2
    return agreed


def fit_classes(square: Shares, classes: int, draws: Shares, steps: int = 400) -> BinaryClasses:
    """Classes under which all pair tables are most likely, by EM from a random start.

    ``square`` is what `pair_tables` makes; ``draws`` are uniforms, one per class and attribute.
    Sums are made in a fixed order: the same start gives the same bits on any machine's threads.
    """
    d = square.shape[0] // 2
    margin = square.sum(axis=1).reshape(d, 2)
    odds = np.log(margin[:, 1] + _LEAST) - np.log(margin[:, 0] + _LEAST)
    spread = _SPREAD * np.log(draws / (1 - draws)).reshape(classes, d)
    ones = 1 / (1 + np.exp(-(odds + spread)))
    laws = np.stack((1 - ones, ones), axis=2).reshape(classes, 2 * d)
    weights, last = np.full(classes, 1 / classes), -np.inf
    for step in range(steps):
        model = np.maximum(
            np.einsum("z,zi,zj->ij", weights, laws, laws, optimize=False), 1e-300
        )
        pull = np.einsum("ij,zj->zi", square / model, laws)
        parts = laws * pull * weights[:, None]
        weights = parts.sum(axis=1) / parts.sum()
        pairs = parts.reshape(classes, d, 2) + _LEAST
        laws = (pairs / pairs.sum(axis=2, keepdims=True)).reshape(classes, 2 * d)
        if step % _LOOK == _LOOK - 1:
            fit = float((square * np.log(model)).sum())
            if fit - last <= _GAIN * abs(fit):
                break
            last = fit
    return BinaryClasses(weights, laws.reshape(classes, d, 2)[:, :, 1].copy())


def starts(noise: CentralNoise, classes: int, start: int, attributes: int) -> Shares:
    """The uniforms of one random start."""
    subject = f"classes {classes} {start}"
    return noise.uniforms(Purpose.START, subject, classes * attributes)
