"""Randomness with an address: the only maker of random bits.

A draw is found by (seed, purpose, plan hash, subject) and a position, and by nothing else:
never by shard, block, worker or attempt. So a retry repeats its bits, and a second question
gets independent ones. Only the raw integer stream of Philox is used: numpy keeps it stable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Draws
from dpsim.core.records import Block

RNG_VERSION = "dpsim-rng-v1"
AGGREGATE_UNIT = 1 << 20
"""Users whose counts are drawn together: fixed, so that no layout changes a result."""

Address: TypeAlias = tuple[int, str, str, str | int]
"""Seed, purpose, plan hash, subject."""


class Purpose(StrEnum):
    """What a draw is for; one purpose never sees another's bits."""

    DATA = "data"
    STRUCTURE = "structure"
    PERTURB = "perturb"
    DROPOUT = "dropout"
    LATENCY = "latency"
    SAMPLE = "sample"
    PERMANENT = "permanent"
    AGGREGATE = "aggregate"
    AUDIT = "audit"
    SELECT = "select"
    MEASURE = "measure"
    START = "start"
    PUBLISH = "publish"


def key_of(address: Address) -> NDArray[np.uint64]:
    """The two words of the Philox key that belong to an address."""
    text = json.dumps(address, separators=(",", ":"), ensure_ascii=False).encode()
    digest = blake2b(text, digest_size=16, person=RNG_VERSION.encode()).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64, copy=False)


def words_at(address: Address, start: int, n: int) -> NDArray[np.uint64]:
    """The 64-bit draws ``start .. start + n - 1`` of the address."""
    step, lead = divmod(start, 4)  # one counter step yields four words
    raw = np.random.Philox(key=key_of(address), counter=step).random_raw(lead + n)
    return raw[lead:]


def draws_at(address: Address, start: int, n: int) -> NDArray[np.uint32]:
    """The 32-bit draws ``start .. start + n - 1``: half words, the low half first."""
    first, lead = divmod(start, 2)
    words = words_at(address, first, (lead + n + 1) // 2)
    return words.astype("<u8", copy=False).view("<u4")[lead : lead + n]


@dataclass(frozen=True, slots=True)
class Stream:
    """The draws of some users at one address.

    Two ways to read it, and a mechanism uses one of them: one draw per user, from lanes that
    neighbors share (`draws`); or as many words as a user needs, from the counters
    ``(user, step, 1, 0)`` of the key, in kernels that make them (`key` and `users`).
    """

    address: Address
    users: NDArray[np.int64]
    """Global indices, ascending."""

    @property
    def key(self) -> NDArray[np.uint64]:
        """The Philox key of the address."""
        return key_of(self.address)

    def draws(self, bits: int = 32) -> Draws:
        """One draw of 32 or 64 bits per user."""
        if not self.users.size:
            return np.zeros(0, np.uint32 if bits == 32 else np.uint64)  # noqa: PLR2004
        start, n = int(self.users[0]), int(self.users[-1] - self.users[0]) + 1
        whole = (draws_at if bits == 32 else words_at)(self.address, start, n)  # noqa: PLR2004
        return whole if n == self.users.size else whole[self.users - start]


@dataclass(frozen=True, slots=True)
class UserNoise:
    """The streams that one mechanism may draw from, for some users and one attribute."""

    seed: int
    plan_hash: str
    subject: str
    users: NDArray[np.int64]

    def stream(self, purpose: Purpose = Purpose.PERTURB) -> Stream:
        """Draws of this plan: the same plan repeats them, another plan gets others."""
        return Stream((self.seed, purpose.value, self.plan_hash, self.subject), self.users)

    def permanent(self, parameters: str) -> Stream:
        """Draws without a plan: the same in every round, for reports that are memoized."""
        address = (self.seed, Purpose.PERMANENT.value, parameters, self.subject)
        return Stream(address, self.users)


@lru_cache(maxsize=2)
def _users(start: int, n: int) -> NDArray[np.int64]:
    """Consecutive indices: the same for every attribute of a chunk of users."""
    users = np.arange(start, start + n)
    users.setflags(write=False)
    return users


@dataclass(frozen=True, slots=True)
class ClientNoise:
    """The draws of one block's users under one plan, by the users' global index.

    The same plan repeats its draws, another plan gets independent ones, and neither shards,
    block size, order nor retries can change a bit.
    """

    seed: int
    plan_hash: str
    block: Block

    def draws(self, purpose: Purpose, subject: str, bits: int = 32) -> Draws:
        """One draw of 32 or 64 bits per user."""
        address = (self.seed, purpose.value, self.plan_hash, subject)
        source = draws_at if bits == 32 else words_at  # noqa: PLR2004
        return source(address, self.block.start, self.block.n)

    def of(self, subject: str, places: NDArray[np.int64] | None = None) -> UserNoise:
        """The streams for one attribute, for all of the block's users or those in places."""
        users = _users(self.block.start, self.block.n)
        users = users if places is None else users[places]
        return UserNoise(self.seed, self.plan_hash, subject, users)

    def part(self, block: Block) -> ClientNoise:
        """The same noise for some of the block's users."""
        return ClientNoise(self.seed, self.plan_hash, block)


@dataclass(frozen=True, slots=True)
class CentralNoise:
    """The draws of a central algorithm, by the candidate, query or row they are for."""

    seed: int
    plan_hash: str

    def words(
        self, purpose: Purpose, subject: str, n: int, start: int = 0
    ) -> NDArray[np.uint64]:
        """The 64-bit draws ``start .. start + n - 1`` of a subject."""
        return words_at((self.seed, purpose.value, self.plan_hash, subject), start, n)

    def uniforms(
        self, purpose: Purpose, subject: str, n: int, start: int = 0
    ) -> NDArray[np.float64]:
        """As many numbers strictly between 0 and 1, at the midpoints of a grid of 2^-52.

        With one bit more the largest midpoint would be rounded to 1.
        """
        high = self.words(purpose, subject, n, start) >> np.uint64(12)
        return (high.astype(np.float64) + 0.5) * 2.0**-52


CountGenerator: TypeAlias = np.random.Generator
"""Draws whole counts from laws like the binomial."""


def generator_at(address: Address, place: int) -> CountGenerator:
    """A generator for laws of whole counts, by the place of a unit of users.

    Its bits are stable within one version of numpy only: results say so.
    """
    return CountGenerator(np.random.Philox(key=key_of(address), counter=place << 128))
