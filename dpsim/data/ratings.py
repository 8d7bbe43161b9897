"""Ratings of consecutive users: their scale, a sparse piece, and where they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import Any, NoReturn, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes
from dpsim.core.errors import InputError
from dpsim.core.exact import exact, text_of
from dpsim.core.records import Block

MAX_LEVELS = 1 << 16


@dataclass(frozen=True, slots=True)
class RatingScale:
    """The public grid of ratings: ``lo, lo + step, …, hi``; a code counts steps from ``lo``."""

    lo: Fraction
    hi: Fraction
    step: Fraction

    def __init__(self, lo: object, hi: object, step: object = 1) -> None:
        low, high, width = exact(lo, "lo"), exact(hi, "hi"), exact(step, "step")
        if width <= 0:
            raise InputError(f"step must be > 0, got {step}")
        if high <= low:
            raise InputError(f"hi must be > lo, got lo={lo} and hi={hi}")
        if (high - low) % width:
            raise InputError(
                f"hi must lie whole steps above lo, got {lo}, {hi} and step {step}"
            )
        if (high - low) / width >= MAX_LEVELS:
            raise InputError(f"a scale must have at most {MAX_LEVELS} levels")
        object.__setattr__(self, "lo", low)
        object.__setattr__(self, "hi", high)
        object.__setattr__(self, "step", width)

    @property
    def levels(self) -> int:
        """How many ratings the grid has."""
        return int((self.hi - self.lo) / self.step) + 1

    @property
    def span(self) -> float:
        """From the lowest to the highest rating."""
        return float(self.hi - self.lo)

    @property
    def code_type(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds every code."""
        return np.min_scalar_type(self.levels - 1)

    def values(self, codes: Codes) -> NDArray[np.float64]:
        """The ratings that the codes stand for, each rounded once."""
        grid = [float(self.lo + code * self.step) for code in range(self.levels)]
        return np.array(grid)[codes]

    @property
    def unit(self) -> Fraction:
        """The largest number of which every rating is a whole multiple."""
        low, width = self.lo, self.step
        below = lcm(low.denominator, width.denominator)
        above = gcd(int(low * below), int(width * below))
        return Fraction(above, below)

    def units(self, codes: Codes) -> NDArray[np.float64]:
        """The ratings in units: whole numbers, whose sums and products are exact."""
        grid = [float((self.lo + code * self.step) / self.unit) for code in range(self.levels)]
        return np.array(grid)[codes]

    def __str__(self) -> str:
        return f"{text_of(self.lo)} to {text_of(self.hi)} by {text_of(self.step)}"


@dataclass(frozen=True, slots=True, eq=False)
class RatingPiece:
    """The ratings of consecutive users from a global index on, as compressed sparse rows.

    User ``start + u`` rated ``items[indptr[u]:indptr[u + 1]]``, ascending and each once, with
    ``codes`` at the same places. What is not listed is not rated: no rating stands for that.
    """

    start: int
    indptr: NDArray[np.int64] = field(repr=False)
    items: NDArray[np.int32] = field(repr=False)
    codes: Codes = field(repr=False)

    def __post_init__(self) -> None:
        types = self.indptr.dtype.str[1:], self.items.dtype.str[1:], self.codes.dtype.kind
        if types != ("i8", "i4", "u"):
            raise InputError("a piece needs indptr int64, items int32 and unsigned codes")
        if not self.indptr.size or self.indptr[0] != 0 or np.any(np.diff(self.indptr) < 0):
            raise InputError("indptr must begin with 0 and never fall")
        if not self.indptr[-1] == self.items.size == self.codes.size:
            raise InputError("items and codes must be as long as indptr says")

    @property
    def n(self) -> int:
        """How many users."""
        return self.indptr.size - 1

    @property
    def block(self) -> Block:
        """Whose ratings these are."""
        return Block(self.start, self.n)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many ratings each user gave."""
        return np.diff(self.indptr)

    @property
    def users(self) -> NDArray[np.int64]:
        """The global index of the user of each rating."""
        return np.repeat(np.arange(self.start, self.start + self.n), self.sizes)

    def part(self, block: Block) -> RatingPiece:
        """The ratings of some of the users: views of the arrays."""
        if block.start < self.start or block.stop > self.start + self.n:
            raise InputError(f"users {block.start}..{block.stop - 1} are not in this piece")
        first, last = block.start - self.start, block.stop - self.start
        indptr = self.indptr[first : last + 1]
        low, high = int(indptr[0]), int(indptr[-1])
        return RatingPiece(
            block.start, indptr - low, self.items[low:high], self.codes[low:high]
        )

    def keep(self, kept: NDArray[np.bool_]) -> RatingPiece:
        """The same users with some of their ratings."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)])
        return RatingPiece(self.start, ends[self.indptr], self.items[kept], self.codes[kept])


def no_users(start: int, scale: RatingScale) -> RatingPiece:
    """The ratings of nobody."""
    ends, items = np.zeros(1, np.int64), np.zeros(0, np.int32)
    return RatingPiece(start, ends, items, np.zeros(0, scale.code_type))


def require_piece(piece: RatingPiece, n_items: int, scale: RatingScale) -> RatingPiece:
    """The piece, if its items ascend within each user and lie, like its codes, in range."""
    items, codes = piece.items, piece.codes
    if items.size and (int(items.min()) < 0 or int(items.max()) >= n_items):
        raise InputError(f"items must lie in 0..{n_items - 1}, the public catalog")
    if codes.size and int(codes.max()) >= scale.levels:
        raise InputError(f"codes must lie in 0..{scale.levels - 1}, the levels of the scale")
    falls = np.flatnonzero(np.diff(items) <= 0) + 1
    starts = np.zeros(items.size + 1, np.bool_)
    starts[piece.indptr] = True
    if not starts[falls].all():
        raise InputError("the items of each user must ascend, without repetition")
    return piece


def join(pieces: list[RatingPiece]) -> RatingPiece:
    """Pieces of consecutive users, in order, as one."""
    for before, after in pairwise(pieces):
        if before.start + before.n != after.start:
            raise InputError(f"a piece must begin at user {before.start + before.n}")
    if len(pieces) == 1:
        return pieces[0]
    sizes = np.concatenate([piece.sizes for piece in pieces])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    items = np.concatenate([piece.items for piece in pieces])
    return RatingPiece(
        pieces[0].start, indptr, items, np.concatenate([piece.codes for piece in pieces])
    )


class PrivateRatings:
    """The true ratings of one block's users. An opaque holder: no pickle, no text.

    ``open`` is the one way to them, for mechanisms inside the shard and for evaluation.
    """

    __slots__ = ("_block", "_open")

    def __init__(self, block: Block, opener: Callable[[Block], RatingPiece]) -> None:
        self._block = block
        self._open = opener

    @property
    def block(self) -> Block:
        """Whose ratings these are."""
        return self._block

    def open(self) -> RatingPiece:
        """The ratings as sparse rows."""
        return self._open(self._block)

    def part(self, block: Block) -> PrivateRatings:
        """The ratings of some of the block's users."""
        return PrivateRatings(block, self._open)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("private ratings must not leave their shard")

    def __repr__(self) -> str:
        return f"PrivateRatings({self._block.n} users)"

    def __format__(self, spec: str) -> str:
        return repr(self)


class RatingSource(Protocol):
    """Where a shard finds its users' ratings: a small value that can be sent to it."""

    @property
    def scale(self) -> RatingScale:
        """The public grid of ratings."""

    @property
    def n(self) -> int:
        """How many users there are."""

    @property
    def n_items(self) -> int:
        """The size of the public catalog."""

    @property
    def block_size(self) -> int:
        """Users per block; fixed for the life of a run."""

    @property
    def fingerprint(self) -> str:
        """A name for the data's bits, whatever the block size."""

    def read(self, block: Block) -> PrivateRatings:
        """The ratings of one block; an `IntegrityError` if they are not the known ones."""


def read_users(source: RatingSource, users: Block) -> RatingPiece:
    """Users who may lie in several blocks, in one piece: for whoever is trusted with them."""
    size, start = source.block_size, users.start
    pieces: list[RatingPiece] = []
    while start < users.stop:
        stop = min(users.stop, (start // size + 1) * size)
        pieces.append(source.read(Block(start, stop - start)).open())
        start = stop
    return join(pieces) if pieces else no_users(users.start, source.scale)
