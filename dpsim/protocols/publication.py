"""What publishing a table needs, whoever publishes: the result of a step, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeAlias

from dpsim.core.errors import InputError
from dpsim.core.plan import Plan, Use, canonical
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CentralNoise
from dpsim.core.schema import Attribute, Schema
from dpsim.protocols.base import Fleet
from dpsim.protocols.participation import Turnout
from dpsim.protocols.release import Paid, Price
from dpsim.protocols.table_release import TableRelease, Trust
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.given_network import parse_network
from dpsim.synthesis.table import CodeMatrix, TableModel


@dataclass(frozen=True, eq=False)
class Published:
    """What a host's step brings forth: records, perhaps their model, and what it learned."""

    codes: CodeMatrix
    model: TableModel | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a publication cost one user: each part's plan and mechanism, and their sum."""

    loss: PrivacyLoss
    real_epsilon: float
    plan_hashes: tuple[str, ...]
    prices: tuple[Price, ...]
    """One per attribute."""
    turnout: Turnout


GivenNetwork: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...] | None
"""(child, parents) by name, for a network that need not be searched."""


def given_network(attributes: Sequence[Attribute], network: GivenNetwork) -> BayesNet | None:
    """The network that a person names, checked; None if there is none."""
    if network is None:
        return None
    names = [attribute.name for attribute in attributes]
    return parse_network(network, names, [attribute.size for attribute in attributes])


def attributes_of(schema: Schema, names: Sequence[str]) -> tuple[Attribute, ...]:
    """The attributes to publish: named once each, and one of them with two values at least."""
    if not names or len(set(names)) < len(names):
        raise InputError(f"attributes must be named, each once, got: {', '.join(names)}")
    attributes = tuple(schema[name] for name in names)
    if all(attribute.size == 1 for attribute in attributes):
        raise InputError("every attribute has one value only: there is nothing to publish")
    return attributes


def released(
    fleet: Fleet,
    names: Sequence[str],
    published: Published,
    cost: Cost,
    trust: Trust,
    noise: CentralNoise,
) -> TableRelease:
    """The table with its labels, its ledger and its schema."""
    schema = fleet.source.schema
    kept = replace(schema, attributes=attributes_of(schema, names))
    paid = Paid(
        schema=kept,
        prices=cost.prices,
        turnout=cost.turnout,
        plan_hashes=cost.plan_hashes,
        loss=cost.loss,
        real_epsilon=cost.real_epsilon,
        ledger=fleet.ledger,
    )
    facts, notes = named_facts(published.facts, kept.names), published.notes
    return TableRelease(paid, trust, published.codes, noise, published.model, facts, notes)


def named_facts(facts: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The facts with attributes by name: steps know them by number."""
    named = dict(facts)
    if "network" in facts:
        named["network"] = [
            [names[child], [names[parent] for parent in parents]]
            for child, parents in facts["network"]
        ]
    if "clusters" in facts:
        named["clusters"] = [[names[a] for a in cluster] for cluster in facts["clusters"]]
    return named


def curator_plan(name: str, seed: int, question: str, uses: tuple[Use, ...]) -> Plan:
    """The plan of a curator's step; its experiment is named after all that it does."""
    text = canonical([seed, [[use.attributes, use.mechanism, use.parameters] for use in uses]])
    digest = blake2b(text, digest_size=8).hexdigest()
    return Plan(f"{name} {digest}", 0, question, uses, collect="curator")
