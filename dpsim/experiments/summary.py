"""A run's result as plain values: what is printed, written and read again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from dpsim.core.arrays import Frequencies
from dpsim.core.exact import text_of
from dpsim.core.ledger import Ledger
from dpsim.core.privacy import PrivacyLoss
from dpsim.evaluation.frequencies import frequency_error
from dpsim.experiments.spec import RunSpec
from dpsim.protocols.frequency import AttributeEstimate, FrequencyRelease

RNG_LINE = (
    "rng: reproducible – simulation only; whoever knows the seed can undo the noise; "
    "no privacy guarantee for real data"
)


def summarize(
    spec: RunSpec, release: FrequencyRelease, truth: Mapping[str, Frequencies] | None
) -> dict[str, Any]:
    """Estimates with intervals, who took part, what it cost; the truth apart, if asked for."""
    turnout = release.turnout
    return {
        "dpsim": version("dpsim"),
        "format": 1,
        "command": "run",
        "method": spec.method,
        "data": spec.data,
        "users": {
            "invited": turnout.invited,
            "counted": turnout.counted,
            "late": turnout.late,
            "dropped": turnout.dropped,
        },
        "plan": release.plan_hash,
        "privacy": privacy_of(release),
        "attributes": [_estimate(estimate) for estimate in release.estimates],
        "evaluation": None if truth is None else _evaluate(release, truth),
    }


def privacy_of(release: FrequencyRelease) -> dict[str, Any]:
    """What the result is: guarantee, relation, trust, randomness, and the ledger's lines."""
    origin = release.schema.origin
    return {
        "claimed": loss_text(release.loss),
        "real_epsilon": math.fsum(item.oracle.real_epsilon for item in release.estimates),
        "unit": release.loss.unit,
        "neighbors": release.loss.neighbors,
        "model": "local: nobody but the user's own shard is trusted",
        "accountant": "basic composition, exact fractions",
        "fidelity": "record",
        "preset": "default",
        "rng": RNG_LINE,
        "domain": origin,
        "guarantee": release.schema.is_declared,
        **ledger_rows(release.ledger),
    }


def ledger_rows(ledger: Ledger) -> dict[str, Any]:
    """The limit, the sum and the charges."""
    return {
        "limit": loss_text(ledger.limit),
        "spent": loss_text(ledger.spent),
        "charges": [
            {
                "round": charge.round_id,
                "question": charge.question,
                "plan": charge.plan_hash,
                **loss_text(charge.loss),
            }
            for charge in ledger.charges
        ],
    }


def loss_text(loss: PrivacyLoss) -> dict[str, str]:
    """Losses are texts: exact, whatever reads them."""
    return {"epsilon": text_of(loss.epsilon), "delta": text_of(loss.delta)}


def _estimate(item: AttributeEstimate) -> dict[str, Any]:
    shares, widths = item.frequencies, item.half_width()
    return {
        "name": item.attribute.name,
        "epsilon": text_of(item.oracle.loss.epsilon),
        "real_epsilon": item.oracle.real_epsilon,
        "labels": list(item.attribute.labels),
        "estimate": None if shares is None else shares.tolist(),
        "half_width_95": None if widths is None else widths.tolist(),
    }


def _evaluate(release: FrequencyRelease, truth: Mapping[str, Frequencies]) -> dict[str, Any]:
    """Truth and error, labelled: not part of the release."""
    rows = []
    for item in release.estimates:
        name, shares = item.attribute.name, item.frequencies
        row: dict[str, Any] = {"name": name, "true": truth[name].tolist()}
        if shares is not None:
            error = frequency_error(shares, truth[name], item.oracle, item.n)
            row |= {"rmse": error.rmse, "expected_rmse": error.expected_rmse}
        rows.append(row)
    return {"note": "evaluation: sees the truth, for study only", "attributes": rows}
