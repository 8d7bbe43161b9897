"""What kernels make of random words, against whole numbers of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from dpsim.mechanisms._words import coins, lanes_used, levels_of, place_of, respond_one
from tests.mechanisms import twins

KEY = np.array([11, 2**63 + 5], np.uint64)
words = st.integers(0, 2**64 - 1)


@njit
def place(word, size):
    return place_of(word, size)


@njit
def response(code, word, truth, lie):
    return respond_one(code, word, truth, lie)


@njit
def used(size, block):
    return lanes_used(size, block)


def flip(high, low, lanes, some, user, step):
    where = (np.uint64(user), np.uint64(step), KEY[0], KEY[1])
    levels = levels_of(np.uint64(high), np.uint64(low))
    return int(coins(levels, np.uint64(lanes), np.uint64(some), where))


@given(words, st.integers(1, 2**32 - 1))
def test_a_place_is_the_whole_part_of_the_product(word, size):
    assert place(np.uint64(word), np.uint64(size)) == twins.place(word, size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 1000, 65536, 10**6])
def test_every_place_has_the_same_number_of_words_but_for_one(size):
    """Exact: the first word of each place, and the word before it."""
    for number in {0, size // 2, size - 1}:
        first = -(-number * 2**64 // size)
        assert place(np.uint64(first), np.uint64(size)) == number
        if number:
            assert place(np.uint64(first - 1), np.uint64(size)) == number - 1
    assert place(np.uint64(2**64 - 1), np.uint64(size)) == size - 1


@pytest.mark.parametrize(
    ("size", "lie"),
    [
        (2, 3), (2, 2**63 - 1), (3, 2**61), (3, 6148914691236517205), (10, 12345),
        (200, 2**50 + 1),
        (2000, 2**53 - 1), (1000, 18446744073709551), (4, 1),
    ],
)  # fmt: skip
def test_a_response_owns_its_interval_of_words(size, lie):
    truth = 2**64 - (size - 1) * lie
    for code in {0, 1, size - 1}:
        others = [other for other in range(size) if other != code]
        for number, other in enumerate(others):
            start = truth + number * lie
            for word in (start, start + lie - 1):
                arguments = (np.uint64(x) for x in (code, word, truth, lie))
                assert response(*arguments) == other
        for word in (0, truth - 1):
            assert response(*(np.uint64(x) for x in (code, word, truth, lie))) == code


few = st.integers(0, 64).flatmap(lambda lanes: st.integers(0, 2**lanes - 1))


@given(words, words, words, few, st.integers(0, 2**40), st.integers(0, 2**40))
def test_coins_compare_one_draw_of_64_bits_per_lane(high, low, lanes, some, user, step):
    draws = twins.lane_draws(KEY, user, step, max(1, some.bit_length()))
    expected = sum(
        (draw < (high if lanes >> lane & 1 else low)) << lane for lane, draw in enumerate(draws)
    )
    assert flip(high, low, lanes, some, user, step) == expected & some


@pytest.mark.parametrize("lane", [0, 3, 4, 7, 8, 15, 16, 17, 31, 32, 63])
def test_coins_compare_to_the_last_level(lane):
    """A draw is not below itself, and is below its successor: the 64th level decides."""
    draw = twins.lane_draws(KEY, 9, 4, lane + 1)[lane]
    assert flip(0, draw, 0, 1 << lane, 9, 4) == 0
    assert flip(0, draw + 1, 0, 1 << lane, 9, 4) == 1 << lane
    assert flip(draw + 1, 0, 1 << lane, 1 << lane, 9, 4) == 1 << lane


@given(st.integers(1, 300), st.data())
def test_lanes_are_used_up_to_the_size(size, data):
    block = data.draw(st.integers(0, (size - 1) // 64))
    bits = [64 * block + lane < size for lane in range(64)]
    assert int(used(size, block)) == sum(bit << lane for lane, bit in enumerate(bits))
