"""Users made for audits: their record is a secret bit, or a code that nobody else holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes
from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.records import Block, PrivateRecords
from dpsim.core.rng import Purpose, words_at
from dpsim.core.schema import Attribute, CodeRange, Schema

SECRET = "secret"  # noqa: S105 - an attribute's name
"""The name of the only attribute."""


def secret_bits(seed: int, subject: str, n: int) -> NDArray[np.uint8]:
    """One fair bit for each of n trials."""
    words = words_at((seed, Purpose.AUDIT.value, "", subject), 0, -(-n // 64))
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), count=n)


@dataclass(frozen=True, slots=True)
class SecretBits:
    """The users of one arm of an audit: those of ``trials`` users whose fair bit is ``bit``.

    A shard returns sums only, so nobody can tell there which reports came from which bit. The
    two arms are asked one after the other instead: all users of an arm hold the same code of
    the domain, and how many they are is what the fair bits decide.
    """

    trials: int
    bit: int
    codes: tuple[int, int]
    """What is held for bit 0, and for bit 1."""
    domain_size: int
    seed: int = 0
    block_size: int = 1 << 16

    def __post_init__(self) -> None:
        require_at_least(0, trials=self.trials)
        require_at_least(1, block_size=self.block_size)
        if self.bit not in {0, 1}:
            raise InputError(f"bit must be 0 or 1, got {self.bit!r}")
        if not all(0 <= code < self.domain_size for code in self.codes):
            raise InputError(f"codes must be within 0..{self.domain_size - 1}")

    @property
    def schema(self) -> Schema:
        """One attribute, with a declared domain."""
        return _schema(self.domain_size)

    @property
    def n(self) -> int:
        """How many of the trials have this bit."""
        ones = _ones(self.seed, self.trials)
        return ones if self.bit else self.trials - ones

    @property
    def fingerprint(self) -> str:
        """A name for the data: what they were made from."""
        parts = (self.trials, self.bit, self.codes, self.domain_size, self.seed)
        return _name("secret bits", *parts)

    def read(self, block: Block) -> PrivateRecords:
        """The block's users: the same code for all of them."""
        code = self.codes[self.bit]

        def codes(part: Block) -> Codes:
            return np.full(part.n, code, np.min_scalar_type(self.domain_size - 1))

        return _records(block, self.n, codes)


@dataclass(frozen=True, slots=True)
class OwnCodes:
    """Users who each hold a code of their own, in a domain that is far larger.

    Then the tally itself tells whose code was kept: lies rarely fall on a code in use. So
    noise that two blocks share can be seen from outside, in the sums of a round.
    """

    n: int
    domain_size: int
    block_size: int = 1 << 16

    def __post_init__(self) -> None:
        require_at_least(0, n=self.n)
        require_at_least(1, block_size=self.block_size)
        require_at_least(max(1, self.n), domain_size=self.domain_size)

    @property
    def schema(self) -> Schema:
        """One attribute, with a declared domain."""
        return _schema(self.domain_size)

    @property
    def fingerprint(self) -> str:
        """A name for the data: what they were made from."""
        return _name("own codes", self.n, self.domain_size)

    def read(self, block: Block) -> PrivateRecords:
        """The block's users: each holds its own index."""
        code_type = np.min_scalar_type(self.domain_size - 1)
        return _records(
            block, self.n, lambda part: np.arange(part.start, part.stop).astype(code_type)
        )


def _schema(domain_size: int) -> Schema:
    return Schema((Attribute(SECRET, CodeRange(domain_size)),), origin="generated")


def _records(block: Block, n: int, codes: Callable[[Block], Codes]) -> PrivateRecords:
    if block.stop > n:
        raise InputError(f"there are {n} users, not {block.stop}")

    def columns(part: Block) -> Callable[[str], Codes]:
        return lambda _attribute: codes(part)

    return PrivateRecords(block, columns)


@lru_cache(maxsize=64)
def _ones(seed: int, trials: int) -> int:
    return int(secret_bits(seed, SECRET, trials).sum(dtype=np.int64))


def _name(*parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()
