"""Which marginals are compared, and the sums over their cells."""

from hashlib import blake2b
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.evaluation import marginals
from dpsim.evaluation.marginals import MAX_SUBSETS, subsets_of, survey
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.table import CodeTable
from tests.evaluation.tables import table_of, tables

ARRAYS = ("apart", "products", "squares", "entropies", "spreads", "deviations")


def same_rows(pair):
    truth, other = pair
    return truth, CodeTable(other.sizes, np.resize(other.codes.T, truth.codes.T.shape).T.copy())


@pytest.mark.parametrize(("d", "alpha"), [(1, 1), (5, 2), (16, 3), (141, 2), (10_000, 1)])
def test_few_subsets_are_all_compared(d, alpha):
    assert subsets_of(d, alpha) == tuple(combinations(range(d), alpha))


@pytest.mark.parametrize(("d", "alpha"), [(142, 2), (100, 3), (10_001, 1), (300, 40)])
def test_many_subsets_are_sampled_without_repeats_in_order(d, alpha):
    found = subsets_of(d, alpha)
    assert len(set(found)) == len(found) == MAX_SUBSETS
    assert list(found) == sorted(found)
    assert all(s[0] >= 0 and s[-1] < d and len(set(s)) == alpha for s in found)
    assert all(list(subset) == sorted(subset) for subset in found)


def test_the_sample_is_the_same_for_ever():
    subsets_of.cache_clear()
    digest = blake2b(repr(subsets_of(100, 3)).encode(), digest_size=8).hexdigest()
    assert digest == "778f3d8f4749fe1e"


@given(st.integers(1, 9), st.data())
def test_ranks_and_subsets_are_one_to_one(d, data):
    alpha = data.draw(st.integers(1, d))
    found = {marginals._subset_at(rank, d, alpha) for rank in range(comb(d, alpha))}
    assert found == set(combinations(range(d), alpha))


def worst_score(subsets, d, alpha):
    """The largest standard score of the attributes' numbers of subsets."""
    share, m = alpha / d, len(subsets)
    left = 1 - m / comb(d, alpha)
    counts = np.bincount(np.ravel(subsets), minlength=d)
    return np.abs(counts - m * share).max() / np.sqrt(m * share * (1 - share) * left)


@pytest.mark.statistical
def test_the_sample_is_fair_to_all_attributes():
    assert worst_score(subsets_of(100, 3), 100, 3) < 5
    first = [s for s, _ in zip(combinations(range(100), 3), range(MAX_SUBSETS), strict=False)]
    assert worst_score(first, 100, 3) > 5


@given(tables(n_tables=3), st.data())
def test_sums_are_those_of_the_marginals_in_whole_numbers(three, data):
    truth, one, two = three
    two = same_rows((one, two))[1]
    alpha = data.draw(st.integers(1, len(truth.sizes)))
    found = survey(truth, (one, two), alpha, one.n)
    assert found.subsets == subsets_of(len(truth.sizes), alpha)
    for at, subset in enumerate(found.subsets):
        counts = [joint_counts(each, subset).ravel() for each in (truth, one, two)]
        assert found.cells[at] == counts[0].size
        assert found.squares[at].tolist() == [int(c @ c) for c in counts]
        for j, other in enumerate(counts[1:]):
            assert found.products[at, j] == counts[0] @ other
            assert found.apart[at, j] == np.abs(counts[0] * one.n - other * truth.n).sum()
        shares = [c / c.sum() for c in counts]
        entropies = [-sum(p * np.log(p) for p in share if p) for share in shares]
        np.testing.assert_allclose(found.entropies[at], entropies, rtol=1e-13, atol=1e-15)
        spread = np.sqrt(shares[0] * (1 - shares[0])).sum()
        np.testing.assert_allclose(found.spreads[at], spread, rtol=1e-13)


@given(tables(min_d=2), st.data())
def test_counting_only_cells_in_use_gives_the_same_bits(pair, data):
    truth, other = pair
    alpha = data.draw(st.integers(1, len(truth.sizes)))
    dense = survey(truth, (other,), alpha, other.n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginals, "_MAX_DENSE_CELLS", 0)
        sparse = survey(truth, (other,), alpha, other.n)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(dense, name), getattr(sparse, name))


def test_a_domain_far_beyond_memory_is_counted():
    """The first two rows would be one if compound codes were kept in 32 bits."""
    sizes = (1_000_000, 1_000_000, 500_000)
    codes = np.array([[0, 4_294, 9], [0, 967_296, 9], [3, 3, 499_999]], np.uint32)
    found = survey(CodeTable(sizes, codes), (CodeTable(sizes, codes[:, [0, 0, 2]]),), 3, 3)
    assert found.cells == (500_000 * 10**12,)
    assert found.apart.tolist() == [[6]]
    assert found.squares.tolist() == [[3, 5]]


@given(tables(), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_layout_changes_a_bit(pair, random):
    truth, other = pair
    order = list(range(truth.n))
    random.shuffle(order)
    codes = np.asfortranarray(truth.codes[:, order])
    codes.setflags(write=False)
    for alpha in range(1, len(truth.sizes) + 1):
        one = survey(truth, (other,), alpha, other.n)
        two = survey(CodeTable(truth.sizes, codes), (other,), alpha, other.n)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


ONE = table_of((2, 3), [0, 1], [2, 1])


@pytest.mark.parametrize(
    ("truth", "other", "alpha", "rows", "message"),
    [
        (ONE, ONE, 3, 2, "alpha must be at most the number of attributes, 2, got 3"),
        (ONE, ONE, 0, 2, "alpha must be a whole number >= 1"),
        (ONE, ONE, 1, 0, "rows must be a whole number >= 1"),
        (ONE, ONE, 1, 5, "every table beside the truth must have 5 rows"),
        (
            ONE,
            table_of((2, 4), [0], [3]),
            1,
            1,
            r"same domain sizes .* \(2, 4\) beside \(2, 3\)",
        ),
        (ONE, table_of((2, 3), [], []), 1, 1, "without rows"),
        (table_of((2, 3), [], []), ONE, 1, 2, "without rows"),
        (
            ONE,
            table_of((2, 3), [0, 0], [1, 3]),
            1,
            2,
            "attribute 1: 1 of 2 codes lie outside 0..2",
        ),
        (ONE, table_of((2, 3), [0], [1], dtype=np.int8), 1, 1, "unsigned integers, got int8"),
        (ONE, ONE, 1, 2**61, "too long to compare"),
    ],
)
def test_what_cannot_be_compared_is_refused(truth, other, alpha, rows, message):
    others = (other,) if rows < 2**61 else ()
    with pytest.raises(InputError, match=message):
        survey(truth, others, alpha, rows)


def test_marginals_too_large_for_a_number_are_refused():
    wide = CodeTable((1_000_000,) * 4, np.zeros((4, 1), np.uint32))
    with pytest.raises(InputError, match="marginals of 4 attributes are too large"):
        survey(wide, (wide,), 4, 1)


def test_many_domain_sizes_are_not_all_listed():
    one = CodeTable((2,) * 20, np.zeros((20, 1), np.uint8))
    two = CodeTable((3,) * 20, np.zeros((20, 1), np.uint8))
    with pytest.raises(InputError, match=r"\.\.\.; 20 in all\)"):
        survey(one, (two,), 1, 1)
