"""One round: every user sends perturbed values, of all attributes or of one that is sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import reduce
from hashlib import blake2b
from operator import add, or_
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.plan import Parameters, Plan, Use, canonical
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import PrivateRecords
from dpsim.core.rng import AGGREGATE_UNIT, ClientNoise, Purpose, draws_at, generator_at
from dpsim.core.schema import Attribute
from dpsim.mechanisms.interfaces import CountLaw, Memoized, Randomizer
from dpsim.protocols.base import Fleet, Layout
from dpsim.protocols.participation import EVERYBODY, Participation, Turnout
from dpsim.protocols.shapes import TallyShape

Collect = Literal["split", "sample"]
Fidelity = Literal["record", "aggregate"]

_TURNOUT = "\0turnout"  # no attribute can have this name
CHUNK = 1 << 16
"""Users that are perturbed together: their codes, draws and reports stay in the cache."""


@dataclass(frozen=True, slots=True)
class Item:
    """One mechanism on one attribute or several, as codes or as numbers in [-1, 1].

    Several attributes are read as one compound code, mixed radix, the first one leading.
    """

    attributes: tuple[Attribute, ...]
    mechanism: Randomizer
    as_numbers: bool = False
    is_joint: bool = False
    """Whether the mechanism reads a matrix, one column per attribute, instead."""
    share: Fraction | None = None
    """Of the users who sample this item; None where all items get the same."""

    @property
    def name(self) -> str:
        """The attributes' names: the subject of the item's draws."""
        return ", ".join(attribute.name for attribute in self.attributes)

    @property
    def use(self) -> Use:
        """The item as a part of the plan."""
        names = tuple(attribute.name for attribute in self.attributes)
        share = () if self.share is None else (("share", text_of(self.share)),)
        parameters = (*self.mechanism.parameters, *share)
        return Use(names, type(self.mechanism).__name__, parameters)

    def inputs(self, records: PrivateRecords) -> NDArray[Any]:
        """What the mechanism perturbs: a vector, or one column per attribute."""
        columns = [self._column(records, attribute) for attribute in self.attributes]
        if self.is_joint:
            return np.stack(columns, axis=1)
        if len(columns) == 1:
            return columns[0]
        cells = np.zeros(columns[0].size, np.uint32)
        for attribute, column in zip(self.attributes, columns, strict=True):
            cells = cells * np.uint32(attribute.size) + column
        return cells

    def _column(self, records: PrivateRecords, attribute: Attribute) -> NDArray[Any]:
        codes = records.open(attribute.name)
        return attribute.numbers[codes] if self.as_numbers else codes


@dataclass(frozen=True, slots=True)
class Group:
    """One of several disjoint parts of the users, drawn once for a whole experiment."""

    number: int
    of: int
    shares: tuple[Fraction, ...] = ()
    """Of the users, one per group; empty for equal groups."""

    @property
    def parameters(self) -> Parameters:
        """The group as a part of the plan."""
        shares = " ".join(map(text_of, self.shares))
        rest: Parameters = (("shares", shares),) if shares else ()
        return (("number", self.number), ("of", self.of), *rest)


@dataclass(frozen=True, slots=True)
class CollectRequest:
    """Ask every user, or every user of a group, for perturbed values.

    ``split``: each user answers all items, and the losses add up. ``sample``: each user
    answers one item, drawn without looking at the record, and pays for that one.
    """

    experiment: str
    round_id: int
    question: str
    items: tuple[Item, ...]
    collect: Collect = "split"
    participation: Participation = EVERYBODY
    fidelity: Fidelity = "record"
    group: Group | None = None

    def __post_init__(self) -> None:
        shares = [item.share for item in self.items]
        given = [share for share in shares if share is not None]
        if given and (None in shares or sum(given) != 1 or min(given) < 0):
            raise InputError(
                f"the {len(shares)} items' shares of the users must all be given and sum to 1, "
                f"got a sum of {text_of(sum(given, Fraction(0)))}"
            )

    @property
    def plan(self) -> Plan:
        return Plan(
            experiment=self.experiment,
            round_id=self.round_id,
            question=self.question,
            uses=tuple(item.use for item in self.items),
            collect=self.collect,
            group=() if self.group is None else self.group.parameters,
            memo=self._memo,
            participation=self.participation.parameters,
            fidelity=self.fidelity,
        )

    @property
    def _memo(self) -> str:
        """A name for permanent answers that all rounds of an experiment share."""
        if not all(isinstance(item.mechanism, Memoized) for item in self.items):
            return ""
        uses = [asdict(item.use) for item in self.items]
        return blake2b(canonical([self.experiment, uses]), digest_size=8).hexdigest()

    @property
    def loss(self) -> PrivacyLoss:
        compose = add if self.collect == "split" else or_
        return reduce(compose, (item.mechanism.loss for item in self.items))

    @property
    def layout(self) -> Layout:
        """What the tally is made of."""
        sizes = ((item.name, 1 + item.mechanism.tally_size) for item in self.items)
        return Layout(((_TURNOUT, 3), *sizes))

    @property
    def shape(self) -> TallyShape:
        return TallyShape(self.layout.size)

    def answer(self, records: PrivateRecords, noise: ClientNoise) -> Counts:
        """The tally of the block's reports: per item, how many and their sum."""
        total = np.zeros(self.layout.size, np.int64)
        parts = self.layout.split(total)
        size = AGGREGATE_UNIT if self.fidelity == "aggregate" else CHUNK
        for block in records.block.parts(size):
            chunk = noise.part(block)
            places = self._counted(chunk, parts[_TURNOUT])
            self._add(records.part(block), chunk, places, parts)
        return total

    def _add(
        self,
        records: PrivateRecords,
        noise: ClientNoise,
        places: NDArray[np.int64] | None,
        parts: dict[str, Counts],
    ) -> None:
        for item, chosen in zip(self.items, self._choose(noise, places), strict=True):
            part = parts[item.name]
            part[0] += noise.block.n if chosen is None else chosen.size
            if self.fidelity == "aggregate":
                part[1:] += _simulate(item, records, noise, chosen)
            else:
                inputs = item.inputs(records)
                inputs = inputs if chosen is None else inputs[chosen]
                reports = item.mechanism.perturb(inputs, noise.of(item.name, chosen))
                part[1:] += item.mechanism.tally(reports)

    def _choose(
        self, noise: ClientNoise, places: NDArray[np.int64] | None
    ) -> Iterator[NDArray[np.int64] | None]:
        """Per item the places of the users that answer it; None for all."""
        if self.collect == "split":
            yield from (places for _ in self.items)
            return
        # Memoized answers are paid for once: a user must not sample another item next round.
        plan = self.experiment if self._memo else noise.plan_hash
        shares = [item.share for item in self.items if item.share is not None]
        choice = _draw_places(noise, plan, "\0item", len(self.items), shares)
        counted = np.arange(noise.block.n) if places is None else places
        order = counted[np.argsort(choice[counted], kind="stable")]
        borders = np.searchsorted(choice[order], np.arange(1, len(self.items)))
        yield from np.split(order, borders)

    def _counted(self, noise: ClientNoise, turnout: Counts) -> NDArray[np.int64] | None:
        """Add who is counted, late, dropped; the places of the counted, or None for all."""
        invited = np.ones(noise.block.n, bool) if self.group is None else self._in_group(noise)
        if self.participation.is_certain:
            turnout[0] += np.count_nonzero(invited)
            return None if self.group is None else np.flatnonzero(invited)
        sent, in_time = self.participation.draw(noise)
        n_invited, n_sent = np.count_nonzero(invited), np.count_nonzero(sent & invited)
        n_in_time = np.count_nonzero(in_time & invited)
        turnout += (n_in_time, n_sent - n_in_time, n_invited - n_sent)
        return np.flatnonzero(in_time & invited)

    def _in_group(self, noise: ClientNoise) -> NDArray[np.bool_]:
        """Drawn by experiment, not by plan: the groups of all its rounds are disjoint."""
        group = self.group or Group(0, 1)
        numbers = _draw_places(noise, self.experiment, "\0group", group.of, group.shares)
        return np.asarray(numbers == group.number, np.bool_)


def _draw_places(
    noise: ClientNoise, plan: str, subject: str, of: int, shares: Sequence[Fraction]
) -> Counts:
    """One of ``of`` places per user, by shares or evenly, without looking at a record.

    The subject begins with NUL, so that no attribute can share its draws.
    """
    address = (noise.seed, Purpose.SAMPLE.value, plan, subject)
    draws = draws_at(address, noise.block.start, noise.block.n).astype(np.uint64)
    if not shares:
        return ((draws * np.uint64(of)) >> np.uint64(32)).astype(np.int64)
    borders = [int(sum(shares[:place]) * 2**32) for place in range(1, of)]
    return np.searchsorted(np.array(borders, np.uint64), draws, "right").astype(np.int64)


def _simulate(
    item: Item, records: PrivateRecords, noise: ClientNoise, chosen: NDArray[np.int64] | None
) -> Counts:
    """The item's tally drawn from its exact law, given the true counts of one unit of users."""
    if not isinstance(item.mechanism, CountLaw) or len(item.attributes) != 1:
        raise InputError(
            f"{type(item.mechanism).__name__} has no law of counts; use fidelity = record"
        )
    attribute = item.attributes[0]
    histogram = records.histogram(attribute.name, attribute.size, chosen)
    unit, rest = divmod(noise.block.start, AGGREGATE_UNIT)
    if rest:
        raise InputError(
            f"fidelity = aggregate needs a block size that is a multiple of {AGGREGATE_UNIT}"
        )
    address = (noise.seed, Purpose.AGGREGATE.value, noise.plan_hash, item.name)
    return item.mechanism.simulate(histogram, generator_at(address, unit))


@dataclass(frozen=True, slots=True)
class Collected:
    """What a round brought in: who took part, and each item's number of reports and tally."""

    turnout: Turnout
    tallies: tuple[tuple[int, Counts], ...]


def collect(fleet: Fleet, request: CollectRequest) -> Collected:
    """Run the round: pay and ask. Nobody there: nothing asked, nothing paid."""
    nothing = np.zeros(request.layout.size, np.int64)
    parts = request.layout.split(fleet.ask(request) if fleet.source.n else nothing)
    return Collected(
        Turnout(*map(int, parts[_TURNOUT])),
        tuple((int(parts[item.name][0]), parts[item.name][1:]) for item in request.items),
    )


def name_of(question: str, seed: int, items: Sequence[Item], *rest: object) -> str:
    """A name for an experiment after all that it asks, so that equal runs are replays."""
    uses = [(item.use.attributes, item.use.mechanism, item.use.parameters) for item in items]
    text = canonical([seed, uses, *rest])
    return f"{question} {blake2b(text, digest_size=8).hexdigest()}"
