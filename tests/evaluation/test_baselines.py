"""The three tables to compare with: their laws and their addresses."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.evaluation.baselines import bootstrap_table, independent_table, uniform_table
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.table import CodeTable
from tests.evaluation.tables import table_of
from tests.laws import assert_counts_follow, chi_square_limit

NOISE = CentralNoise(5, "baselines")
TRUTH = table_of((2, 3), [0, 0, 1, 1, 1], [0, 1, 2, 2, 2])
MAKERS = {
    "uniform": lambda n, noise=NOISE: uniform_table(TRUTH.sizes, n, noise),
    "independent": lambda n, noise=NOISE: independent_table(TRUTH, n, noise),
    "bootstrap": lambda n, noise=NOISE: bootstrap_table(TRUTH, n, noise),
}
LAWS = {
    "uniform": np.full((2, 3), 1 / 6),
    "independent": np.outer([0.4, 0.6], [0.2, 0.2, 0.6]),
    "bootstrap": np.array([[0.2, 0.2, 0], [0, 0, 0.6]]),
}


def draws_of(subject, n):
    return NOISE.words(Purpose.PUBLISH, subject, n).tolist()


@pytest.mark.parametrize("size", [1, 3, 256, 41_000, 2**31 + 7])
def test_a_place_is_the_high_word_of_a_product(size):
    table = uniform_table((size,), 500, NOISE)
    expected = [(draw * size) >> 64 for draw in draws_of("uniform, attribute 0", 500)]
    assert table.codes[0].tolist() == expected


def test_each_code_of_an_independent_row_has_a_user_of_its_own():
    table = independent_table(TRUTH, 50, NOISE)
    for attribute in range(2):
        users = [(w * 5) >> 64 for w in draws_of(f"independent, attribute {attribute}", 50)]
        assert table.codes[attribute].tolist() == TRUTH.codes[attribute][users].tolist()


def test_a_bootstrap_row_is_a_users_whole_record():
    table = bootstrap_table(TRUTH, 50, NOISE)
    users = [(w * 5) >> 64 for w in draws_of("bootstrap", 50)]
    np.testing.assert_array_equal(table.codes, TRUTH.codes[:, users])


@pytest.mark.statistical
@pytest.mark.parametrize("name", MAKERS)
def test_rows_follow_their_law_and_no_other(name):
    counts = joint_counts(MAKERS[name](20_000), (0, 1)).ravel()
    assert_counts_follow(counts, LAWS[name].ravel())
    for other, law in LAWS.items():
        if other != name:
            used = law.ravel() > 0
            expected = counts.sum() * law.ravel()[used]
            statistic = ((counts[used] - expected) ** 2 / expected).sum()
            assert statistic > chi_square_limit(5)


@pytest.mark.parametrize("name", MAKERS)
def test_a_row_depends_on_its_index_and_the_noise_only(name):
    whole = MAKERS[name](40)
    np.testing.assert_array_equal(MAKERS[name](17).codes, whole.codes[:, :17])
    for noise in (CentralNoise(6, "baselines"), CentralNoise(5, "other")):
        assert (MAKERS[name](40, noise).codes != whole.codes).any()
    assert whole.sizes == TRUTH.sizes
    assert whole.codes.dtype == np.uint8


def test_uniform_codes_have_the_smallest_type():
    assert uniform_table((2, 300), 3, NOISE).codes.dtype == np.uint16


@pytest.mark.parametrize("name", MAKERS)
def test_a_table_without_rows_is_refused(name):
    with pytest.raises(InputError, match="n must be a whole number >= 1"):
        MAKERS[name](0)


@pytest.mark.parametrize("maker", [independent_table, bootstrap_table])
def test_nothing_is_drawn_from_an_empty_truth(maker):
    with pytest.raises(InputError, match="from a table of 1 to 4,294,967,295 rows, got 0"):
        maker(CodeTable((2,), np.zeros((1, 0), np.uint8)), 3, NOISE)
