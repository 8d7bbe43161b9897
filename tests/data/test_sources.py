"""Descriptions of generated data: read as written, refused by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.data.sources import GENERATORS, block_size_for, is_generated, parse_generated


def test_a_description_is_read():
    table = parse_generated("uniform:n=1e3,d=50,k=2-16,seed=7")
    assert (table.n, len(table.schema), table.seed) == (1000, 50, 7)
    sizes = {attribute.size for attribute in table.schema}
    assert sizes <= set(range(2, 17))
    assert len(sizes) > 5
    assert table.description == "uniform:d=50,k=2-16,n=1e3,seed=7"


@pytest.mark.parametrize("kind", GENERATORS)
def test_every_generator_has_defaults_and_says_them(kind):
    table = parse_generated(kind)
    assert table.n == 10_000
    again = parse_generated(table.description)
    assert again.fingerprint == table.fingerprint
    assert again.description == table.description


@pytest.mark.parametrize(
    ("number", "n"), [("1e6", 10**6), ("1_000", 1000), ("0", 0), ("2.5e3", 2500), ("12", 12)]
)
def test_whole_numbers_may_be_written_in_several_ways(number, n):
    assert parse_generated(f"uniform:n={number}").n == n


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform:n=x", "n must be a whole number >= 0, got 'x'"),
        ("uniform:n=-1", "n must be a whole number >= 0, got '-1'"),
        ("uniform:n=1.5", "n must be a whole number >= 0, got '1.5'"),
        ("uniform:n=1.5e0", "n must be a whole number >= 0, got '1.5e0'"),
        ("uniform:n=1e400", "n must be a whole number >= 0, got '1e400'"),
        ("uniform:n=nan", "n must be a whole number >= 0, got 'nan'"),
        ("uniform:n=", "n must be a whole number >= 0, got ''"),
        ("uniform:seed=a", "seed must be a whole number >= 0, got 'a'"),
        ("uniform:d=0", "d must be a whole number >= 1, got 0"),
        ("uniform:k=5-2", "k must be a size or a range LOW-HIGH of sizes >= 1, got 5-2"),
        ("uniform:k=0", "k must be a size or a range LOW-HIGH of sizes >= 1, got 0-0"),
        ("uniform:k=x-3", "k must be a whole number >= 0, got 'x'"),
        ("uniform:k=2000000", "k must be a size or a range"),
        ("zipf:s=x", "s must be a number, got 'x'"),
        ("zipf:s=-1", "s must be >= 0 and <= 10, got -1.0"),
        ("zipf:s=nan", "s must be >= 0 and <= 10, got nan"),
        ("planted:parents=x", "parents must be a whole number >= 0, got 'x'"),
        ("uniform:m=5", "uniform: 'm=5' is not understood; write key=value with n, d, k, seed"),
        ("uniform:sed=5", "uniform: 'sed=5' is not understood; did you mean 'seed'? write"),
        ("uniform:n", "uniform: 'n' is not understood; write key=value"),
        ("unifrom:n=5", f"no generator 'unifrom'; there are: {', '.join(GENERATORS)}"),
    ],
)
def test_a_mistake_is_one_clear_line_that_names_the_key(text, message):
    with pytest.raises(InputError) as caught:
        parse_generated(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@given(st.text("0123456789e-_.+nandk=,:suinform ", max_size=12))
def test_any_text_is_a_table_or_an_input_error(text):
    with_limits = f"uniform:{text},n=5,d=1,k=3"
    try:
        table = parse_generated(with_limits)
    except InputError:
        return
    assert (table.n, len(table.schema)) == (5, 1)


def test_generators_are_told_from_files():
    assert is_generated("uniform:n=5")
    assert is_generated("zipf")
    assert not is_generated("people.csv")
    assert not is_generated("uniform.csv")


def test_a_block_size_is_taken_as_given():
    assert parse_generated("uniform", 77).block_size == 77
    with pytest.raises(InputError, match="block_size must be"):
        parse_generated("uniform", -1)


@given(st.integers(0, 10**5))
def test_blocks_are_the_smallest_power_of_two_with_work_enough(attributes):
    size = block_size_for(attributes)
    assert 2**13 <= size <= 2**22
    assert size & (size - 1) == 0
    enough = 18_000_000 / max(1, attributes)
    assert size >= min(enough, 2**22)
    assert size == 2**13 or size / 2 < enough


def test_usual_tables_have_the_known_block_sizes():
    assert [block_size_for(attributes) for attributes in (1, 6, 50, 10_000)] == [
        4_194_304, 4_194_304, 524_288, 8_192,
    ]  # fmt: skip
