"""DP2-Pub: publish a whole table of categorical attributes, in five ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import cast

from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise
from dpsim.core.schema import Schema
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.base import Fleet, Priced
from dpsim.protocols.collect import Item, name_of
from dpsim.protocols.curator import require_entrusted
from dpsim.protocols.dp2pub_local import PublishLocal
from dpsim.protocols.dp2pub_notes import (
    LearnedClusters,
    NotesClusters,
    PublishNotesPram,
    PublishReports,
    cost_note,
    second_budgets,
)
from dpsim.protocols.dp2pub_partition import first_partition_request, publish_partition
from dpsim.protocols.dp2pub_settings import DP2PubSettings
from dpsim.protocols.dp2pub_trusted import PublishTrusted
from dpsim.protocols.frequency import shares_of
from dpsim.protocols.participation import Turnout
from dpsim.protocols.publication import (
    Cost,
    Published,
    attributes_of,
    given_network,
    released,
)
from dpsim.protocols.release import Price
from dpsim.protocols.reports import ReportRequest
from dpsim.protocols.table_release import TableRelease


def first_price(source: RecordSource, names: Sequence[str], settings: DP2PubSettings) -> Priced:
    """What is charged first: enough to refuse a run before anything happens."""
    if settings.preset == "trusted":
        return _trusted_step(source, names, settings)
    if settings.preset == "partition":
        return first_partition_request(source, names, settings)
    return _rows(source.schema, names, settings, _even(source.schema, names, settings))


def publish(fleet: Fleet, names: Sequence[str], settings: DP2PubSettings) -> TableRelease:
    """Run the preset on a fleet."""
    if settings.preset == "trusted":
        return _publish_trusted(fleet, names, settings)
    if settings.preset == "partition":
        return publish_partition(fleet, names, settings)
    schema = fleet.source.schema
    request = _rows(schema, names, settings, _even(schema, names, settings))
    turnout = Turnout(*map(int, fleet.ask(request)))
    noise = CentralNoise(settings.seed, request.plan.hash)
    parents = settings.most_parents
    if settings.preset == "faithful-local":
        return _publish_twice(fleet, names, settings, request, noise)
    step: PublishNotesPram | PublishLocal
    if settings.preset == "faithful-pram":
        step = PublishNotesPram(channels_of(request), settings.epsilon, parents, noise)
    else:
        network = given_network(attributes_of(schema, names), settings.network)
        step = PublishLocal(channels_of(request), parents, noise, network, settings.time_limit)
    published: Published = fleet.learn(step, request)
    cost = _cost([request], turnout)
    if settings.preset == "faithful-pram":
        note = cost_note(settings.epsilon, cost.loss.epsilon, "all of it in its one report")
        published = replace(published, notes=(note,))
    return released(fleet, names, published, cost, settings.trust, noise)


def _publish_twice(
    fleet: Fleet,
    names: Sequence[str],
    settings: DP2PubSettings,
    first: ReportRequest,
    noise: CentralNoise,
) -> TableRelease:
    """The notes' local variant: what the first reports teach shapes the second ones."""
    step = NotesClusters(first.sizes, settings.most_parents, noise)
    learned: LearnedClusters = fleet.learn(step, first)
    budgets = second_budgets(learned, settings.epsilon)
    second = _rows(fleet.source.schema, names, settings, budgets, round_id=1)
    turnout = Turnout(*map(int, fleet.ask(second)))
    published: Published = fleet.learn(PublishReports(channels_of(second), learned), second)
    cost = _cost([first, second], turnout)
    note = cost_note(settings.epsilon, cost.loss.epsilon, "the record is reported twice")
    published = replace(published, notes=(note,))
    return released(fleet, names, published, cost, settings.trust, noise)


def _publish_trusted(
    fleet: Fleet, names: Sequence[str], settings: DP2PubSettings
) -> TableRelease:
    step = _trusted_step(fleet.source, names, settings)
    published: Published = fleet.learn(step)
    noise = CentralNoise(settings.seed, step.plan.hash)
    return released(fleet, names, published, step.cost, settings.trust, noise)


def _trusted_step(
    source: RecordSource, names: Sequence[str], settings: DP2PubSettings
) -> PublishTrusted:
    require_entrusted(source)
    attributes = attributes_of(source.schema, names)
    if not settings.participation.is_certain:
        raise InputError("a curator holds all records; dropout and deadlines are for reports")
    network = given_network(attributes, settings.network)
    return PublishTrusted(
        source, tuple(names), settings.epsilon, settings.most_parents, settings.seed, network
    )


def _even(schema: Schema, names: Sequence[str], settings: DP2PubSettings) -> list[Fraction]:
    return shares_of(attributes_of(schema, names), settings.epsilon, "split")


def _rows(
    schema: Schema,
    names: Sequence[str],
    settings: DP2PubSettings,
    budgets: Sequence[Fraction],
    round_id: int = 0,
) -> ReportRequest:
    """One report of the whole record; an attribute with one value costs nothing."""
    items = tuple(
        Item((attribute,), GRR(attribute.size, budget or settings.epsilon))
        for attribute, budget in zip(attributes_of(schema, names), budgets, strict=True)
    )
    rest = (settings.preset, settings.participation.parameters)
    name = name_of("dp2pub", settings.seed, _first_items(schema, names, settings), *rest)
    question = f"{settings.preset} reports of {len(names)} attributes"
    return ReportRequest(name, round_id, question, items, settings.participation)


def _first_items(schema: Schema, names: Sequence[str], settings: DP2PubSettings) -> list[Item]:
    """What names the experiment: the same for all of its rounds."""
    budgets = _even(schema, names, settings)
    return [
        Item((attribute,), GRR(attribute.size, budget))
        for attribute, budget in zip(attributes_of(schema, names), budgets, strict=True)
    ]


def channels_of(request: ReportRequest) -> tuple[GRR, ...]:
    """The mechanisms that made the reports: nobody computes them anew."""
    return tuple(cast("GRR", item.mechanism) for item in request.items)


def _cost(requests: Sequence[ReportRequest], turnout: Turnout) -> Cost:
    losses: list[PrivacyLoss] = [request.loss for request in requests]
    items = [item for request in requests for item in request.items]
    per_attribute = zip(*(request.items for request in requests), strict=True)
    prices = [
        Price("GRR", sum((item.mechanism.loss.epsilon for item in same), Fraction(0)))
        for same in per_attribute
    ]
    return Cost(
        loss=sum(losses[1:], losses[0]),
        real_epsilon=fsum(item.mechanism.real_epsilon for item in items),
        plan_hashes=tuple(request.plan.hash for request in requests),
        prices=tuple(prices),
        turnout=turnout,
    )
