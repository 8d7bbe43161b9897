"""What a run of MWEM on marginals has come to: measurements, and the model's potentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.synthesis.beliefs import Floats
from dpsim.synthesis.junction import Clique


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A whole marginal as it was measured: counts with noise, whole and unclipped."""

    attributes: Clique
    counts: Counts
    variance: float
    """Of one count's noise."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginalState:
    """A run after some iterations: nothing in it is private once its charges are made.

    A host keeps it as a checkpoint. All noise has an address, so an iteration that is lost is
    made again with the same bits.
    """

    total: int
    """n, which is public."""
    measurements: tuple[Measurement, ...]
    """The margins, where they are measured, then one marginal per iteration."""
    potentials: tuple[Floats, ...]
    """One for each set of attributes, in the order of their first measurements."""
    used: Fraction
    """The share of the iterations' budget that is spent."""
    share: Fraction
    """The share that the next iteration spends."""
    iteration: int = 0
    """How many iterations are done."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The state as named arrays, for ``numpy.savez``."""
        text = json.dumps(
            {
                "total": self.total,
                "used": str(self.used),
                "share": str(self.share),
                "iteration": self.iteration,
                "attributes": [each.attributes for each in self.measurements],
                "variances": [each.variance for each in self.measurements],
                "potentials": len(self.potentials),
            }
        )
        arrays: dict[str, NDArray[Any]] = {"facts": np.array(text)}
        for place, each in enumerate(self.measurements):
            arrays[f"counts_{place}"] = each.counts
        for place, potential in enumerate(self.potentials):
            arrays[f"potential_{place}"] = potential
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The state that `to_arrays` gave: the same bits."""
        if "facts" not in arrays:
            raise InputError("a state of MWEM on marginals needs the array 'facts'")
        facts = json.loads(str(arrays["facts"]))
        measurements = tuple(
            Measurement(tuple(scope), np.asarray(arrays[f"counts_{place}"], np.int64), variance)
            for place, (scope, variance) in enumerate(
                zip(facts["attributes"], facts["variances"], strict=True)
            )
        )
        potentials = tuple(
            np.asarray(arrays[f"potential_{place}"], np.float64)
            for place in range(facts["potentials"])
        )
        used, share = Fraction(facts["used"]), Fraction(facts["share"])
        return cls(facts["total"], measurements, potentials, used, share, facts["iteration"])

    def to_json(self) -> str:
        """The state as text; floats keep every bit."""
        return json.dumps({name: value.tolist() for name, value in self.to_arrays().items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The state that `to_json` gave: the same bits."""
        return cls.from_arrays({name: np.array(v) for name, v in json.loads(text).items()})
