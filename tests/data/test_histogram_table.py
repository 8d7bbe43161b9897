"""A histogram as users: counted again, it is the same."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.records import blocks_of
from dpsim.core.schema import Attribute, CodeRange, Schema
from dpsim.data.histogram_table import HistogramTable

SCHEMA = Schema((Attribute("a", CodeRange(2)), Attribute("b", CodeRange(3))))
COUNTS = (4, 0, 1, 7, 2, 3)


@pytest.mark.parametrize("block_size", [1, 4, 100])
def test_its_users_have_its_counts_whatever_the_blocks(block_size):
    table = HistogramTable(SCHEMA, COUNTS, block_size, "test")
    total = np.zeros(6, int)
    for block in blocks_of(table.n, block_size):
        records = table.read(block)
        cells = records.open("a").astype(int) * 3 + records.open("b")
        total += np.bincount(cells, minlength=6)
    assert tuple(total) == COUNTS
    assert table.n == 17


def test_a_histogram_has_a_count_for_every_cell():
    with pytest.raises(InputError, match="one count for every cell"):
        HistogramTable(SCHEMA, COUNTS[:5], 4, "test")
