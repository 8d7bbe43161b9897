"""The reconcile loop, on a line that fails as told and in a time that passes as told."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.records import Block, blocks_of
from dpsim.runtime.aggregator import Progress
from dpsim.runtime.coordinator import IncompleteRoundError, Outcome, Pace, reconcile

PACE = Pace(in_flight=2, first_pause=0.2, longest_pause=5.0, patience=60.0)
CALL = 0.1  # seconds of one call


class FakeLine:
    """Blocks of ten users; block b belongs to shard b mod shards.

    ``fate(shard, nth call of the shard)`` is None for a merged answer, a cause for a failure
    and ``"silence"`` for a call that never ends. ``forget`` are the numbers of merges after
    which the aggregator restarts with nothing.
    """

    def __init__(self, blocks=12, shards=3, fate=lambda shard, call: None, forget=()):
        self.blocks, self.shards = blocks_of(blocks * 10, 10), shards
        self.fate, self.forget = fate, set(forget)
        self.now = 1000.0
        self.flights: list[tuple[float, Block, str | None]] = []
        self.merged: Counter[Block] = Counter()
        self.held: set[Block] = set()
        self.calls: dict[int, list[float]] = {shard: [] for shard in range(shards)}
        self.merged_at: dict[int, float] = {}
        self.most_flying: Counter[int] = Counter()
        self.is_failing: dict[int, bool] = {}
        self.sent_while_failing: list[int] = []
        self.watched: list[tuple[Block, int]] = []

    def clock(self):
        return self.now

    def progress(self):
        missing = tuple(block for block in self.blocks if block not in self.held)
        total = None if missing else np.array([sum(block.n for block in self.held)])
        return Progress(missing, 0, total)

    def shard_of(self, block):
        return block.start // 10 % self.shards

    def name_of(self, shard):
        return f"shard {shard} of {self.shards}"

    def flying(self, shard):
        return sum(self.shard_of(block) == shard for _, block, _ in self.flights)

    def send(self, block):
        shard = self.shard_of(block)
        if self.is_failing.get(shard):
            self.sent_while_failing.append(self.flying(shard) + 1)
        fate = self.fate(shard, len(self.calls[shard]))
        self.calls[shard].append(self.now)
        ends = float("inf") if fate == "silence" else self.now + CALL
        self.flights.append((ends, block, fate))
        self.most_flying[shard] = max(self.most_flying[shard], self.flying(shard))

    def collect(self, timeout):
        assert timeout > 0
        first = min((ends for ends, _, _ in self.flights), default=float("inf"))
        self.now = min(max(first, self.now), self.now + timeout)
        ready = [flight for flight in self.flights if flight[0] <= self.now]
        self.flights = [flight for flight in self.flights if flight[0] > self.now]
        return [self.finish(block, fate) for _, block, fate in ready]

    def finish(self, block, fate):
        shard = self.shard_of(block)
        self.is_failing[shard] = fate is not None
        if fate is None:
            self.merged[block] += 1
            self.held.add(block)
            self.merged_at[shard] = self.now
            if self.merged.total() in self.forget:
                self.held.clear()
        return Outcome(block, fate)

    def run(self, pace=PACE):
        watch = lambda block, retries: self.watched.append((block, retries))  # noqa: E731
        return reconcile(self, pace, watch, self.clock).tolist()


def failing(*plan):
    """Calls of a shard fail as the list of its row says; after its end all succeed."""

    def fate(shard, call):
        row = plan[shard % len(plan)]
        return "ActorDiedError" if call < len(row) and row[call] else None

    return fate


patterns = st.lists(st.lists(st.booleans(), max_size=8), min_size=1, max_size=3)


def test_a_quiet_round_sends_each_block_once():
    line = FakeLine()
    assert line.run() == [120]
    assert set(line.merged.values()) == {1}
    assert sorted(block for block, _ in line.watched) == list(line.blocks)
    assert line.now - 1000 == pytest.approx(2 * CALL)


def test_nothing_missing_means_nothing_sent():
    line = FakeLine()
    line.held = set(line.blocks)
    assert line.run() == [120]
    assert line.merged.total() == 0


def test_only_what_is_missing_is_sent():
    line = FakeLine()
    line.held = set(line.blocks[:7])
    line.run()
    assert set(line.merged) == set(line.blocks[7:])


@given(patterns, st.integers(1, 4), st.integers(1, 15), st.integers(1, 4))
def test_any_pattern_of_failures_ends_complete(plan, shards, blocks, in_flight):
    line = FakeLine(blocks, shards, failing(*plan))
    assert line.run(replace(PACE, in_flight=in_flight)) == [blocks * 10]
    assert set(line.merged) == set(line.blocks)
    assert set(line.merged.values()) == {1}


@given(patterns, st.sets(st.integers(1, 40), max_size=4))
def test_a_restarted_aggregator_gets_everything_again(plan, forget):
    line = FakeLine(12, 3, failing(*plan), forget)
    assert line.run() == [120]
    assert line.held == set(line.blocks)


def test_an_aggregator_that_forgets_its_last_merge_is_not_believed():
    line = FakeLine(forget={12})
    assert line.run() == [120]
    assert set(line.merged.values()) == {2}


@given(patterns, st.integers(1, 5))
def test_calls_in_flight_are_bounded(plan, in_flight):
    line = FakeLine(20, 3, failing(*plan))
    line.run(replace(PACE, in_flight=in_flight))
    assert max(line.most_flying.values()) <= in_flight


def test_shards_are_kept_busy():
    line = FakeLine(20, 2)
    line.run(replace(PACE, in_flight=5))
    assert set(line.most_flying.values()) == {5}


@given(patterns)
def test_a_failing_shard_is_asked_one_call_at_a_time(plan):
    line = FakeLine(20, 3, failing(*plan))
    line.run(replace(PACE, in_flight=4))
    assert set(line.sent_while_failing) <= {1}


def test_a_shard_that_was_lost_with_all_its_calls_is_asked_one_by_one():
    line = FakeLine(20, 1, failing([True] * 10))
    line.run(replace(PACE, in_flight=4))
    assert line.sent_while_failing == [1] * 7


@given(st.integers(1, 12))
def test_healthy_shards_are_not_held_up_by_a_failing_one(failures):
    line, quiet = FakeLine(30, 3, failing([True] * failures, [], [])), FakeLine(30, 3)
    line.run()
    quiet.run()
    assert [line.merged_at[1], line.merged_at[2]] == [quiet.merged_at[1], quiet.merged_at[2]]
    assert line.merged_at[0] > quiet.merged_at[0]


def test_pauses_double_up_to_the_longest():
    line = FakeLine(1, 1, failing([True] * 8))
    line.run()
    pauses = np.diff(line.calls[0]) - CALL
    np.testing.assert_allclose(pauses, [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5], atol=0.011)


def test_a_success_ends_the_pauses():
    line = FakeLine(3, 1, failing([True, True, False, True]))
    line.run(replace(PACE, in_flight=1))
    np.testing.assert_allclose(np.diff(line.calls[0]) - CALL, [0.2, 0.4, 0, 0.2, 0], atol=0.011)


def dead(shard, cause="ActorDiedError"):
    return lambda number, call: cause if number == shard else None


def test_a_dead_shard_is_named_after_the_patience_and_the_others_are_home():
    line = FakeLine(12, 3, dead(1))
    with pytest.raises(IncompleteRoundError) as caught:
        line.run()
    error = caught.value
    assert error.shard == "shard 1 of 3"
    assert error.cause == "ActorDiedError"
    assert Block(error.start, 10) in line.blocks
    assert line.shard_of(Block(error.start, 10)) == 1
    assert PACE.patience < error.seconds <= PACE.patience + PACE.longest_pause
    assert line.now - line.merged_at[2] == pytest.approx(error.seconds)
    assert line.held == {block for block in line.blocks if line.shard_of(block) != 1}
    assert "no progress for 6" in str(error)
    assert "nothing is lost, resume the run" in str(error)


def test_a_silent_shard_is_named_too():
    line = FakeLine(12, 3, dead(2, "silence"))
    with pytest.raises(IncompleteRoundError, match=r"shard 2 of 3, .*: no answer;"):
        line.run()
    assert line.most_flying[2] == PACE.in_flight


def test_the_patience_begins_anew_with_every_merged_block():
    """Six times 50 seconds of failures are no silence of 60."""
    rows = [([True] * 13 + [False]) * 6]
    line = FakeLine(6, 1, failing(*rows))
    assert line.run(replace(PACE, in_flight=1)) == [60]
    assert line.now - 1000 > 2 * PACE.patience


def test_a_shard_may_fail_thousands_of_times():
    """With the others at work for hours: the pause must not overflow."""
    line = FakeLine(1, 1, failing([True] * 3000))
    assert line.run(replace(PACE, patience=1e9)) == [10]


def test_retries_are_told_to_whoever_watches():
    line = FakeLine(6, 1, failing([True, True, True]))
    line.run(replace(PACE, in_flight=1))
    assert [retries for _, retries in line.watched] == [3] * 6


def test_retries_add_up_over_a_restart():
    line = FakeLine(3, 1, failing([True, True]), forget={3})
    line.run(replace(PACE, in_flight=1))
    assert [retries for _, retries in line.watched] == [2] * 6


def test_an_error_of_the_line_ends_the_round_at_once():
    def fate(shard, call):
        raise ValueError("a bug")

    line = FakeLine(fate=fate)
    with pytest.raises(ValueError, match="a bug"):
        line.run()
