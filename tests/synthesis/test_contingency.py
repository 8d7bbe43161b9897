"""Counting: every path gives the same bits, and they are those of a plain twin."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.synthesis import _bit_kernels as bits
from dpsim.synthesis import _table_kernels as kernels
from dpsim.synthesis import contingency
from dpsim.synthesis.contingency import (
    Grid,
    cells_of,
    independence_distances,
    joint_counts,
    subset_entropies,
)
from dpsim.synthesis.table import CodeTable, code_type
from tests.synthesis.real_tables import real_table


def made_table(sizes, n, seed=0):
    """Skewed and dependent columns, every code possible."""
    rng = np.random.default_rng(seed)
    shared = rng.random(n)
    columns = [
        np.minimum((np.where(rng.random(n) < 0.5, shared, rng.random(n)) ** 2 * size), size - 1)
        for size in sizes
    ]
    return CodeTable(tuple(sizes), np.array(columns).astype(code_type(sizes)))


def all_subsets(d, width):
    return np.array(list(combinations(range(d), width)), np.int16).reshape(-1, width)


def entropy_twin(table, row):
    codes = table.codes[list(row)].astype(np.int64)
    counts = np.unique(codes, axis=1, return_counts=True)[1]
    return math.log(table.n) - math.fsum(c * math.log(c) for c in counts.tolist()) / table.n


tables = st.builds(
    made_table,
    st.lists(st.sampled_from([1, 2, 2, 3, 7, 20, 300]), min_size=4, max_size=5),
    st.sampled_from([1, 2, 9, 200, 3000]),
    st.integers(0, 99),
)


def sums_of(table, rows, room):
    grid = Grid(table.n)
    terms = kernels.terms_up_to(table.n, grid.scale)
    work = (np.zeros(room, np.int32), terms, grid.scale)
    return kernels.term_sums(table.codes, np.array(table.sizes), rows, work)


@given(tables)
def test_joint_counts_are_those_of_a_plain_loop(table):
    counts = joint_counts(table, (2, 0))
    expected = np.zeros((table.sizes[2], table.sizes[0]), np.int64)
    np.add.at(expected, (table.codes[2], table.codes[0]), 1)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected)
    cells = cells_of(table, (2, 0))
    assert cells.dtype == np.int64
    flat = table.codes[2].astype(np.int64) * table.sizes[0] + table.codes[0]
    np.testing.assert_array_equal(cells, flat)


def test_nobody_is_counted_as_nobody():
    table = made_table((2, 3), 0)
    assert joint_counts(table, (0, 1)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert cells_of(table, (1,)).dtype == np.int64
    assert joint_counts(made_table((2, 3), 5), ()).tolist() == 5
    with pytest.raises(InputError, match="at least one user"):
        subset_entropies(table, all_subsets(2, 2))


@given(tables, st.integers(1, 4))
def test_entropies_are_those_of_a_plain_twin(table, width):
    rows = all_subsets(len(table.sizes), width)
    found = subset_entropies(table, rows)
    assert found.dtype == np.float64
    assert found.shape == (len(rows),)
    expected = [entropy_twin(table, row) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@given(tables, st.integers(1, 4), st.integers(0, 9))
def test_neither_room_nor_order_nor_pieces_change_a_bit(table, width, seed):
    """Dense, sparse and sorted counting meet in every mixture."""
    rows = all_subsets(len(table.sizes), width)
    whole = sums_of(table, rows, 1 << 20)
    for room in (0, 8, 50, 700, 1 << 14):
        np.testing.assert_array_equal(sums_of(table, rows, room), whole)
    mixed = np.random.default_rng(seed).permutation(len(rows))
    np.testing.assert_array_equal(sums_of(table, rows[mixed], 700), whole[mixed])
    parts = [sums_of(table, part, 50) for part in np.array_split(rows, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_used_histogram_is_left_empty():
    table = made_table((3, 5, 2, 40, 300), 500)
    work = (np.zeros(10_000, np.int32), kernels.terms_up_to(500, 1e6), 1e6)
    for width in (1, 2, 3, 4):
        rows = all_subsets(5, width)
        kernels.term_sums(table.codes, np.array(table.sizes), rows, work)
        assert not work[0].any()


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_packed_bits_count_as_histograms_do(n, width):
    table = made_table((2, 2, 3, 2, 2, 2), n)
    rows = all_subsets(6, width)
    rows = rows[~(rows == 2).any(axis=1)]
    grid = Grid(n)
    terms = kernels.terms_up_to(n, grid.scale)
    words = bits.pack_bits(table.codes, np.unique(rows))
    assert words.dtype == np.uint64
    found = bits.binary_sums(words, n, rows, (np.zeros(0, np.int32), terms, grid.scale))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, sums_of(table, rows, 1 << 12))


def test_more_binary_attributes_than_are_packed_are_counted_too():
    table = made_table((2,) * 6, 400)
    found = subset_entropies(table, all_subsets(6, 5))
    expected = [entropy_twin(table, row) for row in all_subsets(6, 5)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_renaming_codes_and_copying_columns_keeps_every_bit():
    table = made_table((7, 5, 30), 2000)
    renamed = table.codes.copy()
    renamed[0] = 6 - renamed[0]
    copied = CodeTable((7, 5, 30, 7), np.vstack([table.codes, renamed[:1]]))
    found = subset_entropies(copied, all_subsets(4, 2))
    by_pair = dict(zip(map(tuple, all_subsets(4, 2).tolist()), found, strict=True))
    assert by_pair[0, 1] == by_pair[1, 3]
    assert by_pair[0, 2] == by_pair[2, 3]


def test_counts_beyond_the_kept_terms_are_made_on_the_way(monkeypatch):
    table = made_table((2, 3, 5, 2), 5000)
    rows = all_subsets(4, 2)
    whole = subset_entropies(table, rows)
    monkeypatch.setattr(contingency, "_KEPT_TERMS", 10)
    np.testing.assert_array_equal(subset_entropies(table, rows), whole)


def test_codes_of_every_width_count_alike():
    table = made_table((2, 3, 5), 500)
    rows = all_subsets(3, 2)
    found = subset_entropies(table, rows)
    wide = CodeTable(table.sizes, table.codes.astype(np.uint16))
    np.testing.assert_array_equal(subset_entropies(wide, rows), found)
    table.codes.flags.writeable = False  # as in a process that shares it
    np.testing.assert_array_equal(subset_entropies(table, rows), found)


def test_the_logarithm_is_right_to_the_last_bits_and_frozen():
    numbers = [1, 2, 3, 10, 45_222, 10**6, 2**31 - 1, 2**52 + 1]
    for number in numbers:
        assert kernels.natural_log(float(number)) == pytest.approx(
            math.log(number), rel=4e-16, abs=0
        )
    assert kernels.natural_log(3.0).hex() == "0x1.193ea7aad030bp+0"
    assert kernels.terms_up_to(4, 2.0**40).tolist() == [
        round(c * math.log(c) * 2**40) if c else 0 for c in range(5)
    ]


@given(st.integers(1, 10**12))
def test_the_grid_holds_the_largest_sum(n):
    assert n * math.log(n) * Grid(n).scale < 2**62
    assert Grid(n).scale * max(n * math.log(n), 1) >= 2**60


def test_errors_stay_within_the_stated_one():
    table = made_table((300, 40, 7), 3000)
    rows = all_subsets(3, 3)
    worst = max(
        abs(found - entropy_twin(table, row))
        for row, found in zip(rows, subset_entropies(table, rows), strict=True)
    )
    assert worst <= Grid(3000).error


@given(tables.filter(lambda table: max(table.sizes) <= 20))
def test_distances_are_those_of_a_plain_twin(table):
    rows = all_subsets(len(table.sizes), 3)[:3]
    found = independence_distances(table, rows)
    assert found.shape == rows.shape
    for row, values in zip(rows.tolist(), found, strict=True):
        for place, child in enumerate(row):
            others = tuple(a for a in row if a != child)
            joint = joint_counts(table, (child, *others)).reshape(table.sizes[child], -1)
            law = joint / table.n
            product = np.outer(law.sum(axis=1), law.sum(axis=0))
            assert values[place] == pytest.approx(np.abs(law - product).sum() / 2, abs=1e-12)


def test_codes_outside_their_domain_are_refused_by_attribute_and_never_echoed():
    table = CodeTable((2, 3), np.array([[0, 1, 0], [0, 77, 99]], np.uint8))
    for count in (subset_entropies, independence_distances):
        with pytest.raises(InputError) as caught:
            count(table, all_subsets(2, 2))
        assert str(caught.value) == "attribute 1: 2 of 3 codes lie outside 0..2"
    with pytest.raises(InputError, match="attribute 1: 2 of 3"):
        joint_counts(table, (1,))
    with pytest.raises(InputError, match="no attribute 2: there are 2"):
        joint_counts(CodeTable((2, 2), np.zeros((2, 3), np.uint8)), (2,))


def test_tables_too_large_for_memory_are_refused():
    table = made_table((60_000, 60_000, 60_000, 60_000, 60_000), 3)
    with pytest.raises(InputError, match="3,600,000,000 cells together"):
        joint_counts(table, (0, 1))
    with pytest.raises(InputError, match="too many cells"):
        cells_of(table, (0, 1, 2, 3, 4))
    with pytest.raises(InputError, match="lower the cell limit"):
        independence_distances(table, all_subsets(5, 2))


def test_entropies_of_real_tables_are_those_of_the_reference():
    singles = all_subsets(4, 1)
    nltcs = subset_entropies(real_table("nltcs"), singles)
    np.testing.assert_allclose(nltcs, [0.4152, 0.5153, 0.5385, 0.6931], rtol=0, atol=6e-5)
    adult = subset_entropies(real_table("adult"), singles)
    np.testing.assert_allclose(adult, [2.3725, 0.9844, 1.4124, 2.0212], rtol=0, atol=6e-5)
