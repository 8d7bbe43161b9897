"""What must be equal everywhere for equal bits: versions, and the golden draws."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

from dpsim.core.rng import draws_at

GOLDEN_ADDRESS = (20260, "grr", "3460c84b4efeb1f04b80add4b1591150", 0)
GOLDEN_DRAWS = (1477287639, 2217945964, 4144201429, 323033484)


@dataclass(frozen=True, slots=True)
class Versions:
    """One process's Python and libraries, and whether its draws are the known ones."""

    python: str
    dpsim: str
    numpy: str
    ray: str
    draws_are_golden: bool


def versions_here() -> Versions:
    """Those of this process."""
    return Versions(
        python=platform.python_version(),
        dpsim=version("dpsim"),
        numpy=version("numpy"),
        ray=version("ray"),
        draws_are_golden=tuple(draws_at(GOLDEN_ADDRESS, 0, 4).tolist()) == GOLDEN_DRAWS,
    )
