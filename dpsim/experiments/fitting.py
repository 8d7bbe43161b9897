"""One run in memory: what estimators share. Data in, a release and its ledger out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpsim.core.errors import InputError
from dpsim.core.records import RecordSource
from dpsim.core.schema import Schema
from dpsim.experiments.ask import first_price, limit_of
from dpsim.experiments.prepare import Prepared, prepare, prepare_frame, wish_for
from dpsim.experiments.spec import RunSpec, RuntimeProfile
from dpsim.experiments.users import asked_users
from dpsim.protocols.base import Fleet
from dpsim.runtime.factory import choose_place, open_fleet
from dpsim.runtime.ledger_book import LedgerBook

if TYPE_CHECKING:
    import pandas as pd

    Data = pd.DataFrame | str | Path | RecordSource

ReleaseT = TypeVar("ReleaseT")


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a run in memory computes, what it is charged to, and whose domain it trusts."""

    fleet: str | None = None
    shards: int | None = None
    address: str | None = None
    ledger: LedgerBook | None = None
    schema: Schema | str | Path | None = None
    strict: bool = False


def fit_in_memory(
    spec: RunSpec,
    data: Any,  # noqa: ANN401 - a frame, a path, a description or a source
    setting: Setting,
    run: Callable[[RunSpec, Fleet], ReleaseT],
) -> tuple[ReleaseT, LedgerBook]:
    """Prepare the data in private files that are gone afterwards, charge, and run."""
    profile = RuntimeProfile.model_validate(
        {"fleet": setting.fleet, "shards": setting.shards, "address": setting.address}
    )
    with tempfile.TemporaryDirectory(prefix="dpsim-") as folder:
        source = asked_users(spec, _prepare(data, Path(folder), spec, setting).source)
        place = choose_place(
            source, source.n * len(source.schema), profile.fleet, profile.shards,
            profile.address,
        )  # fmt: skip
        limit = limit_of(spec, first_price(spec, source).loss)
        book = setting.ledger or LedgerBook(limit)
        with open_fleet(place, source, spec.seed, book) as fleet:
            return run(spec, fleet), book


def _prepare(data: Any, stores: Path, spec: RunSpec, setting: Setting) -> Prepared:  # noqa: ANN401
    schema = setting.schema
    declared = schema if isinstance(schema, Schema) else None
    path = Path(schema) if isinstance(schema, (str, Path)) else None
    wish = replace(wish_for(spec), schema=declared, schema_path=path, strict=setting.strict)
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
