"""Users made for audits: fair bits, arms that complement each other, codes of one's own."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block, blocks_of
from dpsim.data.secret_bits import SECRET, OwnCodes, SecretBits, secret_bits


@given(st.integers(0, 10**6), st.integers(0, 300), st.integers(0, 300))
def test_the_bits_of_fewer_trials_are_the_first_of_more(seed, n, more):
    np.testing.assert_array_equal(
        secret_bits(seed, "x", n), secret_bits(seed, "x", n + more)[:n]
    )


@pytest.mark.statistical
def test_bits_are_fair_and_belong_to_their_address():
    n = 1_000_000
    bits = secret_bits(1, "x", n)
    assert bits.dtype == np.uint8
    assert set(np.unique(bits)) == {0, 1}
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / n**0.5
    assert abs(np.mean(bits[1:] == bits[:-1]) - 0.5) < 5 * 0.5 / n**0.5
    for other in (secret_bits(2, "x", n), secret_bits(1, "y", n)):
        assert abs(np.mean(bits == other) - 0.5) < 5 * 0.5 / n**0.5


@given(st.integers(0, 5000), st.integers(0, 99))
def test_every_trial_belongs_to_one_arm(trials, seed):
    arms = [SecretBits(trials, bit, (0, 1), 2, seed) for bit in (0, 1)]
    assert sum(arm.n for arm in arms) == trials
    assert arms[1].n == secret_bits(seed, SECRET, trials).sum()


@given(st.integers(1, 3000), st.integers(1, 700), st.sampled_from([0, 1]))
def test_all_users_of_an_arm_hold_its_code(trials, block_size, bit):
    arm = SecretBits(trials, bit, (2, 5), 6, 3, block_size)
    codes = [arm.read(block).open(SECRET) for block in blocks_of(arm.n, arm.block_size)]
    assert sum(column.size for column in codes) == arm.n
    assert all((column == (2, 5)[bit]).all() for column in codes)
    assert arm.schema[SECRET].size == 6
    assert arm.schema[SECRET].code_type == np.uint8


@given(st.integers(1, 3000), st.integers(1, 700))
def test_own_codes_differ_and_are_the_users_indices(n, block_size):
    source = OwnCodes(n, 20 * n, block_size)
    blocks = [source.read(block).open(SECRET) for block in blocks_of(n, block_size)]
    np.testing.assert_array_equal(np.concatenate(blocks), np.arange(n))
    assert blocks[0].dtype == source.schema[SECRET].code_type


def test_a_part_of_a_block_holds_its_own_users():
    records = OwnCodes(100, 2000, 50).read(Block(50, 50)).part(Block(60, 3))
    assert records.open(SECRET).tolist() == [60, 61, 62]
    assert SecretBits(100, 1, (0, 1), 2).read(Block(0, 20)).part(Block(3, 4)).block.n == 4


def test_a_source_travels_and_its_fingerprint_names_the_data():
    arm = SecretBits(1000, 1, (0, 1), 4, 7, 100)
    assert pickle.loads(pickle.dumps(arm)) == arm
    others = [
        SecretBits(1001, 1, (0, 1), 4, 7, 100), SecretBits(1000, 0, (0, 1), 4, 7, 100),
        SecretBits(1000, 1, (0, 2), 4, 7, 100), SecretBits(1000, 1, (0, 1), 5, 7, 100),
        SecretBits(1000, 1, (0, 1), 4, 8, 100),
    ]  # fmt: skip
    owns = [OwnCodes(1000, 4000), OwnCodes(1000, 4001), OwnCodes(999, 4000)]
    names = {source.fingerprint for source in [arm, *others]}
    assert len(names | {source.fingerprint for source in owns}) == 9
    assert SecretBits(1000, 1, (0, 1), 4, 7, 33).fingerprint == arm.fingerprint
    assert OwnCodes(1000, 4000, 33).fingerprint == owns[0].fingerprint


def test_users_that_do_not_exist_are_refused():
    for source in (SecretBits(10, 1, (0, 1), 2), OwnCodes(10, 20)):
        with pytest.raises(InputError, match="there are"):
            source.read(Block(source.n, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": -1}, "trials must be"),
        ({"bit": 2}, "bit must be 0 or 1"),
        ({"codes": (0, 4)}, r"codes must be within 0\.\.3"),
        ({"codes": (-1, 0)}, "codes must be within"),
        ({"block_size": 0}, "block_size must be"),
    ],
)
def test_bad_arms_are_refused(changes, message):
    good = {"trials": 10, "bit": 1, "codes": (0, 1), "domain_size": 4}
    with pytest.raises(InputError, match=message):
        SecretBits(**(good | changes))


@pytest.mark.parametrize("sizes", [(10, 9), (-1, 5), (10, 20, 0)])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(InputError, match="must be a whole number"):
        OwnCodes(*sizes)
