"""The gate: what passes is more than noise."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.tasks import OneProcess
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.chi_square import quantile
from dpsim.synthesis.gate import (
    Gate,
    PairTest,
    examine_pairs,
    independence_test,
    pairs_that_pass,
    users_needed,
)
from dpsim.synthesis.table import CodeTable


def table_of(counts):
    """Two attributes with exactly these joint counts."""
    rows, columns = np.indices(counts.shape)
    codes = [
        np.repeat(each.ravel(), counts.ravel()).astype(np.uint8) for each in (rows, columns)
    ]
    return CodeTable(counts.shape, np.stack(codes))


def with_statistic(value, pair=(0, 1), n=1000, freedom=1):
    return PairTest(pair, n, freedom, value, value)


def zipf(size, power):
    law = np.arange(1, size + 1) ** -float(power)
    return law / law.sum()


def rejections(size, n, power, draws, seed):
    """How often G, X² and the smaller one exceed their 1 % quantile under independence."""
    law = zipf(size, power)
    tables = np.random.default_rng(seed).multinomial(n, np.outer(law, law).ravel(), draws)
    hits = np.zeros(3)
    for counts in tables:
        test = independence_test(counts.reshape(size, size))
        limit = quantile(0.01, test.freedom)
        values = (test.likelihood_ratio, test.chi_square, test.statistic)
        hits += [value > limit for value in values]
    return hits / draws


def test_both_statistics_of_a_small_table():
    test = independence_test(np.array([[10, 20], [30, 40]]))
    assert test.chi_square == pytest.approx(0.7936507936, rel=1e-9)
    terms = [10 * log(10 / 12), 20 * log(20 / 18), 30 * log(30 / 28), 40 * log(40 / 42)]
    assert test.likelihood_ratio == pytest.approx(2 * sum(terms), rel=1e-12)
    assert (test.freedom, test.n, test.statistic) == (1, 100, test.chi_square)


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.integers(2, 5))
def test_counts_of_independent_attributes_have_statistic_zero(rows, columns):
    test = independence_test(np.outer(rows, np.arange(1, columns + 1)))
    assert test.likelihood_ratio == pytest.approx(0, abs=1e-9)
    assert test.chi_square == pytest.approx(0, abs=1e-9)
    assert test.freedom == (len(rows) - 1) * (columns - 1)


def test_empty_rows_and_columns_have_no_freedom():
    counts = np.array([[10, 0, 20], [0, 0, 0], [30, 0, 40], [5, 0, 5]])
    full = independence_test(counts[[0, 2, 3]][:, [0, 2]])
    assert independence_test(counts) == full
    assert full.freedom == 2


def test_a_constant_attribute_never_passes():
    test = independence_test(np.array([[10, 20, 30]]))
    assert test.freedom == 0
    assert test.strength(0.5) == 0
    gate = Gate(60, 2, 0.01, (test,))
    assert gate.passed == ()
    assert gate.signal.strongest is None


def test_the_smaller_statistic_decides():
    limit = quantile(0.01, 1)
    for values in ((0.9, 1.1), (1.1, 0.9)):
        test = PairTest((0, 1), 100, 1, values[0] * limit, values[1] * limit)
        assert test.strength(0.01) == pytest.approx(0.9)
    both = PairTest((0, 1), 100, 1, 1.1 * limit, 1.2 * limit)
    assert Gate(100, 2, 0.01, (both,)).passed == ((0, 1),)


def test_the_level_is_divided_among_the_pairs_tested():
    value = quantile(0.01, 1) * 1.0001
    alone = Gate(1000, 2, 0.01, (with_statistic(value),))
    assert alone.passed == ((0, 1),)
    three = Gate(
        1000, 3, 0.01, tuple(with_statistic(value, p) for p in ((0, 1), (0, 2), (1, 2)))
    )
    assert three.passed == ()
    assert three.pair_level == pytest.approx(0.01 / 3)


@pytest.mark.parametrize(("n", "tested"), [(19, 0), (20, 1)])
def test_a_pair_needs_five_users_per_cell(n, tested):
    codes = (np.arange(n) % 2).astype(np.uint8)
    gate = examine_pairs(CodeTable((2, 2), np.stack([codes, codes])))
    assert len(gate.tests) == tested
    assert gate.passed == ((0, 1),) * tested


def test_wide_pairs_are_left_out_and_the_others_share_the_level():
    codes = np.zeros((3, 100), np.uint8)
    codes[0] = codes[1] = np.arange(100) % 2
    gate = examine_pairs(CodeTable((2, 2, 11), codes))
    assert [test.pair for test in gate.tests] == [(0, 1)]
    assert gate.pair_level == 0.01
    assert (gate.signal.pairs, gate.signal.tested, gate.signal.passed) == (3, 1, 1)


def test_a_copied_attribute_passes_and_an_independent_one_does_not():
    first = np.arange(1000) % 4
    codes = np.stack([first, first, np.arange(1000) // 4 % 5]).astype(np.uint8)
    table = CodeTable((4, 4, 5), codes)
    codes.flags.writeable = False
    assert pairs_that_pass(table) == ((0, 1),)
    signal = examine_pairs(table).signal
    assert not signal.is_below_noise
    assert (signal.strongest, signal.n) == ((0, 1), 1000)
    assert signal.strength > 1
    assert signal.users_needed is not None
    assert signal.users_needed < 1000


def test_pure_noise_promises_no_number_of_users():
    """The strongest of 120 independent pairs is at its median: nothing to extrapolate from."""
    median = quantile(1 - 0.5 ** (1 / 120), 1)
    quiet = tuple(with_statistic(0.5, (0, i)) for i in range(1, 120))
    below = Gate(1000, 16, 0.01, (*quiet, with_statistic(median * 0.999, (1, 2)))).signal
    assert below.is_below_noise
    assert (below.strongest, below.users_needed) == ((1, 2), None)
    above = Gate(1000, 16, 0.01, (*quiet, with_statistic(median + 2, (1, 2)))).signal
    assert above.is_below_noise
    assert above.users_needed == round(1000 * quantile(0.01 / 120, 1) / 2)


def test_the_first_of_equally_strong_pairs_is_named():
    tests = tuple(with_statistic(3.0, pair) for pair in ((0, 1), (0, 2)))
    assert Gate(1000, 3, 0.01, tests).signal.strongest == (0, 1)


def test_one_attribute_has_no_pairs():
    gate = examine_pairs(CodeTable((3,), np.zeros((1, 10), np.uint8)))
    assert gate.passed == ()
    assert gate.tests == ()
    assert gate.signal.pairs == 0
    assert gate.signal.is_below_noise


class Backwards(OneProcess):
    """Works from the last item to the first."""

    def map(self, function, shared, items):
        return reversed([function(shared, item) for item in reversed(items)])


def test_the_order_of_work_changes_nothing():
    codes = np.random.default_rng(3).integers(0, 3, (4, 500)).astype(np.uint8)
    table = CodeTable((3,) * 4, codes)
    assert examine_pairs(table, pool=Backwards()) == examine_pairs(table)


def test_the_table_of_counts_is_the_one_tested():
    counts = np.array([[50, 20, 5], [10, 40, 30]])
    (test,) = examine_pairs(table_of(counts)).tests
    assert test == independence_test(counts)


@pytest.mark.parametrize(("epsilon", "users"), [(1, 3.5e7), (2, 2.2e6), (4, 1.4e5), (8, 9.4e3)])
def test_users_needed_for_the_strongest_pair_of_sixteen_binary_attributes(epsilon, users):
    oracle = GRR(2, Fraction(epsilon, 16))
    needed = users_needed(0.23, oracle, oracle, 0.01 / 120)
    assert needed == pytest.approx(users, rel=0.025)


def test_users_needed_takes_both_channels_and_the_width():
    level, one, two = 1e-4, GRR(3, 1), GRR(5, 2)
    expected = quantile(level, 8) / (2 * 0.1 * (one.p - one.q) ** 2 * (two.p - two.q) ** 2)
    assert users_needed(0.1, one, two, level) == pytest.approx(expected)
    assert users_needed(0.1, two, one, level) == pytest.approx(expected)


def test_grr_shrinks_an_interaction_by_both_gaps():
    """The formula is exact for a binary pair with even margins, to leading order."""
    one, two = GRR(2, 1), GRR(2, 2)
    weak = np.array([[0.26, 0.24], [0.24, 0.26]])
    seen = one.channel().T @ weak @ two.channel()
    before = independence_test((weak * 1e8).astype(np.int64))
    after = independence_test((seen * 1e8).astype(np.int64))
    shrink = (one.gap * two.gap) ** 2
    assert after.chi_square / before.chi_square == pytest.approx(shrink, rel=1e-3)


def test_faults_are_named():
    oracle = GRR(2, 1)
    with pytest.raises(InputError, match="information must be > 0"):
        users_needed(0, oracle, oracle, 0.01)
    with pytest.raises(InputError, match="two codes"):
        users_needed(0.1, GRR(1, 1), oracle, 0.01)
    with pytest.raises(InputError, match="level must be"):
        examine_pairs(CodeTable((2, 2), np.zeros((2, 100), np.uint8)), 1.0)
    for counts in ([[0, 0], [0, 0]], [1, 1, 1], [[1, -1], [1, 1]]):
        with pytest.raises(InputError, match="counts must be"):
            independence_test(np.array(counts))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("size", "n", "power", "draws"),
    [(10, 500, 0, 600), (16, 1280, 0, 600), (16, 1280, 1, 600), (41, 8405, 1.5, 300)],
)
def test_independent_pairs_pass_no_more_often_than_the_level_says(size, n, power, draws):
    limit = 0.01 + 5 * (0.01 * 0.99 / draws) ** 0.5
    assert rejections(size, n, power, draws, 1)[2] <= limit


@pytest.mark.statistical
def test_either_statistic_alone_would_be_too_liberal():
    ratio, _, _ = rejections(16, 1280, 1, 600, 1)
    assert ratio > 0.073 - 5 * (0.073 * 0.927 / 600) ** 0.5 > 0.01
    _, square, _ = rejections(41, 8405, 1.5, 300, 1)
    assert square > 0.127 - 5 * (0.127 * 0.873 / 300) ** 0.5 > 0.01
