"""PCKV: all sets of few keys and all reports about them are enumerated exactly."""

import pickle
from fractions import Fraction
from itertools import pairwise, product
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.mechanisms.pckv import PCKVGRR, PCKVUE
from tests.mechanisms import twins

ALL = 2**64
NAN = float("nan")
STATES = (NAN, 1.0, -1.0)
epsilons = st.fractions(Fraction(1, 20), 8, max_denominator=1000)
BOTH = (PCKVUE, PCKVGRR)


def shares_of_places(size):
    """The exact share of words of each place."""
    firsts = [-(-place * ALL // size) for place in range(size + 1)]
    return [Fraction(b - a, ALL) for a, b in pairwise(firsts)]


def samples(mechanism, row):
    """(probability, key or dummy, sign) of everything that a user may sample."""
    held = [key for key, value in enumerate(row) if not np.isnan(value)]
    size = max(len(held), mechanism.pad_length)
    for place, share in enumerate(shares_of_places(size)):
        if place < len(held):
            yield share, held[place], int(row[held[place]])
        else:
            dummy = mechanism.keys + place - len(held)
            yield share / 2, dummy, 1
            yield share / 2, dummy, -1


def law_of(mechanism, row):
    """The exact law of one user's report."""
    known = dict(mechanism.parameters)
    if isinstance(mechanism, PCKVGRR):
        codes = 2 * (mechanism.keys + mechanism.pad_length)
        lie = Fraction(known["lie_atoms"], ALL)
        law = [lie] * codes
        for share, key, sign in samples(mechanism, row):
            law[2 * key + (sign < 0)] += share * (1 - codes * lie)
        return law
    flip, one = (Fraction(known[name], ALL) for name in ("flipped_atoms", "other_atoms"))
    other = {0: 1 - 2 * one, 1: one, -1: one}
    own = {0: Fraction(1, 2), 1: Fraction(1, 2) - flip, -1: flip}
    law = []
    for report in product((0, 1, -1), repeat=mechanism.keys):
        noise = [other[bit] for bit in report]
        total = Fraction(0)
        for share, key, sign in samples(mechanism, row):
            factor = share
            for place, bit in enumerate(report):
                factor *= own[bit * sign] if place == key else noise[place]
            total += factor
        law.append(total)
    return law


def signs_of(mechanism, report):
    """The tally of one report in the order of `law_of`."""
    tally = np.zeros(2 * mechanism.keys)
    if isinstance(mechanism, PCKVGRR):
        key, negative = divmod(report, 2)
        if key < mechanism.keys:
            tally[key + negative * mechanism.keys] = 1
        return tally
    bits = list(product((0, 1, -1), repeat=mechanism.keys))[report]
    for key, bit in enumerate(bits):
        if bit:
            tally[key + (bit < 0) * mechanism.keys] = 1
    return tally


SMALL = [
    (kind, keys, length, epsilon)
    for kind in BOTH
    for keys, length in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)]
    for epsilon in ("0.5", "2")
]


@pytest.mark.parametrize(("kind", "keys", "length", "epsilon"), SMALL)
def test_any_two_sets_cost_at_most_the_real_epsilon_and_some_cost_it(
    kind, keys, length, epsilon
):
    mechanism = kind(keys, epsilon, length)
    rows = [law_of(mechanism, row) for row in product(STATES, repeat=keys)]
    assert all(sum(row) == 1 for row in rows)
    worst = twins.worst_ratio(rows)
    assert log(worst) == pytest.approx(mechanism.real_epsilon, abs=1e-12)
    assert mechanism.real_epsilon <= mechanism.epsilon == mechanism.loss.epsilon
    if keys >= length or kind is PCKVGRR:
        assert mechanism.real_epsilon == pytest.approx(float(epsilon), abs=1e-9)
    else:
        assert mechanism.real_epsilon < float(epsilon) - 0.05


@given(
    st.sampled_from(BOTH),
    st.integers(1, 500),
    st.fractions(Fraction(1, 100), 30),
    st.integers(1, 40),
)
def test_the_real_epsilon_never_exceeds_epsilon(kind, keys, epsilon, length):
    mechanism = kind(keys, epsilon, length)
    assert mechanism.real_epsilon <= mechanism.epsilon
    if kind is PCKVGRR or keys >= length:
        assert mechanism.real_epsilon == pytest.approx(float(mechanism.epsilon), rel=1e-4)


@pytest.mark.parametrize(("kind", "keys", "length", "epsilon"), SMALL)
def test_expected_tallies_of_every_set_are_estimated_as_the_set(kind, keys, length, epsilon):
    mechanism = kind(keys, epsilon, length)
    for row in product(STATES, repeat=keys):
        held = ~np.isnan(row)
        if held.sum() > length:
            continue
        law = law_of(mechanism, row)
        expected = sum(float(p) * signs_of(mechanism, r) for r, p in enumerate(law))
        frequencies, means = mechanism.estimate(expected * 2**40, 2**40)
        np.testing.assert_allclose(frequencies, held, atol=1e-11)
        np.testing.assert_allclose(means[held], np.array(row)[held], atol=1e-10)


@pytest.mark.parametrize("kind", BOTH)
def test_users_with_longer_sets_are_counted_too_low(kind):
    mechanism = kind(3, 1, 2)
    law = law_of(mechanism, (1.0, 1.0, -1.0))
    expected = sum(float(p) * signs_of(mechanism, r) for r, p in enumerate(law))
    np.testing.assert_allclose(mechanism.estimate(expected * 2**40, 2**40)[0], 2 / 3, atol=1e-9)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("keys", "length", "epsilon"), [(1, 1, 1), (2, 1, 2), (3, 2, 1), (3, 4, 3)]
)
def test_variance_is_the_channels(kind, keys, length, epsilon):
    """Two kinds of users: some hold key 0 with mean 1/2, all others hold nothing."""
    mechanism = kind(keys, epsilon, length)
    f, m = 0.3, 0.5
    nothing = [NAN] * (keys - 1)
    parts = [(f * (1 + m) / 2, [1.0]), (f * (1 - m) / 2, [-1.0]), (1 - f, [NAN])]
    laws = [share * np.array(law_of(mechanism, row + nothing), float) for share, row in parts]
    law = np.sum(laws, axis=0)
    shares: dict[tuple[float, ...], float] = {}
    for report, share in enumerate(law):
        pair = tuple(signs_of(mechanism, report)[[0, keys]])
        shares[pair] = shares.get(pair, 0) + share

    def estimate(tally, n):
        full = np.zeros(2 * keys)
        full[[0, keys]] = tally
        frequencies, means = mechanism.estimate(full, n)
        return frequencies[0], means[0]

    implied = twins.delta_variance(estimate, shares, 9)
    np.testing.assert_allclose(mechanism.variance(9, f, m), implied, rtol=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "d", "c", "each", "sampled"),
    [
        (1, 4, 1, (0.0103, 0.039), (0.0087, 0.042)),
        (1, 16, 1, (0.0101, 0.153), (0.0155, 0.281)),
        (2, 16, 4, (0.0168, 0.068), (0.0074, 0.031)),
        (2, 100, 1, (0.0041, 0.419), (0.0102, None)),
        (4, 100, 5, (0.0066, 0.142), (0.0028, 0.055)),
    ],
)  # fmt: skip
def test_standard_deviations_are_those_of_the_tables(epsilon, d, c, each, sampled):
    for kind, (frequency, mean) in ((PCKVUE, each), (PCKVGRR, sampled)):
        found = kind(d, epsilon, c).variance(100_000, c / d, 0.5)
        assert sqrt(found[0]) == pytest.approx(frequency, abs=6e-5)
        assert mean is None or sqrt(found[1]) == pytest.approx(mean, abs=6e-4)


def test_probabilities_are_those_of_the_paper():
    e, keys, length = exp(1), 5, 3
    law = PCKVUE(keys, 1, length).law
    b = 2 / (e + 3)
    assert law.fake == pytest.approx(b)
    assert law.keep == pytest.approx(b + (0.5 - b) / length)
    assert law.gain == pytest.approx(0.5 * (e - 1) / (e + 1) / length)
    law, size = PCKVGRR(keys, 1, length).law, length * (e - 1) + 2 * (keys + length)
    a, p = (length * (e - 1) + 2) / size, (length * (e - 1) + 1) / (length * (e - 1) + 2)
    b = (1 - a) / (keys + length - 1)
    assert law.fake == pytest.approx(b)
    assert law.keep == pytest.approx(b + (a - b) / length)
    assert law.gain == pytest.approx(a * (2 * p - 1) / length)


def some_values(n, keys, rate=3):
    values = np.sin(np.arange(n * keys) * 1.7).reshape(n, keys)
    values[(np.arange(n * keys).reshape(n, keys) * 2654435761 >> 3) % rate > 0] = NAN
    return values


def sampled_key(row, length, word):
    held = [key for key, value in enumerate(row) if not np.isnan(value)]
    place = twins.place(word, max(len(held), length))
    return held[place] if place < len(held) else row.size + place - len(held)


@pytest.mark.parametrize(("keys", "length"), [(1, 1), (3, 2), (64, 5), (65, 3), (150, 7)])
def test_reports_of_all_keys_equal_those_of_plain_integers(keys, length):
    mechanism, values, noise = (
        PCKVUE(keys, 1, length),
        some_values(40, keys),
        twins.noise_for(40),
    )
    reports = mechanism.perturb(values, noise)
    assert reports.dtype == np.uint64
    width = (keys + 63) // 64
    assert reports.shape == (40, 2 * width)
    bits = np.unpackbits(reports.view(np.uint8), bitorder="little").reshape(40, 2, -1)
    assert not bits[:, :, keys:].any()
    expected = [
        each_key(mechanism, values[user], noise.stream().key, user) for user in range(40)
    ]
    np.testing.assert_array_equal(bits[:, :, :keys], expected)
    np.testing.assert_array_equal(
        mechanism.tally(reports), np.sum(expected, axis=0).reshape(-1)
    )


def each_key(mechanism, row, stream_key, user):
    known = dict(mechanism.parameters)
    flip, one = known["flipped_atoms"], known["other_atoms"]
    first = twins.words(stream_key, user, 0)
    signs = []
    for block in range((row.size + 63) // 64):
        step = 1 + 17 * block
        word = first[2 + block] if block < 2 else twins.words(stream_key, user, step)[0]
        signs += [word >> lane & 1 for lane in range(64)]
    draws = twins.row_draws(stream_key, user, 2, row.size, stride=17)
    told = [(draw < 2 * one, sign) for draw, sign in zip(draws, signs, strict=False)]
    plus = [some and sign == 1 for some, sign in told]
    minus = [some and sign == 0 for some, sign in told]
    own = sampled_key(row, mechanism.pad_length, first[0])
    if own < row.size:
        plus[own] = first[1] < twins.threshold(row[own], flip, ALL // 2 - 2 * flip)
        minus[own] = not plus[own] and first[1] < ALL // 2
    return np.array([plus, minus], np.uint8)


@pytest.mark.parametrize(("keys", "length"), [(1, 1), (3, 2), (64, 5), (150, 7)])
def test_sampled_reports_equal_those_of_plain_integers(keys, length):
    mechanism, values = PCKVGRR(keys, 3, length), some_values(300, keys)
    users = np.arange(300) * 3 + 5
    noise = twins.noise_for(0, users=users)
    reports = mechanism.perturb(values, noise)
    assert reports.dtype == np.uint32
    expected = [
        code_of(mechanism, values[place], noise.stream().key, user)
        for place, user in enumerate(users)
    ]
    assert reports.tolist() == expected
    assert min(expected) >= 0
    assert max(expected) < 2 * (keys + length)
    tally = [expected.count(2 * key + sign) for sign in (0, 1) for key in range(keys)]
    assert mechanism.tally(reports).tolist() == tally
    assert mechanism.tally(reports).dtype == np.int64


def code_of(mechanism, row, stream_key, user):
    first = twins.words(stream_key, user, 0)
    own, lie = sampled_key(row, mechanism.pad_length, first[0]), mechanism.lie_atoms
    codes = 2 * (mechanism.keys + mechanism.pad_length)
    span = ALL - codes * lie
    if first[1] < span + 2 * lie:
        value = row[own] if own < row.size else 0.0
        return 2 * own + (first[1] >= twins.threshold(value, lie, span))
    others = [code for code in range(codes) if code // 2 != own]
    return others[(first[1] - span - 2 * lie) // lie]


@pytest.mark.parametrize("kind", BOTH)
def test_an_empty_block_gives_an_empty_report_and_a_tally_of_zeros(kind):
    mechanism = kind(70, 1, 2)
    reports = mechanism.perturb(np.zeros((0, 70)), twins.noise_for(0))
    assert len(reports) == 0
    assert mechanism.tally(reports).tolist() == [0] * 140
    assert mechanism.tally_size == 140


@pytest.mark.statistical
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("wrong", [2, "1.7"])
def test_estimates_are_within_five_standard_errors_and_another_epsilon_is_not(kind, wrong):
    n, keys = 100_000, 4
    perturbing, estimating = kind(keys, wrong, 2), kind(keys, 2, 2)
    values = np.full((n, keys), NAN)
    values[: n // 2, 0] = 0.8
    values[n // 4 :, 1] = np.linspace(-1, 0.2, n - n // 4)
    tally = perturbing.tally(perturbing.perturb(values, twins.noise_for(n)))
    frequencies, means = estimating.estimate(tally, n)
    z = [abs(frequencies - (0.5, 0.75, 0, 0)) / np.sqrt(
        [estimating.variance(n, f, m)[0] for f, m in ((0.5, 0.8), (0.75, -0.4), (0, 0), (0, 0))]
    )]  # fmt: skip
    for key, (f, m) in enumerate(((0.5, 0.8), (0.75, -0.4))):
        z.append([abs(means[key] - m) / sqrt(estimating.variance(n, f, m)[1])])
    assert (np.concatenate(z).max() < 5) == (wrong == 2)


@pytest.mark.parametrize("kind", BOTH)
def test_reports_depend_on_their_own_user_only(kind):
    mechanism, values = kind(5, 1, 2), some_values(1000, 5)
    values.flags.writeable = False
    whole = mechanism.perturb(values, twins.noise_for(1000))
    users = np.array([3, 500, 501, 999])
    part = mechanism.perturb(values[users], twins.noise_for(0, users=users))
    np.testing.assert_array_equal(part, whole[users])
    np.testing.assert_array_equal(
        mechanism.tally(whole[:400]) + mechanism.tally(whole[400:]), mechanism.tally(whole)
    )


def test_means_are_unknown_where_nobody_seems_to_hold_the_key():
    frequencies, means = PCKVUE(2, 1, 1).estimate(np.array([0, 40, 0, 40]), 100)
    assert frequencies[0] < 0 < frequencies[1]
    assert np.isnan(means[0])
    assert means[1] == 0


@pytest.mark.parametrize("kind", BOTH)
def test_a_mechanism_is_a_value_that_refuses_bad_parameters(kind):
    assert kind(3, 1, 2) == kind(3, "1.0", 2) == pickle.loads(pickle.dumps(kind(3, 1, 2)))
    assert dict(kind(3, "1/2", 2).parameters).items() >= {
        "keys": 3, "epsilon": "0.5", "pad_length": 2
    }.items()  # fmt: skip
    for bad in (0, 1.5, True, 1_000_001):
        with pytest.raises(InputError, match="keys must be"):
            kind(bad, 1, 2)
        with pytest.raises(InputError, match="pad_length must be"):
            kind(3, 1, bad)
    for wrong in (0, "nan", 31, True):
        with pytest.raises(InputError, match="epsilon must be"):
            kind(3, wrong, 2)
    with pytest.raises(InputError, match="epsilon is too small"):
        kind(3, "1e-30", 2)
    with pytest.raises(InputError, match="n must be"):
        kind(1, 1, 1).estimate(np.array([0, 0]), 0)


@pytest.mark.parametrize("kind", BOTH)
def test_bad_inputs_are_counted_and_never_echoed(kind):
    values = np.array([[0.5, 7.25], [NAN, -3.5]])
    with pytest.raises(InputError) as caught:
        kind(2, 1, 1).perturb(values, twins.noise_for(2))
    assert str(caught.value) == "2 of 4 values lie outside [-1, 1]"
    with pytest.raises(InputError, match="one input per user, got 2 for 3 users"):
        kind(2, 1, 1).perturb(np.zeros((2, 2)), twins.noise_for(3))


def test_reports_are_as_long_as_stated():
    assert PCKVUE(100, 1, 5).report_bytes == 25
    assert PCKVGRR(100, 1, 5).report_bytes == 1
    assert PCKVGRR(1000, 1, 5).report_bytes == 2
