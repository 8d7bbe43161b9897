"""The local fleet: pays first, asks each block once, resumes, and shows counts only."""

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.ledger import BudgetExceededError
from dpsim.core.records import Block
from dpsim.data.sources import parse_generated
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.participation import Participation
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.runtime.progress import RoundProgress
from tests.rounds import asking

USERS = parse_generated("zipf:n=205,k=4,seed=3", block_size=10)
REQUEST = asking(USERS, GRR(4, 1), Participation(Fraction(1, 5)))
EXPECTED = LocalFleet(USERS, 9, LedgerBook(1)).ask(REQUEST)


@dataclass
class WatchedSource:
    """The users of `USERS`, with a note of every read, and a fault on demand."""

    on_read: object = None
    reads: Counter[Block] = field(default_factory=Counter)
    schema, n, block_size, fingerprint = (
        USERS.schema, USERS.n, USERS.block_size, USERS.fingerprint,
    )  # fmt: skip

    def read(self, block):
        self.reads[block] += 1
        if callable(self.on_read):
            self.on_read(block)
        return USERS.read(block)


def test_the_charge_is_on_disk_before_the_first_record_is_read(tmp_path):
    path = tmp_path / "ledger.jsonl"
    seen = []

    def look(block):
        seen.append(LedgerBook(1, path).ledger.spent.epsilon)

    source = WatchedSource(look)
    LocalFleet(source, 9, LedgerBook(1, path)).ask(REQUEST)
    assert len(seen) == 21
    assert set(seen) == {1}


def test_a_refused_request_reads_nothing():
    source = WatchedSource()
    fleet = LocalFleet(source, 9, LedgerBook("0.5"))
    with pytest.raises(BudgetExceededError):
        fleet.ask(REQUEST)
    assert not source.reads
    assert fleet.ledger.charges == ()


def test_a_crash_is_charged_and_its_repetition_is_free(tmp_path):
    def crash(block):
        if block.start == 100 and source.reads[block] == 1:
            raise InputError("crash")

    source, path = WatchedSource(crash), tmp_path / "ledger.jsonl"
    with pytest.raises(InputError, match="crash"):
        LocalFleet(source, 9, LedgerBook(1, path)).ask(REQUEST)
    assert LedgerBook(1, path).ledger.spent.epsilon == 1
    fleet = LocalFleet(source, 9, LedgerBook(1, path))
    np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
    assert fleet.ledger.spent.epsilon == 1


def test_asking_again_repeats_the_bits_without_reading_or_paying():
    source = WatchedSource()
    fleet = LocalFleet(source, 9, LedgerBook(1))
    np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
    np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
    assert set(source.reads.values()) == {1}
    assert len(fleet.ledger.charges) == 1


@pytest.mark.parametrize("shards", [1, 3, 7, 40])
def test_a_run_is_resumed_with_any_number_of_shards(tmp_path, shards):
    def crash(block):
        if block.start == 150:
            raise InputError("crash")

    first = WatchedSource(crash)
    with (
        pytest.raises(InputError, match="crash"),
        LocalFleet(first, 9, LedgerBook(1), shards=2, folder=tmp_path) as fleet,
    ):
        fleet.ask(REQUEST)
    second = WatchedSource()
    resumed = LocalFleet(second, 9, LedgerBook(1), shards=shards, folder=tmp_path)
    np.testing.assert_array_equal(resumed.ask(REQUEST), EXPECTED)
    assert sum(second.reads.values()) == 6
    assert set(second.reads).isdisjoint(block for block in first.reads if block.start < 150)


def test_every_block_is_read_once_and_told_to_whoever_watches():
    source = WatchedSource()
    told: list[RoundProgress] = []
    LocalFleet(source, 9, LedgerBook(1), shards=3, watch=told.append).ask(REQUEST)
    assert set(source.reads.values()) == {1}
    assert [progress.blocks_done for progress in told] == list(range(1, 22))
    assert [progress.done for progress in told][-2:] == [200, 205]
    assert {(progress.all, progress.blocks) for progress in told} == {(205, 21)}


def test_a_resumed_run_tells_its_progress_from_where_it_was(tmp_path):
    with LocalFleet(USERS, 9, LedgerBook(1), folder=tmp_path) as fleet:
        fleet.ask(REQUEST)
    told: list[object] = []
    fleet = LocalFleet(USERS, 9, LedgerBook(1), folder=tmp_path, watch=told.append)
    np.testing.assert_array_equal(fleet.ask(REQUEST), EXPECTED)
    assert told == []


def test_a_book_of_other_data_is_refused():
    book = LedgerBook(9)
    LocalFleet(USERS, 9, book).ask(REQUEST)
    LocalFleet(replace(USERS, block_size=50), 9, book)
    with pytest.raises(InputError, match="this ledger belongs to other data"):
        LocalFleet(replace(USERS, n=204), 9, book)


def test_runs_that_share_a_book_share_its_limit():
    book = LedgerBook("1.5")
    LocalFleet(USERS, 9, book).ask(REQUEST)
    with pytest.raises(BudgetExceededError):
        LocalFleet(USERS, 9, book).ask(replace(REQUEST, round_id=1))


def test_another_seed_is_another_answer():
    assert (LocalFleet(USERS, 10, LedgerBook(1)).ask(REQUEST) != EXPECTED).any()


def test_nobody_has_no_tally_but_zeros():
    fleet = LocalFleet(replace(USERS, n=0), 9, LedgerBook(1), shards=3)
    assert not fleet.ask(REQUEST).any()
