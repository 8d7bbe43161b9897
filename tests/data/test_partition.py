"""Blocks to shards: all of them, once, in order, evenly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import blocks_of
from dpsim.data.partition import partition


@given(st.integers(0, 200), st.integers(1, 50))
def test_every_block_has_one_owner_and_runs_are_even_and_in_order(n, shards):
    blocks = blocks_of(n, 1)
    runs = partition(blocks, shards)
    assert len(runs) == shards
    assert tuple(block for run in runs for block in run) == blocks
    sizes = [len(run) for run in runs]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("shards", [0, -1, 1.0])
def test_no_shards_is_refused_by_name(shards):
    with pytest.raises(InputError, match="shards must be a whole number >= 1"):
        partition((), shards)
