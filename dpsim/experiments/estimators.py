"""Protocols as scikit-learn estimators: keywords in, ``fit``, a release out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from sklearn.base import BaseEstimator

from dpsim.core.errors import InputError
from dpsim.core.exact import Number
from dpsim.core.schema import Schema
from dpsim.experiments.ask import estimate
from dpsim.experiments.fitting import Setting, fit_in_memory
from dpsim.experiments.methods import METHODS
from dpsim.experiments.spec import RunSpec
from dpsim.protocols.refine import refine
from dpsim.protocols.release import Release
from dpsim.runtime.factory import FleetName
from dpsim.runtime.ledger_book import LedgerBook

if TYPE_CHECKING:
    from dpsim.experiments.fitting import Data


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
        setting = Setting(
            self.fleet, self.shards, self.address, self.ledger, self.schema, self.strict
        )
        self.release_, self.ledger_ = fit_in_memory(spec, X, setting, estimate)
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
