"""Published tables, computed anew: what a source printed beside what dpsim finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from textwrap import wrap
from typing import Any, TypeAlias

_WIDTH = 80

Row: TypeAlias = tuple[str, ...]
Tell: TypeAlias = Callable[[str], None]
"""Hears what is computed next."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A table of figures with its verdict."""

    title: str
    columns: Row
    rows: tuple[Row, ...]
    meaning: str
    """What the figures say, in one paragraph."""
    largest_z: float
    """The largest distance from what is expected, in standard errors."""
    tolerance: float = 4.0

    @property
    def holds(self) -> bool:
        """Whether every figure is within the tolerance."""
        return self.largest_z < self.tolerance

    def lines(self) -> Iterator[str]:
        """The table for people, within 80 columns."""
        table = [self.columns, *self.rows]
        widths = [max(len(row[place]) for row in table) for place in range(len(self.columns))]
        yield self.title
        yield ""
        for row in table:
            yield "  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True))
        yield ""
        yield from wrap(self.meaning, _WIDTH)
        yield ""
        verdict = "reproduced" if self.holds else "NOT reproduced"
        yield (
            f"{verdict}: the farthest figure is {self.largest_z:.1f} standard errors off "
            f"(tolerance {self.tolerance:g})"
        )

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "title": self.title,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "meaning": self.meaning,
            "largest_z": self.largest_z,
            "holds": self.holds,
        }


TABLES = {
    "mwem-report": ("reproduce_mwem", "mean errors of the MWEM report, one and two attributes"),
    "dp2pub-notes": (
        "reproduce_notes",
        "TVD and MSE of the DP2-Pub notes: 3 tables, 3 budgets",
    ),
}
"""By name: where a table is computed, and what it is."""


def reproduce(name: str, seed: int, tell: Tell) -> Reproduction:
    """Compute one table anew."""
    module = import_module(f"dpsim.experiments.{TABLES[name][0]}")
    found: Reproduction = module.reproduce(seed, tell)
    return found
