"""Some of a source's ratings, chosen without looking: to learn from, or to test on."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least, require_share
from dpsim.core.exact import Number, exact
from dpsim.core.records import Block
from dpsim.core.rng import Purpose, draws_at
from dpsim.data.ratings import PrivateRatings, RatingPiece, RatingScale, RatingSource

_DRAWS_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class RatingSplit:
    """The ratings outside a share that is held out, or those inside it; the same users.

    Where a rating belongs depends on the seed, the user's index and the item alone: not on the
    block, and not on the user's other ratings.
    """

    source: RatingSource
    share: Number
    seed: int = 0
    is_held_out: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", require_share(self.share, "share"))
        require_at_least(0, seed=self.seed)

    @property
    def scale(self) -> RatingScale:
        """The source's."""
        return self.source.scale

    @property
    def n(self) -> int:
        """The source's: a user may be left without ratings."""
        return self.source.n

    @property
    def n_items(self) -> int:
        """The source's."""
        return self.source.n_items

    @property
    def block_size(self) -> int:
        """The source's."""
        return self.source.block_size

    @property
    def fingerprint(self) -> str:
        """A name for the data and the choice."""
        text = f"{self.source.fingerprint} {self.share} {self.seed} {self.is_held_out}"
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def read(self, block: Block) -> PrivateRatings:
        """The chosen ratings of one block."""
        return PrivateRatings(block, self._open)

    def _open(self, block: Block) -> RatingPiece:
        piece = self.source.read(block).open()
        held = held_out(piece, self.n_items, self.share, self.seed)
        return piece.keep(held if self.is_held_out else ~held)


def held_out(piece: RatingPiece, n_items: int, share: Number, seed: int) -> NDArray[np.bool_]:
    """Whether each rating is held out: its draw, at ``user · n_items + item``, is below."""
    address = (seed, Purpose.SAMPLE.value, "", "\0held out ratings")
    threshold = np.uint64(int(exact(share, "share") * 2**32))
    held = np.zeros(piece.items.size, np.bool_)
    for block in piece.block.parts(max(1, _DRAWS_AT_ONCE // n_items)):
        first, last = piece.indptr[[block.start - piece.start, block.stop - piece.start]]
        part = piece.part(block)
        draws = draws_at(address, block.start * n_items, block.n * n_items)
        held[first:last] = draws[(part.users - block.start) * n_items + part.items] < threshold
    return held
