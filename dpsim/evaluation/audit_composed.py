"""Several reports of one user as one mechanism: what an audit of a whole record looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.rng import UserNoise
from dpsim.evaluation.audit_sampled import Perturbs
from dpsim.mechanisms.interfaces import Reports


@dataclass(frozen=True, slots=True)
class Record:
    """One mechanism per attribute of a record, each with draws of its own.

    Inputs and reports have one column per attribute. The losses of the attributes add up.
    """

    mechanisms: tuple[Perturbs, ...]

    def perturb(self, inputs: NDArray[Any], noise: UserNoise) -> Reports:
        """One column of reports per attribute."""
        columns = [
            mechanism.perturb(
                inputs[:, place], replace(noise, subject=f"{noise.subject} {place}")
            )
            for place, mechanism in enumerate(self.mechanisms)
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, slots=True)
class Rounds:
    """The same question several times: every round has a plan, and fresh draws, of its own.

    The losses of the rounds add up, unless reports are memoized.
    """

    mechanism: Perturbs
    rounds: int

    def perturb(self, inputs: NDArray[Any], noise: UserNoise) -> Reports:
        """One more axis, the second: the report of each round."""
        reports = [
            self.mechanism.perturb(
                inputs, replace(noise, plan_hash=f"{noise.plan_hash} {number}")
            )
            for number in range(self.rounds)
        ]
        return np.stack(reports, axis=1)
