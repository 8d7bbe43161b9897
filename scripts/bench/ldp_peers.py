"""Frequency oracles beside pure-ldp and multi-freq-ldpy; means and pairs beside plain loops.

    .venv/bin/python scripts/bench/ldp_peers.py

The peers are installed in an environment of their own under build/bench-peers.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import verdict

from dpsim.core.records import Block
from dpsim.core.rng import AGGREGATE_UNIT, ClientNoise, UserNoise, draws_at, generator_at
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.hybrid import Hybrid
from dpsim.mechanisms.interfaces import FrequencyOracle, Randomizer
from dpsim.mechanisms.laplace import LocalLaplace
from dpsim.mechanisms.local_hashing import OLH
from dpsim.mechanisms.pckv import PCKVGRR
from dpsim.mechanisms.piecewise import Piecewise
from dpsim.mechanisms.privkv import PrivKV
from dpsim.mechanisms.state_encoding import StateEncoding
from dpsim.mechanisms.unary import OUE

ROOT = Path(__file__).parents[2]
PEERS = ("pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5", "scikit-learn", "statsmodels", "xxhash<4")
USERS = {"grr": 1_000_000, "oue": 200_000, "olh": 50_000}
VALUES = 1_000_000
CODES, EPSILON, REPEATS, CHUNK = 128, 1, 3, 1 << 16
TARGETS = {"grr": 50, "oue": 50, "olh": 200}
Found = dict[str, dict[str, list[float]]]


def peer_python() -> str:
    """The interpreter of the peers' environment; made on first use."""
    folder = ROOT / "build" / "bench-peers"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("installing the peers …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=True)
        (folder / "ready").touch()
    return str(python)


def time_peers(python: str) -> Found:
    """Client seconds, server seconds and bytes per report of each peer's oracle."""
    script = str(Path(__file__).with_name("_ldp_peer.py"))
    call = [python, script, json.dumps(USERS), str(CODES), str(EPSILON)]
    found: Found = json.loads(subprocess.run(call, check=True, capture_output=True).stdout)
    return found


def time_mechanism(mechanism: Randomizer, inputs: np.ndarray) -> list[float]:
    """The same three figures of ours: perturb all users, then add them up."""
    client = server = 0.0
    total = np.zeros(mechanism.tally_size, np.int64)
    noise = ClientNoise(1, "bench", Block(0, inputs.shape[0]))
    for block in noise.block.parts(CHUNK):
        part = inputs[block.start : block.stop]
        source: UserNoise = noise.part(block).of("a")
        start = time.perf_counter()
        reports = mechanism.perturb(part, source)
        middle = time.perf_counter()
        total += mechanism.tally(reports)
        server += time.perf_counter() - middle
        client += middle - start
    return [client, server, mechanism.report_bytes]


def time_counts(oracle: FrequencyOracle, users: int) -> float:
    """Seconds for so many users at the level of counts, data drawn as counts, too."""
    start = time.perf_counter()
    law = np.full(CODES, 1 / CODES)
    total = np.zeros(oracle.tally_size, np.int64)
    for unit in range(users // AGGREGATE_UNIT):
        generator = generator_at((1, "data", "", "a"), unit)
        histogram = generator.multinomial(AGGREGATE_UNIT, law)
        total += oracle.simulate(histogram, generator_at((1, "noise", "", "a"), unit))  # type: ignore[attr-defined]
    oracle.estimate(total, users)
    return time.perf_counter() - start


def duchi_loop(values: list[float]) -> float:
    """One record after the other, as the notes do it."""
    keep, total = exp(EPSILON) / (exp(EPSILON) + 1), 0
    for value in values:
        bit = random.random() < (1 + value) / 2
        total += 1 if bit == (random.random() < keep) else -1
    return total


def piecewise_loop(values: list[float]) -> float:
    """One record after the other."""
    s, total = exp(EPSILON / 2), 0.0
    c = (s + 1) / (s - 1)
    for value in values:
        low = (c + 1) / 2 * value - (c - 1) / 2
        if random.random() < s / (s + 1):
            total += random.uniform(low, low + c - 1)
        else:
            place = random.uniform(0, c + 1)
            total += place - c if place - c < low else place - c + (c - 1)
    return total


def hybrid_loop(values: list[float]) -> float:
    """One record after the other: Duchi's mechanism or Piecewise."""
    s, keep, total = exp(EPSILON / 2), exp(EPSILON) / (exp(EPSILON) + 1), 0.0
    c = (s + 1) / (s - 1)
    for value in values:
        if random.random() < 1 / s:
            bit = random.random() < (1 + value) / 2
            total += 1 if bit == (random.random() < keep) else -1
            continue
        low = (c + 1) / 2 * value - (c - 1) / 2
        if random.random() < s / (s + 1):
            total += random.uniform(low, low + c - 1)
        else:
            place = random.uniform(0, c + 1)
            total += place - c if place - c < low else place - c + (c - 1)
    return total


def laplace_loop(values: list[float]) -> float:
    """One record after the other, in floats, which is not private."""
    total = 0.0
    for value in values:
        noise = random.expovariate(EPSILON / 2)
        total += value + (noise if random.random() < 0.5 else -noise)
    return total


def state_loop(values: list[float]) -> float:
    """One record after the other: three states by randomized response."""
    keep, counts = exp(EPSILON) / (exp(EPSILON) + 2), [0, 0, 0]
    for value in values:
        present = value == value  # noqa: PLR0124 - nan is not itself
        state = (2 if random.random() < (1 + value) / 2 else 0) if present else 1
        if random.random() >= keep:
            state = (state + random.randint(1, 2)) % 3
        counts[state] += 1
    return counts[0]


def pckv_loop(rows: list[list[float]]) -> float:
    """One record after the other: one held key, reported with its sign among all pairs."""
    d = len(rows[0]) + 1
    keep, counts = exp(EPSILON) / (exp(EPSILON) + 2 * d - 1), [0] * (2 * d)
    for row in rows:
        held = [key for key, value in enumerate(row) if value == value]  # noqa: PLR0124
        key = random.choice(held) if held else d - 1
        value = row[key] if held else 0.0
        code = 2 * key + (random.random() < (1 + value) / 2)
        if random.random() >= keep:
            code = (code + random.randint(1, 2 * d - 1)) % (2 * d)
        counts[code] += 1
    return counts[0]


def privkv_loop(values: list[float]) -> float:
    """One record after the other; nan is an absent key."""
    p = exp(EPSILON / 2) / (exp(EPSILON / 2) + 1)
    counts = [0, 0, 0]
    for value in values:
        present = value == value  # noqa: PLR0124 - nan is not itself
        shown = (1 + value) / 2 if present else 0.5
        sign = (random.random() < shown) == (random.random() < p)
        counts[(2 if sign else 0) if (random.random() < p) == present else 1] += 1
    return counts[0]


def show_oracles(peers: list[Found], ours: dict[str, list[list[float]]]) -> None:
    """One row per oracle, one verdict per target."""
    print(f"\nk={CODES}, ε={EPSILON}, one process each; ns per user, bytes per report")
    print(f"  {'':<5}{'':<18}{'client':>10}{'server':>10}{'both':>10}{'bytes':>8}")
    for name, target in TARGETS.items():
        best = float("inf")
        for peer in peers[0]:
            rows = [found[peer][name] for found in peers]
            client, server = (statistics.median(row[i] for row in rows) for i in (0, 1))
            best = min(best, client + server)
            _row(name, peer, client, server, rows[0][2])
        rows = ours[name]
        client, server = (statistics.median(row[i] for row in rows) for i in (0, 1))
        _row(name, "dpsim", client, server, rows[0][2])
        faster = best / (client + server)
        verdict(f"{name}: faster peer / dpsim", faster, f">= {target}", faster >= target)


def _row(name: str, who: str, client: float, server: float, size: float) -> None:
    cells = [1e9 * seconds / USERS[name] for seconds in (client, server, client + server)]
    print(
        f"  {name:<5}{who:<18}" + "".join(f"{cell:>10.1f}" for cell in cells) + f"{size:>8.0f}"
    )


def main() -> None:
    """Measure and compare, in turns."""
    python = peer_python()
    oracles = {
        "grr": GRR(CODES, EPSILON),
        "oue": OUE(CODES, EPSILON),
        "olh": OLH(CODES, EPSILON),
    }
    draws = {name: draws_at((1, "data", "", "a"), 0, n) for name, n in USERS.items()}
    codes = {name: (values % CODES).astype(np.uint8) for name, values in draws.items()}
    for name, oracle in oracles.items():
        time_mechanism(oracle, codes[name])  # compiles
    peers, ours = [], {name: [] for name in oracles}
    for _ in range(REPEATS):
        peers.append(time_peers(python))
        for name, oracle in oracles.items():
            ours[name].append(time_mechanism(oracle, codes[name]))
    show_oracles(peers, ours)
    print("\n10^9 users as counts, beside pure-ldp's time for 10^6, scaled from above")
    for name, oracle in oracles.items():
        seconds = min(time_counts(oracle, 10**9) for _ in range(2))
        rows = [found["pure-ldp"][name] for found in peers]
        other = statistics.median(row[0] + row[1] for row in rows) * 10**6 / USERS[name]
        print(f"  {name:<5} {seconds:.2f} s, pure-ldp {other:.2f} s")
        verdict(f"{name}: dpsim 10^9 / pure-ldp 10^6", seconds / other, "< 1", seconds < other)
    print("\nmeans and pairs, beside a loop over the records")
    values = (draws_at((1, "data", "", "b"), 0, VALUES) / 2**31 - 1).clip(-1, 1)
    pairs = np.where(values > 0.5, np.nan, values)
    table = pairs[: VALUES // 16 * 16].reshape(-1, 16)
    jobs: dict[str, tuple[Randomizer, Callable[[Any], float], np.ndarray]] = {
        "duchi": (Duchi(EPSILON), duchi_loop, values),
        "piecewise": (Piecewise(EPSILON), piecewise_loop, values),
        "hybrid": (Hybrid(EPSILON), hybrid_loop, values),
        "laplace (ours exact, the loop in floats)": (
            LocalLaplace(EPSILON),
            laplace_loop,
            values,
        ),
        "privkv": (PrivKV(EPSILON), privkv_loop, pairs),
        "state-encoding": (StateEncoding(EPSILON), state_loop, pairs),
        "pckv-grr, 16 keys": (PCKVGRR(16, EPSILON, 1), pckv_loop, table),
    }
    for name, (mechanism, loop, inputs) in jobs.items():
        time_mechanism(mechanism, inputs)
        ratios = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            loop(inputs.tolist())
            seconds = time.perf_counter() - start
            ratios.append(seconds / sum(time_mechanism(mechanism, inputs)[:2]))
        faster = statistics.median(ratios)
        verdict(f"{name}: loop / dpsim", faster, ">= 50", faster >= 50)


if __name__ == "__main__":
    main()
