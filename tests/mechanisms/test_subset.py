"""Subset selection: always w codes, the true one with exact probability."""

from fractions import Fraction
from itertools import combinations
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms._subset_kernels import random_subsets
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.subset import SubsetSelection, optimal_subset_size
from dpsim.mechanisms.unary import OUE
from tests import laws, pure_laws
from tests.pure_laws import all_subsets, bits_of, noise_for

small_epsilons = st.fractions("0.1", 8, max_denominator=1000)


@st.composite
def small_oracles(draw):
    size = draw(st.integers(2, 7))
    return SubsetSelection(size, draw(small_epsilons), draw(st.integers(1, size - 1)))


@given(small_oracles())
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(oracle):
    laws.assert_is_stochastic(oracle.channel())
    laws.assert_loss_is(oracle.channel(), oracle.real_epsilon)


@given(small_oracles())
def test_estimate_inverts_the_channel(oracle):
    tallies = all_subsets(oracle.domain_size, oracle.subset_size)
    pure_laws.assert_estimate_inverts(oracle, oracle.channel(), tallies)
    other = SubsetSelection(
        oracle.domain_size, oracle.epsilon + Fraction(1, 10), oracle.subset_size
    )
    with pytest.raises(AssertionError):
        pure_laws.assert_estimate_inverts(other, oracle.channel(), tallies)


@given(small_oracles(), st.integers(1, 10**6))
def test_variance_is_the_channels(oracle, n):
    size = oracle.domain_size
    shares = np.arange(size) / (size * (size - 1) / 2)
    tallies = all_subsets(size, oracle.subset_size)
    pure_laws.assert_variance_is_the_channels(oracle, oracle.channel(), tallies, shares, n)


@given(small_oracles())
def test_supports_sum_to_the_subset_size(oracle):
    total = oracle.p + (oracle.domain_size - 1) * oracle.q
    assert total == pytest.approx(oracle.subset_size)


def test_probabilities_and_variances_are_those_of_the_tables():
    oracle = SubsetSelection(7, 1, 2)
    assert (oracle.p, oracle.q) == pytest.approx((0.5209151054, 0.2465141491), rel=1e-8)
    tables = {
        "0.5": (13.649874, 6, 15.411438, 48), "1": (3.110716, 4, 3.609788, 34),
        "2": (0.519832, 2, 0.697097, 15), "4": (0.0238788, 1, 0.0584243, 2),
    }  # fmt: skip
    for epsilon, (small, w_small, large, w_large) in tables.items():
        few, many = SubsetSelection(16, epsilon), SubsetSelection(128, epsilon)
        assert (few.subset_size, many.subset_size) == (w_small, w_large)
        assert few.variance(1) == pytest.approx(small, rel=3e-6)
        assert many.variance(1) == pytest.approx(large, rel=3e-6)


@given(st.integers(2, 300), st.fractions("0.01", 10, max_denominator=1000))
def test_no_other_subset_size_has_a_smaller_variance(size, epsilon):
    e = exp(epsilon)

    def variance(w):
        p = w * e / (w * e + size - w)
        q = (w - p) / (size - 1)
        return q * (1 - q) / (p - q) ** 2

    best = optimal_subset_size(size, epsilon)
    assert variance(best) <= min(map(variance, range(1, size))) * (1 + 1e-9)


@given(st.integers(2, 500), st.fractions("0.05", 8, max_denominator=1000))
def test_no_other_oracle_has_a_smaller_variance(size, epsilon):
    oracle = SubsetSelection(size, epsilon)
    for other in (GRR(size, epsilon), OUE(size, epsilon)):
        assert oracle.variance(1) <= other.variance(1) * (1 + 1e-4)


def test_the_loss_of_the_sampler_is_part_of_the_real_loss():
    """Subsets of half a million: uneven draws may cost 5e-8, and P leaves room for it."""
    oracle = SubsetSelection(1_000_000, "0.001")
    above, below = oracle.odds
    bits, included = oracle._atoms
    k, w = oracle.domain_size, oracle.subset_size
    bare = Fraction(included * (k - w), ((1 << bits) - included) * w)
    assert bits == 64
    assert Fraction(above, below) / bare - 1 > Fraction(2 * w * k, 2**64)
    assert float(bare - 1) < exp(0.001) - 1 - 5e-8
    assert oracle.real_epsilon == pytest.approx(0.001, rel=1e-7)


def twin(codes, noise, threshold, size, chosen):
    """`random_subsets` in whole numbers without a limit, and in Python's sets."""
    rows = []
    blocks = [pure_laws.words(noise, step) for step in range(chosen // 4 + 1)]
    for i, own in enumerate(codes.tolist()):
        words = [int(word) for block in blocks for word in block[i]]
        others = [code for code in range(size) if code != own]
        subset = {own} if words[0] < threshold else set()
        draws = iter(words[1:])
        for j in range(size - 1 - chosen + len(subset), size - 1):
            code = others[next(draws) * (j + 1) >> 64]
            subset.add(others[j] if code in subset else code)
        rows.append([code in subset for code in range(size)])
    return np.array(rows, np.uint8).reshape(len(codes), size)


@pytest.mark.parametrize(
    ("size", "chosen"),
    [(2, 1), (3, 1), (3, 2), (10, 4), (64, 20), (65, 64), (128, 34), (200, 7), (200, 199)],
)
def test_the_kernel_is_floyds_method_on_the_other_codes(size, chosen):
    noise = noise_for(np.array([0, 1, 5, 6, 10**12]))
    codes = np.array([0, size - 1, size // 2, size // 3, 1], np.uint32)
    stream, key = noise.stream(), noise.stream().key
    for threshold in (0, 1 << 63, 2**64 - 1):
        arguments = (np.uint64(threshold), size, chosen)
        reports = random_subsets(codes, stream.users, (key[0], key[1]), *arguments)
        assert reports.dtype == np.uint64
        np.testing.assert_array_equal(
            bits_of(reports, size), twin(codes, noise, threshold, size, chosen)
        )
    empty = random_subsets(codes[:0], stream.users[:0], (key[0], key[1]), *arguments)
    assert empty.shape == (0, -(-size // 64))


@given(st.integers(2, 200), small_epsilons, st.integers(0, 199))
def test_every_report_has_as_many_codes_as_it_should(size, epsilon, code):
    oracle = SubsetSelection(size, epsilon)
    codes = np.full(20, code % size, np.uint8)
    bits = bits_of(oracle.perturb(codes, noise_for(20)), size)
    assert (bits.sum(axis=1) == oracle.subset_size).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("size", "chosen"), [(4, 2), (6, 3), (5, 1), (5, 4)])
def test_samples_follow_the_channel(size, chosen):
    oracle = SubsetSelection(size, 1, chosen)
    for truth in (0, size - 1):
        counts = subset_counts(oracle, truth)
        laws.assert_counts_follow(counts, oracle.channel()[truth])


@pytest.mark.statistical
def test_the_sampling_law_has_power():
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(
            subset_counts(SubsetSelection(4, "0.7", 2), 0),
            SubsetSelection(4, 1, 2).channel()[0],
        )


def subset_counts(oracle, truth, n=20_000):
    size = oracle.domain_size
    reports = oracle.perturb(np.full(n, truth, np.uint8), noise_for(n))[:, 0]
    order = [
        sum(1 << v for v in each) for each in combinations(range(size), oracle.subset_size)
    ]
    assert len(order) == comb(size, oracle.subset_size)
    return np.bincount(reports, minlength=2**size)[order]


@pytest.mark.parametrize("chosen", [0, 5, 6, True, 1.0])
def test_a_bad_subset_size_is_refused(chosen):
    with pytest.raises(InputError, match="subset_size must be"):
        SubsetSelection(5, 1, chosen)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="k must be <= 12"):
        SubsetSelection(13, 1).channel()
    with pytest.raises(InputError, match="bytes at once"):
        SubsetSelection(1_000_000, 1).perturb(np.zeros(65_536, np.uint32), noise_for(65_536))
