"""Hadamard response: uniform on the wanted half of the indices, and a fast inverse."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.mechanisms.hadamard import HadamardResponse, walsh_hadamard
from dpsim.mechanisms.unary import OUE
from tests import laws, pure_laws
from tests.pure_laws import noise_for

oracles = st.builds(
    HadamardResponse, st.integers(2, 40), st.fractions("0.1", 8, max_denominator=1000)
)


def sylvester(order):
    matrix = np.ones((1, 1), np.int64)
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@given(oracles)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(oracle):
    laws.assert_is_stochastic(oracle.channel())
    laws.assert_loss_is(oracle.channel(), oracle.real_epsilon)


@given(oracles)
def test_estimate_inverts_the_channel(oracle):
    indices = np.eye(oracle.order)
    pure_laws.assert_estimate_inverts(oracle, oracle.channel(), indices)
    other = HadamardResponse(oracle.domain_size, oracle.epsilon / 2)
    with pytest.raises(AssertionError):
        pure_laws.assert_estimate_inverts(other, oracle.channel(), indices)


@given(oracles, st.integers(1, 10**6))
def test_variance_is_the_channels(oracle, n):
    shares = np.arange(oracle.domain_size) / np.arange(oracle.domain_size).sum()
    pure_laws.assert_variance_is_the_channels(
        oracle, oracle.channel(), np.eye(oracle.order), shares, n
    )


@pytest.mark.parametrize("order", [1, 2, 8, 64])
def test_the_transform_is_that_of_the_sylvester_matrix(order):
    values = np.arange(order) ** 2 - 5
    transformed = walsh_hadamard(values)
    np.testing.assert_array_equal(transformed, sylvester(order) @ values)
    assert transformed.dtype == values.dtype
    assert values.tolist() == [i**2 - 5 for i in range(order)]
    np.testing.assert_array_equal(walsh_hadamard(transformed), order * values)


@pytest.mark.parametrize(("epsilon", "bits"), [(1, 32), (20, 64)])
@pytest.mark.parametrize("size", [2, 3, 4, 7, 8, 255])
def test_every_index_has_its_exact_share_of_draws(size, epsilon, bits):
    """All indices, with both ends of both intervals of the lie: no sampling needed."""
    oracle = HadamardResponse(size, epsilon)
    order = oracle.order
    odd = oracle.odds[1]
    assert order == 2 ** int(np.ceil(np.log2(size + 1)))
    assert dict(oracle.parameters)["draw_bits"] == bits
    shift = 64 - bits
    ends = [0, (odd << shift) - 1, odd << shift, 2**64 - 1]
    tops = [index << (64 - (order.bit_length() - 1)) for index in range(order)]
    places = np.array([top | low for top in tops for low in (0, 12345)], np.uint64)
    for code in {0, 1, size // 2, size - 1}:
        codes = np.full(places.size, code, np.uint8)
        for draw, parity in zip(ends, (1, 1, 0, 0), strict=True):
            reports = oracle.respond(codes, places, np.full(places.size, draw, np.uint64))
            counts = np.bincount(reports, minlength=order)
            expected = np.bitwise_count(np.arange(order) & (code + 1)) % 2 == parity
            np.testing.assert_array_equal(counts, np.where(expected, 4, 0))


def test_atoms_are_those_of_optimized_unary_encoding():
    for epsilon in ("0.5", "1", "2", "4"):
        assert HadamardResponse(9, epsilon).odds[1] == OUE(9, epsilon).atoms[2]


def test_variances_are_those_of_the_tables():
    tables = {"0.5": 16.670792, "1": 4.682694, "2": 1.724062, "4": 1.076022}
    for epsilon, variance in tables.items():
        assert HadamardResponse(99, epsilon).variance(1) == pytest.approx(variance, rel=1e-6)
        e = exp(float(epsilon))
        assert variance == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-6)


def test_reports_are_made_of_the_users_words():
    oracle, noise = HadamardResponse(100, 1), noise_for(50)
    codes = (np.arange(50) * 2).astype(np.uint8)
    first, second = pure_laws.words(noise, 0)[:, :2].T
    np.testing.assert_array_equal(
        oracle.perturb(codes, noise), oracle.respond(codes, first, second)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("size", [3, 12])
def test_samples_follow_the_channel(size):
    oracle = HadamardResponse(size, 1)
    for truth in (0, size - 1):
        reports = oracle.perturb(np.full(20_000, truth, np.uint8), noise_for(20_000))
        laws.assert_counts_follow(oracle.tally(reports), oracle.channel()[truth])


@pytest.mark.statistical
def test_the_sampling_law_has_power():
    oracle, other = HadamardResponse(5, 1), HadamardResponse(5, "0.8")
    reports = other.perturb(np.zeros(20_000, np.uint8), noise_for(20_000))
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(other.tally(reports), oracle.channel()[0])


@pytest.mark.parametrize(
    ("size", "kind"), [(3, "u1"), (255, "u1"), (256, "u2"), (70_000, "u4")]
)
def test_reports_are_as_narrow_as_the_indices(size, kind):
    codes = np.zeros(3, np.uint32)
    assert HadamardResponse(size, 1).perturb(codes, noise_for(3)).dtype == kind
