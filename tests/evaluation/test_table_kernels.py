"""Compiled loops against plain numpy and exact fractions."""

from fractions import Fraction
from math import comb, log, sqrt

import numpy as np
import pytest

from dpsim.evaluation._table_kernels import (
    compare_cells,
    count_cells,
    extend_cells,
    mean_deviation,
    sum_deviations,
)

TYPES = [np.uint8, np.uint16, np.uint32]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [0, 1, 1000])
@pytest.mark.parametrize("cell_type", [np.uint8, np.int64])
def test_compound_codes_and_counts_are_those_of_numpy(dtype, n, cell_type):
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 250, n).astype(cell_type)
    codes = rng.integers(0, 7, n).astype(dtype)
    extended = extend_cells(cells, codes, 7)
    twin = cells.astype(np.int64) * 7 + codes
    np.testing.assert_array_equal(extended, twin)
    assert extended.dtype == np.int64
    counts = np.full(1750, 3)
    count_cells(cells, codes, 7, counts)
    np.testing.assert_array_equal(counts, 3 + np.bincount(twin, minlength=1750))


def test_compound_codes_beyond_32_bits_are_exact():
    cells = extend_cells(np.array([2**40]), np.array([5], np.uint32), 1000)
    assert cells.tolist() == [2**40 * 1000 + 5]


@pytest.mark.parametrize("cells", [0, 1, 12])
def test_sums_over_cells_are_those_of_plain_integers(cells):
    counts = np.random.default_rng(2).integers(0, 4, (3, cells))
    totals = counts.sum(axis=1)
    whole, real = np.full((3, 3), -1), np.full((3, 2), -1.0)
    compare_cells(counts, totals, whole, real)
    truth, n = counts[0].tolist(), int(totals[0])
    for row, found, sums, rows in zip(
        counts.tolist(), whole.tolist(), real, totals.tolist(), strict=True
    ):
        pairs = list(zip(truth, row, strict=True))
        assert found == [
            sum(abs(a * rows - b * n) for a, b in pairs),
            sum(a * b for a, b in pairs),
            sum(b * b for b in row),
        ]
        twin = [
            sum(b * log(b) for b in row if b),
            sum(sqrt(b * (rows - b)) for b in row),
        ]
        np.testing.assert_allclose(sums, twin, rtol=1e-14)


@pytest.mark.parametrize("rows", [1, 2, 7, 20])
@pytest.mark.parametrize("n", [1, 3, 10])
def test_the_mean_deviation_is_that_of_the_binomial_law(n, rows):
    for count in range(n + 1):
        p = Fraction(count, n)
        law = [comb(rows, x) * p**x * (1 - p) ** (rows - x) for x in range(rows + 1)]
        mean = sum(share * abs(x - rows * p) for x, share in enumerate(law))
        assert mean_deviation(count, n, rows) == pytest.approx(float(mean), rel=1e-12)


def test_the_mean_deviation_of_many_rows_is_nearly_normal():
    n = 10**6
    assert mean_deviation(n // 2, n, n) == pytest.approx(sqrt(n / (2 * np.pi)), rel=1e-6)


def test_deviations_are_added_over_cells_and_remembered_by_count():
    counts = np.array([3, 0, 1, 3, 1, 0, 2])
    known = np.full(11, -1.0)
    total = sum_deviations(counts, 10, 4, known)
    twin = sum(mean_deviation(int(c), 10, 4) for c in counts if c)
    assert total == pytest.approx(twin, rel=1e-14)
    assert np.flatnonzero(known >= 0).tolist() == [1, 2, 3]
    assert sum_deviations(counts, 10, 4, known) == total
    assert sum_deviations(np.zeros(0, np.int64), 10, 4, known) == 0
