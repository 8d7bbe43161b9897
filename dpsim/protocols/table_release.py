"""A released table: records with the original labels, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsim.core.rng import CentralNoise, Purpose
from dpsim.core.schema import Schema
from dpsim.protocols.release import PaidRelease
from dpsim.synthesis.table import CodeMatrix, CodeTable, TableModel

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Trust:
    """Who must be trusted for the loss to hold, and what the method's name promises."""

    who: str
    """One word for the screen: nobody, or whom."""
    model: str
    nominal_epsilon: str = ""
    """ε as the published method announces it; the ledger holds what it really costs."""
    preset: str = ""


NOBODY = Trust("nobody", "local: nobody but the user's own shard is trusted")


@dataclass(frozen=True, eq=False)
class TableRelease(PaidRelease):
    """Synthetic or randomized records of all attributes, and what was paid for them."""

    trust: Trust
    codes: CodeMatrix = field(repr=False)
    noise: CentralNoise = field(repr=False)
    """For more rows of the same model: they cost nothing."""
    model: TableModel | None = field(default=None, repr=False)
    facts: dict[str, Any] = field(default_factory=dict)
    """What was learned, as plain values: network, attribute clusters, figures."""
    notes: tuple[str, ...] = ()
    trials: dict[str, Any] | None = None
    """Figures of trials that were asked for, which see the truth: evaluation, not released."""

    @property
    def table(self) -> CodeTable:
        """The released codes."""
        return CodeTable(tuple(attribute.size for attribute in self.schema), self.codes)

    def frame(self) -> pd.DataFrame:
        """The released records with their labels."""
        return _labelled(self.schema, self.codes)

    def sample(self, n: int) -> pd.DataFrame:
        """``n`` records of the model; without a model, drawn from the released ones."""
        if self.model is not None:
            return _labelled(self.schema, self.model.sample(n, self.noise))
        shares = self.noise.uniforms(Purpose.PUBLISH, "rows", n)
        places = (shares * self.codes.shape[1]).astype(int)
        return _labelled(self.schema, self.codes[:, places])


def _labelled(schema: Schema, codes: CodeMatrix) -> pd.DataFrame:
    import numpy as np  # noqa: PLC0415 - with pandas, for results only
    import pandas as pd  # noqa: PLC0415 - shards answer without it

    return pd.DataFrame(
        {
            attribute.name: np.array(attribute.labels, object)[line]
            for attribute, line in zip(schema, codes, strict=True)
        }
    )
