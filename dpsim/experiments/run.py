"""Specification in, recorded result out; killed at any moment, it can be resumed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpsim.core.errors import InputError, IntegrityError
from dpsim.core.ledger import Charge, Ledger
from dpsim.core.records import RecordSource
from dpsim.core.rng import RNG_VERSION
from dpsim.core.schema import Schema
from dpsim.data.schema_file import dump_schema, load_schema
from dpsim.data.sources import is_generated
from dpsim.experiments.ask import first_price, limit_of, run_protocol
from dpsim.experiments.outcome import conclude
from dpsim.experiments.prepare import Prepared, prepare, wish_for
from dpsim.experiments.run_directory import RunDirectory
from dpsim.experiments.spec import RunSpec, RuntimeProfile
from dpsim.experiments.summary import RNG_LINE
from dpsim.experiments.users import asked_users
from dpsim.protocols.refine import refine
from dpsim.protocols.release import Release
from dpsim.runtime.factory import FleetPlace, choose_place, open_fleet
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.preflight import require_one_actor_per_user, require_reachable
from dpsim.runtime.progress import RoundProgress, Watcher, watch_nothing
from dpsim.runtime.versions import versions_here

_TRUTH_CELLS = 100_000_000
"""Up to this many values the truth is counted without being asked for."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Where progress and notes go while a run works."""

    watch: Watcher = watch_nothing
    note: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True, slots=True)
class Job:
    """One run: what is asked, where it computes, where it is kept, and what is shown."""

    spec: RunSpec
    profile: RuntimeProfile
    directory: RunDirectory
    truth: bool | None = None


def start(job: Job, listener: Listener) -> dict[str, Any]:
    """A new run; an existing one is never overwritten."""
    if job.directory.is_started:
        raise InputError(
            f"{job.directory.path} holds a run already; continue it with 'dpsim resume "
            f"{job.directory.path}', or choose another --name"
        )
    prepared = _prepare(job)
    place = _place(job, prepared.source)
    _refuse_early(job.spec, prepared.source, place)
    job.directory.create()
    with job.directory.locked():
        job.directory.schema.write_text(dump_schema(prepared.source.schema), "utf-8")
        job.directory.schema.chmod(0o600)
        job.directory.write_manifest(_manifest(job.spec, prepared))
        return _finish(job, prepared, place, listener)


def resume(job: Job, listener: Listener) -> dict[str, Any]:
    """Finish a run that was stopped; a complete one tells its result again."""
    manifest = job.directory.manifest()
    spec = _same_spec(job.spec, manifest)
    with job.directory.locked():
        if (result := job.directory.result()) is not None:
            listener.note("the run was complete already")
            return result
        block_size = manifest["data"]["block_size"]
        profile = job.profile.model_copy(update={"block_size": block_size})
        job = replace(job, spec=spec, profile=profile)
        schema = None if manifest["data"]["generated"] else load_schema(job.directory.schema)
        if schema is not None:
            schema = replace(schema, origin=manifest["data"]["schema_origin"])
        prepared = _prepare(job, schema)
        if prepared.source.fingerprint != manifest["data"]["fingerprint"]:
            raise IntegrityError(
                f"{spec.data} has changed since the run began; start a new run on the new data"
            )
        return _finish(job, prepared, _place(job, prepared.source), listener)


def spec_of(directory: RunDirectory) -> RunSpec:
    """What a run directory was asked."""
    return RunSpec.model_validate(directory.manifest()["spec"])


def _prepare(job: Job, schema: Schema | None = None) -> Prepared:
    spec = job.spec
    block_size = 1 if job.profile.actor_per_user else job.profile.block_size
    wish = replace(wish_for(spec), schema=schema, block_size=block_size)
    if schema is not None:
        wish = replace(wish, strict=False, bins=None)  # the run's own: read and vouched for
    prepared = prepare(spec.data, wish, job.directory.stores)
    return replace(prepared, source=asked_users(spec, prepared.source))


def _place(job: Job, source: RecordSource) -> FleetPlace:
    spec, profile = job.spec, job.profile
    if profile.actor_per_user:
        require_one_actor_per_user(source.n)
        return FleetPlace("ray", max(1, source.n), profile.address)
    cells = 0 if spec.fidelity == "aggregate" else source.n * len(source.schema)
    return choose_place(source, cells, profile.fleet, profile.shards, profile.address)


def _refuse_early(spec: RunSpec, source: RecordSource, place: FleetPlace) -> None:
    """Raise what can be known now, before a folder is made or anything is charged."""
    price = first_price(spec, source)
    Ledger(limit_of(spec, price.loss)).charge(Charge.of(price.plan, price.loss))
    if place.address is not None:
        require_reachable(place.address)


def _finish(
    job: Job, prepared: Prepared, place: FleetPlace, listener: Listener
) -> dict[str, Any]:
    spec, source, directory = job.spec, prepared.source, job.directory
    limit = limit_of(spec, first_price(spec, source).loss)
    book = LedgerBook(limit, directory.ledger)
    directory.log("started", fleet=place.fleet, shards=place.shards, users=source.n)
    started = time.monotonic()
    watch = _recording(directory, listener.watch)
    with open_fleet(place, source, spec.seed, book, directory.path, watch) as fleet:
        release = run_protocol(spec, fleet)
    if spec.postprocess is not None and isinstance(release, Release):
        release = refine(release, spec.postprocess)
    outcome = conclude(spec, release, source, _wants_truth(job, source, listener))
    result = outcome.result
    result["run"] = str(directory.path)
    result["notes"] = [*prepared.notes, *result["notes"]]
    directory.write_result(result, outcome.files)
    directory.log("done", seconds=round(time.monotonic() - started, 3))
    return result


def _wants_truth(job: Job, source: RecordSource, listener: Listener) -> bool:
    wanted = job.truth
    if wanted is None and not job.spec.strict:
        cells = 0 if job.spec.fidelity == "aggregate" else source.n * len(source.schema)
        wanted = cells <= _TRUTH_CELLS
        if not wanted:
            listener.note("true values are not counted for so much data; --truth asks for them")
    return bool(wanted) and source.n > 0


def _recording(directory: RunDirectory, watch: Watcher) -> Watcher:
    """Pass progress on, and write a line of it at most once a second."""
    written = [0.0]

    def record(progress: RoundProgress) -> None:
        watch(progress)
        if time.monotonic() - written[0] >= 1 or progress.done == progress.all:
            written[0] = time.monotonic()
            directory.log(
                "progress",
                blocks_done=progress.blocks_done,
                blocks=progress.blocks,
                question=progress.question,
                done=progress.done,
                all=progress.all,
                retries=progress.retries,
            )

    return record


def _manifest(spec: RunSpec, prepared: Prepared) -> dict[str, Any]:
    source = prepared.source
    here = versions_here()
    return {
        "format": 1,
        "spec": spec.model_dump(mode="json"),
        "command": sys.argv,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rng": RNG_LINE,
        "rng_version": RNG_VERSION,
        "versions": {"python": here.python, "dpsim": here.dpsim, "numpy": here.numpy},
        "data": {
            "generated": is_generated(spec.data),
            "n": source.n,
            "block_size": source.block_size,
            "fingerprint": source.fingerprint,
            "schema_fingerprint": source.schema.fingerprint,
            "schema_origin": source.schema.origin,
        },
        "notes": list(prepared.notes),
    }


def _same_spec(asked: RunSpec, manifest: dict[str, Any]) -> RunSpec:
    """The recorded specification, if what is asked now does not differ from it."""
    if manifest["rng_version"] != RNG_VERSION:
        raise IntegrityError(
            f"the run was made with {manifest['rng_version']} draws; start anew"
        )
    recorded = RunSpec.model_validate(manifest["spec"])
    for name in RunSpec.model_fields:
        if getattr(asked, name) != getattr(recorded, name):
            raise InputError(
                f"{name} was {getattr(recorded, name)!r} when the run began and cannot become "
                f"{getattr(asked, name)!r}; start a new run for it"
            )
    return recorded
