"""Local hashing: GRR on buckets, and a hash as good as an ideal one."""

from fractions import Fraction
from itertools import combinations
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms._hash_kernels import count_supports, hashed, two_words
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.local_hashing import BLH, OLH, LocalHashing, optimal_buckets
from tests import laws, pure_laws
from tests.pure_laws import noise_for

epsilons = st.fractions("0.01", 8, max_denominator=1000)


def mixed(keys, codes):
    """The hash in plain numpy."""
    low, high = keys.astype(np.uint32), (keys >> np.uint64(32)).astype(np.uint32)
    x = low ^ (codes.astype(np.uint32) * np.uint32(0x9E3779B9))
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = ((x ^ (x >> np.uint32(15))) ^ high) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def buckets_of(keys, codes, buckets):
    return (mixed(keys, codes).astype(np.uint64) * np.uint64(buckets) >> np.uint64(32)).astype(
        int
    )


def keys_for(n, seed=0):
    return np.random.Philox(seed).random_raw(n)


@given(st.integers(0, 50), st.integers(2, 65_536), st.integers(0, 2**32))
def test_the_hash_kernel_is_the_plain_hash(n, buckets, seed):
    keys = keys_for(2 * n, seed)
    codes = (keys[n:] % np.uint64(10**6)).astype(np.uint32)
    places = hashed(keys[:n], codes, buckets)
    assert places.dtype == np.uint16
    np.testing.assert_array_equal(places, buckets_of(keys[:n], codes, buckets))


@given(st.integers(0, 1200), st.integers(2, 300), st.integers(1, 40), st.integers(0, 2**32))
def test_the_support_kernel_counts_equal_buckets(n, buckets, size, seed):
    keys = keys_for(n, seed)
    reported = (keys_for(n, seed + 1) % np.uint64(buckets)).astype(np.uint16)
    counts = count_supports(keys, reported, buckets, size)
    assert counts.dtype == np.int64
    places = [buckets_of(keys, np.full(n, code), buckets) for code in range(size)]
    np.testing.assert_array_equal(counts, [(each == reported).sum() for each in places])


@pytest.mark.parametrize("buckets", [2, 3, 7, 56, 65_535, 65_536])
def test_the_support_kernel_is_right_at_the_edges_of_every_bucket(buckets):
    """Keys that hash code 0 to chosen words: each step of the hash is undone."""
    edges = [-(-(place << 32) // buckets) for place in (0, 1, buckets // 2, buckets - 1)]
    chosen = sorted({word for edge in edges for word in (max(0, edge - 1), edge)} | {2**32 - 1})
    keys = np.array([key_for(word) for word in chosen], np.uint64)
    zeros = np.zeros(len(keys), np.uint32)
    assert mixed(keys, zeros).tolist() == chosen
    places = [word * buckets >> 32 for word in chosen]
    assert hashed(keys, zeros, buckets).tolist() == places
    for key, place in zip(keys, places, strict=True):
        around = {place, (place + 1) % buckets, (place - 1) % buckets}
        for reported in around:
            counts = count_supports(
                np.array([key]), np.array([reported], np.uint16), buckets, 1
            )
            assert counts.tolist() == [int(reported == place)]


def key_for(word):
    """A key whose low half is 0 and which hashes code 0 to the word."""
    x = word ^ (word >> 16)
    return ((x * pow(0x846CA68B, -1, 2**32)) % 2**32) << 32


def test_the_words_are_philox():
    noise = noise_for(np.array([0, 7, 10**12]))
    stream = noise.stream()
    firsts, seconds = two_words(stream.users, (stream.key[0], stream.key[1]))
    expected = pure_laws.words(noise, 0)
    np.testing.assert_array_equal(np.stack([firsts, seconds], axis=1), expected[:, :2])
    assert firsts.dtype == seconds.dtype == np.uint64


@pytest.mark.parametrize(("epsilon", "bits"), [("1", 32), ("0.5", 32), ("16", 64)])
def test_reports_are_grr_on_the_hashed_code(epsilon, bits):
    oracle = LocalHashing(300, epsilon, 9)
    codes = (np.arange(40) * 7).astype(np.uint16)
    noise = noise_for(40)
    reports = oracle.perturb(codes, noise)
    keys, words = pure_laws.words(noise, 0)[:, :2].T
    response = GRR(9, epsilon)
    assert response.draw_bits == bits
    draws = words if bits == 64 else (words >> np.uint64(32)).astype(np.uint32)
    expected = response.respond(buckets_of(keys, codes, 9).astype(np.uint8), draws)
    np.testing.assert_array_equal(reports["key"], keys)
    np.testing.assert_array_equal(reports["code"], expected)


@given(st.integers(2, 40), epsilons, st.integers(2, 20), st.integers(0, 2**64 - 1))
def test_under_every_key_the_channel_costs_no_more_than_stated(size, epsilon, buckets, key):
    oracle = LocalHashing(size, epsilon, buckets)
    channel = oracle.channel(key)
    laws.assert_is_stochastic(channel)
    worst = (np.log(channel.max(axis=0)) - np.log(channel.min(axis=0))).max()
    separates = len(set(channel.argmax(axis=1).tolist())) > 1
    assert worst == pytest.approx(oracle.real_epsilon if separates else 0, abs=1e-9)


@given(st.integers(2, 50), epsilons, st.integers(2, 60))
def test_estimate_inverts_what_an_ideal_hash_expects(size, epsilon, buckets):
    oracle, n = LocalHashing(size, epsilon, buckets), 1 << 20
    grr = GRR(buckets, epsilon)
    other = (
        grr.p / buckets + grr.q * (buckets - 1) / buckets
    )  # equal bucket, or a lie that hits
    supports = np.where(np.eye(size, dtype=bool), grr.p, other)
    estimates = [oracle.estimate(row * n, n) for row in supports]
    np.testing.assert_allclose(estimates, np.eye(size), rtol=0, atol=1e-14 / oracle.gap)


def test_variances_and_buckets_are_those_of_the_tables():
    tables = {
        "0.5": (15.817400, 3),
        "1": (3.691655, 4),
        "2": (0.724591, 8),
        "4": (0.0760229, 56),
    }
    for epsilon, (variance, buckets) in tables.items():
        oracle = OLH(128, epsilon)
        assert oracle.buckets == buckets
        assert oracle.variance(1) == pytest.approx(variance, rel=2e-6)
    assert BLH(128, 1).buckets == 2
    assert BLH(128, 1).variance(1) == pytest.approx(((exp(1) + 1) / (exp(1) - 1)) ** 2)


@given(st.fractions("0.001", 8, max_denominator=1000))
def test_no_other_number_of_buckets_has_a_smaller_variance(epsilon):
    def variance(buckets):
        return (exp(epsilon) - 1 + buckets) ** 2 / (buckets - 1)

    best = optimal_buckets(epsilon)
    others = range(2, int(exp(epsilon)) + 10)
    assert variance(best) <= min(map(variance, others)) * (1 + 1e-12)
    assert best in others


def test_the_number_of_buckets_is_bounded():
    assert optimal_buckets(Fraction(30)) == OLH(10, 30).buckets == 65_536
    assert OLH(10, 30).report_bytes == 10
    assert OLH(10, 1).report_bytes == 9


@pytest.mark.statistical
@pytest.mark.parametrize("buckets", [2, 3, 4, 8, 56])
def test_pairs_and_triples_of_codes_collide_as_under_an_ideal_hash(buckets):
    """Near codes, far codes and powers of two; the worst of them and all together."""
    n, codes = 1 << 18, [0, 1, 2, 3, 7, 8, 64, 127, 128, 255, 4096, 65_536, 999_999]
    keys = keys_for(n, 5)
    places = [buckets_of(keys, np.full(n, code), buckets) for code in codes]
    for many in (2, 3):
        share = buckets ** (1 - many)
        if n * share < 100:
            continue
        hits = np.array(
            [
                np.count_nonzero(np.all([each == group[0] for each in group[1:]], axis=0))
                for group in combinations(places, many)
            ]
        )
        z = (hits - n * share) / (n * share * (1 - share)) ** 0.5
        assert np.abs(z).max() < 5.5
        assert abs((z**2).mean() - 1) < 5 * (2 / 78) ** 0.5


@pytest.mark.statistical
def test_each_code_is_hashed_uniformly():
    keys = keys_for(50_000, 6)
    for code in (0, 1, 1000, 999_999):
        counts = np.bincount(buckets_of(keys, np.full(50_000, code), 56), minlength=56)
        laws.assert_counts_follow(counts, np.full(56, 1 / 56))


@pytest.mark.statistical
def test_the_variance_under_the_concrete_hash_is_that_of_the_ideal_one():
    counts, repeats = [90, 40, 30, 20, 10, 5, 5, 0, 0, 0], 1500
    ratio = pure_laws.mean_ratio(OLH(10, 1), OLH(10, 1), counts, repeats, seed=3)
    assert abs(ratio - 1) < 5 * pure_laws.spread_of_ratio(counts, repeats)


@pytest.mark.parametrize("buckets", [1, 0, 65_537, True, 2.0])
def test_a_bad_number_of_buckets_is_refused(buckets):
    with pytest.raises(InputError, match="buckets must be"):
        LocalHashing(5, 1, buckets)


def test_reports_of_more_buckets_are_refused():
    reports = OLH(10, 4).perturb(np.zeros(100, np.uint8), noise_for(100))
    with pytest.raises(InputError, match="one of 2 buckets"):
        BLH(10, 4).tally(reports)
