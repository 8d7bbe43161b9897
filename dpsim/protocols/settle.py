"""The account of some rounds: what they cost one user, and who took part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add, or_

from dpsim.core.privacy import PrivacyLoss
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest
from dpsim.protocols.participation import Turnout
from dpsim.protocols.release import Paid, Price


def settle(fleet: Fleet, requests: Sequence[CollectRequest], turnout: Turnout) -> Paid:
    """What the rounds cost: losses add up, except over disjoint groups of users."""
    compose = or_ if all(request.group is not None for request in requests) else add
    losses: list[PrivacyLoss] = [request.loss for request in requests]
    reals = [_real(request) for request in requests]
    items = [item for request in requests for item in request.items]
    prices = {
        attribute: Price(type(item.mechanism).__name__, item.mechanism.loss.epsilon)
        for item in items
        for attribute in item.attributes
    }
    return Paid(
        schema=replace(fleet.source.schema, attributes=tuple(prices)),
        prices=tuple(prices.values()),
        turnout=turnout,
        plan_hashes=tuple(request.plan.hash for request in requests),
        loss=reduce(compose, losses),
        real_epsilon=max(reals) if compose is or_ else math.fsum(reals),
        ledger=fleet.ledger,
    )


def _real(request: CollectRequest) -> float:
    reals = [item.mechanism.real_epsilon for item in request.items]
    return math.fsum(reals) if request.collect == "split" else max(reals)
