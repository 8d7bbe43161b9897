"""What determines a result, and what may not."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeInt, PositiveInt

from dpsim.core.checks import require_epsilon, require_share
from dpsim.core.exact import exact, text_of
from dpsim.protocols.participation import Participation


def _texts(check: Any) -> BeforeValidator:  # noqa: ANN401 - one of the checks below
    """Keep a number as its canonical text, so that 1, 1.0 and "1" are one specification."""
    return BeforeValidator(lambda value: text_of(check(value)))


Epsilon = Annotated[str, _texts(require_epsilon)]
Exact = Annotated[str, _texts(exact)]
Share = Annotated[str, _texts(lambda value: require_share(value, "value"))]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunSpec(_Model):
    """Everything that determines a result. Two equal specs give equal bits."""

    method: Literal["grr"]
    data: str
    schema_file: str | None = None
    attributes: tuple[str, ...] = ()
    epsilon: Epsilon = "1"
    limit: Exact | None = None
    seed: NonNegativeInt = Field(default=0, lt=2**63)
    dropout: Share = "0"
    latency_ms: NonNegativeInt = 0
    spread: Exact = "1"
    deadline_ms: NonNegativeInt | None = None
    strict: bool = False

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
