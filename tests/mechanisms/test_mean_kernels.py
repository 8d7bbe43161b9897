"""Each kernel against a plain twin: the same bits, the same types, on empty input too."""

from itertools import count

import numpy as np
import pytest

from dpsim.core.rng import draws_at, words_at
from dpsim.mechanisms import _mean_kernels as kernels
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.duchi_joint import JointDuchi
from dpsim.mechanisms.hybrid import Hybrid
from dpsim.mechanisms.laplace import LocalLaplace
from dpsim.mechanisms.piecewise import Piecewise

KEY = np.array([3, 2**63 + 5], np.uint64)
USERS = np.array([*range(120), 7_000_000_000, 2**40 + 1])
SHARES = np.array(
    [[0, 2**31, 2**30, 2**31 - 1, 1, 12345678, 1987654321][i % 7] for i in range(USERS.size)],
    np.uint32,
)
SIZES = [0, 1, USERS.size]


def words_of_user(user):
    """The user's words, one after another, from numpy's Philox."""
    for step in count():
        counter = int(user) + (step << 64) + (1 << 128)
        yield from map(int, np.random.Philox(key=KEY, counter=counter - 1).random_raw(4))


def assert_same(actual, expected, dtype):
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, np.array(expected, dtype))


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_shares(n):
    numbers = np.linspace(-1, 1, n) if n != 1 else np.array([0.3])
    shares, outside = kernels.to_shares(numbers)
    assert_same(shares, np.floor((numbers + 1) * 2**30 + 0.5), np.uint32)
    assert outside == 0
    bad = np.array([np.nan, 2.0, -2.0, 1.0])
    assert kernels.to_shares(bad)[1] == 3


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
def test_duchi(n, epsilon):
    mechanism = Duchi(epsilon)
    draws = words_at((1, "a", "b", "c"), 0, n)
    draws = draws if mechanism.draw_bits == 64 else (draws >> np.uint64(32)).astype(np.uint32)
    expected = [int(draw) < mechanism.plus_atoms(int(share))
                for share, draw in zip(SHARES[:n], draws, strict=True)]  # fmt: skip
    assert_same(mechanism.respond(SHARES[:n], draws), expected, np.bool_)


def place_of(mechanism, share, draw):
    layout = mechanism.layout
    if draw < layout.anywhere:
        return draw % layout.points
    position = (draw - layout.anywhere) * layout.stretch // 2**64
    return (share * (layout.points - layout.width) + position) // 2**31


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("mechanism", [Piecewise("0.1"), Piecewise(2), Piecewise(30, 8)])
def test_piecewise(n, mechanism):
    draws = words_at((1, "a", "b", "c"), 0, n)
    expected = [place_of(mechanism, int(share), int(draw))
                for share, draw in zip(SHARES[:n], draws, strict=True)]  # fmt: skip
    assert_same(mechanism.respond(SHARES[:n], draws), expected, np.uint16)


def hybrid_code(mechanism, share, branch, draw):
    if branch >= mechanism.duchi_atoms:
        return 2 + place_of(mechanism.piecewise, share, draw)
    draw >>= 64 - mechanism.duchi.draw_bits
    return int(draw < mechanism.duchi.plus_atoms(share))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("mechanism", [Hybrid("0.7"), Hybrid(4, 32), Hybrid(18)])
def test_hybrid(n, mechanism):
    duchi = mechanism.duchi
    numbers = (mechanism.duchi_atoms, duchi.draw_bits, duchi.lie_atoms, duchi.gap_atoms)
    branches = draws_at((1, "branch", "", ""), 0, n)
    branches[:1] = min(mechanism.duchi_atoms, 2**32 - 1)
    draws = words_at((1, "draw", "", ""), 0, n)
    codes = kernels.hybrid_codes(
        SHARES[:n], branches, draws, tuple(map(np.uint64, numbers)),
        mechanism.piecewise.kernel_layout,
    )  # fmt: skip
    columns = (SHARES[:n].tolist(), branches.tolist(), draws.tolist())
    expected = [hybrid_code(mechanism, *row) for row in zip(*columns, strict=True)]
    assert_same(codes, expected, np.uint32)


@pytest.mark.parametrize("n", SIZES)
def test_piecewise_in_floats(n):
    bound, near, numbers = 2.5, 0.6, np.linspace(-1, 1, USERS.size)[:n]
    expected = []
    for user, number in zip(USERS[:n], numbers, strict=True):
        words = words_of_user(user)
        branch, uniform = (next(words) >> 11) * 2.0**-53, (next(words) >> 11) * 2.0**-53
        left = (bound + 1) / 2 * number - (bound - 1) / 2
        close, anywhere = left + (bound - 1) * uniform, -bound + 2 * bound * uniform
        expected.append(close if branch < near else anywhere)
    reports = kernels.float_piecewise(numbers, USERS[:n], KEY, bound, near)
    assert_same(reports, expected, np.float64)


def inner_product(signs, truth, d):
    return d - 2 * (signs ^ truth).bit_count()


@pytest.mark.parametrize("d", range(1, 7))
def test_lean_for_all_pairs_of_signs(d):
    for signs in range(1 << d):
        for truth in range(1 << d):
            lean = kernels.lean(np.uint64(signs), np.uint64(truth), d)
            assert lean == inner_product(signs, truth, d)


def test_lean_in_64_dimensions():
    full = np.uint64(2**64 - 1)
    assert kernels.lean(full, full, 64) == 64
    assert kernels.lean(full, np.uint64(0), 64) == -64
    assert kernels.lean(full, np.uint64(2**32 - 1), 64) == 0


def turned(words, signs, truth, d):
    """Signs that lean towards the truth: negated if they lean away, drawn again if neither."""
    while inner_product(signs, truth, d) == 0:
        signs = next(words) % 2**d
    return signs if inner_product(signs, truth, d) > 0 else signs ^ (2**d - 1)


@pytest.mark.parametrize("d", range(1, 7))
def test_turned_signs_are_uniform_on_the_open_half_space(d):
    """Over all signs drawn: each vector of the half-space equally often, ties aside."""
    for truth in range(1 << d):
        drawn = [s for s in range(1 << d) if inner_product(s, truth, d)]
        results = [turned(iter(()), signs, truth, d) for signs in drawn]
        half_space = [s for s in range(1 << d) if inner_product(s, truth, d) > 0]
        assert sorted(results) == sorted(half_space * 2)


def joint_report(mechanism, shares, user):
    d, words = mechanism.dimensions, words_of_user(user)
    branch, signs, _, _ = (next(words) for _ in range(4))
    halves = []
    for _ in range(-(-d // 8) * 4):
        word = next(words)
        halves += [word % 2**32, word >> 32]
    truth = sum((halves[j] >> 1 < int(shares[j])) << j for j in range(d))
    signs %= 2**d
    if branch < mechanism.cube_atoms:
        return signs
    steps = (word for place, word in enumerate(words) if place % 4 == 0)
    return turned(steps, signs, truth, d)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 9, 16, 64])
def test_joint_duchi(n, d):
    mechanism = JointDuchi(d, 3)
    shares = np.resize(SHARES, n * d)
    reports = kernels.joint_signs(shares, d, USERS[:n], KEY, np.uint64(mechanism.cube_atoms))
    rows = shares.reshape(n, d)
    expected = [joint_report(mechanism, row, user)
                for row, user in zip(rows, USERS[:n], strict=True)]  # fmt: skip
    assert_same(reports, expected, np.uint64)
    bits = [[report >> j & 1 for j in range(d)] for report in expected]
    assert_same(kernels.plus_counts(reports, d), np.sum(bits, axis=0) * np.ones(d), np.int64)


def below(words, limit):
    """Uniform below the limit: words whose lowest part is too rare to share out are skipped."""
    for word in words:
        if word * limit % 2**64 >= (2**64 - limit) % limit:
            return word * limit // 2**64
    raise AssertionError


def decays(words, above, over, trial):
    """Bernoulli(exp(-above/over)): the first trial to fail has an odd number."""
    while below(words, over * trial) < above:
        trial += 1
    return trial % 2 == 1


def laplace_report(points, scale, share, user):
    words = words_of_user(user)
    top, bottom = scale
    start = (share * (points - 1) + below(words, 2**31)) // 2**31
    while True:
        size = below(words, top)
        if not decays(words, size, top, 1):
            continue
        while decays(words, 1, 1, 2):
            size += top
        is_negative = below(words, 2)
        if size // bottom or not is_negative:
            return start - size // bottom if is_negative else start + size // bottom


def assert_laplace_is_its_twin(points, scale, n):
    expected = [laplace_report(points, scale, int(share), user)
                for share, user in zip(SHARES[:n], USERS[:n], strict=True)]  # fmt: skip
    words = tuple(map(np.uint64, scale))
    room = np.uint64(points - 1)
    places = kernels.laplace_places(SHARES[:n], USERS[:n], KEY, room, words)
    assert_same(places, expected, np.int64)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "mechanism", [LocalLaplace("0.1"), LocalLaplace(30, 2), LocalLaplace("1/3", 1000)]
)
def test_laplace(n, mechanism):
    assert_laplace_is_its_twin(mechanism.points, mechanism.scale.as_integer_ratio(), n)


def test_laplace_skips_the_words_that_would_favor_some_numbers():
    """Of a limit that fits 15.5 times into the words, one in thirty must be skipped."""
    assert_laplace_is_its_twin(100, (2**65 // 31, 2**50 + 1), USERS.size)
