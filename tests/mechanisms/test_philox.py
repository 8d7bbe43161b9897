"""Draws made by kernels are those that numpy makes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from dpsim.core.rng import Stream
from dpsim.mechanisms._philox import quick_draws, words_of

ADDRESS = (7, "perturb", "0" * 32, "age")


@given(st.integers(0, 2**40), st.integers(0, 300), st.sampled_from([32, 64]))
def test_quick_draws_are_the_draws_of_the_stream(start, n, bits):
    stream = Stream(ADDRESS, np.arange(start, start + n))
    quick = quick_draws(stream, bits)
    np.testing.assert_array_equal(quick, stream.draws(bits))
    assert quick.dtype == stream.draws(bits).dtype


@pytest.mark.parametrize("bits", [32, 64])
def test_users_with_gaps_get_their_own_draws(bits):
    users = np.array([3, 4, 9, 1_000])
    whole = Stream(ADDRESS, np.arange(1_001)).draws(bits)
    np.testing.assert_array_equal(quick_draws(Stream(ADDRESS, users), bits), whole[users])


@njit
def four(user, step, key0, key1):
    return words_of(user, step, key0, key1)


@given(st.integers(0, 2**63), st.integers(0, 2**31))
def test_a_users_words_are_those_of_numpy_at_its_counter(user, step):
    key = Stream(ADDRESS, np.zeros(1, np.int64)).key
    made = four(np.uint64(user), np.uint64(step), key[0], key[1])
    counter = user + (step << 64) + (1 << 128) - 1  # numpy counts on before it makes words
    expected = np.random.Philox(key=key, counter=counter).random_raw(4)
    assert list(made) == expected.tolist()
