"""MWEM beside smartnoise-synth and beside the loops of the MWEM report; and what it costs.

    .venv/bin/python scripts/bench/mwem_peers.py

The peer is installed in an environment of its own under build/bench-mwem-peers. Without it the
rest is measured all the same. Times are those of the processor, with one thread each.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from pathlib import Path

import altair as alt
import numpy as np
from _side_by_side import verdict

from dpsim.core.rng import CentralNoise
from dpsim.experiments.charts import svg
from dpsim.synthesis.mwem import child_health
from dpsim.synthesis.mwem.batched import BatchedMWEM, run_trials
from dpsim.synthesis.mwem.errors import QueryErrors
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.random_workload import random_boxes
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload

ROOT = Path(__file__).parents[2]
PEERS = (
    ("smartnoise-sql==1.0.10", "faker", "scipy"),
    ("--no-deps", "smartnoise-synth==1.0.8"),  # its torch is 6 GB, and MWEM does not use it
)
NOISE = CentralNoise(1, "bench")
EPSILON, REPLAYS, REPEATS = 1, 20, 3
Table = list[list[float]]


def peer_python() -> str | None:
    """The interpreter of the peer's environment, made on first use; None if it cannot be."""
    folder = ROOT / "build" / "bench-mwem-peers"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("installing smartnoise-synth …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [python, "-m", "pip", "install", "-q"]
        for peers in PEERS:
            if subprocess.run([*pip, *peers], check=False, capture_output=True).returncode:
                print("smartnoise-synth cannot be installed here: it is left out")
                return None
        (folder / "ready").touch()
    return str(python)


@dataclass(frozen=True)
class Job:
    """One problem for all programs."""

    name: str
    histogram: np.ndarray
    workload: BoxWorkload
    iterations: int

    @property
    def boxes(self) -> list[list[int]]:
        """Ends lo and hi of each attribute, both included."""
        ends = np.stack([self.workload.lower, self.workload.upper - 1], axis=2)
        rows: list[list[int]] = ends.reshape(len(ends), -1).tolist()
        return rows

    def mwem(self, engine: str | None = None) -> tuple[MWEM, Truth]:
        """Ours."""
        settings = MWEMSettings(
            shape=self.workload.shape,
            neighbors="replace",
            epsilon=EPSILON,
            iterations=self.iterations,
            replays=REPLAYS,
        )
        mwem = MWEM(settings, self.workload, engine)
        return mwem, Truth.of(self.workload, self.histogram)


def report_loops(job: Job) -> Table:
    """The report's program with correct scores: lists, loops, one cell at a time.

    One-dimensional tables get a second axis of one value.
    """
    truth: Table = job.histogram.reshape(job.histogram.shape[0], -1).tolist()
    boxes = [box if len(box) == 4 else [*box, 0, 0] for box in job.boxes]
    rows, columns, total = len(truth), len(truth[0]), sum(map(sum, truth))
    guess = [[total / (rows * columns)] * columns for _ in range(rows)]
    measured: dict[int, float] = {}
    share = EPSILON / (2 * job.iterations)
    for _ in range(job.iterations):
        scores = [abs(box_sum(truth, box) - box_sum(guess, box)) * share / 2 for box in boxes]
        top = max(scores)
        weights = [exp(score - top) for score in scores]
        chosen = random.choices(range(len(boxes)), weights)[0]
        while chosen in measured:  # as printed: it draws again; damped so that it ends
            weights = [max(weight, 1e-9) for weight in weights]
            weights[chosen] = 0.0
            chosen = random.choices(range(len(boxes)), weights)[0]
        noise = random.expovariate(share) * random.choice((-1, 1))
        measured[chosen] = box_sum(truth, boxes[chosen]) + noise
        order = list(measured)
        for _ in range(REPLAYS):
            random.shuffle(order)
            for query in order:
                update(guess, boxes[query], measured[query], total)
    return guess


def box_sum(table: Table, box: list[int]) -> float:
    """Cell by cell."""
    total = 0.0
    for row in range(box[0], box[1] + 1):
        for column in range(box[2], box[3] + 1):
            total += table[row][column]
    return total


def update(guess: Table, box: list[int], target: float, total: float) -> None:
    """Multiply every cell by its factor, then divide every cell by the sum."""
    error = target - box_sum(guess, box)
    for row in range(len(guess)):
        for column in range(len(guess[0])):
            inside = box[0] <= row <= box[1] and box[2] <= column <= box[3]
            guess[row][column] *= exp((1 if inside else 0) * error / (2 * total))
    scale = total / sum(map(sum, guess))
    for row in range(len(guess)):
        for column in range(len(guess[0])):
            guess[row][column] *= scale


def seconds_of(call: Callable[[], object]) -> float:
    """Processor time of one call: other programs do not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


def time_peer(python: str, jobs: list[Job]) -> list[list[float]]:
    """Seconds and mean error of the peer, one pair per job."""
    script = str(Path(__file__).with_name("_mwem_peer.py"))
    sent = [
        {
            "histogram": job.histogram.tolist(),
            "boxes": job.boxes,
            "iterations": job.iterations,
            "epsilon": float(EPSILON),
            "replays": REPLAYS,
        }
        for job in jobs
    ]
    text = json.dumps(sent).encode()
    call = [python, script]
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, input=text, check=True, capture_output=True, env=one)
    found: list[list[float]] = json.loads(done.stdout)
    return found


Seconds = dict[tuple[str, str], list[float]]


def compare(jobs: list[Job], python: str | None) -> None:
    """All programs in turns: a busy moment hits them all."""
    seconds: Seconds = {}
    errors: dict[tuple[str, str], float] = {}
    for _ in range(REPEATS):
        if python is not None:
            for job, (spent, error) in zip(jobs, time_peer(python, jobs), strict=True):
                seconds.setdefault((job.name, "smartnoise-synth"), []).append(spent)
                errors[job.name, "smartnoise-synth"] = error
        for job in jobs:
            for name, spent in time_ours(job).items():
                seconds.setdefault((job.name, name), []).append(spent)
            mwem, truth = job.mwem("dense")
            answers = mwem.answers(mwem.run(truth, NOISE))
            errors[job.name, "dpsim, compiled"] = QueryErrors.of(answers, truth.answers).mean
    for (where, name), values in seconds.items():
        error = errors.get((where, name))
        shown = "" if error is None else f"   mean error of a run {error:8.1f}"
        print(f"  {where}  {name:<26}{1e3 * statistics.median(values):10.2f} ms{shown}")
    judge(seconds)


def time_ours(job: Job) -> dict[str, float]:
    """Seconds of the report's loops and of each of our ways."""
    mwem, truth = job.mwem("dense")
    batch = BatchedMWEM.of(mwem, truth)
    batch.run(NOISE)  # compiles
    mwem.run(truth, NOISE)
    return {
        "report's loops": seconds_of(lambda: report_loops(job)),
        "dpsim, step by step": seconds_of(lambda: mwem.run(truth, NOISE)),
        "dpsim, compiled": seconds_of(lambda: batch.run(NOISE)),
        "dpsim, one of 10 trials": seconds_of(lambda: run_trials(batch, NOISE, range(10))) / 10,
    }


def judge(seconds: Seconds) -> None:
    """One verdict per target: the median over turns of the ratio within a turn."""
    for where, name, least in (
        ("1-D", "report's loops", 40),
        ("2-D", "report's loops", 200),
        ("1-D", "smartnoise-synth", 60),
        ("2-D", "smartnoise-synth", 60),
    ):
        if (where, name) in seconds:
            pairs = zip(seconds[where, name], seconds[where, "dpsim, compiled"], strict=True)
            ratio = statistics.median(above / below for above, below in pairs)
            verdict(f"{where}: {name} / dpsim", ratio, f">= {least}", ratio >= least)


def blobs(shape: tuple[int, ...], n: int) -> np.ndarray:
    """Records around four places, as counts."""
    generator = np.random.default_rng(4)
    centers = generator.random((4, len(shape)))
    points = centers[generator.integers(0, 4, n)] + 0.05 * generator.normal(
        size=(n, len(shape))
    )
    cells = (np.clip(points, 0, 1 - 1e-9) * shape).astype(int)
    flat = np.ravel_multi_index(tuple(cells.T), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def costs() -> None:
    """Seconds of one run against the number of cells and of queries, T = 30."""
    counts = (100, 1_000, 10_000)
    sides = (100, 1_000, 3_000)
    print("\nms of one run, T=30, R=20; tables of the truth included; atoms | dense")
    print(f"  {'cells':>10}" + "".join(f"{n:>18,} queries" for n in counts))
    found: list[dict[str, object]] = []
    for side in sides:
        histogram = blobs((side, side), 10**5)
        row = f"  {side * side:>10,}"
        for n in counts:
            job = Job("", histogram, random_boxes((side, side), n, NOISE), 30)
            shown = []
            for engine in ("atoms", "dense"):
                if engine == "dense" and side > 1_000:
                    shown.append("-")
                    continue

                def call(engine: str = engine, job: Job = job) -> None:
                    mwem, truth = job.mwem(engine)
                    mwem.run(truth, NOISE)

                call()
                spent = 1e3 * seconds_of(call)
                shown.append(f"{spent:.0f}")
                found.append({"cells": side**2, "queries": n, "engine": engine, "ms": spent})
            row += f"{shown[0]:>16} | {shown[1]:>7}"
        print(row, flush=True)
    plot(found)


def plot(found: list[dict[str, object]]) -> None:
    """The same as a picture, on logarithmic axes."""
    chart = alt.Chart(alt.Data(values=found), title="One run of MWEM, T = 30, R = 20")
    chart = chart.mark_line(point=True).encode(
        x=alt.X("cells:Q", scale=alt.Scale(type="log"), title="cells of the domain"),
        y=alt.Y("ms:Q", scale=alt.Scale(type="log"), title="ms"),
        color=alt.Color("queries:O", title="queries"),
        strokeDash=alt.StrokeDash("engine:N", title="engine"),
    )
    path = ROOT / "build" / "mwem_cost.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(svg(chart.properties(width=420, height=260)))
    print(f"  plotted in {path.relative_to(ROOT)}")


def main() -> None:
    """Compare, then show what a run costs."""
    jobs = [
        Job("1-D", child_health.histogram_1d(), child_health.intervals_1d(), 30),
        Job("2-D", child_health.histogram_2d(), random_boxes((14, 4), 400, NOISE), 200),
    ]
    print(f"child health, ε={EPSILON}, R={REPLAYS}; 60 intervals, T=30; 400 rectangles, T=200")
    compare(jobs, peer_python())
    costs()
    line = Job("", blobs((10**6,), 10**5), random_boxes((10**6,), 10_000, NOISE), 30)
    mwem, truth = line.mwem()
    mwem.run(truth, NOISE)
    spent = seconds_of(lambda: mwem.run(truth, NOISE))
    print(
        f"  10^6 cells on one axis, 10^4 intervals: {1e3 * spent:.0f} ms by {mwem.engine_name}"
    )


if __name__ == "__main__":
    main()
