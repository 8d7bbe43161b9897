"""What a run of MWEM is asked: a workload over public domains, and how ε is spent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod
from typing import Any

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.rng import CentralNoise
from dpsim.protocols.table_release import NOBODY, Trust
from dpsim.synthesis.mwem.faithful import faithful
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.random_workload import random_boxes
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.workloads import BoxWorkload

PRESETS = ("default", "faithful", "local", "marginals")
WORKLOADS = ("boxes", "marginals-1", "marginals-2", "marginals-3")
_QUERIES = 400
_MOST_ITERATIONS = 100


@dataclass(frozen=True, slots=True)
class MWEMAsked:
    """A histogram of some attributes that answers a workload of counting queries.

    The guess starts uniform. Each of T iterations selects a query that it answers badly,
    measures it with noise, and moves the guess towards all measurements so far::

        P[q] ∝ exp(ε_s |q(A) - q(B)| / 2)      m = q(B) + discrete Laplace(1/ε_m)
        A(x) ∝ A(x) exp(q(x) (m - q(A)) / 2n)  ε_s = ε_m = ε/2T

    Presets::

        default    a trusted curator holds the counts; ε for all iterations
        faithful   the MWEM report's program with its quirks and its true cost
        local      nobody is trusted: one perturbed cell per user, at ε
        marginals  tables of many attributes, by a trusted curator

    With ``local`` the iterations are post-processing of private counts. With ``marginals``,
    whole marginals of 2 to 4 attributes are selected and measured, and a graphical model
    answers for the table: under pure ε, or with δ > 0 by Gaussian noise and
    zero-concentrated privacy.

    Workloads: ``boxes``, as many random intervals, rectangles or boxes as asked; or all
    ``marginals-1``, ``-2`` or ``-3``. A plain Laplace histogram is always shown beside it: with
    many records per cell it wins, and the result says so.

    Guarantees the loss when one record is replaced; n and the domains are public.

    References:
        Hardt, Ligett, McSherry. A simple and practical algorithm for differentially private
        data release. NIPS 2012.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    preset: str = "default"
    workload: str = "boxes"
    queries: int | None = None
    iterations: int | None = None
    replays: int = 20
    fit: str = "replays"
    selection: str = "exponential"
    noise: str = "discrete"
    output: str = "last"
    measure_share: Fraction = Fraction(1, 2)
    trials: int = 1
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}")
        if self.workload not in WORKLOADS:
            raise InputError(
                f"workload must be one of {', '.join(WORKLOADS)}, got {self.workload!r}"
            )
        require_at_least(1, trials=self.trials)
        if self.trials > 1 and self.preset not in {"default", "faithful"}:
            raise InputError(f"trials repeat a histogram's run; not with preset {self.preset}")
        if self.delta and self.preset != "marginals":
            raise InputError("delta belongs to preset marginals; the others are pure")

    @property
    def trust(self) -> Trust:
        """The curator is trusted, except with local counts."""
        epsilon = text_of(self.epsilon)
        if self.preset == "local":
            return Trust(NOBODY.who, NOBODY.model, epsilon, self.preset)
        model = "central: a trusted curator holds the counts"
        return Trust("curator", model, epsilon, self.preset)

    def mwem(self, sizes: tuple[int, ...]) -> MWEM:
        """Settings and workload over these domains, checked together."""
        workload = self._workload(sizes)
        n_queries = int(workload.groups.size - 1)
        iterations = self.iterations or _iterations(sizes, n_queries)
        return MWEM(self._settings(sizes, iterations), workload)

    def _settings(self, sizes: tuple[int, ...], iterations: int) -> MWEMSettings:
        if self.preset == "faithful":
            return faithful(sizes, self.epsilon, iterations, replays=self.replays)
        choices: dict[str, Any] = {
            "fit": self.fit,
            "selection": self.selection,
            "noise": self.noise,
            "output": self.output,
        }
        return MWEMSettings(
            shape=sizes,
            neighbors="replace",
            epsilon=self.epsilon,
            iterations=iterations,
            measure_share=self.measure_share,
            replays=self.replays,
            **choices,
        )

    def _workload(self, sizes: tuple[int, ...]) -> BoxWorkload:
        if prod(sizes) == 1:
            raise InputError("the domain has one cell: every query is known already")
        if self.workload == "boxes":
            most = prod(size * (size + 1) // 2 for size in sizes)
            wanted = self.queries or min(_QUERIES, max(1, most // 2))
            return random_boxes(sizes, wanted, CentralNoise(self.seed, "mwem workload"))
        width = int(self.workload[-1])
        if width > len(sizes):
            raise InputError(f"{self.workload} needs {width} attributes, got {len(sizes)}")
        kept = list(combinations(range(len(sizes)), width))
        if self.queries is not None and self.queries != comb(len(sizes), width):
            raise InputError(f"{self.workload} are {len(kept)} queries; leave out queries")
        return BoxWorkload.marginals(sizes, kept)


def _iterations(sizes: tuple[int, ...], queries: int) -> int:
    """Twice the cells, at most half the queries and a hundred: public numbers only."""
    return max(1, min(2 * prod(sizes), (queries + 1) // 2, _MOST_ITERATIONS))
