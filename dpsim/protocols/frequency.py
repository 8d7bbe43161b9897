"""One round: every user sends a perturbed code of each asked attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import blake2b
from operator import add
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from dpsim.core.arrays import Codes, Counts, Draws, Frequencies
from dpsim.core.budget import split
from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.ledger import Ledger
from dpsim.core.plan import Plan, Use, canonical
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import PrivateRecords
from dpsim.core.rng import ClientNoise, Purpose
from dpsim.core.schema import Attribute, Schema
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import FrequencyOracle
from dpsim.protocols.base import Fleet, Layout
from dpsim.protocols.participation import EVERYBODY, Participation, Turnout

if TYPE_CHECKING:
    import pandas as pd

_TURNOUT = "\0turnout"  # no attribute can have this name
_CHUNK = 1 << 16  # users whose codes, draws and reports stay in the processor's cache


@dataclass(frozen=True, slots=True)
class FrequencyRequest:
    """Ask every user for one perturbed code of each attribute in ``oracles``."""

    experiment: str
    round_id: int
    oracles: tuple[tuple[str, FrequencyOracle], ...]
    participation: Participation = EVERYBODY

    @property
    def plan(self) -> Plan:
        return Plan(
            experiment=self.experiment,
            round_id=self.round_id,
            question=f"frequencies of {', '.join(name for name, _ in self.oracles)}",
            uses=tuple(
                Use(name, type(oracle).__name__, oracle.parameters)
                for name, oracle in self.oracles
            ),
            participation=self.participation.parameters,
        )

    @property
    def loss(self) -> PrivacyLoss:
        """Attributes of one user are answered together: their losses add up."""
        return reduce(add, (oracle.loss for _, oracle in self.oracles))

    @property
    def layout(self) -> Layout:
        sizes = ((name, oracle.domain_size) for name, oracle in self.oracles)
        return Layout(((_TURNOUT, 3), *sizes))

    def answer(self, records: PrivateRecords, noise: ClientNoise) -> Counts:
        """The tally of the block's reports, in chunks that fit the cache."""
        total = np.zeros(self.layout.size, np.int64)
        parts = self.layout.split(total)
        chunks = [noise.part(block) for block in records.block.parts(_CHUNK)]
        counted = [self._count_turnout(chunk, parts[_TURNOUT]) for chunk in chunks]
        for name, oracle in self.oracles:
            codes = records.open(name)
            for chunk, mask in zip(chunks, counted, strict=True):
                start = chunk.block.start - records.block.start
                truth = codes[start : start + chunk.block.n]
                draws = chunk.draws(Purpose.PERTURB, name, oracle.draw_bits)
                parts[name] += oracle.tally(_reports(oracle, truth, draws, mask))
        return total

    def _count_turnout(self, noise: ClientNoise, turnout: Counts) -> Counts | None:
        """Add who is counted, late, dropped; the places of the counted, or None for all."""
        if self.participation.is_certain:
            turnout[0] += noise.block.n
            return None
        sent, in_time = self.participation.draw(noise)
        n_sent, n_in_time = np.count_nonzero(sent), np.count_nonzero(in_time)
        turnout += (n_in_time, n_sent - n_in_time, noise.block.n - n_sent)
        return np.flatnonzero(in_time)


def _reports(
    oracle: FrequencyOracle, codes: Codes, draws: Draws, counted: Counts | None
) -> Codes:
    if counted is None:
        return oracle.perturb(codes, draws)
    return oracle.perturb(codes[counted], draws[counted])


@dataclass(frozen=True, slots=True)
class AttributeEstimate:
    """The estimated frequencies of one attribute, with the oracle that perturbed them."""

    attribute: Attribute
    oracle: FrequencyOracle
    counts: Counts
    n: int

    @property
    def frequencies(self) -> Frequencies | None:
        """Unbiased shares, one per code; None if nobody was counted."""
        return self.oracle.estimate(self.counts, self.n) if self.n else None

    @property
    def standard_errors(self) -> Frequencies | None:
        """Of each share, at its estimate moved into [0, 1]."""
        shares = self.frequencies
        if shares is None:
            return None
        clipped = np.clip(shares, 0, 1)
        return np.sqrt([self.oracle.variance(self.n, float(share)) for share in clipped])

    def half_width(self, level: float = 0.95) -> Frequencies | None:
        """Half the width of each share's normal confidence interval."""
        errors = self.standard_errors
        return None if errors is None else NormalDist().inv_cdf((1 + level) / 2) * errors


@dataclass(frozen=True, slots=True)
class FrequencyRelease:
    """What leaves the system: estimates, who took part, and the ledger that paid for them."""

    schema: Schema
    estimates: tuple[AttributeEstimate, ...]
    turnout: Turnout
    plan_hash: str
    loss: PrivacyLoss
    ledger: Ledger

    def __getitem__(self, attribute: str) -> AttributeEstimate:
        """The estimate of one attribute."""
        place = self.schema.names.index(self.schema[attribute].name)
        return self.estimates[place]

    def frequencies(self, attribute: str, level: float = 0.95) -> pd.DataFrame:
        """Label, unbiased estimate and confidence interval, one row per code."""
        import pandas as pd  # noqa: PLC0415 - shards answer without it

        item = self[attribute]
        shares, half = item.frequencies, item.half_width(level)
        columns = {"label": item.attribute.labels}
        if shares is None or half is None:
            return pd.DataFrame(columns, columns=["label", "estimate", "low", "high"])
        table = {"estimate": shares, "low": shares - half, "high": shares + half}
        return pd.DataFrame(columns | table)


def oracles_for(
    schema: Schema, names: Sequence[str], epsilon: object
) -> tuple[tuple[str, FrequencyOracle], ...]:
    """GRR for each named attribute, with ε split evenly over those that cost anything."""
    if not names or len(set(names)) < len(names):
        raise InputError(f"attributes must be named, each once, got: {', '.join(names)}")
    attributes = [schema[name] for name in names]
    total = require_epsilon(epsilon)
    paying = [int(attribute.size > 1) for attribute in attributes]
    shares = split(total, paying) if any(paying) else [total] * len(paying)
    return tuple(
        (attribute.name, GRR(attribute.size, share or total))
        for attribute, share in zip(attributes, shares, strict=True)
    )


def frequency_request(
    schema: Schema,
    names: Sequence[str],
    epsilon: object,
    seed: int,
    participation: Participation = EVERYBODY,
) -> FrequencyRequest:
    """The one round of a run, named after all that it asks, so that equal runs are replays."""
    oracles = oracles_for(schema, names, epsilon)
    uses = [(name, type(oracle).__name__, oracle.parameters) for name, oracle in oracles]
    text = canonical([seed, uses, participation.parameters])
    name = blake2b(text, digest_size=8).hexdigest()
    return FrequencyRequest(f"frequencies {name}", 0, oracles, participation)


def estimate_frequencies(fleet: Fleet, request: FrequencyRequest) -> FrequencyRelease:
    """Run the round: pay and ask, then invert. Nobody there: nothing asked, nothing paid."""
    nothing = np.zeros(request.layout.size, np.int64)
    total = fleet.ask(request) if fleet.source.n else nothing
    parts = request.layout.split(total)
    turnout = Turnout(*map(int, parts[_TURNOUT]))
    attributes = {name: fleet.source.schema[name] for name, _ in request.oracles}
    return FrequencyRelease(
        schema=replace(fleet.source.schema, attributes=tuple(attributes.values())),
        estimates=tuple(
            AttributeEstimate(attributes[name], oracle, parts[name], turnout.counted)
            for name, oracle in request.oracles
        ),
        turnout=turnout,
        plan_hash=request.plan.hash,
        loss=request.loss,
        ledger=fleet.ledger,
    )
