"""Item-based neighbors beside scikit-surprise's, in turns: time, error and memory.

    python scripts/bench/recommend_peers.py

The peer is installed in an environment of its own, under build/. Times are of fitting and
predicting one split of generated ratings, in one process and on one core.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _side_by_side import peak_bytes, verdict

from dpsim.core.records import Block
from dpsim.core.rng import CentralNoise
from dpsim.data.generated_ratings import parse_ratings
from dpsim.data.rating_split import RatingSplit
from dpsim.data.ratings import RatingPiece, read_users
from dpsim.recommend.knn import ItemKNN
from dpsim.recommend.pncf import PNCF
from dpsim.recommend.ratings_matrix import RatingMatrix
from dpsim.recommend.relevance_sensitivity import relevance_sensitivity
from dpsim.recommend.similarity import similarity_matrix

ROOT = Path(__file__).parents[2]
PEER = "scikit-surprise==1.1.5"
DATA = "ratings:users=943,items=1682,mean=106"
LARGE = "ratings:users=10000,items=20000,mean=630"
KINDS = [[kind, k] for kind in ("pearson", "cosine", "pearson_baseline") for k in (20, 40)]
REPEATS = 5
Method = Callable[[RatingMatrix, RatingPiece], np.ndarray]
METHODS: dict[str, Method] = {
    "knn pearson 20": lambda m, t: ItemKNN(20).fit(m).predict(t.users, t.items),
    "knn cosine 20": lambda m, t: ItemKNN(20, "cosine").fit(m).predict(t.users, t.items),
    "knn residual 20": lambda m, t: ItemKNN(20, "residual").fit(m).predict(t.users, t.items),
    "knn residual 40": lambda m, t: ItemKNN(40, "residual").fit(m).predict(t.users, t.items),
    "pncf pearson 20, ε=1": lambda m, t: (
        PNCF(1).fit(m).predict(t.users, t.items, CentralNoise(0, "bench")).ratings
    ),
}


def peer_python() -> str:
    """The interpreter of the peer's environment; made on first use."""
    folder = ROOT / "build" / "bench-recommend-peers"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("installing the peer …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
        (folder / "ready").touch()
    return str(python)


def split_of(text: str) -> tuple[RatingPiece, RatingPiece, int]:
    """Training and test ratings of a description, and the size of the catalog."""
    source = parse_ratings(text)
    users = Block(0, source.n)
    sides = (RatingSplit(source, "0.2", is_held_out=side) for side in (False, True))
    train, test = (read_users(side, users) for side in sides)
    return train, test, source.n_items


def time_peer(python: str, path: Path) -> dict[str, list[float]]:
    """Seconds and root mean squared error of each of the peer's methods."""
    script = str(Path(__file__).with_name("_recommend_peer.py"))
    call = [python, script, str(path), json.dumps(KINDS)]
    found: dict[str, list[float]] = json.loads(
        subprocess.run(call, check=True, capture_output=True).stdout
    )
    return found


def time_ours(train: RatingPiece, test: RatingPiece, n_items: int) -> dict[str, list[float]]:
    """The same of ours; sorting the ratings by item is part of fitting."""
    scale = parse_ratings(DATA).scale
    truth, found = scale.values(test.codes), {}
    for name, method in METHODS.items():
        start = time.perf_counter()
        predicted = method(RatingMatrix(n_items, scale, train), test)
        seconds = time.perf_counter() - start
        found[name] = [seconds, float(np.sqrt(np.mean((predicted - truth) ** 2)))]
    return found


def large() -> None:
    """Fit 20,000 items and 5 million ratings; the peak of the process after each step."""
    train, test, n_items = split_of(LARGE)
    some = test.part(Block(0, 200))
    matrix = RatingMatrix(n_items, parse_ratings(LARGE).scale, train)
    print(f"\n{LARGE}: {train.items.size:,} training ratings")
    for name in ("knn pearson 20", "pncf pearson 20, ε=1"):
        start = time.perf_counter()
        METHODS[name](matrix, some)
        seconds = time.perf_counter() - start
        peak = peak_bytes(os.getpid()) / 1e9
        print(f"  {name}, {some.items.size:,} predictions: {seconds:.1f} s, peak {peak:.2f} GB")
    verdict("peak without matrices, GB", peak, "< 4", peak < 4)
    start = time.perf_counter()
    pairs = similarity_matrix(matrix), relevance_sensitivity(matrix)
    seconds, peak = time.perf_counter() - start, peak_bytes(os.getpid()) / 1e9
    print(f"  both matrices of {len(pairs[0]):,} items: {seconds:.1f} s, peak {peak:.2f} GB")
    verdict("peak with both matrices, GB", peak, "< 4", peak < 4)


def main() -> None:
    """Measure and compare, in turns."""
    python = peer_python()
    train, test, n_items = split_of(DATA)
    scale = parse_ratings(DATA).scale
    time_ours(train, test, n_items)  # compiles
    peers, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.npz"
        np.savez(
            path,
            users=train.users, items=train.items, ratings=scale.values(train.codes),
            test_users=test.users, test_items=test.items, test_ratings=scale.values(test.codes),
        )  # fmt: skip
        for _ in range(REPEATS):
            peers.append(time_peer(python, path))
            ours.append(time_ours(train, test, n_items))
    print(f"{DATA}: {train.items.size:,} training and {test.items.size:,} test ratings")
    for who, found in (("surprise", peers), ("dpsim", ours)):
        for name in found[0]:
            seconds = statistics.median(turn[name][0] for turn in found)
            print(f"  {who:<9} {name:<22} {seconds:8.3f} s   RMSE {found[0][name][1]:.4f}")
    for name, target in (("knn pearson 20", 10), ("pncf pearson 20, ε=1", 4)):
        ratios = [
            peer["pearson 20"][0] / mine[name][0]
            for peer, mine in zip(peers, ours, strict=True)
        ]
        faster = statistics.median(ratios)
        verdict(f"surprise pearson 20 / {name}", faster, f">= {target}", faster >= target)
    for k in (20, 40):
        best = min(peers[0][f"{kind} {n}"][1] for kind, n in KINDS if n == k)
        gap = 1000 * (ours[0][f"knn residual {k}"][1] - best)
        verdict(f"RMSE · 1000, knn residual {k} - surprise's best", gap, "<= 5", gap <= 5)
    subprocess.run([sys.executable, __file__, "large"], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["large"]:
        large()
    else:
        main()
