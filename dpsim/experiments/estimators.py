"""Protocols as scikit-learn estimators: keywords in, ``fit``, a release out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import BaseEstimator

from dpsim.core.errors import InputError
from dpsim.core.exact import Number
from dpsim.core.records import RecordSource
from dpsim.core.schema import Schema
from dpsim.experiments.ask import first_request, limit_of, run_protocol
from dpsim.experiments.methods import METHODS
from dpsim.experiments.prepare import Prepared, prepare, prepare_frame, wish_for
from dpsim.experiments.spec import RunSpec, RuntimeProfile
from dpsim.protocols.refine import refine
from dpsim.protocols.release import Release
from dpsim.runtime.factory import FleetName, choose_place, open_fleet
from dpsim.runtime.ledger_book import LedgerBook

if TYPE_CHECKING:
    import pandas as pd

    Data = pd.DataFrame | str | Path | RecordSource


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """One protocol on one table.

    ``fit`` takes a data frame, the path of a CSV or Parquet file, or the description of a
    generated table, and is one release: charged to ``ledger``, a `LedgerBook` that may be
    shared by estimators on the same users, or to a new one. Same data, seed and parameters:
    the same bits, a replay.
    """

    families: ClassVar[frozenset[str]]
    default: ClassVar[str]
    release_: Release
    ledger_: LedgerBook

    def __init__(  # noqa: PLR0913 - one keyword per parameter, as scikit-learn has it
        self,
        method: str | None = None,
        *,
        epsilon: Number = 1.0,
        attributes: Sequence[str] = (),
        collect: str = "split",
        fidelity: str = "record",
        rounds: int | None = None,
        first_share: Number = "0.5",
        pad: int = 1,
        top: int = 10,
        postprocess: str | None = None,
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
        self.collect = collect
        self.fidelity = fidelity
        self.rounds = rounds
        self.first_share = first_share
        self.pad = pad
        self.top = top
        self.postprocess = postprocess
        self.seed = seed
        self.schema = schema
        self.strict = strict
        self.ledger = ledger
        self.fleet = fleet
        self.shards = shards
        self.address = address

    def fit(self, X: Data, y: object = None) -> Self:  # noqa: N803, ARG002 - scikit-learn's names
        """Run the protocol on the users in ``X``; the release is in ``release_``."""
        spec = self._spec()
        profile = RuntimeProfile.model_validate(
            {"fleet": self.fleet, "shards": self.shards, "address": self.address}
        )
        with tempfile.TemporaryDirectory(prefix="dpsim-") as folder:
            source = self._prepare(X, Path(folder), spec).source
            place = choose_place(
                source, source.n * len(source.schema), profile.fleet, profile.shards,
                profile.address,
            )  # fmt: skip
            limit = limit_of(spec, first_request(spec, source).loss)
            self.ledger_ = self.ledger or LedgerBook(limit)
            with open_fleet(place, source, spec.seed, self.ledger_) as fleet:
                self.release_ = run_protocol(spec, fleet)
        if spec.postprocess is not None:
            self.release_ = refine(self.release_, spec.postprocess)
        return self

    def _spec(self) -> RunSpec:
        spec = RunSpec.model_validate(
            {
                "method": self.method or self.default,
                "data": "",
                "attributes": tuple(self.attributes),
                "epsilon": self.epsilon,
                "collect": self.collect,
                "fidelity": self.fidelity,
                "rounds": self.rounds,
                "first_share": self.first_share,
                "pad": self.pad,
                "top": self.top,
                "postprocess": self.postprocess,
                "seed": self.seed,
            }
        )
        if METHODS[spec.method].family not in self.families:
            fitting = [m.name for m in METHODS.values() if m.family in self.families]
            raise InputError(
                f"{type(self).__name__} has no method {spec.method!r}; there are: "
                f"{', '.join(fitting)}"
            )
        return spec

    def _prepare(self, data: Any, stores: Path, spec: RunSpec) -> Prepared:  # noqa: ANN401
        declared = self.schema if isinstance(self.schema, Schema) else None
        path = Path(self.schema) if isinstance(self.schema, (str, Path)) else None
        wish = replace(wish_for(spec), schema=declared, schema_path=path, strict=self.strict)
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


class FrequencyEstimator(_Estimator):
    """How frequent each value of each attribute is.

    Methods: grr, sue, oue, olh, blh, ss, hr, adaptive, rs-fd; l-grr, l-osue, l-sue, rappor over
    ``rounds``; pem for the ``top`` values of one large domain.
    """

    families = frozenset({"frequency", "longitudinal", "heavy-hitters"})
    default = "adaptive"


class MeanEstimator(_Estimator):
    """The mean of each number: duchi, piecewise, hybrid, laplace, joint-duchi."""

    families = frozenset({"mean"})
    default = "hybrid"


class KeyValueEstimator(_Estimator):
    """Who holds a key, and the mean of its value: a missing number is a key not held.

    Methods: state-encoding, privkv, privkvm, f2m, pckv-ue, pckv-grr.
    """

    families = frozenset({"key-value"})
    default = "state-encoding"
