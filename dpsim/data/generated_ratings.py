"""Ratings made by user index from planted tastes: nothing is stored, the truth is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from math import log

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import Purpose, words_at
from dpsim.data._item_kernels import choose_items, normals, rate_items
from dpsim.data.ratings import PrivateRatings, RatingPiece, RatingScale, join, no_users

_SCALE = RatingScale(1, 5)
_CENTER = 3.5
_ITEM_SPREAD, _USER_SPREAD, _NOISE = 0.5, 0.4, 0.75
_POPULARITY, _ACTIVITY = 0.8, 0.8
_FACTOR_SHARE = 0.25
_LEAST, _MOST = 10, 0.6
_WORDS_AT_ONCE = 1 << 22
_BLOCK_SIZES = (1 << 9, 1 << 16)
_KEYS = {"users": 10_000, "items": 500, "mean": 40, "factors": 6, "seed": 0}


@dataclass(frozen=True, slots=True, eq=False)
class PlantedItems:
    """The item side of the truth: popularity shares, biases b and tastes q."""

    popularity: NDArray[np.float64] = field(repr=False)
    biases: NDArray[np.float64] = field(repr=False)
    tastes: NDArray[np.float64] = field(repr=False)
    factor_share: float = _FACTOR_SHARE
    """The variance that tastes give to a rating."""


@dataclass(frozen=True)
class GeneratedRatings:
    """Users who rate what they meet, by planted tastes.

    In formulas::

        popularity ∝ rank^-0.8, shuffled          b_i ~ N(0, 0.5²)    q_i ~ N(0, I)
        n_u = lognormal(ln mean - 0.32, 0.8)      b_u ~ N(0, 0.4²)    p_u ~ N(0, I)
        rating = round(3.5 + b_i + b_u + ½ p_u·q_i / √factors + N(0, 0.75²)), clipped to 1..5

    n_u is clipped to 10 and 60 % of the catalog; the items are drawn by popularity without
    replacement. A user is a function of the seed and the user's index alone, so any shard can
    make any user, and the ratings are the same for every block size. Making a user takes a
    word per item of the catalog.
    """

    n_users: int
    n_items: int = 500
    mean: int = 40
    factors: int = 6
    seed: int = 0
    block_size: int = 0

    def __post_init__(self) -> None:
        require_at_least(0, n_users=self.n_users)
        require_at_least(2, n_items=self.n_items)
        require_at_least(1, mean=self.mean)
        require_at_least(1, factors=self.factors)
        require_at_least(0, seed=self.seed)
        size = require_at_least(0, block_size=self.block_size) or _block_size(self._width)
        object.__setattr__(self, "block_size", size)

    @property
    def n(self) -> int:
        """How many users there are."""
        return self.n_users

    @property
    def scale(self) -> RatingScale:
        """1 to 5 by 1."""
        return _SCALE

    @property
    def description(self) -> str:
        """The text that `parse_ratings` reads."""
        values = (self.n_users, self.n_items, self.mean, self.factors, self.seed)
        pairs = zip(_KEYS, values, strict=True)
        return "ratings:" + ",".join(f"{key}={value}" for key, value in pairs)

    @property
    def fingerprint(self) -> str:
        """A name for the data: what they were made from."""
        return blake2b(f"ratings-v1\n{self.description}".encode(), digest_size=16).hexdigest()

    @property
    def truth(self) -> PlantedItems:
        """The planted item side."""
        return _planted_items(self.n_items, self.factors, self.seed)

    def read(self, block: Block) -> PrivateRatings:
        """Make the block's users when they are opened."""
        if block.stop > self.n_users:
            raise InputError(f"there are {self.n_users} users, not {block.stop}")
        return PrivateRatings(block, self._open)

    def planted(self, piece: RatingPiece) -> NDArray[np.float64]:
        """What each rating of the piece is before its noise: the best possible prediction."""
        parts = piece.block.parts(self._users_at_once)
        values = [self._planted(piece.part(part), self._words(part)) for part in parts]
        return np.concatenate(values) if values else np.zeros(0)

    @property
    def _most(self) -> int:
        return max(1, int(_MOST * self.n_items))

    @property
    def _width(self) -> int:
        return sum(self._widths)

    @property
    def _widths(self) -> tuple[int, int, int, int]:
        """Words per user: activity and bias, tastes, items, noise; normals come in pairs."""
        return 2, 2 * -(-self.factors // 2), self.n_items, 2 * -(-self._most // 2)

    @property
    def _users_at_once(self) -> int:
        return max(1, _WORDS_AT_ONCE // self._width)

    def _words(self, block: Block) -> NDArray[np.uint64]:
        address = (self.seed, Purpose.DATA.value, "", "ratings")
        flat = words_at(address, block.start * self._width, block.n * self._width)
        return flat.reshape(block.n, self._width)

    def _open(self, block: Block) -> RatingPiece:
        parts = [self._make(part) for part in block.parts(self._users_at_once)]
        return join(parts) if parts else no_users(block.start, _SCALE)

    def _make(self, block: Block) -> RatingPiece:
        words = self._words(block)
        first, second, third, _ = np.cumsum(self._widths)
        activity = normals(words[:, :first])[:, 0]
        typical = np.exp(log(self.mean) - _ACTIVITY**2 / 2 + _ACTIVITY * activity)
        sizes = np.clip(np.rint(typical), min(_LEAST, self._most), self._most)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        items = choose_items(words[:, second:third], self.truth.popularity, indptr)
        piece = RatingPiece(block.start, indptr, items, np.zeros(items.size, np.uint8))
        noise = _NOISE * normals(words[:, third:])
        codes = rate_items(self._planted(piece, words), noise, indptr)
        return RatingPiece(block.start, indptr, items, codes)

    def _planted(self, piece: RatingPiece, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        first, second = self._widths[0], sum(self._widths[:2])
        biases = _USER_SPREAD * normals(words[:, :first])[:, 1]
        tastes = normals(words[:, first:second])[:, : self.factors]
        truth = self.truth
        users = piece.users - piece.start
        planted: NDArray[np.float64] = _CENTER + truth.biases[piece.items] + biases[users]
        for factor in range(self.factors):  # a sum in this order, whatever the block
            share = (_FACTOR_SHARE / self.factors) ** 0.5
            planted += share * tastes[users, factor] * truth.tastes[piece.items, factor]
        return planted


def parse_ratings(text: str, block_size: int = 0) -> GeneratedRatings:
    """The ratings that ``ratings:users=10000,items=500,mean=40,seed=0`` describes."""
    kind, _, rest = text.partition(":")
    if kind != "ratings":
        raise InputError(f"generated ratings are described by ratings:…, got {text!r}")
    values = dict(_KEYS)
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in values:
            raise InputError(
                f"ratings: {item!r} is not understood; write key=value with {', '.join(_KEYS)}"
            )
        values[key] = _whole(key, value)
    users, items, mean, factors, seed = values.values()
    return GeneratedRatings(users, items, mean, factors, seed, block_size)


def is_generated_ratings(text: str) -> bool:
    """Whether a description names generated ratings rather than a file."""
    return text.partition(":")[0] == "ratings"


def _whole(key: str, text: str) -> int:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = -1.0
    if number < 0 or number % 1 != 0:  # which refuses infinity too
        raise InputError(f"{key} must be a whole number >= 0, got {text!r}")
    return int(number)


def _block_size(width: int) -> int:
    size = _BLOCK_SIZES[0]
    while size < min(_BLOCK_SIZES[1], 2 * _WORDS_AT_ONCE // width):
        size *= 2
    return size


@lru_cache(maxsize=4)
def _planted_items(n_items: int, factors: int, seed: int) -> PlantedItems:
    def words(subject: str, n: int) -> NDArray[np.uint64]:
        return words_at((seed, Purpose.STRUCTURE.value, "", f"ratings {subject}"), 0, n)

    ranks = np.empty(n_items)
    ranks[np.argsort(words("order", n_items), kind="stable")] = np.arange(1, n_items + 1)
    weights = ranks**-_POPULARITY
    even = n_items + n_items % 2
    biases = _ITEM_SPREAD * normals(words("biases", even)[None])[0, :n_items]
    width = 2 * -(-factors // 2)
    tastes = normals(words("tastes", n_items * width).reshape(n_items, width))[:, :factors]
    return PlantedItems(weights / weights.sum(), biases, tastes)
