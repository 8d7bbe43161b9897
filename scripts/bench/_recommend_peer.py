"""Runs in the peers' environment: seconds and errors of item-based neighbors, as JSON."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from surprise import Dataset, KNNWithMeans, Reader  # type: ignore[import-not-found]


def main(path: str, kinds: list[list[object]]) -> None:
    """Fit and predict with each pair of similarity and k; ratings and split come as a file."""
    split = np.load(path)
    columns = (split["users"], split["items"], split["ratings"])
    rows = [(int(u), int(i), float(r), None) for u, i, r in zip(*columns, strict=True)]
    columns = (split["test_users"], split["test_items"], split["test_ratings"])
    test = [(int(u), int(i), float(r)) for u, i, r in zip(*columns, strict=True)]
    training = Dataset(Reader(rating_scale=(1, 5))).construct_trainset(rows)
    found = {}
    for name, k in kinds:
        options = {"name": name, "user_based": False}
        start = time.perf_counter()
        model = KNNWithMeans(k=k, sim_options=options, verbose=False).fit(training)
        made = model.test(test)
        seconds = time.perf_counter() - start
        errors = np.array([one.est for one in made]) - split["test_ratings"]
        found[f"{name} {k}"] = [seconds, float(np.sqrt(np.mean(errors**2)))]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
