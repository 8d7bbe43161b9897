"""Users kept apart: chosen without looking, disjoint from the others, together all."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.records import Block, blocks_of
from dpsim.data.hold_out import HoldOut
from dpsim.data.sources import parse_generated

DATA = "planted:n=2000,d=3,k=4"
USERS = parse_generated(DATA, 300)
FIFTH = Fraction(1, 5)


def rows(source):
    parts = [
        [source.read(block).open(name) for name in source.schema.names]
        for block in blocks_of(source.n, source.block_size)
    ]
    return np.concatenate([np.stack(part) for part in parts], axis=1)


def test_both_parts_together_are_all_users_in_their_order():
    kept, apart = HoldOut(USERS, FIFTH), HoldOut(USERS, FIFTH, is_held_out=True)
    assert kept.n + apart.n == USERS.n
    assert abs(apart.n - 400) < 5 * 18
    everybody = rows(USERS)
    both = np.concatenate([rows(kept), rows(apart)], axis=1)
    assert np.array_equal(np.sort(both, axis=1), np.sort(everybody, axis=1))
    places = np.flatnonzero(
        (everybody[:, :, None] == rows(kept)[:, None, :1]).all(axis=0)[:, 0]
    )
    assert places.size


@given(st.integers(0, 3), st.integers(1, 2500))
def test_the_choice_depends_on_the_seed_and_never_on_the_blocks(seed, block_size):
    one, other = (
        HoldOut(USERS, FIFTH, seed),
        HoldOut(parse_generated(DATA, block_size), FIFTH, seed),
    )
    assert np.array_equal(rows(one), rows(other))
    assert one.fingerprint == other.fingerprint


def test_names_tell_source_share_seed_and_side_apart():
    names = {
        HoldOut(USERS, FIFTH).fingerprint,
        HoldOut(USERS, FIFTH, 1).fingerprint,
        HoldOut(USERS, Fraction(1, 4)).fingerprint,
        HoldOut(USERS, FIFTH, is_held_out=True).fingerprint,
        USERS.fingerprint,
    }
    assert len(names) == 5


@pytest.mark.parametrize("start", [0, 700, 1500])
def test_a_part_of_a_block_holds_its_own_users(start):
    kept = HoldOut(USERS, FIFTH)
    whole = rows(kept)[0]
    part = kept.read(Block(0, kept.n)).part(Block(start, 10)).open("a0")
    assert np.array_equal(part, whole[start : start + 10])
