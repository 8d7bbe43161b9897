"""What determines a result, and what may not."""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
)

from dpsim.core.checks import require_epsilon, require_share
from dpsim.core.errors import InputError
from dpsim.core.exact import exact, text_of
from dpsim.experiments.methods import METHODS
from dpsim.protocols.participation import Participation
from dpsim.protocols.refine import STEPS


def _texts(check: Any) -> BeforeValidator:  # noqa: ANN401 - one of the checks below
    """Keep a number as its canonical text, so that 1, 1.0 and "1" are one specification."""
    return BeforeValidator(lambda value: text_of(check(value)))


Epsilon = Annotated[str, _texts(require_epsilon)]
Exact = Annotated[str, _texts(exact)]
Share = Annotated[str, _texts(lambda value: require_share(value, "value"))]


def _known(name: str) -> str:
    if name not in METHODS:
        near = get_close_matches(name, METHODS, 1, 0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"no method {name!r}.{hint} (dpsim explain lists all)")
    return name


def _known_step(name: str) -> str:
    if name not in STEPS:
        raise InputError(f"postprocess must be one of {', '.join(STEPS)}, got {name!r}")
    return name


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunSpec(_Model):
    """Everything that determines a result. Two equal specs give equal bits."""

    method: Annotated[str, AfterValidator(_known)]
    data: str
    schema_file: str | None = None
    attributes: tuple[str, ...] = ()
    epsilon: Epsilon = "1"
    delta: Share = "0"
    limit: Exact | None = None
    seed: NonNegativeInt = Field(default=0, lt=2**63)
    collect: Literal["split", "sample"] = "split"
    fidelity: Literal["record", "aggregate"] = "record"
    rounds: PositiveInt | None = None
    first_share: Share = "0.5"
    pad: PositiveInt = 1
    top: PositiveInt = 10
    postprocess: Annotated[str, AfterValidator(_known_step)] | None = None
    dropout: Share = "0"
    latency_ms: NonNegativeInt = 0
    spread: Exact = "1"
    deadline_ms: NonNegativeInt | None = None
    strict: bool = False
    preset: str | None = None
    model: str | None = None
    parents: NonNegativeInt | None = None
    rows: PositiveInt | None = None
    network: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    time_limit: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    target: str | None = None
    workload: str | None = None
    queries: PositiveInt | None = None
    iterations: PositiveInt | None = None
    replays: PositiveInt = 20
    fit: str = "replays"
    selection: str = "exponential"
    noise: str = "discrete"
    output: str = "last"
    measure_share: Share = "0.5"
    trials: PositiveInt = 1

    @property
    def participation(self) -> Participation:
        """Who answers, and when."""
        return Participation(
            Fraction(self.dropout), self.latency_ms, Fraction(self.spread), self.deadline_ms
        )


class RuntimeProfile(_Model):
    """Where and how fast. Nothing in here may change a result."""

    fleet: Literal["local", "ray"] | None = None
    shards: PositiveInt | None = None
    address: str | None = None
    block_size: PositiveInt | None = None
    actor_per_user: bool = False
