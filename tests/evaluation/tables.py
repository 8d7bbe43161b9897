"""Small tables for tests."""

import numpy as np
from hypothesis import strategies as st

from dpsim.synthesis.table import CodeTable


def table_of(sizes, *columns, dtype=np.uint8):
    return CodeTable(tuple(sizes), np.array(columns, dtype).reshape(len(sizes), -1))


@st.composite
def tables(draw, n_tables=2, min_d=1, max_d=4, max_rows=8):
    """Some tables of the same domains, each with as many rows as it likes."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=min_d, max_size=max_d)))
    found = []
    for _ in range(n_tables):
        n = draw(st.integers(1, max_rows))
        rows = st.tuples(*(st.integers(0, size - 1) for size in sizes))
        codes = draw(st.lists(rows, min_size=n, max_size=n))
        found.append(CodeTable(sizes, np.array(codes, np.uint8).T.copy()))
    return tuple(found)
