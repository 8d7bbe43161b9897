"""Publications as scikit-learn estimators: ``fit`` a table, ``sample`` records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from sklearn.base import BaseEstimator

from dpsim.core.exact import Number
from dpsim.core.schema import Schema
from dpsim.experiments.ask import names_of
from dpsim.experiments.fitting import Setting, fit_in_memory
from dpsim.experiments.spec import RunSpec
from dpsim.experiments.tables import publish
from dpsim.protocols.base import Fleet
from dpsim.protocols.table_release import TableRelease
from dpsim.runtime.factory import FleetName
from dpsim.runtime.ledger_book import LedgerBook

if TYPE_CHECKING:
    import pandas as pd

    from dpsim.experiments.fitting import Data


class _Publisher(BaseEstimator):  # type: ignore[misc]
    """One publication of one table: ``fit`` is one release, ``sample`` costs nothing more."""

    method: ClassVar[str]
    release_: TableRelease
    ledger_: LedgerBook

    def __init__(  # noqa: PLR0913 - one keyword per parameter, as scikit-learn has it
        self,
        *,
        epsilon: Number = 1.0,
        preset: str | None = None,
        model: str | None = None,
        parents: int | None = None,
        rows: int | None = None,
        network: Sequence[tuple[str, Sequence[str]]] | None = None,
        time_limit: float | None = None,
        attributes: Sequence[str] = (),
        seed: int = 0,
        schema: Schema | str | Path | None = None,
        strict: bool = False,
        ledger: LedgerBook | None = None,
        fleet: FleetName | None = None,
        shards: int | None = None,
        address: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.preset = preset
        self.model = model
        self.parents = parents
        self.rows = rows
        self.network = network
        self.time_limit = time_limit
        self.attributes = attributes
        self.seed = seed
        self.schema = schema
        self.strict = strict
        self.ledger = ledger
        self.fleet = fleet
        self.shards = shards
        self.address = address

    def fit(self, X: Data, y: object = None) -> Self:  # noqa: N803, ARG002 - scikit-learn's names
        """Publish the table ``X``; ``release_`` is the release, ``ledger_`` its ledger."""
        setting = Setting(
            self.fleet, self.shards, self.address, self.ledger, self.schema, self.strict
        )
        self.release_, self.ledger_ = fit_in_memory(self._spec(), X, setting, _publish)
        return self

    def sample(self, n: int) -> pd.DataFrame:
        """``n`` records with the table's labels."""
        return self.release_.sample(n)

    def _spec(self) -> RunSpec:
        network = self.network and tuple((child, tuple(found)) for child, found in self.network)
        return RunSpec.model_validate(
            {
                "method": self.method,
                "data": "",
                "epsilon": self.epsilon,
                "preset": self.preset,
                "model": self.model,
                "parents": self.parents,
                "rows": self.rows,
                "network": network,
                "time_limit": self.time_limit,
                "attributes": tuple(self.attributes),
                "seed": self.seed,
            }
        )


def _publish(spec: RunSpec, fleet: Fleet) -> TableRelease:
    return publish(spec, fleet, names_of(spec, fleet.source.schema))


class DP2Pub(_Publisher):
    """A whole table from local reports: ``DP2Pub(epsilon=1.0).fit(df).sample(1000)``.

    Presets: partition (the default, best), local, faithful-local, faithful-pram; trusted
    trusts a curator. See ``dpsim explain dp2pub``.
    """

    method = "dp2pub"


class PrivBayes(_Publisher):
    """A whole table by a trusted curator: ``PrivBayes(epsilon=1.0).fit(df).sample(1000)``.

    Presets: default, network, classes, faithful. See ``dpsim explain privbayes``.
    """

    method = "privbayes"
