"""100 million users x 50 attributes, generated in the shards: time, and memory per process.

.venv/bin/python scripts/bench/hundred_million.py [USERS]
"""

from __future__ import annotations

import os
import sys
import time

import ray
from _side_by_side import peak_bytes, verdict

from dpsim.data.sources import parse_generated
from dpsim.protocols.frequency import Round, estimate_frequencies, frequency_request
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.progress import RoundProgress
from dpsim.runtime.ray_fleet import RayFleet
from dpsim.runtime.ray_session import ray_session

ATTRIBUTES = 50


def main() -> None:
    """One round, all attributes, as many shards as processors."""
    users = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000
    table = parse_generated(f"uniform:n={users},d={ATTRIBUTES},k=2-16")
    request = frequency_request(table.schema, table.schema.names, 10, Round())
    shards = len(os.sched_getaffinity(0))
    told = [time.monotonic()]

    def watch(progress: RoundProgress) -> None:
        if time.monotonic() - told[0] > 5:
            told[0] = time.monotonic()
            print(f"  {progress.users_done:>13,} of {progress.users:,} users", flush=True)

    with (
        ray_session(shards),
        RayFleet(table, 0, LedgerBook(10), shards=shards, watch=watch) as fleet,
    ):
        start = time.perf_counter()
        release = estimate_frequencies(fleet, request)
        seconds = time.perf_counter() - start
        pids = {f"shard {i}": info.pid for i, info in enumerate(fleet.infos)}
        aggregator = fleet._aggregator.__ray_call__  # noqa: SLF001
        pids["aggregator"] = ray.get(aggregator.remote(lambda _self: os.getpid()))
        pids["driver"] = os.getpid()
        peaks = {name: peak_bytes(pid) / 1e9 for name, pid in pids.items()}
    cells = users * ATTRIBUTES
    print(f"{users:,} users x {ATTRIBUTES} attributes in {seconds:.1f} s, {shards} shards")
    print(f"  {seconds * shards / cells * 1e9:.2f} core-ns per cell, data and noise made")
    print("  " + " · ".join(f"{name} {peak:.2f} GB" for name, peak in peaks.items()))
    worst = max(peaks.values())
    verdict("largest resident process, GB", worst, "< 1", worst < 1)
    counted = release.turnout.counted
    verdict("users counted / users", counted / users, "= 1", counted == users)


if __name__ == "__main__":
    main()
