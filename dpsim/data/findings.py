"""What is wrong with a table under a schema: counts, never values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum


class Problem(Enum):
    """A way in which a cell does not fit its attribute, and what to do about it."""

    MISSING = ("missing", 'fill the gaps, or declare missing = "category"')
    UNLISTED = ("outside the declared values", "list every value, or declare other = true")
    NOT_NUMERIC = ("not numeric", "write decimal numbers such as -1.5")
    NOT_FINITE = ("infinite or NaN", "write finite numbers")
    NOT_A_CODE = (
        "outside the codes 0..size-1",
        "write smaller codes, or declare a larger size",
    )
    CLIPPED = ("outside the bounds", "the nearest bound stands for such numbers")

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy


@dataclass(frozen=True, slots=True)
class Findings:
    """The number of rows per attribute and problem. Findings of parts of a table add up."""

    n: int = 0
    counts: Mapping[tuple[str, Problem], int] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    def __add__(self, other: Findings) -> Findings:
        counts = dict(self.counts)
        for key, count in other.counts.items():
            counts[key] = counts.get(key, 0) + count
        ignored = tuple(dict.fromkeys((*self.ignored, *other.ignored)))
        return Findings(self.n + other.n, counts, ignored)

    @property
    def errors(self) -> list[str]:
        """A line for each problem that forbids using the table."""
        return [line for problem, line in self._lines() if problem is not Problem.CLIPPED]

    @property
    def notes(self) -> list[str]:
        """A line for each thing that is worth knowing."""
        clipped = [line for problem, line in self._lines() if problem is Problem.CLIPPED]
        if not self.ignored:
            return clipped
        return [*clipped, f"not in the schema, so ignored: {', '.join(self.ignored)}"]

    def _lines(self) -> Iterator[tuple[Problem, str]]:
        for (name, problem), count in self.counts.items():
            if count:
                rows = "row is" if count == 1 else "rows are"
                yield problem, f"{name}: {count:,} {rows} {problem.what}; {problem.remedy}"
