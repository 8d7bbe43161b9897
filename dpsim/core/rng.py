"""Randomness with an address: the only maker of random bits.

A draw is found by (seed, purpose, plan hash, subject) and a position, and by nothing else:
never by shard, block, worker or attempt. So a retry repeats its bits, and a second question
gets independent ones. Only the raw integer stream of Philox is used: numpy keeps it stable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Draws
from dpsim.core.records import Block

RNG_VERSION = "dpsim-rng-v1"

Address: TypeAlias = tuple[int, str, str, str | int]
"""Seed, purpose, plan hash, subject."""


class Purpose(StrEnum):
    """What a draw is for; one purpose never sees another's bits."""

    DATA = "data"
    STRUCTURE = "structure"
    PERTURB = "perturb"
    DROPOUT = "dropout"
    LATENCY = "latency"


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

    def part(self, block: Block) -> ClientNoise:
        """The same noise for some of the block's users."""
        return ClientNoise(self.seed, self.plan_hash, block)
