"""Blocks to shards: contiguous runs, as even as can be."""

from __future__ import annotations

from collections.abc import Sequence

from dpsim.core.checks import require_at_least
from dpsim.core.records import Block


def partition(blocks: Sequence[Block], shards: int) -> list[tuple[Block, ...]]:
    """One run of blocks per shard; some are empty if there are more shards than blocks."""
    require_at_least(1, shards=shards)
    borders = [len(blocks) * shard // shards for shard in range(shards + 1)]
    return [tuple(blocks[borders[i] : borders[i + 1]]) for i in range(shards)]
