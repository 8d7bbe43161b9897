"""What determines a run of MWEM, and what it costs, exactly."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Literal, get_args

from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import exact, text_of
from dpsim.core.plan import Parameters
from dpsim.core.privacy import Neighbors, PrivacyLoss
from dpsim.synthesis.mwem.workloads import domain_of

Selection = Literal["exponential", "permute-and-flip", "random"]
Fit = Literal["replays", "newton"]
NoiseLaw = Literal["discrete", "laplace"]
Output = Literal["last", "average"]
Part = tuple[str, Fraction]
_TOTAL_SHARE = Fraction(1, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class MWEMSettings:
    """All that determines a release of MWEM besides workload, data and seed.

    Each of T iterations selects a query that the guess answers badly and measures it. Of ε,
    ``total_share`` goes to the number of records n where that is private; of the rest, the
    share α to measuring and 1 - α to selecting::

        ε_n = share · ε     ε_m = α (ε - ε_n)/T     ε_s = (1 - α)(ε - ε_n)/T

    Guarantees ε (`loss`) by composition: under replacement of one record, where n is public, or
    under its addition or removal, where n is measured first. Selection adds noise in floats,
    whose rounding is not accounted for.

    The last four fields are the ways in which a program may differ from the algorithm. They
    stay as they are in a release; `loss` states the true price of any of them.

    References:
        Hardt, Ligett, McSherry. A simple and practical algorithm for differentially private
        data release. NIPS 2012.
    """

    shape: tuple[int, ...]
    """The public domain: how many values each attribute has. Never taken from the data."""
    neighbors: Neighbors
    """What a record may do between neighboring tables: be replaced; be added or removed."""
    epsilon: Fraction
    iterations: int
    """T, how many queries are measured: 1 to 4 times the cells where these are few; there is
    no rule that does not look at the data."""
    measure_share: Fraction = Fraction(1, 2)
    total_share: Fraction | None = None
    fit: Fit = "replays"
    replays: int = 20
    selection: Selection = "exponential"
    noise: NoiseLaw = "discrete"
    output: Output = "last"
    score_divisor: int = 1
    noise_divisor: int = 1
    is_shuffled: bool = True
    is_clipped: bool = True

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "shape", domain_of(self.shape))
        put(self, "epsilon", require_epsilon(self.epsilon))
        for name in ("iterations", "replays", "score_divisor", "noise_divisor"):
            put(self, name, require_at_least(1, **{name: getattr(self, name)}))
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                known = ", ".join(map(repr, choices))
                raise InputError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        self._settle_shares()

    def _settle_shares(self) -> None:
        is_public = self.neighbors == "replace"
        share = exact(self.measure_share, "measure_share")
        is_random = self.selection == "random"
        if not 0 < share <= 1 or (share == 1) != is_random:
            rule = "1 with random selection" if is_random else "> 0 and < 1"
            raise InputError(f"measure_share must be {rule}, got {self.measure_share}")
        usual = Fraction(0) if is_public else _TOTAL_SHARE
        total = usual if self.total_share is None else exact(self.total_share, "total_share")
        if not 0 <= total < 1 or (total == 0) != is_public:
            rule = "0 where n is public" if is_public else "> 0 and < 1 where n is private"
            raise InputError(f"total_share must be {rule}, got {self.total_share}")
        object.__setattr__(self, "measure_share", share)
        object.__setattr__(self, "total_share", total)

    @property
    def total_epsilon(self) -> Fraction:
        """ε_n, for the number of records."""
        return self.epsilon * (self.total_share or 0)

    @property
    def select_epsilon(self) -> Fraction:
        """ε_s, for one selection, as asked for."""
        rest = self.epsilon - self.total_epsilon
        return (1 - self.measure_share) * rest / self.iterations

    @property
    def measure_epsilon(self) -> Fraction:
        """ε_m, for one measurement, as asked for."""
        return self.measure_share * (self.epsilon - self.total_epsilon) / self.iterations

    @property
    def start_parts(self) -> tuple[Part, ...]:
        """What the start costs: nothing where n is public."""
        return (("total", self.total_epsilon),) if self.total_epsilon else ()

    @property
    def iteration_parts(self) -> tuple[Part, ...]:
        """What one iteration really costs, selection and measurement."""
        select = self.select_epsilon / self.score_divisor
        return ("select", select), ("measure", self.measure_epsilon * self.noise_divisor)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the whole run really costs, by purpose; the parts add up to `loss`."""
        iterations = [(name, self.iterations * part) for name, part in self.iteration_parts]
        return (*self.start_parts, *iterations)

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger charges for the whole run."""
        epsilon = sum((part for _, part in self.parts), Fraction(0))
        return PrivacyLoss(epsilon, neighbors=self.neighbors)

    @property
    def faults(self) -> tuple[str, ...]:
        """Why a run with these settings must not be released; empty for the algorithm."""
        found = {
            f"scores are divided by {self.score_divisor}": self.score_divisor > 1,
            f"noise is divided by {self.noise_divisor}": self.noise_divisor > 1,
        }
        return tuple(fault for fault, is_present in found.items() if is_present)

    @property
    def parameters(self) -> Parameters:
        """Every field as a canonical scalar, for the plan."""
        return tuple((item.name, _scalar(getattr(self, item.name))) for item in fields(self))


_CHOICES: dict[str, tuple[str, ...]] = {
    "neighbors": get_args(Neighbors),
    "fit": get_args(Fit),
    "selection": get_args(Selection),
    "noise": get_args(NoiseLaw),
    "output": get_args(Output),
}


def _scalar(value: object) -> str | int:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, Fraction):
        return text_of(value)
    return int(value) if isinstance(value, (bool, int)) else str(value)
