"""A shard: answers what it may, for whom it may, and names no value."""

import traceback
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.ledger import BudgetExceededError, PlanConflictError
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import Block, PrivateRecords, blocks_of
from dpsim.data.sources import parse_generated
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.collect import CollectRequest, Item
from dpsim.runtime import shard as module
from dpsim.runtime.shard import Shard, ShardError
from tests.rounds import asking

USERS = parse_generated("zipf:n=100,k=4,seed=3", block_size=10)
BLOCKS = blocks_of(100, 10)
REQUEST = asking(USERS, GRR(4, 1))
CANARY = "s3cr3t-c4n4ry"


def shard(limit=1, source=USERS, seed=9):
    return Shard(source, BLOCKS[:5], seed, PrivacyLoss.of(limit))


def test_an_answer_is_the_tally_of_the_block():
    answer = shard().answer(REQUEST, BLOCKS[2])
    assert (answer.plan_hash, answer.block) == (REQUEST.plan.hash, BLOCKS[2])
    assert answer.content[4:].sum() == answer.content[3] == answer.content[0] == 10


def test_a_restarted_shard_repeats_its_answer_and_one_shard_asks_no_price_twice():
    first = shard()
    digests = {first.answer(REQUEST, BLOCKS[2]).digest for _ in range(3)}
    digests.add(shard().answer(REQUEST, BLOCKS[2]).digest)
    assert len(digests) == 1
    assert shard(seed=10).answer(REQUEST, BLOCKS[2]).digest not in digests


@pytest.mark.parametrize("block", [BLOCKS[7], Block(0, 5), Block(0, 20), Block(5, 10)])
def test_the_users_of_others_are_not_answered_for(block):
    with pytest.raises(InputError, match="do not belong to this shard"):
        shard().answer(REQUEST, block)


def test_a_greedy_coordinator_is_refused_by_the_shard_itself():
    greedy = shard("1.5")
    greedy.answer(REQUEST, BLOCKS[0])
    greedy.answer(REQUEST, BLOCKS[1])
    with pytest.raises(BudgetExceededError):
        greedy.answer(replace(REQUEST, round_id=1), BLOCKS[0])
    with pytest.raises(PlanConflictError):
        greedy.answer(
            replace(REQUEST, items=(Item((USERS.schema["a0"],), GRR(4, "0.1")),)), BLOCKS[0]
        )


class Leak(CollectRequest):
    """Asks as a frequency request does, and answers with the truth."""

    def answer(self, records, noise):
        return np.bincount(records.open("a0"), minlength=8)


def test_requests_that_dpsim_does_not_define_are_refused_unanswered():
    reads = []

    class Watched:
        schema = USERS.schema
        n, block_size, fingerprint = 100, 10, "x"

        def read(self, block):
            reads.append(block)
            return USERS.read(block)

    with pytest.raises(InputError, match=r"requests of dpsim.protocols only"):
        shard(source=Watched()).answer(Leak("demo", 0, "", REQUEST.items), BLOCKS[0])
    assert reads == []


@dataclass
class Failing:
    """Users whose records cannot be read, for a reason that holds a value."""

    error: BaseException
    schema, n, block_size, fingerprint = USERS.schema, 100, 10, "x"

    def read(self, block):
        def fail(name):
            raise self.error

        return PrivateRecords(block, lambda part: fail)


@pytest.mark.parametrize("error", [KeyError(CANARY), ValueError(CANARY), RuntimeError(CANARY)])
def test_a_failure_is_named_without_its_value(error):
    with pytest.raises(ShardError) as caught:
        shard(source=Failing(error)).answer(REQUEST, BLOCKS[1])
    assert str(caught.value) == (
        f"{type(error).__name__} while answering for the block of users from 10 on"
    )
    printed = "".join(traceback.format_exception(caught.value))
    assert CANARY not in printed
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_lack_of_memory_is_told_as_such_and_without_its_text():
    with pytest.raises(MemoryError) as caught:
        shard(source=Failing(MemoryError(CANARY))).answer(REQUEST, BLOCKS[1])
    assert CANARY not in repr(caught.value)


def test_an_error_of_dpsim_passes_as_it_is():
    with pytest.raises(InputError, match="a clear refusal"):
        shard(source=Failing(InputError("a clear refusal"))).answer(REQUEST, BLOCKS[1])


def test_what_is_no_tally_does_not_leave(monkeypatch):
    monkeypatch.setattr(module, "REQUESTS", frozenset({Rows}))
    with pytest.raises(InputError, match="only answer with the int64 tally"):
        shard().answer(Rows("demo", 0, "", REQUEST.items), BLOCKS[0])


class Rows(CollectRequest):
    """Answers with one number per user."""

    def answer(self, records, noise):
        return records.open("a0").astype(np.int64)


def test_a_shard_tells_its_process_and_versions_only():
    info = shard().info()
    assert info.versions.draws_are_golden
    assert info.pid > 0
