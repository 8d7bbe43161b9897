"""Small tables and pools for central methods."""

import numpy as np

from dpsim.core.tasks import OneProcess
from dpsim.synthesis.table import CodeTable


def table_of(sizes, records):
    """A table from records, one tuple per user."""
    codes = np.array(records, np.uint8).reshape(-1, len(sizes)).T
    return CodeTable(tuple(sizes), np.ascontiguousarray(codes))


def chain(n, d, size, keep=0.8, seed=0):
    """Attribute j copies j - 1 with probability ``keep``, else it is uniform."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, size, (d, n))
    for attribute in range(1, d):
        copies = random.random(n) < keep
        codes[attribute, copies] = codes[attribute - 1, copies]
    return CodeTable((size,) * d, codes.astype(np.uint8))


class Many(OneProcess):
    """As many workers as told, one after the other."""

    def __init__(self, workers):
        self.workers = workers
