"""Means of numbers within public bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np

from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.schema import Attribute, Bins, Schema
from dpsim.mechanisms.interfaces import MeanMechanism
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest, Item, collect, name_of
from dpsim.protocols.frequency import Round, shares_of
from dpsim.protocols.release import Release, Row
from dpsim.protocols.settle import settle

MakeMean: TypeAlias = Callable[[Fraction], MeanMechanism]
MakeJointMean: TypeAlias = Callable[[int, Fraction], Any]


def mean_request(
    schema: Schema, names: Sequence[str], epsilon: object, how: Round, make: MakeMean
) -> CollectRequest:
    """A mechanism for each attribute, at its share of ε."""
    attributes = [numeric(schema[name]) for name in names]
    shares = shares_of(attributes, require_epsilon(epsilon), how.collect)
    items = tuple(
        Item((attribute,), make(share), as_numbers=True)
        for attribute, share in zip(attributes, shares, strict=True)
    )
    name = name_of("means", how.seed, items, how.collect, how.participation.parameters)
    question = f"means of {', '.join(names)}"
    return CollectRequest(name, 0, question, items, how.collect, how.participation)


def joint_request(
    schema: Schema, names: Sequence[str], epsilon: object, how: Round, make: MakeJointMean
) -> CollectRequest:
    """One mechanism for all attributes together, at the whole ε."""
    attributes = tuple(numeric(schema[name]) for name in names)
    mechanism = make(len(attributes), require_epsilon(epsilon))
    items = (Item(attributes, mechanism, as_numbers=True, is_joint=True),)
    name = name_of("means", how.seed, items, how.participation.parameters)
    question = f"means of {', '.join(names)}"
    return CollectRequest(name, 0, question, items, participation=how.participation)


def numeric(attribute: Attribute) -> Attribute:
    """The attribute, if every user has a number for it."""
    if np.isnan(attribute.numbers).any():
        raise InputError(
            f"attribute {attribute.name!r} has missing values; ask with a key-value method, "
            'or declare missing = "refuse"'
        )
    return attribute


def bounds_of(attribute: Attribute) -> tuple[float, float]:
    """The public bounds that -1 and 1 stand for."""
    domain = attribute.domain
    if isinstance(domain, Bins):
        return domain.low, domain.high
    return 0.0, float(attribute.size - 1 - (attribute.missing == "category"))


def estimate_joint_means(fleet: Fleet, request: CollectRequest) -> Release:
    """Run the round of a joint mechanism, then invert: one mean per attribute."""
    collected = collect(fleet, request)
    (item,), ((n, tally),) = request.items, collected.tallies
    mechanism: Any = item.mechanism
    means = mechanism.estimate(tally, n) if n else [None] * len(item.attributes)
    # The squares of the users' values are unknown; none of them is the worst.
    variances = mechanism.variance(n) if n else means
    columns = (item.attributes, means, variances)
    rows = [_row(*cells) for cells in zip(*columns, strict=True)]
    return Release(settle(fleet, [request], collected.turnout), tuple(rows))


def _row(attribute: Attribute, mean: float | None, variance: float | None) -> Row:
    """A mean in [-1, 1] in the attribute's own unit."""
    if mean is None or variance is None:
        return Row(attribute.name, "mean", None, None, "number")
    low, high = bounds_of(attribute)
    scale = (high - low) / 2
    value, error = low + (float(mean) + 1) * scale, scale * float(variance) ** 0.5
    return Row(attribute.name, "mean", value, error, "number")


def estimate_means(fleet: Fleet, request: CollectRequest) -> Release:
    """Run the round, then invert: one mean per attribute, in its own unit."""
    collected = collect(fleet, request)
    rows = []
    for item, (n, tally) in zip(request.items, collected.tallies, strict=True):
        attribute, mechanism = item.attributes[0], cast("MeanMechanism", item.mechanism)
        if n == 0:
            rows.append(_row(attribute, None, None))
            continue
        mean = mechanism.estimate(tally, n)
        # The users' squares are unknown: the worse of none beyond the mean's and the largest.
        inside = float(np.clip(mean, -1, 1))
        variance = max(mechanism.variance(n, inside, square) for square in (inside**2, 1.0))
        missed = collected.turnout.counted - n
        variance += (1 - inside**2) / n * missed / max(1, collected.turnout.counted - 1)
        rows.append(_row(attribute, mean, variance))
    return Release(settle(fleet, [request], collected.turnout), tuple(rows))
