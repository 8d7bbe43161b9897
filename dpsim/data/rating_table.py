"""All ratings in memory, with the labels of users and items: what files are read into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.data.ratings import PrivateRatings, RatingPiece, RatingScale, require_piece

DEFAULT_BLOCK_SIZE = 1 << 13


@dataclass(frozen=True, eq=False, repr=False)
class RatingTable:
    """Ratings of users 0..n-1 on a public catalog and scale. It is a source of ratings, too.

    It stays in its process: to share its users among shards, write it to a `RatingStore`.
    """

    scale: RatingScale
    catalog: tuple[str, ...]
    """The label of each item: public, and fixed before any rating is seen."""
    users: tuple[str, ...]
    """The label of each user."""
    piece: RatingPiece
    rows: NDArray[np.int64]
    """Where each rating stood in the file, from 0 on: for splits that are defined by rows."""
    times: NDArray[np.int64] | NDArray[np.float64] | None = None
    block_size: int = field(default=DEFAULT_BLOCK_SIZE)

    def __post_init__(self) -> None:
        require_at_least(1, block_size=self.block_size)
        if self.piece.start or self.piece.n != len(self.users):
            raise InputError("the piece must hold the ratings of all users, from user 0 on")
        sizes = {column.size for column in (self.rows, self.times) if column is not None}
        if sizes != {self.piece.items.size}:
            raise InputError("rows and times must have one entry per rating")
        require_piece(self.piece, self.n_items, self.scale)

    @property
    def n(self) -> int:
        """How many users there are."""
        return self.piece.n

    @property
    def n_items(self) -> int:
        """The size of the public catalog."""
        return len(self.catalog)

    @cached_property
    def fingerprint(self) -> str:
        """A name for the ratings' bits, whatever the block size."""
        digest = blake2b(f"{self.scale}\n{self.n_items}\n{self.n}\n".encode(), digest_size=16)
        for column in (self.piece.indptr, self.piece.items, self.piece.codes):
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    def read(self, block: Block) -> PrivateRatings:
        """The ratings of one block."""
        if block.stop > self.n:
            raise InputError(f"there are {self.n} users, not {block.stop}")
        return PrivateRatings(block, self.piece.part)

    def keep(self, kept: NDArray[np.bool_]) -> RatingTable:
        """The same users and catalog with some of the ratings."""
        times = None if self.times is None else self.times[kept]
        return replace(self, piece=self.piece.keep(kept), rows=self.rows[kept], times=times)

    def split_rows(self, rows: Sequence[int]) -> tuple[RatingTable, RatingTable]:
        """The other ratings, and those that stood in the given rows of the file."""
        chosen = np.isin(self.rows, np.asarray(rows, np.int64))
        return self.keep(~chosen), self.keep(chosen)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("private ratings must not leave their process; write a RatingStore")

    def __repr__(self) -> str:
        shape = f"{self.n} users, {self.n_items} items, {self.piece.items.size} ratings"
        return f"RatingTable({shape}, {self.scale})"
