"""Unary encoding: each bit exact in law and independent of all others."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms._unary_kernels import count_bits, noisy_bits
from dpsim.mechanisms.unary import OUE, SUE, FaithfulOUE, FaithfulSUE, _threshold_levels
from tests import laws, pure_laws
from tests.pure_laws import all_bits, bits_of, noise_for

EVERY = pytest.mark.parametrize("make", [SUE, OUE, FaithfulSUE, FaithfulOUE])
small_epsilons = st.fractions("0.1", 8, max_denominator=1000)


@EVERY
@given(size=st.integers(2, 6), epsilon=small_epsilons)
def test_the_channel_is_stochastic_and_costs_exactly_the_real_epsilon(make, size, epsilon):
    oracle = make(size, epsilon)
    laws.assert_is_stochastic(oracle.channel())
    laws.assert_loss_is(oracle.channel(), oracle.real_epsilon)
    with pytest.raises(AssertionError):
        laws.assert_loss_is(oracle.channel(), oracle.real_epsilon * 1.001)


@EVERY
@given(size=st.integers(2, 6), epsilon=small_epsilons)
def test_estimate_inverts_the_channel(make, size, epsilon):
    oracle = make(size, epsilon)
    pure_laws.assert_estimate_inverts(oracle, oracle.channel(), all_bits(size))
    with pytest.raises(AssertionError):
        pure_laws.assert_estimate_inverts(
            make(size, epsilon + Fraction(1, 10)), oracle.channel(), all_bits(size)
        )


@EVERY
@given(size=st.integers(2, 5), epsilon=small_epsilons, n=st.integers(1, 10**6))
def test_variance_is_the_channels(make, size, epsilon, n):
    oracle, shares = make(size, epsilon), np.arange(size) / (size * (size - 1) / 2)
    pure_laws.assert_variance_is_the_channels(
        oracle, oracle.channel(), all_bits(size), shares, n
    )


def test_atoms_are_those_of_the_tables():
    noise = {"0.5": 1621524826, "1": 1155094610, "2": 511972652, "4": 77250184}
    for epsilon, atoms in noise.items():
        assert OUE(9, epsilon).atoms == (32, 2**31, atoms)
        assert SUE(9, 2 * Fraction(epsilon)).atoms == (32, 2**32 - atoms, atoms)
    assert OUE(9, 20).atoms[0] == OUE(9, "1e-6").atoms[0] == 64


def test_variances_are_those_of_the_tables():
    tables = {
        "0.5": (15.916926, 15.670792), "1": (3.917698, 3.682694),
        "2": (0.920674, 0.724062), "4": (0.181015, 0.0760218),
    }  # fmt: skip
    for epsilon, (symmetric, optimized) in tables.items():
        assert SUE(100, epsilon).variance(1) == pytest.approx(symmetric, rel=3e-6)
        assert OUE(100, epsilon).variance(1) == pytest.approx(optimized, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "symmetric", "optimized"),
    [
        ("0.01", (0.333888, 0.666112, 1.38130, 2.01506), (0.665557, 0.688160, 8.12101)),
        ("1", (0.383652, 0.616348, 0.948154, 4.36700), (0.577681, 0.313262, 40.4294)),
        ("2", (0.422319, 0.577681, 0.626523, 10.1073), (0.531689, 0.126928, 247.949)),
        ("4", (0.468311, 0.531689, 0.253856, 61.987), (0.504537, 0.0181499, 12142.2)),
        ("8", (0.495463, 0.504537, 0.0362999, 3035.56), (0.500084, 0.000335406, 3.5556e7)),
    ],
)
def test_faithful_encodings_are_those_of_the_tables(epsilon, symmetric, optimized):
    first, second = FaithfulSUE(7, epsilon), FaithfulOUE(7, epsilon)
    stated = (first.p, first.q, float(first.loss.epsilon), first.variance(1))
    assert stated == pytest.approx(symmetric, rel=2e-5)
    assert second.p == 0.5
    assert (second.q, float(second.loss.epsilon), second.variance(1)) == pytest.approx(
        optimized, rel=2e-5
    )
    assert float(first.loss.epsilon) == pytest.approx(symmetric[2], rel=3e-6)
    assert float(second.loss.epsilon) == pytest.approx(optimized[1], rel=3e-6)


@pytest.mark.parametrize("make", [FaithfulSUE, FaithfulOUE])
@given(epsilon=st.fractions("0.001", 30, max_denominator=1000))
def test_faithful_encodings_charge_the_real_loss_and_not_the_epsilon(make, epsilon):
    oracle = make(5, epsilon)
    assert oracle.p < oracle.q
    with localcontext(prec=50):
        real = (Decimal(oracle.odds[0]) / oracle.odds[1]).ln()
        charged = Decimal(oracle.loss.epsilon.numerator) / oracle.loss.epsilon.denominator
        assert real <= charged
        assert charged - real <= Decimal("1e-5") * real + Decimal("1.1e-12")


def test_faithful_encodings_may_cost_more_or_less_than_asked():
    assert FaithfulSUE(5, "0.01").loss.epsilon > Fraction(138, 100)
    assert FaithfulOUE(5, 8).loss.epsilon < Fraction(4, 10_000)


def twin(codes, noise, atoms, size):
    """`noisy_bits` lane by lane: a whole number u per bit, compared with its threshold."""
    bits, high, low = atoms
    steps, lanes, top = bits // 4, np.arange(64, dtype=np.uint64), np.uint64(bits - 4)

    def levels_of(group):
        blocks = [pure_laws.words(noise, group * steps + step) for step in range(steps)]
        return (np.concatenate(blocks, axis=1)[:, :, None] >> lanes) & np.uint64(1)

    def number(levels):
        places = np.arange(bits, dtype=np.uint64)[::-1, None]
        return (levels << places).sum(axis=1, dtype=np.uint64)

    def threshold(group):
        own = codes[:, None].astype(int) == group * 64 + np.arange(64)
        return np.where(own, np.uint64(high), np.uint64(low))

    columns = []
    for group in range(-(-size // 64)):
        levels = levels_of(group)
        if group % 2:
            left = levels_of(group - 1)
            is_open = number(left) >> top == threshold(group - 1) >> top
            levels[:, 4:] = np.where(is_open[:, None], levels[:, 4:], left[:, 4:])
        columns.append(number(levels) < threshold(group))
    return np.concatenate(columns, axis=1)[:, :size].astype(np.uint8)


@pytest.mark.parametrize("size", [1, 2, 10, 63, 64, 65, 100, 128, 129, 192, 200, 256])
@pytest.mark.parametrize(
    "atoms",
    [
        (32, 2**31, 1155094610),
        (64, 2**63, 10**13),
        (4, 7, 3),
        (8, 200, 88),
        (8, 60, 61),
        (4, 3, 12),
        (4, 0, 8),
    ],
)
def test_the_kernel_compares_one_number_per_bit(size, atoms):
    """On four or eight bits many numbers equal their threshold: these are not below it."""
    n = 300 if atoms[0] == 8 and size > 64 else 20
    noise = noise_for(np.append(np.arange(n - 1) * 3, 10**12))
    codes = (np.arange(n) * 37 % size).astype(np.uint32)
    stream = noise.stream()
    levels = _threshold_levels(*atoms)
    key = (stream.key[0], stream.key[1])
    reports = noisy_bits(codes, stream.users, key, levels, size)
    assert reports.dtype == np.uint64
    assert reports.shape == (n, -(-size // 64))
    np.testing.assert_array_equal(bits_of(reports, size), twin(codes, noise, atoms, size))
    if size % 64:
        assert (reports[:, -1] >> np.uint64(size % 64) == 0).all()
    assert noisy_bits(codes[:0], stream.users[:0], key, levels, size).shape == (
        0,
        -(-size // 64),
    )


@given(st.integers(0, 100), st.integers(1, 200), st.integers(0, 2**32))
def test_the_tally_kernel_counts_every_bit(n, size, seed):
    words = np.random.Philox(seed).random_raw(n * -(-size // 64))
    reports = words.reshape(n, -(-size // 64)).astype(np.uint64)
    counts = count_bits(reports, size)
    assert counts.dtype == np.int64
    expected = bits_of(reports, size).sum(axis=0) if n else np.zeros(size)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("n", [7, 8, 15, 16, 255, 256, 1023, 1024, 65_535, 65_536, 70_001])
def test_the_tally_kernel_carries_through_all_planes(n):
    reports = np.full((n, 2), 2**64 - 1, np.uint64)
    assert count_bits(reports, 128).tolist() == [n] * 128


@pytest.mark.statistical
@EVERY
def test_samples_follow_the_channel(make):
    oracle = make(4, 1)
    for truth in range(4):
        reports = oracle.perturb(np.full(20_000, truth, np.uint8), noise_for(20_000))
        counts = np.bincount(reports[:, 0], minlength=16)
        laws.assert_counts_follow(counts, oracle.channel()[truth])


@pytest.mark.statistical
@EVERY
def test_the_sampling_law_has_power(make):
    reports = make(4, "0.6").perturb(np.zeros(20_000, np.uint8), noise_for(20_000))
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(
            np.bincount(reports[:, 0], minlength=16), make(4, 1).channel()[0]
        )


@pytest.mark.statistical
@pytest.mark.parametrize("make", [SUE, OUE])
def test_bits_of_two_groups_that_share_words_are_independent(make):
    """All four outcomes of bits v and v + 64, which may read the same words."""
    oracle, n = make(129, 1), 20_000
    bits = bits_of(oracle.perturb(np.full(n, 128, np.uint8), noise_for(n)), 129)
    pairs = bits[:, :64] * 2 + bits[:, 64:128]
    p, q = 1 - oracle.q, oracle.q
    law = np.array([p * p, p * q, q * p, q * q])
    laws.assert_counts_follow(np.bincount(pairs.ravel(), minlength=4), law)
    neighbors = bits[:, :127] * 2 + bits[:, 1:128]
    laws.assert_counts_follow(np.bincount(neighbors[:, ::2].ravel(), minlength=4), law)


@pytest.mark.statistical
def test_the_true_bit_is_seldom_cleared_or_kept_by_the_noise_of_others():
    """The classic mistake leaves the noise on a true bit: p would be 1 or p + q - pq."""
    oracle, n = OUE(200, 1), 40_000
    codes = (np.arange(n) % 200).astype(np.uint8)
    bits = bits_of(oracle.perturb(codes, noise_for(n)), 200)
    assert abs(bits[np.arange(n), codes].mean() - 0.5) < 5 * (0.25 / n) ** 0.5


def test_users_have_bits_of_their_own():
    bits = bits_of(OUE(100, 1).perturb(np.zeros(50, np.uint8), noise_for(50)), 100)
    assert len({row.tobytes() for row in bits}) == 50


@pytest.mark.parametrize(
    ("size", "kind"), [(8, "u1"), (9, "u2"), (17, "u4"), (33, "u8"), (65, "u8")]
)
def test_small_domains_send_narrow_words(size, kind):
    reports = OUE(size, 1).perturb(np.zeros(3, np.uint8), noise_for(3))
    assert reports.dtype == kind
    assert reports.shape == (3, -(-size // 64))


def test_the_largest_epsilon_keeps_the_others_silent():
    codes = (np.arange(2000) % 100).astype(np.uint8)
    truth = np.eye(100)[codes]
    symmetric = bits_of(SUE(100, 30).perturb(codes, noise_for(2000)), 100)
    assert np.count_nonzero(symmetric != truth) <= 2  # 0.06 are expected
    optimized = bits_of(OUE(100, 30).perturb(codes, noise_for(2000)), 100)
    assert (optimized <= truth).all()


def test_reports_that_do_not_fit_are_refused_with_their_size():
    with pytest.raises(InputError, match=r"8,192,000,000 bytes at once.*OLH"):
        OUE(1_000_000, 1).perturb(np.zeros(65_536, np.uint32), noise_for(65_536))


def test_a_channel_of_too_many_reports_is_refused():
    with pytest.raises(InputError, match="k must be <= 12"):
        OUE(13, 1).channel()


def test_reports_of_another_domain_are_refused():
    with pytest.raises(InputError, match="2 words each"):
        OUE(65, 1).tally(np.zeros((5, 1), np.uint64))
