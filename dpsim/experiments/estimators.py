"""Protocols as scikit-learn estimators: keywords in, ``fit``, a release out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

from dpsim.core.errors import InputError
from dpsim.core.exact import Number
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.schema import Schema
from dpsim.experiments.prepare import Prepared, Wish, prepare, prepare_frame
from dpsim.experiments.spec import RunSpec, RuntimeProfile
from dpsim.protocols.frequency import (
    FrequencyRelease,
    Round,
    estimate_frequencies,
    frequency_request,
)
from dpsim.runtime.factory import FleetName, choose_place, open_fleet
from dpsim.runtime.ledger_book import LedgerBook

if TYPE_CHECKING:
    import pandas as pd

    Data = pd.DataFrame | str | Path | RecordSource


class FrequencyEstimator(BaseEstimator):  # type: ignore[misc]
    """How frequent each value of each attribute is, from one perturbed report per user.

    ``fit`` takes a data frame, the path of a CSV or Parquet file, or the description of a
    generated table, and is one release: charged to ``ledger``, a `LedgerBook` that may be
    shared by estimators on the same users, or to a new one. Same data, seed and parameters:
    the same bits, a replay.
    """

    release_: FrequencyRelease
    ledger_: LedgerBook

    def __init__(  # noqa: PLR0913 - one keyword per parameter, as scikit-learn has it
        self,
        method: str = "grr",
        *,
        epsilon: Number = 1.0,
        attributes: Sequence[str] = (),
        seed: int = 0,
        schema: Schema | str | Path | None = None,
        strict: bool = False,
        ledger: LedgerBook | None = None,
        fleet: FleetName | None = None,
        shards: int | None = None,
        address: str | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.attributes = attributes
        self.seed = seed
        self.schema = schema
        self.strict = strict
        self.ledger = ledger
        self.fleet = fleet
        self.shards = shards
        self.address = address

    def fit(self, X: Data, y: object = None) -> Self:  # noqa: N803, ARG002 - scikit-learn's names
        """Run the protocol on the users in ``X``; the release is in ``release_``."""
        spec = RunSpec.model_validate(
            {"method": self.method, "data": "", "epsilon": self.epsilon, "seed": self.seed}
        )
        profile = RuntimeProfile.model_validate(
            {"fleet": self.fleet, "shards": self.shards, "address": self.address}
        )
        with tempfile.TemporaryDirectory(prefix="dpsim-") as folder:
            source = self._prepare(X, Path(folder)).source
            names = tuple(self.attributes) or source.schema.names
            request = frequency_request(source.schema, names, spec.epsilon, Round(spec.seed))
            place = choose_place(source, profile.fleet, profile.shards, profile.address)
            self.ledger_ = self.ledger or LedgerBook(PrivacyLoss.of(spec.epsilon))
            with open_fleet(place, source, spec.seed, self.ledger_) as fleet:
                self.release_ = estimate_frequencies(fleet, request)
        return self

    def _prepare(self, data: Any, stores: Path) -> Prepared:  # noqa: ANN401 - see Data
        declared = self.schema if isinstance(self.schema, Schema) else None
        path = Path(self.schema) if isinstance(self.schema, (str, Path)) else None
        wish = Wish(declared, path, self.strict)
        if isinstance(data, (str, Path)):
            return prepare(str(data), wish, stores)
        if hasattr(data, "columns") and hasattr(data, "dtypes"):
            return prepare_frame(data, wish, stores)
        if hasattr(data, "read") and hasattr(data, "block_size"):
            return Prepared(data)
        raise InputError(
            f"fit takes a DataFrame, a path, or a generated table's description, "
            f"got {type(data).__name__}"
        )
