"""One GRR round: the bare kernel, one process, Ray with one shard and with two.

.venv/bin/python scripts/bench/grr_round.py
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from _side_by_side import ratio, show, side_by_side, verdict

from dpsim.core.arrays import Counts
from dpsim.core.records import Block, blocks_of
from dpsim.core.rng import Purpose, draws_at
from dpsim.data.block_store import BlockStore, BlockStoreWriter
from dpsim.data.sources import block_size_for, parse_generated
from dpsim.protocols.collect import CollectRequest
from dpsim.protocols.frequency import Round, frequency_request
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.runtime.ray_fleet import RayFleet
from dpsim.runtime.ray_session import ray_session

USERS, ATTRIBUTES, CODES, SEED = 1 << 24, 20, 10, 1
CHUNK = 1 << 16


def make_store(folder: Path) -> BlockStore:
    """The table on disk, in blocks of the usual size."""
    size = block_size_for(ATTRIBUTES)
    table = parse_generated(f"uniform:n={USERS},d={ATTRIBUTES},k={CODES}", size)
    with BlockStoreWriter(folder / "store", table.schema, size) as writer:
        for block in blocks_of(table.n, size):
            records = table.read(block)
            writer.append({name: records.open(name) for name in table.schema.names})
        return writer.finish()


def bare_kernel(store: BlockStore, request: CollectRequest, blocks: list[Block]) -> bytes:
    """Draw, perturb, tally: nothing else, on the same mapped codes."""
    oracles = {item.name: item.mechanism for item in request.items}
    totals = {name: np.zeros(CODES, np.int64) for name in oracles}
    plan = request.plan.hash
    for block in blocks:
        records = store.read(block)
        for name, oracle in oracles.items():
            codes = records.open(name)
            for part in block.parts(CHUNK):
                address = (SEED, Purpose.PERTURB.value, plan, name)
                draws = draws_at(address, part.start, part.n)
                start = part.start - block.start
                reports = oracle.respond(codes[start : start + part.n], draws)  # type: ignore[attr-defined]
                totals[name] += oracle.tally(reports)
    return b"".join(total.tobytes() for total in totals.values())


@lru_cache(maxsize=1)
def _opened(folder: Path) -> BlockStore:
    """Opened once per process, as a shard does it: its blocks are verified once."""
    return BlockStore.open(folder)


def _in_this_process(folder: Path, request: CollectRequest, blocks: list[Block]) -> bytes:
    return bare_kernel(_opened(folder), request, blocks)


def in_two_processes(
    pool: ProcessPoolExecutor, store: BlockStore, request: CollectRequest
) -> bytes:
    """The bare kernel in two processes without Ray: the same cores, the same cells."""
    blocks = list(blocks_of(store.n, store.block_size))
    halves = [blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]]
    parts = pool.map(partial(_in_this_process, store.folder, request), halves)
    sums = [np.frombuffer(part, np.int64) for part in parts]
    return (sums[0] + sums[1]).tobytes()


def counts_of(request: CollectRequest, total: Counts) -> bytes:
    """The counts of the codes alone, as the bare kernel has them."""
    parts = request.layout.split(total)
    return b"".join(parts[item.name][1:].tobytes() for item in request.items)


def asked(make: partial[LocalFleet] | partial[RayFleet], request: CollectRequest) -> bytes:
    """One round of a fleet that is there already, with an aggregator that knows nothing yet."""
    with make() as fleet:
        return counts_of(request, fleet.ask(request))


class Standing:
    """A fleet that stands ready; each round is another experiment under a wide limit."""

    def __init__(self, store: BlockStore, shards: int) -> None:
        self.fleet = RayFleet(store, SEED, LedgerBook(10**6), shards=shards)

    def round(self, request: CollectRequest) -> bytes:
        """Ask, and have the aggregator forget, so that the next turn does all the work."""
        import ray

        total = counts_of(request, self.fleet.ask(request))
        ray.get(
            self.fleet._aggregator.__ray_call__.remote(lambda self: self._sums.clear())  # noqa: SLF001
        )
        return total


def main() -> None:
    """Measure and compare."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        store = make_store(Path(folder))
        names = store.schema.names
        request = frequency_request(store.schema, names, ATTRIBUTES, Round(SEED))
        blocks = list(blocks_of(store.n, store.block_size))
        print(f"{USERS:,} users x {ATTRIBUTES} attributes, {len(blocks)} blocks")
        with ray_session(3), ProcessPoolExecutor(2, get_context("spawn")) as pool:
            one, two = Standing(store, 1), Standing(store, 2)
            seconds = side_by_side(
                {
                    "bare kernel, 1 process": partial(bare_kernel, store, request, blocks),
                    "local fleet": partial(
                        asked, partial(LocalFleet, store, SEED, LedgerBook(10**6)), request
                    ),
                    "ray, 1 shard": partial(one.round, request),
                    "bare kernel, 2 processes": partial(in_two_processes, pool, store, request),
                    "ray, 2 shards": partial(two.round, request),
                }
            )
    show(seconds)
    cells = USERS * ATTRIBUTES
    bare = min(seconds["bare kernel, 1 process"]) / cells * 1e9
    print(f"  bare kernel: {bare:.2f} ns per cell")
    over_one = ratio(seconds["ray, 1 shard"], seconds["bare kernel, 1 process"])
    over_two = ratio(seconds["ray, 2 shards"], seconds["bare kernel, 2 processes"])
    faster = ratio(seconds["ray, 1 shard"], seconds["ray, 2 shards"])
    verdict("ray, 1 shard / bare kernel, 1 process", over_one, "<= 1.25", over_one <= 1.25)
    verdict("ray, 2 shards / bare kernel, 2 processes", over_two, "<= 1.25", over_two <= 1.25)
    verdict("ray, 1 shard / ray, 2 shards", faster, ">= 1.8", faster >= 1.8)


if __name__ == "__main__":
    main()
