"""Times jobs side by side: in turns, several times, so that a busy moment hits them all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Job = Callable[[], object]


def side_by_side(jobs: Mapping[str, Job], repeats: int = 7) -> dict[str, list[float]]:
    """Seconds of each job in each turn; all jobs must return equal values."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    values = {name: job() for name, job in jobs.items()}  # a turn to warm up
    if len(set(values.values())) != 1:
        raise SystemExit(f"the jobs do not agree: {values}")
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(above: list[float], below: list[float]) -> float:
    """The median over turns of the ratio within a turn."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def show(seconds: Mapping[str, list[float]]) -> None:
    """Median seconds of each job; indicative, the ratios are the point."""
    for name, values in seconds.items():
        print(f"  {name:<34} {statistics.median(values):8.3f} s")


def verdict(what: str, value: float, target: str, is_met: bool) -> None:
    """One line per target."""
    print(f"{'met ' if is_met else 'MISS'}  {what:<52} {value:8.2f}  target {target}")


def peak_bytes(pid: int) -> int:
    """The most memory a living process has had resident, as the system counts it."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
