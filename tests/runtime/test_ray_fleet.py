"""Ray must agree with the local fleet bit for bit, whatever dies."""

import os
import signal
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import ray

from dpsim.core.errors import InputError, ResourceError
from dpsim.core.ledger import BudgetExceededError
from dpsim.core.records import Block
from dpsim.data.block_store import BlockStoreWriter, DataChangedError
from dpsim.data.sources import parse_generated
from dpsim.protocols.frequency import Round, frequency_request
from dpsim.protocols.participation import Participation
from dpsim.runtime.coordinator import IncompleteRoundError, Pace
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.runtime.ray_fleet import RayFleet
from dpsim.runtime.ray_session import ray_session
from dpsim.runtime.shard import ShardError

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

USERS = parse_generated("planted:n=120001,d=5,k=3-9", block_size=4_000)
PARTICIPATION = Participation(Fraction(1, 10), latency_ms=100, deadline_ms=250)
REQUEST = frequency_request(
    USERS.schema, USERS.schema.names, "1", Round(9, participation=PARTICIPATION)
)
EXPECTED = LocalFleet(USERS, 9, LedgerBook(1)).ask(REQUEST)


@pytest.fixture(scope="module", autouse=True)
def session():
    with ray_session(8):
        yield


def pid_of(actor):
    return ray.get(actor.__ray_call__.remote(lambda _self: os.getpid()))


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_ray_agrees_with_local_for_any_number_of_shards(shards):
    book = LedgerBook(1)
    with RayFleet(USERS, 9, book, shards=shards) as fleet:
        np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
    assert len({info.pid for info in fleet.infos} | {os.getpid()}) == shards + 1
    assert [charge.plan_hash for charge in book.ledger.charges] == [REQUEST.plan.hash]


@pytest.mark.parametrize("block_size", [999, 8_192, 200_000])
def test_ray_agrees_with_local_for_any_block_size(block_size):
    users = parse_generated("planted:n=120001,d=5,k=3-9", block_size=block_size)
    with RayFleet(users, 9, LedgerBook(1), shards=2) as fleet:
        np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)


def test_another_seed_gives_another_tally():
    with RayFleet(USERS, 10, LedgerBook(1), shards=2) as fleet:
        assert not np.array_equal(fleet.ask(REQUEST), EXPECTED)


class Assassin:
    """Kills a process when a part of the round is done."""

    def __init__(self, share=0.25, how=signal.SIGKILL):
        self.share, self.how, self.victim, self.struck = share, how, 0, False
        self.retries = 0

    def watch(self, progress):
        self.retries = progress.retries
        if not self.struck and progress.blocks_done >= self.share * progress.blocks:
            os.kill(self.victim, self.how)
            self.struck = True


@pytest.mark.parametrize("share", [0.01, 0.25, 0.9])
def test_a_shard_killed_in_mid_round_costs_time_and_nothing_else(share):
    killer, book = Assassin(share), LedgerBook(1)
    with RayFleet(USERS, 9, book, shards=2, watch=killer.watch) as fleet:
        killer.victim = fleet.infos[1].pid
        np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
        assert killer.struck
        assert fleet._meet()[1].pid != killer.victim
    assert len(book.ledger.charges) == 1


@pytest.mark.parametrize("keeps_checkpoint", [False, True])
def test_an_aggregator_killed_in_mid_round_costs_time_and_nothing_else(
    keeps_checkpoint, tmp_path
):
    killer, book = Assassin(0.5), LedgerBook(1)
    folder = tmp_path if keeps_checkpoint else None
    with RayFleet(USERS, 9, book, shards=2, folder=folder, watch=killer.watch) as fleet:
        killer.victim = pid_of(fleet._aggregator)
        np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
        assert killer.struck
        assert pid_of(fleet._aggregator) != killer.victim
    assert len(book.ledger.charges) == 1


def test_a_hung_shard_is_started_anew():
    killer = Assassin(0.1, signal.SIGSTOP)
    pace = Pace(call_limit=1.5)
    with RayFleet(USERS, 9, LedgerBook(1), shards=2, watch=killer.watch, pace=pace) as fleet:
        killer.victim = fleet.infos[0].pid
        np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
        assert killer.retries > 0


def test_a_shard_that_never_answers_is_named_and_the_round_is_given_up(tmp_path):
    """The shard cannot come back: its process is stopped again as often as it starts."""
    book = LedgerBook(1)
    pace = Pace(call_limit=60, patience=2)
    killer = Assassin(0.1, signal.SIGSTOP)
    with RayFleet(
        USERS, 9, book, shards=2, watch=killer.watch, pace=pace, folder=tmp_path
    ) as fleet:
        killer.victim = fleet.infos[1].pid
        with pytest.raises(IncompleteRoundError, match=r"shard 1 of 2.*resume"):
            fleet.ask(REQUEST)
        os.kill(killer.victim, signal.SIGKILL)
    with RayFleet(USERS, 9, book, shards=3, folder=tmp_path) as again:
        np.testing.assert_array_equal(again.ask(REQUEST), EXPECTED)
    assert len(book.ledger.charges) == 1


def test_a_refused_charge_sends_nothing(tmp_path):
    calls: list[object] = []
    with RayFleet(USERS, 9, LedgerBook("1/2"), shards=1, watch=calls.append) as fleet:
        with pytest.raises(BudgetExceededError, match=r"ask for ε <= 0.5"):
            fleet.ask(REQUEST)
        assert calls == []


class Leak:
    """A request of a stranger that would carry the records out."""

    plan, loss, shape = REQUEST.plan, REQUEST.loss, REQUEST.shape

    def answer(self, records, noise):
        return records.open("a0")


class BrokenSource:
    """A source whose failure quotes a private value."""

    schema, n, block_size, fingerprint = USERS.schema, 8, 8, "broken"

    def read(self, block):
        raise KeyError("s3cr3t-c4n4ry")


@pytest.fixture
def by_value():
    """Workers cannot import this module: send its classes themselves."""
    module = sys.modules[__name__]
    ray.cloudpickle.register_pickle_by_value(module)
    yield
    ray.cloudpickle.unregister_pickle_by_value(module)


def test_a_shard_refuses_requests_that_dpsim_does_not_define(by_value):
    with RayFleet(USERS, 9, LedgerBook(1), shards=1) as fleet:
        with pytest.raises(InputError, match=r"requests of dpsim.protocols only"):
            fleet.ask(Leak())


def test_a_shard_names_its_failure_without_the_value(by_value):
    with RayFleet(BrokenSource(), 9, LedgerBook(1), shards=1) as fleet:
        with pytest.raises(ShardError, match="KeyError while answering") as caught:
            fleet.ask(REQUEST)
    assert "s3cr3t" not in repr(caught.value)


def test_changed_data_stop_the_round(tmp_path):
    with BlockStoreWriter(tmp_path / "store", USERS.schema, 4_000) as writer:
        records = USERS.read(Block(0, 10_000))
        writer.append({name: records.open(name) for name in USERS.schema.names})
        store = writer.finish()
    victim = sorted(Path(tmp_path / "store").glob("*.arrow"))[1]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with RayFleet(store, 9, LedgerBook(1), shards=2) as fleet:
        with pytest.raises(DataChangedError, match="from 4000 on"):
            fleet.ask(REQUEST)


def test_more_shards_than_slots_are_refused_before_anything_starts():
    with pytest.raises(ResourceError, match=r"needs 99 shard slots, the cluster has 8"):
        with ray_session(99):
            pass


def test_nobody_else_can_reach_the_cluster():
    """Every listening socket of Ray's processes is on the loopback interface."""
    foreign = {port for address, port in listening() if not is_loopback(address)}
    mine = {port for pid in descendants(os.getpid()) for port in ports_of(pid)}
    assert mine
    assert not mine & foreign


def listening():
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                address, port = fields[1].split(":")
                yield address, int(port, 16)


def is_loopback(address):
    mapped = "0000000000000000FFFF00000100007F"
    return address in {"0100007F", mapped, "00000000000000000000000001000000"}


def descendants(root):
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    waiting, found = [root], set()
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting.extend(children.get(pid, []))
    return found


def ports_of(pid):
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                yield int(fields[1].split(":")[1], 16)
