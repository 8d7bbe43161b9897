"""Audits through a fleet: what the sums of a round prove about the shards that made them.

The path is the one of every run: a source, shards, an aggregator. Only tallies come back, so
the secret bits are asked in two arms, and noise that shards share shows in whose code is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import log, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.records import RecordSource
from dpsim.data.secret_bits import SECRET, OwnCodes, SecretBits
from dpsim.evaluation.audit_sampled import AuditResult, AuditSettings, Hits, judge
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import FrequencyOracle, Randomizer
from dpsim.protocols.base import Fleet
from dpsim.protocols.collect import CollectRequest, Item, collect, name_of

WORST_Z = 6.5
"""Beyond it two blocks are taken to share noise: 8·10^-11 per pair by chance."""

_CODES_PER_USER = 20
_KEPT_ODDS = 3

Ask: TypeAlias = Callable[[RecordSource, Randomizer, int], Counts]
"""The tally of one round: a mechanism on the secret of every user of a source, and a seed."""


def audit_request(source: RecordSource, mechanism: Randomizer) -> CollectRequest:
    """The round that an audit asks for: one mechanism on the one attribute."""
    item = Item((source.schema[SECRET],), mechanism)
    name = name_of("audit", 0, (item,))
    return CollectRequest(name, 0, "secrets made for an audit", (item,))


def ask_fleet(fleet: Fleet, mechanism: Randomizer) -> Counts:
    """The tally of all the fleet's users."""
    ((_, tally),) = collect(fleet, audit_request(fleet.source, mechanism)).tallies
    return tally


def audit_round(
    ask: Ask,
    oracle: FrequencyOracle,
    claim: Fraction | float,
    settings: AuditSettings,
    block_size: int = 1 << 16,
) -> AuditResult:
    """Ask the users of each secret bit for their codes: reports of code 1 guess bit 1.

    Each arm has its own seed, so that one bit's users never draw what the other's do. A report
    of `GRR` names one code, and those of code 0 guess bit 0. Reports of other oracles may
    support both codes, and a tally cannot tell: there only code 1 is a guess.
    """
    codes = (0, 1)
    if oracle.domain_size <= max(codes):
        raise InputError("an audit needs two codes to tell apart")
    if oracle.tally_size != oracle.domain_size:
        raise InputError("an audit through shards needs a tally with one count per code")
    arms: list[int] = []
    for bit in (1, 0):
        source = SecretBits(
            settings.trials, bit, codes, oracle.domain_size, settings.seed, block_size
        )
        tally = ask(source, oracle, 2 * settings.seed + bit)
        zeros = int(tally[codes[0]]) if isinstance(oracle, GRR) else 0
        arms += [source.n, int(tally[codes[1]]), zeros]
    name = f"{type(oracle).__name__} through shards"
    return judge(name, Hits(*arms), claim, settings.alpha)


@dataclass(frozen=True, slots=True)
class Independence:
    """The correlation of what was kept, between any two blocks of as many users."""

    blocks: int
    worst_z: float
    pair: tuple[int, int]

    @property
    def is_violation(self) -> bool:
        """Whether two blocks share their noise."""
        return abs(self.worst_z) > WORST_Z

    @property
    def verdict(self) -> str:
        """In words."""
        if self.is_violation:
            return f"VIOLATION: blocks {self.pair[0]} and {self.pair[1]} share noise"
        worst = f"largest |z| {abs(self.worst_z):.1f}"
        return f"no shared noise found in {self.blocks} blocks; {worst}"


def independence(kept: NDArray[np.generic]) -> Independence:
    """One row per block, one column per place: z = r √n for every pair of rows."""
    rows = np.asarray(kept, np.float64)
    require_at_least(2, blocks=rows.shape[0])
    require_at_least(2, users_per_block=rows.shape[1])
    deviations = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.sqrt((deviations**2).sum(axis=1))
    if not lengths.all():
        raise InputError("a block's reports are all kept or all changed: nothing to compare")
    scores = (deviations @ deviations.T) / np.outer(lengths, lengths) * sqrt(rows.shape[1])
    pair = max(combinations(range(rows.shape[0]), 2), key=lambda ij: abs(scores[ij]))
    return Independence(rows.shape[0], float(scores[pair]), pair)


def audit_independence(
    ask: Ask, blocks: int, seed: int = 0, users_per_block: int = 1000
) -> Independence:
    """One round in which every user holds a code of its own: was it kept?

    The domain is twenty times as large as the number of users, so few lies fall on a code in
    use; ε keeps three codes of four.
    """
    n = require_at_least(2, blocks=blocks) * require_at_least(
        2, users_per_block=users_per_block
    )
    domain_size = _CODES_PER_USER * n
    epsilon = Fraction(round(100 * log(_KEPT_ODDS * domain_size)), 100)
    source = OwnCodes(n, domain_size, users_per_block)
    tally = ask(source, GRR(domain_size, epsilon), seed)
    return independence(tally[:n].reshape(blocks, users_per_block))
