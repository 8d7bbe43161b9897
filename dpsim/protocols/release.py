"""What leaves the system, whatever was asked: rows of estimates, with what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from dpsim.core.ledger import Ledger
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.schema import Schema
from dpsim.protocols.participation import Turnout

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["share", "number"]


@dataclass(frozen=True, slots=True)
class Row:
    """One estimated quantity; None where nothing can be said."""

    attribute: str
    label: str
    estimate: float | None
    standard_error: float | None
    unit: Unit = "share"

    def half_width(self, level: float = 0.95) -> float | None:
        """Half the width of the normal confidence interval."""
        if self.standard_error is None:
            return None
        return NormalDist().inv_cdf((1 + level) / 2) * self.standard_error


@dataclass(frozen=True, slots=True)
class Price:
    """Which mechanism answered for an attribute, at which ε per report."""

    mechanism: str
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Paid:
    """Who took part, what it cost one user, and the ledger that says so."""

    schema: Schema
    prices: tuple[Price, ...]
    """One per attribute of the schema."""
    turnout: Turnout
    plan_hashes: tuple[str, ...]
    loss: PrivacyLoss
    real_epsilon: float
    ledger: Ledger


@dataclass(frozen=True)
class PaidRelease:
    """What every release has: who took part, and what it cost."""

    paid: Paid

    @property
    def schema(self) -> Schema:
        """The attributes that were asked for."""
        return self.paid.schema

    @property
    def turnout(self) -> Turnout:
        """Who took part."""
        return self.paid.turnout

    @property
    def loss(self) -> PrivacyLoss:
        """What it cost one user."""
        return self.paid.loss

    @property
    def ledger(self) -> Ledger:
        """All that was spent so far."""
        return self.paid.ledger


@dataclass(frozen=True)
class Release(PaidRelease):
    """Estimates in rows, and what was paid for them."""

    rows: tuple[Row, ...]

    def table(self, attribute: str | None = None, level: float = 0.95) -> pd.DataFrame:
        """Attribute, label, estimate and confidence interval, one row per quantity."""
        import pandas as pd  # noqa: PLC0415 - shards answer without it

        rows = [row for row in self.rows if attribute in {None, row.attribute}]
        if attribute is not None:
            _ = self.paid.schema[attribute]
        columns = ["attribute", "label", "estimate", "low", "high"]
        return pd.DataFrame([_cells(row, level) for row in rows], columns=columns)


def _cells(row: Row, level: float) -> tuple[object, ...]:
    half = row.half_width(level)
    if row.estimate is None or half is None:
        return row.attribute, row.label, row.estimate, None, None
    low, high = row.estimate - half, row.estimate + half
    return row.attribute, row.label, row.estimate, low, high
