"""The program of the MWEM report as it was, with its quirks, and what it really costs.

The report is a course project on a table of child mental health. Its program divides scores by
100,000 against overflow, so that selection is all but uniform; divides the noise by the number
of attributes; draws queries until one is new, and tells how often; clips nothing; and in one
dimension ignores the order it has shuffled. It also takes the domain from the data and prints
the truth, which no ε covers: here the domain is public and the truth is not printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.workloads import domain_of

SCORE_DIVISOR = 100_000


@dataclass(frozen=True, slots=True)
class Quirk:
    """One way in which the report's program differs from the algorithm."""

    program: str
    default: str
    effect: str
    is_kept: bool
    """Whether the preset reproduces it."""


QUIRKS = (
    Quirk("scores are divided by 100,000", "they are not", "selection is near uniform", True),
    Quirk("exp after a shift; unseeded noise", "Gumbel keys by address", "the same law", False),
    Quirk("draws until a query is new, and prints how often", "measured queries are left out",
          "the same law; count and time leak", False),
    Quirk("noise of scale 2T/(ε · attributes)", "Δ/ε_m", "halved in two dimensions", True),
    Quirk("the last guess, where the text says average", "the last guess", "better", True),
    Quirk("n is exact and not charged", "as declared", "none under replacement", True),
    Quirk("the domain is min..max of the data", "public", "no finite ε", False),
    Quirk("prints true histogram and errors", "evaluation only", "no finite ε", False),
    Quirk("in one dimension the shuffled order is not used", "random order", "none seen", True),
    Quirk("one replay in some of its tables: replays=1", "20 replays", "up to 18 times", True),
    Quirk("measurements are not clipped", "clipped to 0..n", "none on its data", True),
    Quirk("errors over the workload; figures of the last run", "errors with their spread",
          "none", False),
)  # fmt: skip


def faithful(
    shape: Sequence[int],
    epsilon: object,
    iterations: int,
    *,
    replays: int = 20,
    is_shuffled: bool | None = None,
) -> MWEMSettings:
    """The report's settings for one attribute or several; `MWEMSettings.loss` is the true cost.

    Under replacement of a record: (ε/2)(1 + 10⁻⁵) in one dimension, half the budget is unused;
    ε (1 + 5·10⁻⁶) in two, where two errors cancel. As the program was run there is no finite ε.
    """
    sizes = domain_of(shape)
    return MWEMSettings(
        shape=sizes,
        neighbors="replace",
        epsilon=exact(epsilon, "epsilon"),
        iterations=iterations,
        measure_share=Fraction(1, 2),
        replays=replays,
        noise="laplace",
        score_divisor=SCORE_DIVISOR,
        noise_divisor=len(sizes),
        is_shuffled=len(sizes) > 1 if is_shuffled is None else is_shuffled,
        is_clipped=False,
    )


def expected_redraws(law: NDArray[np.float64], measured: Sequence[int]) -> float:
    """How often the program draws in vain before it finds a query not measured: 1/p - 1.

    ``law`` is that of a selection among all queries, p what it gives to the others.
    """
    left = 1 - float(law[list(measured)].sum())
    if len(set(measured)) >= law.size or left <= 0:
        raise InputError(f"all {law.size} queries are measured: the program never ends")
    return 1 / left - 1
