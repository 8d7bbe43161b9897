"""Runs in the peers' environment: seconds and mean error of smartnoise-synth, as JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def run(job: dict[str, Any]) -> list[float]:
    """One run of its loop on our histogram and our queries; its set-up is not timed."""
    from snsynth.mwem import Histogram, MWEMSynthesizer, Query

    data = np.array(job["histogram"], float)
    queries = []
    for box in job["boxes"]:
        ends = list(zip(box[0::2], box[1::2], strict=True))
        # It indexes the transposed histogram: the last attribute leads.
        queries.append(Query([np.s_[lo : hi + 1] for lo, hi in reversed(ends)]))
    histogram = Histogram(data, list(data.shape), [None] * data.ndim, list(range(data.ndim)))
    histogram.queries = queries
    histogram.iterations = job["iterations"]
    histogram.meas_eps = job["epsilon"] / 2 / job["iterations"]
    synthesizer = MWEMSynthesizer(job["epsilon"], mult_weights_iterations=job["replays"])
    synthesizer.histograms = [histogram]
    start = time.process_time()
    ((guess, _, _),) = synthesizer.mwem()
    seconds = time.process_time() - start
    return [seconds, float(np.mean([query.error(data, guess) for query in queries]))]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps([run(job) for job in json.load(sys.stdin)]))
