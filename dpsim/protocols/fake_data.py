"""Frequencies from users that perturb one attribute and fake the others (RS+FD)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dpsim.core.checks import require_epsilon
from dpsim.core.schema import Schema
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest, Item, collect, name_of
from dpsim.protocols.frequency import Round
from dpsim.protocols.release import Release, Row
from dpsim.protocols.settle import settle

MakeFakes: TypeAlias = Callable[[tuple[int, ...], Fraction], Any]


def fake_data_request(
    schema: Schema, names: Sequence[str], epsilon: object, how: Round, make: MakeFakes
) -> CollectRequest:
    """One report per user about all attributes; ε holds for records that differ in one."""
    attributes = tuple(schema[name] for name in names)
    sizes = tuple(attribute.size for attribute in attributes)
    mechanism = make(sizes, require_epsilon(epsilon))
    items = (Item(attributes, mechanism, is_joint=True),)
    name = name_of("frequencies", how.seed, items, how.participation.parameters)
    question = f"frequencies of {', '.join(names)}"
    return CollectRequest(name, 0, question, items, participation=how.participation)


def estimate_with_fakes(fleet: Fleet, request: CollectRequest) -> Release:
    """Run the round, then take fakes and lies out again."""
    collected = collect(fleet, request)
    (item,), ((n, tally),) = request.items, collected.tallies
    mechanism: Any = item.mechanism
    estimates = mechanism.estimate(tally, n) if n else [None] * len(item.attributes)
    rows: list[Row] = []
    for place, (attribute, shares) in enumerate(zip(item.attributes, estimates, strict=True)):
        for code, label in enumerate(attribute.labels):
            if shares is None:
                rows.append(Row(attribute.name, label, None, None))
                continue
            share = float(shares[code])
            error = mechanism.variance(n, place, float(np.clip(share, 0, 1))) ** 0.5
            rows.append(Row(attribute.name, label, share, error))
    return Release(settle(fleet, [request], collected.turnout), tuple(rows))
