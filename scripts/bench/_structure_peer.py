"""Runs in the peer's environment: DataSynthesizer's seconds per score, as JSON."""

import json
import sys
import time

import pandas as pd
from DataSynthesizer.lib.utils import mutual_information


def main(path: str, sets: list[list[int]]) -> None:
    """Time the score of each set: a child, then its parents."""
    table = pd.read_csv(path, dtype=str)
    found = []
    for child, *parents in sets:
        start = time.perf_counter()
        value = mutual_information(table[str(child)], table[[str(p) for p in parents]])
        found.append([time.perf_counter() - start, float(value)])
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
