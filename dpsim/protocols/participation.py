"""Who answers, and when: simulated dropout and lateness, drawn per user, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least, require_share
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import ClientNoise, Purpose

_QUANTILE_BITS = 12


@dataclass(frozen=True, slots=True)
class Participation:
    """Each user's part in a round: a function of seed, plan and user, never of a record.

    A user drops out before sending with probability ``dropout`` and then has spent nothing.
    The others need a log-normal time with median ``latency_ms`` and shape ``spread``; who
    needs longer than ``deadline_ms`` has sent a report, and paid, but is not counted.
    """

    dropout: Fraction = Fraction(0)
    latency_ms: int = 0
    spread: Fraction = Fraction(1)
    deadline_ms: int | None = None

    def __post_init__(self) -> None:
        spread = exact(self.spread, "spread")
        if not 0 <= spread <= 10:  # noqa: PLR2004 - beyond it the slowest needs years
            raise InputError(f"spread must be >= 0 and <= 10, got {self.spread}")
        object.__setattr__(self, "dropout", require_share(self.dropout, "dropout"))
        object.__setattr__(self, "spread", spread)
        require_at_least(0, latency_ms=self.latency_ms)
        if self.deadline_ms is not None:
            require_at_least(0, deadline_ms=self.deadline_ms)

    @property
    def is_certain(self) -> bool:
        """Whether every user answers in time, so that nothing need be drawn."""
        return self.dropout == 0 and (self.deadline_ms is None or self.latency_ms == 0)

    @property
    def parameters(self) -> Parameters:
        """For the plan: nothing where everybody answers, whatever the unused numbers are."""
        return () if self.is_certain else parameters_of(self)

    def draw(self, noise: ClientNoise) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Per user of the noise's block: whether a report is sent, and whether in time."""
        sent = noise.draws(Purpose.DROPOUT, "") >= np.uint32(int(self.dropout * 2**32))
        if self.deadline_ms is None or self.latency_ms == 0:
            return sent, sent
        draws = noise.draws(Purpose.LATENCY, "") >> np.uint32(32 - _QUANTILE_BITS)
        times = _latencies(self.latency_ms, self.spread)[draws]
        return sent, sent & (times <= self.deadline_ms)


EVERYBODY = Participation()


@lru_cache(maxsize=16)
def _latencies(median_ms: int, spread: Fraction) -> NDArray[np.int64]:
    """Whole milliseconds at the midpoints of 4,096 equal quantiles of the log-normal law."""
    n = 2**_QUANTILE_BITS
    scores = [round(NormalDist().inv_cdf((i + 0.5) / n), 6) for i in range(n)]
    times = (round(median_ms * exp(float(spread) * z)) for z in scores)
    return np.array([min(time, 2**62) for time in times], np.int64)


@dataclass(frozen=True, slots=True)
class Turnout:
    """How many users were counted, came too late, or dropped out."""

    counted: int
    late: int
    dropped: int

    @property
    def invited(self) -> int:
        """All of them."""
        return self.counted + self.late + self.dropped
