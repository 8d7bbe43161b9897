"""Structure search beside DataSynthesizer on Adult; one worker beside two on a large table.

    .venv/bin/python scripts/bench/structure_search.py [--data FOLDER] [--users N] [--workers 2]

The peer is installed in an environment of its own under build/bench-peers-structure. A whole
run of it takes minutes to hours: a few of its scores are timed on the full table, and counted
as often as it computes them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _side_by_side import peak_bytes, verdict

from dpsim.core.rng import words_at
from dpsim.core.tasks import OneProcess, TaskPool
from dpsim.synthesis.contingency import subset_entropies
from dpsim.synthesis.growth import FoundNetwork
from dpsim.synthesis.structure_search import SearchSettings, estimate, search
from dpsim.synthesis.table import CodeTable

ROOT = Path(__file__).parents[2]
PEER = "DataSynthesizer==0.1.13"
ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)
CALLS = {2: 1820, 3: 4368}
"""Scores that the peer computes for 15 attributes: all candidates of all steps."""
SETS = {2: [[14, 0, 7], [3, 5, 12], [13, 8, 1]], 3: [[14, 0, 7, 3], [3, 5, 12, 6]]}
TARGET, REPEATS, LARGE = 2_000, 3, 100


def peer_python() -> str:
    """The interpreter of the peer's environment; made on first use."""
    folder = ROOT / "build" / "bench-peers-structure"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("installing the peer …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
        (folder / "ready").touch()
    return str(python)


def time_peer(python: str, path: Path, k: int) -> list[list[float]]:
    """Seconds and value of each of a few scores."""
    script = str(Path(__file__).with_name("_structure_peer.py"))
    call = [python, script, str(path), json.dumps(SETS[k])]
    found: list[list[float]] = json.loads(
        subprocess.run(call, check=True, capture_output=True).stdout
    )
    return found


def information(table: CodeTable, members: list[int]) -> float:
    """The same score, ours: of the first member given the others."""
    sets = (members[:1], sorted(members[1:]), sorted(members))
    child, parents, joint = (
        float(subset_entropies(table, np.array([each], np.int16))[0]) for each in sets
    )
    return child + parents - joint


def timed(job: Callable[[], FoundNetwork]) -> tuple[float, FoundNetwork]:
    """Seconds, and what came of it."""
    start = time.perf_counter()
    found = job()
    return time.perf_counter() - start, found


def beside_peer(folder: Path) -> None:
    """Whole searches of ours against the peer's scores alone."""
    path, python = folder / "adult" / "adult.csv", peer_python()
    codes = np.loadtxt(path, np.uint8, delimiter=",", skiprows=1).T
    table = CodeTable(ADULT, np.ascontiguousarray(codes))
    print(f"Adult, {table.n} users, 15 attributes, one process each")
    for k, calls in CALLS.items():
        settings = SearchSettings(k, root=0, cell_limit=10**9)
        search(table, settings)  # compiles
        ratios = []
        for _ in range(REPEATS):
            peer = time_peer(python, path, k)
            for members, (_, value) in zip(SETS[k], peer, strict=True):
                if abs(information(table, members) - value) > 1e-9:
                    raise SystemExit(f"scores of {members} do not agree")
            other = statistics.median(seconds for seconds, _ in peer) * calls
            ours, found = timed(lambda settings=settings: search(table, settings))  # type: ignore[misc]
            ratios.append(other / ours)
        print(f"  k={k}: ours {ours:.3f} s, {found.tables} tables; peer about {other:.0f} s")
        faster = statistics.median(ratios)
        verdict(f"k={k}: DataSynthesizer / dpsim", faster, f">= {TARGET:,}", faster >= TARGET)


def large_table(users: int) -> CodeTable:
    """Columns of up to ten codes; each copies the one before with probability 0.35."""
    sizes = tuple(2 + place % 9 for place in range(LARGE))
    codes = np.empty((LARGE, users), np.uint8)
    for place, size in enumerate(sizes):
        words = words_at((1, "data", "bench", place), 0, users)
        codes[place] = (words >> np.uint64(32)) % np.uint64(size)
        if place:
            is_copy = (words & np.uint64(0xFFFF)) < np.uint64(0.35 * 2**16)
            codes[place, is_copy] = codes[place - 1, is_copy] % size
    return CodeTable(sizes, codes)


def on_large_table(users: int, workers: int) -> None:
    """One process, then as many workers as wished, on the same table."""
    table, settings = large_table(users), SearchSettings(2, root=0)
    guess = estimate(table, settings)
    print(
        f"\n{LARGE} attributes, {users:,} users, k=2: {guess.tables:,} tables, up to "
        f"{guess.largest_cells:,} cells, {guess.bytes / 1e6:.0f} MB, some {guess.seconds:.0f} s"
    )

    def tell(done: int, of: int) -> None:
        print(f"\r  {done:>9,} of {of:,} tables", end="", flush=True)

    def run(pool: TaskPool) -> tuple[float, FoundNetwork]:
        seconds, found = timed(lambda: search(table, settings, pool, tell=tell))
        print(f"\r  {pool.workers} worker(s): {seconds:.1f} s" + " " * 20)
        return seconds, found

    alone, found = run(OneProcess())
    neighbors = sum(abs(a - b) == 1 for a, b in found.net.edges)
    print(
        f"  peak memory {peak_bytes(os.getpid()) / 1e6:.0f} MB, {neighbors} of 99 links found"
    )
    if workers > 1:
        from dpsim.runtime.ray_pool import RayPool

        with RayPool.open(workers) as pool:
            search(large_table(1000), settings, pool)  # workers start and compile
            together, again = run(pool)
        if again != found:
            raise SystemExit("one process and many workers do not agree")
        gain = alone / together
        verdict(f"one process / {workers} workers", gain, f">= {0.85 * workers:.1f}",
                gain >= 0.85 * workers)  # fmt: skip


def main() -> None:
    """Measure and compare."""
    default = os.environ.get("DPSIM_DATA", str(ROOT.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    beside_peer(options.data)
    on_large_table(options.users, options.workers)


if __name__ == "__main__":
    main()
