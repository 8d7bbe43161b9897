"""A run's result as plain values: what is printed, written and read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from math import isfinite
from typing import Any

from dpsim.core.exact import text_of
from dpsim.core.ledger import Ledger
from dpsim.core.privacy import PrivacyLoss
from dpsim.evaluation.table_quality import TableQuality
from dpsim.evaluation.truth import accuracy
from dpsim.experiments.spec import RunSpec
from dpsim.protocols.release import Release, Row
from dpsim.protocols.table_release import NOBODY, TableRelease

RNG_LINE = (
    "rng: reproducible – simulation only; whoever knows the seed can undo the noise; "
    "no privacy guarantee for real data"
)

EVALUATION_NOTE = "evaluation: sees the truth, for study only"


def summarize(
    spec: RunSpec, release: Release, truths: Sequence[float | None] | None
) -> dict[str, Any]:
    """Estimates with intervals, who took part, what it cost; the truth apart, if asked for."""
    return {
        **_head(spec, release),
        "attributes": _attributes(release),
        "evaluation": None if truths is None else _evaluate(release, truths),
    }


def summarize_table(
    spec: RunSpec, release: TableRelease, found: TableQuality | None
) -> dict[str, Any]:
    """What was published, who took part, what it cost; the quality apart, if asked for."""
    noted = {"note": EVALUATION_NOTE, **found.as_dict()} if found is not None else None
    return {
        **_head(spec, release),
        "table": {
            "preset": release.trust.preset,
            "records": int(release.codes.shape[1]),
            "attributes": list(release.schema.names),
            "domain_sizes": [attribute.size for attribute in release.schema],
            **release.facts,
        },
        "notes": list(release.notes),
        "evaluation": noted,
    }


def _head(spec: RunSpec, release: Release | TableRelease) -> dict[str, Any]:
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
        "plans": list(release.paid.plan_hashes),
        "privacy": privacy_of(spec, release),
    }


def privacy_of(spec: RunSpec, release: Release | TableRelease) -> dict[str, Any]:
    """What the result is: guarantee, relation, trust, randomness, and the ledger's lines."""
    trust = release.trust if isinstance(release, TableRelease) else NOBODY
    name = trust.preset or spec.method
    preset = "faithful" if name.startswith("faithful") else "default"
    real = release.paid.real_epsilon
    return {
        "claimed": loss_text(release.loss),
        "nominal_epsilon": trust.nominal_epsilon or text_of(release.loss.epsilon),
        "real_epsilon": real if isfinite(real) else None,
        "unit": release.loss.unit,
        "neighbors": release.loss.neighbors,
        "trusted": trust.who,
        "model": trust.model,
        "accountant": "basic composition, exact fractions",
        "fidelity": spec.fidelity,
        "preset": preset,
        "rng": RNG_LINE,
        "domain": release.schema.origin,
        "guarantee": release.schema.is_declared and isfinite(real),
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
                "group": charge.group,
                **loss_text(charge.loss),
            }
            for charge in ledger.charges
        ],
    }


def loss_text(loss: PrivacyLoss) -> dict[str, str]:
    """Losses are texts: exact, whatever reads them."""
    return {"epsilon": text_of(loss.epsilon), "delta": text_of(loss.delta)}


def _attributes(release: Release) -> list[dict[str, Any]]:
    prices = zip(release.schema.names, release.paid.prices, strict=True)
    return [
        {
            "name": name,
            "mechanism": price.mechanism,
            "epsilon": text_of(price.epsilon),
            "codes": release.schema[name].size,
            "rows": [_row(row) for row in release.rows if row.attribute == name],
        }
        for name, price in prices
    ]


def _row(row: Row) -> dict[str, Any]:
    return {
        "label": row.label,
        "unit": row.unit,
        "estimate": row.estimate,
        "half_width_95": row.half_width(),
    }


def _evaluate(release: Release, truths: Sequence[float | None]) -> dict[str, Any]:
    """Truth and error, labelled: not part of the release."""
    names = [row.attribute for row in release.rows]
    return {
        "note": EVALUATION_NOTE,
        "true": [
            {"attribute": name, "label": row.label, "unit": row.unit, "value": truth}
            for name, row, truth in zip(names, release.rows, truths, strict=True)
        ],
        "accuracy": [asdict(item) for item in accuracy(release.rows, truths)],
    }
