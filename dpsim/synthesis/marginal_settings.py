"""What determines a run of MWEM on marginals, and what it costs, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, pi, sqrt
from typing import Literal, TypeAlias

from dpsim.core.checks import require_at_least, require_epsilon, require_share
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.privacy import PrivacyLoss
from dpsim.mechanisms.discrete_gaussian import DiscreteGaussian
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.mechanisms.selection import ExponentialSelection
from dpsim.synthesis.concentrated import concentrated_rho, select_epsilon_for, sigma_for
from dpsim.synthesis.junction import Clique, cells_in

Schedule = Literal["even", "annealed"]
Measurer = DiscreteLaplace | DiscreteGaussian
Part: TypeAlias = tuple[str, Fraction]
"""What is asked for, and the ε or ρ it spends."""

_MOST_CANDIDATES = 10_000
WHOLE_MARGINAL = 2
"""L1 sensitivity of a whole marginal, and of the L1 score: a record leaves one cell for
another when it is replaced; n is public."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalSettings:
    """How the loss is spent; public numbers only, fixed before the data are seen.

    Without δ the loss is pure: noise is discrete Laplace, and parts of ε add up to ε. With it
    noise is discrete Gaussian, and parts add up to the ρ of zero-concentrated privacy that
    (ε, δ) allows. In both cases the parts are exact fractions.

    The share ``margins`` goes to all attributes' own margins, evenly; the rest to iterations.
    Each selects a marginal (``selection`` of its budget) and measures it whole. ``even``
    iterations have one budget. ``annealed`` ones begin with the same, and it doubles (ρ: four
    times) after each measurement that told nothing above its noise; marginals may then be
    measured again, and what would be too little for two more iterations is spent on one.

    Guarantees `loss` when one record is replaced; n and the domain sizes are public. Selection
    adds noise in floats, whose rounding is not accounted for.

    References:
        Hardt, Ligett, McSherry. A simple and practical algorithm for differentially private
        data release. NIPS 2012.
        McKenna, Mullins, Sheldon, Miklau. AIM: an adaptive and iterative mechanism for
        differentially private synthetic data. VLDB 2022.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    iterations: int = 15
    """At most so many: fewer where candidates or n are few, and where they are annealed."""
    schedule: Schedule = "even"
    ways: int = 4
    """Candidates are marginals of 2 up to so many attributes."""
    margins: Fraction = Fraction(3, 10)
    selection: Fraction = Fraction(3, 20)
    penalty: Fraction = Fraction(1, 2)
    """How much of a marginal's expected noise is subtracted from its score."""
    cell_limit: int = 10_000
    """The most cells of a candidate."""
    model_limit: int = 1 << 14
    """The most cells of the model's tables together: no candidate may need more."""
    sweeps: int = 4
    """Over all measurements, after each of them; the released model gets 25 times more."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "epsilon", require_epsilon(self.epsilon))
        put(self, "delta", require_share(self.delta, "delta"))
        for name, least in (("iterations", 1), ("ways", 2), ("sweeps", 1)):
            put(self, name, require_at_least(least, **{name: getattr(self, name)}))
        for name in ("cell_limit", "model_limit"):
            put(self, name, require_at_least(1, **{name: getattr(self, name)}))
        if self.schedule not in ("even", "annealed"):
            raise InputError(f"schedule must be even or annealed, got {self.schedule}")
        for name in ("margins", "selection"):
            put(self, name, require_share(getattr(self, name), name))
        if not self.selection:
            raise InputError("selection must be > 0: its noise would be endless")
        put(self, "penalty", exact(self.penalty, "penalty"))
        if self.penalty < 0:
            raise InputError(f"penalty must be >= 0, got {self.penalty}")

    @property
    def is_pure(self) -> bool:
        """Whether parts are of ε; else they are of ρ."""
        return not self.delta

    @property
    def budget(self) -> Fraction:
        """ε, or the ρ that (ε, δ) allows."""
        return self.epsilon if self.is_pure else _rho(self.epsilon, self.delta)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for the whole run."""
        return PrivacyLoss(self.epsilon, self.delta)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What will be asked, with exact parts that sum to the budget."""
        rest = self.budget * (1 - self.margins)
        select = rest * self.selection
        first = (("margins", self.budget * self.margins),) if self.margins else ()
        return (*first, ("select", select), ("measure", rest - select))

    @property
    def parameters(self) -> Parameters:
        """All that determines a release besides domain, data and seed, for the plan."""
        return parameters_of(self)

    def iteration_parts(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """What selection and measurement of an iteration with this share spend."""
        part = self.budget * (1 - self.margins) * share
        return part * self.selection, part * (1 - self.selection)

    def selector(self, part: Fraction) -> ExponentialSelection:
        """The mechanism that selects for a part of the budget."""
        epsilon = part if self.is_pure else select_epsilon_for(part)
        return ExponentialSelection(epsilon, WHOLE_MARGINAL)

    def measurer(self, part: Fraction) -> Measurer:
        """The mechanism that measures a whole marginal for a part of the budget."""
        if self.is_pure:
            return DiscreteLaplace(part, WHOLE_MARGINAL)
        # Two counts change by 1 each: ρ = 2 · 1/(2σ²).
        return DiscreteGaussian(sigma_for(part), 1)

    def candidates(self, sizes: tuple[int, ...]) -> tuple[Clique, ...]:
        """The marginals that may be measured: pairs first, each kind in order.

        All pairs, then all triples and so on as long as there are at most 10,000 altogether.
        """
        wide = [attribute for attribute, size in enumerate(sizes) if size > 1]
        total, found = 0, []
        for ways in range(2, self.ways + 1):
            total += comb(len(wide), ways)
            if ways == 2 or total <= _MOST_CANDIDATES:  # noqa: PLR2004
                found += list(combinations(wide, ways))
        return tuple(scope for scope in found if cells_in(scope, sizes) <= self.cell_limit)


def mean_error(mechanism: Measurer) -> float:
    """The expected absolute noise of one count."""
    if isinstance(mechanism, DiscreteLaplace):
        return mechanism.mean_error
    return sqrt(2 * mechanism.variance / pi)


@lru_cache(maxsize=64)
def _rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    return concentrated_rho(epsilon, delta)
