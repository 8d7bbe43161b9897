"""The aggregator: each block once, whatever comes how often and in which order."""

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError, IntegrityError
from dpsim.core.records import Block
from dpsim.protocols.base import Answer
from dpsim.protocols.shapes import TallyShape
from dpsim.runtime.aggregator import Aggregator, ReplayMismatchError
from dpsim.runtime.checkpoint import CheckpointError, RoundId, checkpoint_path

pytestmark = pytest.mark.usefixtures("quick_disk")

ROUND = RoundId("plan", 195, 10, TallyShape(3))
ANSWERS = [
    Answer("plan", block, np.array([block.start, 1, 2**50 + block.n], np.int64))
    for block in ROUND.blocks
]
TOTAL = np.sum([answer.content for answer in ANSWERS], axis=0).tolist()
arrivals = st.lists(st.sampled_from(ANSWERS), max_size=30).flatmap(
    lambda extra: st.permutations([*ANSWERS, *extra])
)


def merged(answers, aggregator=None, round_id=ROUND):
    aggregator = aggregator or Aggregator()
    for answer in answers:
        aggregator.merge(round_id, answer)
    return aggregator


def total_of(aggregator, round_id=ROUND):
    total = aggregator.progress(round_id).total
    assert total is not None
    return total.tolist()


@given(arrivals)
def test_any_order_and_any_repetition_give_the_same_total(answers):
    aggregator = merged(answers)
    assert total_of(aggregator) == TOTAL
    progress = aggregator.progress(ROUND)
    assert progress.missing == ()
    assert progress.repeats == len(answers) - len(ANSWERS)


@given(st.sets(st.sampled_from(range(len(ANSWERS))), max_size=len(ANSWERS) - 1))
def test_what_is_missing_is_known_and_no_part_of_the_sum_is_shown(places):
    progress = merged(ANSWERS[place] for place in places).progress(ROUND)
    there = {ANSWERS[place].block for place in places}
    assert progress.missing == tuple(block for block in ROUND.blocks if block not in there)
    assert progress.total is None


@given(arrivals, st.data())
def test_an_altered_replay_stops_the_round_and_leaves_the_sum(answers, data):
    aggregator = merged(answers)
    victim = data.draw(st.sampled_from(ANSWERS))
    tally = victim.content.copy()
    tally[data.draw(st.integers(0, 2))] += data.draw(st.sampled_from([-1, 1, 2**40]))
    with pytest.raises(ReplayMismatchError, match="twice, differently") as caught:
        aggregator.merge(ROUND, replace(victim, content=tally))
    assert caught.value.start == victim.block.start
    assert total_of(aggregator) == TOTAL


def test_an_altered_replay_is_noticed_after_a_restart_too(tmp_path):
    merged(ANSWERS, Aggregator(tmp_path)).save()
    altered = replace(ANSWERS[3], content=ANSWERS[3].content + 1)
    with pytest.raises(ReplayMismatchError):
        Aggregator(tmp_path).merge(ROUND, altered)


@given(arrivals, st.data())
def test_a_restart_loses_at_most_what_was_not_saved(answers, data):
    done = data.draw(st.integers(0, len(answers)))
    with TemporaryDirectory() as folder:
        merged(answers[:done], Aggregator(Path(folder)))
        restarted = Aggregator(Path(folder))
        before = {answer.block for answer in answers[:done]}
        lost = before.intersection(restarted.progress(ROUND).missing)
        assert len(lost) == len(before) % 8
        assert total_of(merged(answers, restarted)) == TOTAL


def test_what_was_saved_is_not_lost(tmp_path):
    merged(ANSWERS[:5], Aggregator(tmp_path)).save()
    missing = Aggregator(tmp_path).progress(ROUND).missing
    assert missing == ROUND.blocks[5:]


def test_a_complete_round_is_saved_when_its_total_is_asked_for(tmp_path):
    merged(ANSWERS, Aggregator(tmp_path)).progress(ROUND)
    assert total_of(Aggregator(tmp_path)) == TOTAL


def test_slow_answers_are_saved_by_the_clock(tmp_path, monkeypatch):
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    aggregator = merged(ANSWERS[:1], Aggregator(tmp_path))
    assert Aggregator(tmp_path).progress(ROUND).missing == ROUND.blocks
    now[0] += 2.1
    merged(ANSWERS[1:2], aggregator)
    assert Aggregator(tmp_path).progress(ROUND).missing == ROUND.blocks[2:]


def test_without_a_folder_a_restart_begins_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    merged(ANSWERS).save()
    assert Aggregator().progress(ROUND).missing == ROUND.blocks
    assert list(tmp_path.iterdir()) == []


def test_rounds_do_not_mix(tmp_path):
    other = replace(ROUND, plan_hash="other")
    aggregator = merged(ANSWERS, Aggregator(tmp_path))
    assert aggregator.progress(other).missing == ROUND.blocks
    merged((replace(answer, plan_hash="other") for answer in ANSWERS), aggregator, other)
    for round_id in (ROUND, other):
        assert total_of(aggregator, round_id) == TOTAL


def test_the_total_is_a_copy():
    aggregator = merged(ANSWERS)
    total = aggregator.progress(ROUND).total
    assert total is not None
    total += 1
    assert total_of(aggregator) == TOTAL


@pytest.mark.parametrize(
    "answer",
    [
        replace(ANSWERS[0], plan_hash="other"),
        replace(ANSWERS[0], content=np.zeros(4, np.int64)),
        replace(ANSWERS[0], content=np.zeros(3)),
    ],
)  # fmt: skip
def test_what_is_no_tally_of_the_plan_is_refused_and_not_added(answer):
    aggregator = Aggregator()
    with pytest.raises(InputError):
        aggregator.merge(ROUND, answer)
    assert aggregator.progress(ROUND).missing == ROUND.blocks


@pytest.mark.parametrize("change", [{"n": 196}, {"block_size": 20}, {"shape": TallyShape(4)}])
def test_a_foreign_checkpoint_stops_the_round(tmp_path, change):
    merged(ANSWERS, Aggregator(tmp_path)).save()
    with pytest.raises(CheckpointError):
        Aggregator(tmp_path).progress(replace(ROUND, **change))


def test_a_damaged_checkpoint_stops_the_round(tmp_path):
    merged(ANSWERS, Aggregator(tmp_path)).save()
    path = checkpoint_path(tmp_path, ROUND)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CheckpointError):
        Aggregator(tmp_path).merge(ROUND, ANSWERS[0])


@pytest.mark.parametrize("block", [Block(1, 10), Block(0, 9), Block(1_000_000, 10)])
def test_a_block_of_another_round_is_not_added(block):
    aggregator = Aggregator()
    answer = Answer(ROUND.plan_hash, block, ROUND.shape.empty(0))
    with pytest.raises(IntegrityError, match="no block of the round"):
        aggregator.merge(ROUND, answer)
