"""Mixtures of classes within which attributes are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Frequencies
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis._class_kernels import Evidence, draw_in_class
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.table import CodeMatrix, code_type

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class ClassModel:
    """``Pr[x] = Σ_z w_z Π_a θ_za(x_a)``: attributes are independent within each class."""

    weights: Frequencies
    """w, one share per class."""
    laws: tuple[Frequencies, ...]
    """θ: by attribute, one row of shares per class."""

    def __post_init__(self) -> None:
        for attribute, law in enumerate(self.laws):
            if law.ndim != 2 or law.shape[0] != self.weights.size or not law.shape[1]:  # noqa: PLR2004
                raise InputError(
                    f"attribute {attribute} needs a row of shares for each of "
                    f"{self.weights.size} classes, got an array of shape {law.shape}"
                )

    @classmethod
    def of(cls, weights: Frequencies, rows: Frequencies, sizes: tuple[int, ...]) -> ClassModel:
        """A model from rows that hold the shares of all attributes side by side."""
        ends = np.cumsum(sizes)[:-1]
        return cls(weights, tuple(np.split(rows, ends, axis=1)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        return tuple(law.shape[1] for law in self.laws)

    def sample(self, n: int, noise: CentralNoise, start: int = 0) -> CodeMatrix:
        """Records ``start .. start + n - 1``: one uniform for the class, one per attribute."""
        require_at_least(0, n=n)
        codes = np.zeros((len(self.laws), n), code_type(self.sizes))
        ends = [_ends(law) for law in self.laws]
        class_ends = _ends(self.weights[None])[0]
        for first in range(0, n, _CHUNK):
            part = codes[:, first : first + _CHUNK]
            size, place = part.shape[1], start + first
            uniforms = noise.uniforms(Purpose.PUBLISH, "class", size, place)
            classes = np.searchsorted(class_ends, uniforms, side="right")
            for attribute, limits in enumerate(ends):
                uniforms = noise.uniforms(Purpose.PUBLISH, str(attribute), size, place)
                draw_in_class(classes, uniforms, limits, part[attribute])
        return codes

    def marginal(self, attributes: tuple[int, ...]) -> Frequencies:
        """The exact law of some attributes, one axis each, in the order given."""
        if len(set(attributes)) != len(attributes):
            raise InputError(f"attributes must be distinct, got {attributes}")
        for attribute in attributes:
            if not 0 <= attribute < len(self.laws):
                raise InputError(f"no attribute {attribute}: there are {len(self.laws)}")
        half = (len(attributes) + 1) // 2
        left = self._joint(attributes[:half]) * self.weights[:, None]
        right = self._joint(attributes[half:])
        return (left.T @ right).reshape([self.sizes[a] for a in attributes])

    def _joint(self, attributes: tuple[int, ...]) -> Frequencies:
        joint = np.ones((self.weights.size, 1))
        for attribute in attributes:
            joint = (joint[:, :, None] * self.laws[attribute][:, None]).reshape(
                self.weights.size, -1
            )
        return joint


def _ends(laws: Frequencies) -> Frequencies:
    """Where each code's share of the uniforms ends; nothing is left over after the last."""
    ends = np.cumsum(laws, axis=1)
    ends /= ends[:, -1:]
    ends[np.cumsum(laws[:, ::-1], axis=1)[:, ::-1] - laws <= 0] = 2.0
    return ends


def pack(reports: Sequence[GroupReports], sizes: tuple[int, ...]) -> Evidence:
    """The reports as flat arrays for the kernels; groups without reports are left out."""
    used = [group for group in reports if group.n and group.cells > 1]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    axes = [attribute for group in used for attribute in group.attributes]
    return Evidence(
        members=_edges([len(group.attributes) for group in used]),
        starts=np.array([offsets[a] for a in axes], np.int64),
        widths=np.array([sizes[a] for a in axes], np.int64),
        first=_edges([group.cells for group in used]),
        supports=np.concatenate([group.supports() for group in used] or [np.zeros(0)]),
        n=np.array([group.n for group in used], np.float64),
        q=np.array([group.mechanism.q for group in used], np.float64),
        gap=np.array([group.mechanism.gap for group in used], np.float64),
        freedom=np.array([0.0 if g.names_one_cell else g.freedom for g in used]),
    )


def scratch(evidence: Evidence, classes: int) -> tuple[NDArray[np.float64], ...]:
    """Room for the kernels: prefixes by class, the cells of one group, and a contraction."""
    cells = int(np.diff(evidence.first).max(initial=1))
    axes = int(np.diff(evidence.members).max(initial=1))
    # One prefix per axis, and none is longer than the cells: some attributes have one code.
    return np.empty((classes, axes * cells)), np.empty(cells), np.empty(cells)


def _edges(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(np.array(lengths, np.int64)))).astype(np.int64)
