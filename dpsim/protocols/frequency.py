"""Frequencies: how often each code of each attribute occurs among the users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, cast

import numpy as np

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.budget import split
from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.schema import Attribute, Schema
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import FrequencyOracle
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import Collect, CollectRequest, Fidelity, Item, collect, name_of
from dpsim.protocols.participation import EVERYBODY, Participation
from dpsim.protocols.release import Release, Row
from dpsim.protocols.settle import settle

MakeOracle: TypeAlias = Callable[[int, Fraction], FrequencyOracle]
"""An oracle for a domain size and a loss."""


@dataclass(frozen=True, slots=True)
class AttributeEstimate:
    """The estimated frequencies of one attribute, with the oracle that perturbed them."""

    attribute: Attribute
    oracle: FrequencyOracle
    counts: Counts
    n: int
    population: int
    """All users that were asked; more than ``n`` where each sampled one attribute."""

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
        return np.sqrt([self.variance(float(share)) for share in np.clip(shares, 0, 1)])

    def variance(self, share: float) -> float:
        """Of one share: the oracle's, and that of sampling reporters without replacement."""
        sampled = share * (1 - share) / self.n * (self.population - self.n)
        return self.oracle.variance(self.n, share) + sampled / max(1, self.population - 1)

    def rows(self) -> list[Row]:
        """One per code."""
        name, labels = self.attribute.name, self.attribute.labels
        shares, errors = self.frequencies, self.standard_errors
        if shares is None or errors is None:
            return [Row(name, label, None, None) for label in labels]
        columns = (labels, shares.tolist(), errors.tolist())
        return [Row(name, *row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class FrequencyRelease(Release):
    """Rows, and for each attribute the tally and the oracle behind them."""

    estimates: tuple[AttributeEstimate, ...]

    def __getitem__(self, attribute: str) -> AttributeEstimate:
        """The estimate of one attribute."""
        place = self.schema.names.index(self.schema[attribute].name)
        return self.estimates[place]


@dataclass(frozen=True, slots=True)
class Round:
    """How a round is held, whatever it asks."""

    seed: int = 0
    collect: Collect = "split"
    participation: Participation = EVERYBODY
    fidelity: Fidelity = "record"


def frequency_request(
    schema: Schema,
    names: Sequence[str],
    epsilon: object,
    how: Round,
    make: MakeOracle = GRR,
) -> CollectRequest:
    """The one round of a run: an oracle for each attribute, at its share of ε."""
    if not names or len(set(names)) < len(names):
        raise InputError(f"attributes must be named, each once, got: {', '.join(names)}")
    attributes = [schema[name] for name in names]
    shares = shares_of(attributes, require_epsilon(epsilon), how.collect)
    items = tuple(
        Item((attribute,), make(attribute.size, share))
        for attribute, share in zip(attributes, shares, strict=True)
    )
    question = f"frequencies of {', '.join(names)}"
    rest = (how.collect, how.participation.parameters, how.fidelity)
    name = name_of("frequencies", how.seed, items, *rest)
    return CollectRequest(
        name, 0, question, items, how.collect, how.participation, how.fidelity
    )


def shares_of(
    attributes: Sequence[Attribute], epsilon: Fraction, collected: Collect
) -> list[Fraction]:
    """ε for each attribute: all of it where users sample one, else even parts of it.

    An attribute with one value costs nothing and takes nothing from the others.
    """
    paying = [int(attribute.size > 1) for attribute in attributes]
    if collected == "sample" or not any(paying):
        return [epsilon] * len(paying)
    return [share or epsilon for share in split(epsilon, paying)]


def estimate_frequencies(fleet: Fleet, request: CollectRequest) -> FrequencyRelease:
    """Run the round, then invert."""
    collected = collect(fleet, request)
    counted = collected.turnout.counted
    estimates = tuple(
        AttributeEstimate(
            item.attributes[0], cast("FrequencyOracle", item.mechanism), tally, n, counted
        )
        for item, (n, tally) in zip(request.items, collected.tallies, strict=True)
    )
    rows = tuple(row for estimate in estimates for row in estimate.rows())
    return FrequencyRelease(settle(fleet, [request], collected.turnout), rows, estimates)
