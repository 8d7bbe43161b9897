"""The same users asked in many rounds, with memoized reports: paid once, however often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from dpsim.core.checks import require_at_least
from dpsim.mechanisms.interfaces import FrequencyOracle
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest, collect
from dpsim.protocols.release import Release, Row
from dpsim.protocols.settle import settle


def estimate_over_rounds(fleet: Fleet, request: CollectRequest, rounds: int) -> Release:
    """Average the estimates of several rounds.

    Each user's permanent answer is drawn once per value and repeated, so the whole series
    costs ε∞, which the ledger counts once.
    """
    require_at_least(1, rounds=rounds)
    asked, estimates, counts = [], [], []
    for number in range(rounds):
        request_now = replace(request, round_id=number)
        collected = collect(fleet, request_now)
        asked.append(request_now)
        counts.append([n for n, _ in collected.tallies])
        estimates.append(
            [
                cast("FrequencyOracle", item.mechanism).estimate(tally, n) if n else None
                for item, (n, tally) in zip(request.items, collected.tallies, strict=True)
            ]
        )
    rows: list[Row] = []
    for place, item in enumerate(request.items):
        mechanism: Any = item.mechanism
        (attribute,) = item.attributes
        known = [shares for row in estimates if (shares := row[place]) is not None]
        if not known:
            rows += [Row(attribute.name, label, None, None) for label in attribute.labels]
            continue
        shares = np.mean(known, axis=0)
        n = min(row[place] for row in counts)
        for label, share in zip(attribute.labels, shares, strict=True):
            inside = float(np.clip(share, 0, 1))
            error = mechanism.average_variance(len(known), n, inside) ** 0.5
            rows.append(Row(attribute.name, label, float(share), error))
    paid = settle(fleet, asked[:1], collected.turnout)
    hashes = tuple(request_now.plan.hash for request_now in asked)
    return Release(replace(paid, plan_hashes=hashes), tuple(rows))
