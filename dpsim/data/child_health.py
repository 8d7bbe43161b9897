"""A table that comes with dpsim: child mental health, age by satisfaction, as counts.

Source: the MWEM report, a course project; labels are not known, only codes. Every count is a
multiple of 288: the table looks like 3,518 records copied 288 times. If a person is 288
records, a loss of ε for a record protects that person at 288 ε only.
"""

from __future__ import annotations

from itertools import chain

from dpsim.core.schema import Attribute, CodeRange, Schema
from dpsim.data.histogram_table import HistogramTable

NAME = "child-health"
COPIES = 288
"""Each record seems to occur so often: multiply ε by it to protect what was one answer."""

COUNTS = (
    (5_184, 4_896, 6_624, 8_352),
    (4_032, 10_656, 10_080, 13_824),
    (4_608, 11_520, 12_960, 15_264),
    (7_488, 12_384, 15_264, 23_040),
    (12_672, 14_400, 22_752, 28_800),
    (8_064, 22_752, 24_480, 30_816),
    (11_232, 18_432, 22_176, 29_664),
    (11_232, 18_144, 20_736, 34_560),
    (12_384, 14_976, 23_040, 35_136),
    (12_384, 20_736, 23_616, 29_664),
    (8_928, 16_416, 23_616, 28_512),
    (12_960, 22_752, 22_464, 35_136),
    (16_416, 20_160, 22_752, 32_832),
    (13_536, 15_552, 21_024, 31_104),
)
"""Records by age (14 values) and satisfaction (4 values)."""


def child_health(block_size: int) -> HistogramTable:
    """The table as a record source."""
    ages, answers = CodeRange(len(COUNTS)), CodeRange(len(COUNTS[0]))
    schema = Schema(
        (Attribute("age", ages), Attribute("satisfaction", answers)), origin="published"
    )
    return HistogramTable(schema, tuple(chain(*COUNTS)), block_size, NAME)
