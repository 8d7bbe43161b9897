"""From a specification to a protocol, and from its answers to a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import exact
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.rng import AGGREGATE_UNIT
from dpsim.core.schema import Category, Schema
from dpsim.experiments import tables
from dpsim.experiments.methods import METHODS, Method
from dpsim.experiments.spec import RunSpec
from dpsim.protocols.base import Fleet, Priced
from dpsim.protocols.collect import CHUNK, CollectRequest
from dpsim.protocols.fake_data import estimate_with_fakes, fake_data_request
from dpsim.protocols.frequency import Round, estimate_frequencies, frequency_request
from dpsim.protocols.heavy_hitters import Search, find_heavy_hitters
from dpsim.protocols.key_value import (
    estimate_pairs,
    iterate_pairs,
    pair_request,
    table_request,
)
from dpsim.protocols.longitudinal import estimate_over_rounds
from dpsim.protocols.mean import (
    estimate_joint_means,
    estimate_means,
    joint_request,
    mean_request,
)
from dpsim.protocols.release import Release
from dpsim.protocols.table_release import TableRelease

_MOST_REPORT_BYTES = 1 << 30
_ROUNDS = 5
"""Rounds of methods that repeat their question, unless the specification says."""


def names_of(spec: RunSpec, schema: Schema) -> tuple[str, ...]:
    """The attributes a run asks for: those named, else all that the method can read."""
    method = METHODS[spec.method]
    if spec.attributes:
        return tuple(
            name
            for text in spec.attributes
            for name in ([text] if text in schema.names else text.split(","))
        )
    if method.family in {"mean", "key-value"}:
        numbers = tuple(a.name for a in schema if not isinstance(a.domain, Category))
        if not numbers:
            raise InputError(
                f"{spec.method} needs numbers, and every attribute is a category; declare one "
                'with kind = "number" and public bounds in a schema'
            )
        return numbers
    if method.family == "heavy-hitters" and len(schema) != 1:
        raise InputError(f"{spec.method} asks for one attribute; name it with --attributes")
    return schema.names


def how_of(spec: RunSpec) -> Round:
    """How the rounds are held."""
    return Round(spec.seed, spec.collect, spec.participation, spec.fidelity)


def first_price(spec: RunSpec, source: RecordSource) -> Priced:
    """What is charged first: enough to refuse a run before anything happens."""
    if METHODS[spec.method].family == "table":
        _require_fidelity(spec, source)
        return tables.first_price(spec, source, names_of(spec, source.schema))
    return first_request(spec, source)


def first_request(spec: RunSpec, source: RecordSource) -> CollectRequest:
    """What users are asked first, for estimates."""
    _require_fidelity(spec, source)
    method, schema, how = METHODS[spec.method], source.schema, how_of(spec)
    names, epsilon = names_of(spec, schema), require_epsilon(spec.epsilon)
    make = maker_of(spec, method)
    ask = _REQUEST.get((method.family, method.is_joint), frequency_request)
    request = ask(schema, names, epsilon, how, make)
    _require_memory(request, source)
    return request


def limit_of(spec: RunSpec, asked: PrivacyLoss) -> PrivacyLoss:
    """The most a run may cost, under the neighbor relation of what it asks."""
    if spec.limit is None and METHODS[spec.method].family == "table":
        return tables.limit_of(spec, asked)
    return replace(asked, epsilon=exact(spec.limit or spec.epsilon))


def run_protocol(spec: RunSpec, fleet: Fleet) -> Release | TableRelease:
    """Run a specification's protocol on a fleet, whatever it releases."""
    if METHODS[spec.method].family == "table":
        return tables.publish(spec, fleet, names_of(spec, fleet.source.schema))
    return estimate(spec, fleet)


def estimate(spec: RunSpec, fleet: Fleet) -> Release:
    """Run a protocol that ends in estimates."""
    method, source = METHODS[spec.method], fleet.source
    if method.family == "heavy-hitters":
        (name,) = names_of(spec, source.schema)
        return find_heavy_hitters(
            fleet, source.schema[name], spec.epsilon, search=Search(spec.top, spec.rounds or 0),
            how=how_of(spec), make=method.load(),
        )  # fmt: skip
    request = first_request(spec, source)
    if method.family == "longitudinal":
        return estimate_over_rounds(fleet, request, spec.rounds or _ROUNDS)
    if spec.method == "privkvm":
        return iterate_pairs(fleet, request, method.load(), spec.rounds or _ROUNDS)
    return _ESTIMATE[method.family, method.is_joint](fleet, request)


_REQUEST: dict[tuple[str, bool], Callable[..., CollectRequest]] = {
    ("frequency", True): fake_data_request,
    ("mean", False): mean_request,
    ("mean", True): joint_request,
    ("key-value", False): pair_request,
    ("key-value", True): table_request,
}
_ESTIMATE: dict[tuple[str, bool], Callable[[Fleet, CollectRequest], Release]] = {
    ("frequency", False): estimate_frequencies,
    ("frequency", True): estimate_with_fakes,
    ("mean", False): estimate_means,
    ("mean", True): estimate_joint_means,
    ("key-value", False): estimate_pairs,
    ("key-value", True): estimate_pairs,
}


def maker_of(spec: RunSpec, method: Method) -> Callable[..., Any]:
    """What makes the mechanism for a share of ε, with the specification's own parameters."""
    make = method.load()
    if method.family == "longitudinal" and spec.method != "rappor":
        part = Fraction(spec.first_share)
        return lambda size, epsilon: make(size, epsilon, epsilon * part)
    if spec.method in {"pckv-ue", "pckv-grr"}:
        pad = require_at_least(1, pad=spec.pad)
        return lambda keys, epsilon: make(keys, epsilon, pad)
    if spec.method == "faithful-privkv":
        return lambda epsilon: make(epsilon / 2, epsilon / 2)
    if spec.method == "privkvm":
        return lambda epsilon: make(epsilon / 2, epsilon / 2, 0.0)
    return make  # type: ignore[no-any-return]


def _require_fidelity(spec: RunSpec, source: RecordSource) -> None:
    """Counts stand for reports where their law is known, and for whole units of users."""
    method = METHODS[spec.method]
    if spec.fidelity == "record":
        return
    if method.family != "frequency" or method.is_joint:
        raise InputError(f"{spec.method} has no law of counts; leave out --fidelity aggregate")
    if source.block_size % AGGREGATE_UNIT:
        raise InputError(
            f"fidelity = aggregate needs a block size that is a multiple of {AGGREGATE_UNIT}"
        )


def _require_memory(request: CollectRequest, source: RecordSource) -> None:
    """Refuse reports that would not fit, before anything is charged."""
    if request.fidelity == "aggregate":
        return
    for item in request.items:
        needed = item.mechanism.report_bytes * min(source.n, CHUNK)
        if needed > _MOST_REPORT_BYTES:
            raise InputError(
                f"{item.name}: {type(item.mechanism).__name__} needs {needed / 1e9:.1f} GB for "
                "the reports of one call; use olh, whose reports have a few bytes"
            )
