"""Key-value pairs: how many users hold a key, and the mean of its value among them.

A key is an attribute with public bounds; who has no value for it does not hold the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.schema import Attribute, Schema
from dpsim.mechanisms.interfaces import KeyValueMechanism, Randomizer
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest, Item, collect, name_of
from dpsim.protocols.frequency import Round, shares_of
from dpsim.protocols.mean import bounds_of
from dpsim.protocols.release import Release, Row
from dpsim.protocols.settle import settle

MakePair: TypeAlias = Callable[[Fraction], KeyValueMechanism]
MakeTable: TypeAlias = Callable[[int, Fraction], Any]
MakeIteration: TypeAlias = Callable[[Fraction, Fraction, float], KeyValueMechanism]


def pair_request(
    schema: Schema, names: Sequence[str], epsilon: object, how: Round, make: MakePair
) -> CollectRequest:
    """A one-key mechanism for each attribute; each user samples one key, or splits ε."""
    attributes = [schema[name] for name in names]
    shares = shares_of(attributes, require_epsilon(epsilon), how.collect)
    items = [
        Item((attribute,), make(share), as_numbers=True)
        for attribute, share in zip(attributes, shares, strict=True)
    ]
    return _request(items, how, names)


def table_request(
    schema: Schema, names: Sequence[str], epsilon: object, how: Round, make: MakeTable
) -> CollectRequest:
    """One mechanism for all keys together: users sample from their own set (PCKV)."""
    attributes = tuple(schema[name] for name in names)
    mechanism: Randomizer = make(len(attributes), require_epsilon(epsilon))
    item = Item(attributes, mechanism, as_numbers=True, is_joint=True)
    return _request([item], how, names)


def _request(items: Sequence[Item], how: Round, names: Sequence[str]) -> CollectRequest:
    name = name_of("pairs", how.seed, items, how.collect, how.participation.parameters)
    question = f"frequency and mean of {', '.join(names)}"
    return CollectRequest(name, 0, question, tuple(items), how.collect, how.participation)


def estimate_pairs(fleet: Fleet, request: CollectRequest) -> Release:
    """Run the round, then invert: frequency and mean of every key."""
    collected = collect(fleet, request)
    rows: list[Row] = []
    for item, (n, tally) in zip(request.items, collected.tallies, strict=True):
        if item.is_joint:
            rows += _table_rows(item, tally, n)
        else:
            mechanism = cast("KeyValueMechanism", item.mechanism)
            rows += _pair_rows(item.attributes[0], mechanism, tally, n)
    return Release(settle(fleet, [request], collected.turnout), tuple(rows))


def iterate_pairs(
    fleet: Fleet, request: CollectRequest, make: MakeIteration, rounds: int
) -> Release:
    """PrivKVM: each round asks with the last round's mean as the fake value.

    The loss is split evenly over the rounds, and each round's over key and value.
    """
    require_at_least(1, rounds=rounds)
    if len(request.items) != 1:
        raise InputError("PrivKVM asks for one attribute at a time; name it with --attributes")
    item = request.items[0]
    share = item.mechanism.loss.epsilon / rounds / 2
    fake, asked = 0.0, []
    for number in range(rounds):
        mechanism = make(share, share, fake)
        now = replace(item, mechanism=mechanism)
        asked.append(replace(request, round_id=number, items=(now,)))
        collected = collect(fleet, asked[-1])
        ((n, tally),) = collected.tallies
        mean = mechanism.estimate(tally, n)[1] if n else None
        fake = float(np.clip(fake if mean is None else mean, -1, 1))
    rows = _pair_rows(item.attributes[0], mechanism, tally, n)
    return Release(settle(fleet, asked, collected.turnout), tuple(rows))


def _pair_rows(
    attribute: Attribute, mechanism: KeyValueMechanism, tally: Counts, n: int
) -> list[Row]:
    if not n:
        return _rows(attribute, (None, None), (None, None))
    frequency, mean = mechanism.estimate(tally, n)
    inside = float(np.clip(frequency, 0, 1))
    if mean is None or inside == 0:
        error = mechanism.variance(n, max(inside, 1 / n), 0.0)[0] ** 0.5
        return _rows(attribute, (frequency, None), (error, None))
    variances = mechanism.variance(n, inside, float(np.clip(mean, -1, 1)))
    return _rows(attribute, (frequency, mean), (variances[0] ** 0.5, variances[1] ** 0.5))


def _table_rows(item: Item, tally: Counts, n: int) -> list[Row]:
    mechanism: Any = item.mechanism
    rows: list[Row] = []
    if not n:
        for attribute in item.attributes:
            rows += _rows(attribute, (None, None), (None, None))
        return rows
    frequencies, means = mechanism.estimate(tally, n)
    for place, attribute in enumerate(item.attributes):
        frequency, mean = float(frequencies[place]), float(means[place])
        inside = float(np.clip(frequency, 1 / n, 1))
        known = 0.0 if np.isnan(mean) else float(np.clip(mean, -1, 1))
        errors = [variance**0.5 for variance in mechanism.variance(n, inside, known)]
        if np.isnan(mean):
            rows += _rows(attribute, (frequency, None), (errors[0], None))
        else:
            rows += _rows(attribute, (frequency, mean), (errors[0], errors[1]))
    return rows


def _rows(
    attribute: Attribute,
    values: tuple[float | None, float | None],
    errors: tuple[float | None, float | None],
) -> list[Row]:
    low, high = bounds_of(attribute)
    scale = (high - low) / 2
    mean = None if values[1] is None else low + (values[1] + 1) * scale
    error = None if errors[1] is None else errors[1] * scale
    return [
        Row(attribute.name, "holds it", values[0], errors[0]),
        Row(attribute.name, "mean", mean, error, "number"),
    ]
