"""Heavy hitters by prefix extension (PEM): which values are frequent in a large domain.

Users are divided into disjoint groups, one per round. Each group reports the beginning of its
code, a few bits longer than the last group's, among the candidates that survived; so each user
answers once, at the full ε.

References:
    Wang, Li, Jha. Locally differentially private heavy hitter identification. IEEE TDSC 2021.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts, Frequencies
from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.plan import Parameters
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import UserNoise
from dpsim.core.schema import Attribute
from dpsim.mechanisms.interfaces import FrequencyOracle, Reports
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest, Group, Item, collect, name_of
from dpsim.protocols.frequency import MakeOracle, Round
from dpsim.protocols.participation import Turnout
from dpsim.protocols.release import Release, Row
from dpsim.protocols.settle import settle


@dataclass(frozen=True, slots=True)
class PrefixOracle:
    """An oracle over candidate prefixes; all other users answer with one more, dummy, code."""

    candidates: tuple[int, ...]
    shift: int
    """Bits of the code that the prefix leaves out."""
    domain_size: int
    oracle: FrequencyOracle

    @property
    def loss(self) -> PrivacyLoss:
        """That of the oracle."""
        return self.oracle.loss

    @property
    def real_epsilon(self) -> float:
        """That of the oracle."""
        return self.oracle.real_epsilon

    @property
    def parameters(self) -> Parameters:
        """The oracle's, and which prefixes are asked for."""
        texts = ",".join(map(str, self.candidates))
        return (*self.oracle.parameters, ("shift", self.shift), ("candidates", texts))

    @property
    def tally_size(self) -> int:
        """That of the oracle."""
        return self.oracle.tally_size

    @property
    def report_bytes(self) -> float:
        """That of the oracle."""
        return self.oracle.report_bytes

    def perturb(self, inputs: Codes, noise: UserNoise) -> Reports:
        """The place of the user's prefix among the candidates, perturbed."""
        table = np.full((self.domain_size >> self.shift) + 1, len(self.candidates), np.uint32)
        table[list(self.candidates)] = np.arange(len(self.candidates))
        return self.oracle.perturb(table[inputs >> self.shift], noise)

    def tally(self, reports: Reports) -> Counts:
        """That of the oracle."""
        return self.oracle.tally(reports)

    def estimate(self, tally: Counts, n: int) -> Frequencies:
        """Of each candidate; the dummy is dropped."""
        return self.oracle.estimate(tally, n)[:-1]


@dataclass(frozen=True, slots=True)
class Search:
    """How the prefixes grow."""

    most: int
    """How many heavy hitters are wanted."""
    rounds: int = 0
    """Groups of users; 0: as many as the domain's bits suggest, two bits a round."""


def find_heavy_hitters(
    fleet: Fleet,
    attribute: Attribute,
    epsilon: object,
    *,
    search: Search,
    how: Round,
    make: MakeOracle,
) -> Release:
    """Extend the frequent prefixes, group by group, to whole codes."""
    require_at_least(1, most=search.most)
    total = require_epsilon(epsilon)
    lengths = _lengths(attribute.size, search)
    rest = (attribute.name, str(total), search.most, lengths, how.participation.parameters)
    name = name_of("heavy hitters", how.seed, (), *rest)
    survivors: NDArray[np.int64] = np.zeros(1, np.int64)
    known, asked, turnouts = 0, list[CollectRequest](), list[Turnout]()
    for number, length in enumerate(lengths):
        shift = lengths[-1] - length
        candidates = _extend(survivors, length - known, shift, attribute.size)
        oracle = PrefixOracle(
            tuple(map(int, candidates)), shift, attribute.size, make(candidates.size + 1, total)
        )
        question = f"prefixes of {attribute.name}, {candidates.size} candidates"
        asked.append(
            CollectRequest(
                name, number, question, (Item((attribute,), oracle),),
                participation=how.participation, group=Group(number, len(lengths)),
            )
        )  # fmt: skip
        collected = collect(fleet, asked[-1])
        turnouts.append(collected.turnout)
        ((n, tally),) = collected.tallies
        shares = oracle.estimate(tally, n) if n else np.zeros(candidates.size)
        best = np.argsort(-shares, kind="stable")[: 2 * search.most]
        survivors, known = np.sort(candidates[best]), length
    rows = _rows(attribute, oracle, shares, n, search.most)
    return Release(settle(fleet, asked, _sum(turnouts)), tuple(rows))


def _sum(turnouts: list[Turnout]) -> Turnout:
    """Of all groups together."""
    return Turnout(*(sum(part) for part in zip(*map(astuple, turnouts), strict=True)))


def _lengths(size: int, search: Search) -> list[int]:
    """Bits of the prefix after each round; the last ones are the whole code."""
    bits = max(1, (size - 1).bit_length())
    rounds = min(bits, search.rounds or max(1, (bits + 1) // 2))
    return [-(-bits * (number + 1) // rounds) for number in range(rounds)]


def _extend(
    survivors: NDArray[np.int64], more: int, shift: int, size: int
) -> NDArray[np.int64]:
    """All prefixes that are ``more`` bits longer than a survivor and begin some code."""
    longer = ((survivors[:, None] << more) + np.arange(1 << more)).ravel()
    return longer[longer <= (size - 1) >> shift]


def _rows(
    attribute: Attribute, oracle: PrefixOracle, shares: Frequencies, n: int, most: int
) -> list[Row]:
    labels = attribute.labels
    rows = []
    for place in np.argsort(-shares, kind="stable")[:most]:
        share = float(shares[place])
        error = oracle.oracle.variance(n, float(np.clip(share, 0, 1))) ** 0.5 if n else None
        label = labels[oracle.candidates[place]]
        rows.append(Row(attribute.name, label, share if n else None, error))
    return rows
