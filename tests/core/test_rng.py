"""Every draw has an address, and its bits are known."""

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.records import Block
from dpsim.core.rng import ClientNoise, Purpose, draws_at, key_of, words_at
from dpsim.mechanisms.grr import GRR

ADDRESS = (7, "perturb", "0" * 32, "age")
TEXT = (
    '{"attrs":[0,1,2,3,4,5],"drop":0.1,"eps":1.0,"experiment":"exp",'
    '"k":10,"mechanism":"grr","round":1}'
)
HASH = "3460c84b4efeb1f04b80add4b1591150"
GOLDEN = (20260, "grr", HASH, 0)
MAKERS = pytest.mark.parametrize("make", [draws_at, words_at])


def words_of(counter, n):
    key = np.array([1, 2], np.uint64)
    raw = np.random.Philox(key=key, counter=counter).random_raw(n)
    return " ".join(f"{int(word):016x}" for word in raw)


def test_philox_yields_the_known_words():
    first = "4f2f4313b5536b09 5b617be3219ff32a 097293476f9275cb f63f3bf4962c3942"
    second = "04dcc60473aa0f43 6d905c9b986b0028 559a6c953d16fe9d bd24fd1da9945eea"
    carried = "57bf6a7a1189e4da e8a3ffc1f36ae07e d0a3cbc2a98ae4cb 28d6c889bddcf2b8"
    assert words_of(0, 8) == f"{first} {second}"
    assert words_of(1, 4) == second
    assert words_of(2**64, 4) == carried
    assert words_of(2**64 - 1, 8).endswith(carried)


def test_an_address_has_the_known_key():
    assert blake2b(TEXT.encode(), digest_size=16).hexdigest() == HASH
    assert [f"{int(word):x}" for word in key_of(GOLDEN)] == [
        "9c59ebd26ba3b337",
        "9aaff66823baea4f",
    ]


def test_clients_have_the_known_draws():
    assert draws_at(GOLDEN, 0, 16).tolist() == [
        1477287639, 2217945964, 4144201429, 323033484, 3008696970, 1355331676, 1184832655,
        2067592069, 4154697994, 1410758158, 818948076, 3224778774, 376604001, 2492398364,
        354750836, 3045821266,
    ]  # fmt: skip
    assert draws_at(GOLDEN, 800, 4).tolist() == [4145673117, 2056088215, 691632674, 2674073781]


def test_clients_send_the_known_reports():
    oracle = GRR(10, 1)
    truth = np.array([0, 0, 7, 0, 4, 6, 9, 0, 6, 9, 7, 2, 4, 3, 5, 0], np.uint8)
    reports = oracle.respond(truth, draws_at(GOLDEN, 0, 16))
    assert reports.tolist() == [2, 4, 9, 0, 6, 0, 0, 3, 9, 1, 7, 7, 4, 5, 5, 6]
    raw = np.random.Philox(key=np.array([1, 2], np.uint64)).random_raw(8).astype("<u8")
    reports = oracle.respond((np.arange(16) % 10).astype(np.uint8), raw.view("<u4"))
    assert reports.tolist() == [6, 0, 2, 1, 2, 5, 4, 9, 2, 9, 5, 3, 0, 1, 6, 6]


@pytest.mark.parametrize("block_size", [65_536, 250_001])
def test_a_whole_round_has_the_known_tally(block_size):
    """Six attributes of 2,109,497 users who drop out at 10 %, made and asked block by block."""
    oracle, tally = GRR(10, 1), np.zeros((6, 10), np.int64)
    for block in Block(0, 2_109_497).parts(block_size):
        sends = draws_at((20260, "dropout", HASH, 0), block.start, block.n) >= 429496729
        for attribute in range(6):
            data = draws_at((7, "data", "", attribute), block.start, block.n) / 2**32
            codes = np.minimum(np.floor(data**2 * 10), 9).astype(np.uint8)
            draws = draws_at((20260, "grr", HASH, attribute), block.start, block.n)
            tally[attribute] += oracle.tally(oracle.respond(codes[sends], draws[sends]))
    assert tally.sum(axis=1).tolist() == [1_898_917] * 6
    assert tally[0].tolist() == [
        250122, 198916, 189544, 185904, 182170, 180957, 179504, 178192, 176892, 176716,
    ]  # fmt: skip
    digest = blake2b(tally.astype("<i8").tobytes(), digest_size=16).hexdigest()
    assert digest == "f6640b1cc0ed0386d595bc35db5e0c4d"


@MAKERS
@given(start=st.integers(0, 500), n=st.integers(0, 500))
def test_any_slice_equals_the_slice_of_the_whole(make, start, n):
    whole = make(ADDRESS, 0, start + n)
    np.testing.assert_array_equal(make(ADDRESS, start, n), whole[start:])


@MAKERS
@given(start=st.integers(0, 2**40), n=st.integers(1, 50))
def test_far_positions_are_reached_at_once_and_one_by_one(make, start, n):
    alone = [int(make(ADDRESS, place, 1)[0]) for place in range(start, start + n)]
    np.testing.assert_array_equal(make(ADDRESS, start, n), alone)


@given(st.integers(0, 2**30))
def test_two_half_words_make_a_word_the_low_one_first(place):
    low, high = map(int, draws_at(ADDRESS, 2 * place, 2))
    assert int(words_at(ADDRESS, place, 1)[0]) == high << 32 | low


@MAKERS
@pytest.mark.parametrize(
    "other",
    [
        (8, "perturb", "0" * 32, "age"), (7, "dropout", "0" * 32, "age"),
        (7, "perturb", "1" + "0" * 31, "age"), (7, "perturb", "0" * 32, "sex"),
    ],
)  # fmt: skip
def test_each_part_of_the_address_changes_the_draws(make, other):
    assert not (make(ADDRESS, 0, 100) == make(other, 0, 100)).any()


def test_neighboring_texts_are_different_addresses():
    """Parts are quoted, not glued: a plan that ends like a subject begins stays apart."""
    one = key_of((1, "perturb", "ab", "c"))
    assert one.tolist() != key_of((1, "perturb", "a", "bc")).tolist()
    assert key_of((1, "p", "", 1)).tolist() != key_of((1, "p", "", "1")).tolist()


def test_draws_are_frozen():
    """If this fails, every seeded result has changed: a line in *Changed results*."""
    assert draws_at(ADDRESS, 5, 4).tolist() == [1306670650, 1646988835, 1202082395, 1595652907]
    assert words_at(ADDRESS, 5, 2).tolist() == [1314286462458771832, 15650536544018340869]


@pytest.mark.parametrize("bits", [32, 64])
@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 50))
def test_a_users_noise_is_found_by_its_index_whatever_the_block(bits, start, n, size):
    whole = ClientNoise(3, "plan", Block(0, start + n)).draws(Purpose.PERTURB, "age", bits)
    noise = ClientNoise(3, "plan", Block(start, n))
    parts = [
        noise.part(block).draws(Purpose.PERTURB, "age", bits)
        for block in noise.block.parts(size)
    ]
    assert whole.dtype == f"u{bits // 8}"
    np.testing.assert_array_equal(np.concatenate([whole[:0], *parts]), whole[start:])


def test_a_users_noise_is_at_the_documented_address():
    noise = ClientNoise(3, "plan", Block(40, 8))
    for purpose in Purpose:
        expected = draws_at((3, purpose.value, "plan", "age"), 40, 8)
        np.testing.assert_array_equal(noise.draws(purpose, "age"), expected)


@pytest.mark.parametrize("bits", [32, 64])
@given(st.integers(0, 2**40), st.sets(st.integers(0, 99)))
def test_some_users_of_a_block_have_the_draws_they_have_among_all(bits, start, places):
    """Who else is asked, and in which block, changes nobody's draw."""
    block, chosen = Block(start, 100), np.array(sorted(places), np.int64)
    noise = ClientNoise(3, "plan", block)
    whole = noise.draws(Purpose.PERTURB, "age", bits)
    np.testing.assert_array_equal(noise.of("age").stream().draws(bits), whole)
    some = noise.of("age", chosen).stream().draws(bits)
    assert some.dtype == whole.dtype
    np.testing.assert_array_equal(some, whole[chosen])


def test_permanent_draws_belong_to_no_plan_and_to_no_other_purpose():
    one, other = (ClientNoise(3, plan, Block(0, 50)).of("age") for plan in ("a", "b"))
    assert one.permanent("x").draws().tolist() == other.permanent("x").draws().tolist()
    assert one.permanent("x").draws().tolist() != one.permanent("y").draws().tolist()
    assert one.stream().draws().tolist() != other.stream().draws().tolist()
    assert one.permanent("a").draws().tolist() != one.stream().draws().tolist()


def test_purposes_are_distinct():
    assert len({purpose.value for purpose in Purpose}) == len(Purpose)


@pytest.mark.statistical
@MAKERS
def test_bits_are_even(make):
    """Each bit is set in half of the draws, within five standard errors."""
    draws = make(ADDRESS, 0, 40_000)
    for bit in range(draws.dtype.itemsize * 8):
        ones = np.count_nonzero(draws >> draws.dtype.type(bit) & draws.dtype.type(1))
        assert abs(ones - 20_000) < 5 * 100
