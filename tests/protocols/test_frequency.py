"""A round of frequencies: same bits however it is cut, unbiased, and paid exactly."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import PrivateRecords
from dpsim.core.schema import Attribute, CodeRange, Schema
from dpsim.data.sources import parse_generated
from dpsim.mechanisms.grr import GRR
from dpsim.protocols import collect
from dpsim.protocols.frequency import (
    AttributeEstimate,
    Round,
    estimate_frequencies,
    frequency_request,
)
from dpsim.protocols.participation import Participation
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from tests.rounds import true_frequencies

USERS = parse_generated("planted:n=1001,d=3,k=2-5,parents=1,seed=5")
LATE = Participation(Fraction(1, 10), 1000, Fraction(1), 2000)


def request_for(source, epsilon=3, participation=LATE, round_id=0):
    how = Round(participation=participation)
    request = frequency_request(source.schema, source.schema.names, epsilon, how)
    return replace(request, experiment="demo", round_id=round_id)


def ask(source, request, seed=9, shards=1, block_size=None):
    source = replace(source, block_size=block_size or source.block_size)
    return LocalFleet(source, seed, LedgerBook(30), shards=shards).ask(request)


def shares_of(estimate):
    shares = estimate.frequencies
    assert shares is not None
    return shares


REQUEST = request_for(USERS)
EXPECTED = ask(USERS, REQUEST)


@pytest.mark.parametrize("participation", [LATE, Participation()])
@given(shards=st.sampled_from([1, 2, 3, 7]), block_size=st.integers(3, 1_200))
def test_neither_shards_nor_block_size_change_a_bit(participation, shards, block_size):
    request = request_for(USERS, 3, participation)
    expected = EXPECTED if participation is LATE else ask(USERS, request)
    np.testing.assert_array_equal(ask(USERS, request, 9, shards, block_size), expected)


@given(chunk=st.integers(5, 1_200), block_size=st.integers(200, 1_200))
def test_the_size_of_a_chunk_changes_no_bit(chunk, block_size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "CHUNK", chunk)
        tally = ask(USERS, REQUEST, 9, 1, block_size)
    np.testing.assert_array_equal(tally, EXPECTED)


def test_the_tally_is_frozen():
    """If this fails, every seeded result has changed: a line in *Changed results*."""
    assert EXPECTED.tolist() == [
        677, 217, 107, 677, 236, 272, 169, 677, 121, 189, 131, 111, 125, 677, 295, 160, 222,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "seed"),
    [(REQUEST, 10), (replace(REQUEST, round_id=1), 9), (replace(REQUEST, experiment="b"), 9)],
)
def test_another_seed_round_or_experiment_draws_others(request_, seed):
    tally = ask(USERS, request_, seed)
    assert (tally != EXPECTED).any()
    assert tally[:3].sum() == EXPECTED[:3].sum() == USERS.n


def test_the_tally_is_that_of_every_user_asked_alone():
    """One user at a time: what a real client would send, added up."""
    few = replace(USERS, n=60, block_size=1)
    np.testing.assert_array_equal(
        ask(few, REQUEST, shards=7), ask(few, REQUEST, block_size=1_000)
    )


def test_the_turnout_adds_up_and_every_attribute_counts_the_counted():
    release = estimate_frequencies(LocalFleet(USERS, 9, LedgerBook(3)), REQUEST)
    assert release.turnout.invited == USERS.n
    assert min(release.turnout.late, release.turnout.dropped) > 0
    for estimate in release.estimates:
        assert estimate.counts.sum() == estimate.n == release.turnout.counted


def test_a_release_carries_what_it_cost_and_who_paid():
    fleet = LocalFleet(USERS, 9, LedgerBook(4))
    release = estimate_frequencies(fleet, REQUEST)
    assert release.loss.epsilon == release.ledger.spent.epsilon == 3
    assert (
        release.ledger.charges[0].plan_hash == release.paid.plan_hashes[0] == REQUEST.plan.hash
    )
    assert release["a1"].attribute == USERS.schema["a1"]
    with pytest.raises(InputError, match="no attribute 'a9'"):
        release["a9"]


def test_a_release_does_not_vouch_for_an_unreviewed_schema():
    class Unreviewed:
        n, block_size, fingerprint, read = USERS.n, 500, "x", staticmethod(USERS.read)
        schema = replace(USERS.schema, reviewed=False)

    release = estimate_frequencies(LocalFleet(Unreviewed(), 9, LedgerBook(3)), REQUEST)
    assert not release.schema.is_declared


def test_nobody_there_means_nothing_asked_and_nothing_paid():
    empty = replace(USERS, n=0)
    release = estimate_frequencies(LocalFleet(empty, 9, LedgerBook(3)), REQUEST)
    assert release.ledger.charges == ()
    assert release.turnout.invited == 0
    assert [estimate.frequencies for estimate in release.estimates] == [None] * 3
    assert {(row.estimate, row.half_width()) for row in release.rows} == {(None, None)}


def test_a_round_in_which_all_drop_out_is_paid_and_estimates_nothing():
    gone = Participation(latency_ms=1000, spread=Fraction(0), deadline_ms=1)
    release = estimate_frequencies(
        LocalFleet(USERS, 9, LedgerBook(3)), request_for(USERS, 3, gone)
    )
    assert release.turnout.late == USERS.n
    assert release.ledger.spent.epsilon == 3
    assert release.estimates[0].frequencies is None


def test_the_largest_epsilon_recovers_the_truth():
    release = estimate_frequencies(
        LocalFleet(USERS, 9, LedgerBook(90)), request_for(USERS, 30, Participation())
    )
    truth = true_frequencies(USERS, USERS.schema.names)
    for estimate in release.estimates:
        error = np.abs(shares_of(estimate) - truth[estimate.attribute.name])
        assert error.max() < 0.01


def schema_of(*sizes):
    return Schema(tuple(Attribute(f"a{i}", CodeRange(size)) for i, size in enumerate(sizes)))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=14),
    st.fractions("0.1", 30, max_denominator=1000),
)
def test_epsilon_is_split_exactly_over_the_attributes_that_cost_anything(sizes, epsilon):
    schema = schema_of(*sizes)
    request = frequency_request(schema, schema.names, epsilon, Round())
    oracles = [item.mechanism for item in request.items]
    paying = [oracle.loss.epsilon for oracle in oracles if oracle.tally_size > 1]
    assert request.loss.epsilon == sum(paying) == (epsilon if paying else 0)
    assert len(set(paying)) <= 1
    assert len(paying) == sum(size > 1 for size in sizes)


def test_an_attribute_of_one_value_costs_nothing_and_is_known():
    source = parse_generated("uniform:n=100,d=1,k=1")
    fleet = LocalFleet(source, 9, LedgerBook(0))
    release = estimate_frequencies(fleet, request_for(source, 1, Participation()))
    assert release.ledger.spent.epsilon == 0
    assert shares_of(release["a0"]).tolist() == [1.0]
    assert release["a0"].counts.tolist() == [100]


@pytest.mark.parametrize("names", [[], ["a0", "a0"], ["a0", "a1", "a0"]])
def test_attributes_must_be_named_each_once(names):
    """Twice the same attribute would be counted twice in one place."""
    with pytest.raises(InputError, match="attributes must be named, each once"):
        frequency_request(schema_of(2, 3), names, 1, Round())


def test_an_unknown_attribute_is_refused_by_name():
    with pytest.raises(InputError, match="no attribute 'zip'"):
        frequency_request(schema_of(2, 3), ["zip"], 1, Round())


def test_the_plan_knows_everything_that_was_asked():
    plan = REQUEST.plan
    assert plan.question == "frequencies of a0, a1, a2"
    assert [use.attributes for use in plan.uses] == [("a0",), ("a1",), ("a2",)]
    assert {use.mechanism for use in plan.uses} == {"GRR"}
    others = [
        request_for(USERS, "3.01"), request_for(USERS, 3, Participation()),
        replace(REQUEST, items=REQUEST.items[:2]), replace(REQUEST, round_id=1),
    ]  # fmt: skip
    assert len({plan.hash, *(other.plan.hash for other in others)}) == 5


def test_two_plans_do_not_share_their_noise():
    """The same draws under two ε would leak: where one tells the truth, so does the other."""
    source = parse_generated("uniform:n=4000,k=4,seed=1")
    one = ask(source, request_for(source, 1, Participation()))[3:]
    other = ask(source, request_for(source, "1.0001", Participation()))[3:]
    assert np.abs(one - other).max() > 20


ZIPF = parse_generated("zipf:n=2000,k=4,s=1,seed=2")


def standardized_bias(estimating, rounds=60):
    """The mean error of each code over the rounds, in its own standard errors."""
    fleet = LocalFleet(ZIPF, 4, LedgerBook(rounds))
    truth = true_frequencies(ZIPF, ["a0"])["a0"]
    errors = []
    for round_id in range(rounds):
        release = estimate_frequencies(
            fleet, request_for(ZIPF, 1, Participation(Fraction(1, 5)), round_id)
        )
        estimate = replace(release["a0"], oracle=estimating)
        errors.append(shares_of(estimate) - truth)
    return np.mean(errors, axis=0) / (np.std(errors, axis=0) / rounds**0.5)


@pytest.mark.statistical
def test_estimates_are_unbiased():
    assert np.abs(standardized_bias(GRR(4, 1))).max() < 5


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["0.8", "1.25"])
def test_estimates_by_another_epsilon_are_biased(wrong):
    assert np.abs(standardized_bias(GRR(4, wrong))).max() > 5


def mean_error(epsilon, n):
    source = replace(ZIPF, n=n)
    truth = true_frequencies(source, ["a0"])["a0"]
    fleet = LocalFleet(source, 4, LedgerBook(1000))
    releases = [
        estimate_frequencies(fleet, request_for(source, epsilon, Participation(), round_id))
        for round_id in range(20)
    ]
    return np.mean([np.abs(shares_of(release["a0"]) - truth).mean() for release in releases])


@pytest.mark.statistical
def test_the_error_falls_as_epsilon_and_n_grow():
    assert mean_error("0.5", 2000) > 1.3 * mean_error(1, 2000) > 1.3**2 * mean_error(2, 2000)
    assert mean_error(1, 500) > 1.3 * mean_error(1, 2000)


@pytest.mark.statistical
def test_intervals_cover_the_truth_as_often_as_they_say():
    truth = true_frequencies(ZIPF, ["a0"])["a0"]
    fleet = LocalFleet(ZIPF, 4, LedgerBook(300))
    covered = []
    for round_id in range(300):
        request = request_for(ZIPF, 1, Participation(), round_id)
        estimate = estimate_frequencies(fleet, request)["a0"]
        widths = np.array([row.half_width(0.9) for row in estimate.rows()], float)
        covered.append(np.abs(shares_of(estimate) - truth) <= widths)
    share = np.mean(covered, axis=0)
    assert np.abs(share - 0.9).max() < 5 * (0.9 * 0.1 / 300) ** 0.5


def test_standard_errors_are_those_of_the_oracle_at_the_estimate_within_its_bounds():
    oracle = GRR(2, 1)
    estimate = AttributeEstimate(
        Attribute("a", CodeRange(2)), oracle, np.array([1000, 0]), 1000, 1000
    )
    expected = np.sqrt([oracle.variance(1000, 1.0), oracle.variance(1000, 0.0)])
    errors = estimate.standard_errors
    assert errors is not None
    np.testing.assert_allclose(errors, expected)
    halves = [row.half_width() for row in estimate.rows()]
    np.testing.assert_allclose(np.array(halves, float) / errors, 1.959964, 1e-6)


def test_a_table_has_one_row_per_label_with_the_estimate_in_the_middle():
    release = estimate_frequencies(LocalFleet(USERS, 9, LedgerBook(3)), REQUEST)
    table = release.table("a1", 0.9)
    estimate = release["a1"]
    assert list(table["label"]) == list(estimate.attribute.labels)
    np.testing.assert_array_equal(table["estimate"], estimate.frequencies)
    half = np.array([row.half_width(0.9) for row in estimate.rows()], float)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * half)
    np.testing.assert_allclose((table["high"] + table["low"]) / 2, table["estimate"])


def test_attributes_do_not_share_their_noise():
    """Two attributes with the same codes: the same draws would repeat the same reports."""

    class Twins:
        schema, n, block_size, fingerprint = schema_of(4, 4), 1_000, 500, "twins"

        def read(self, block):
            codes = np.arange(block.n, dtype=np.uint8) % 4
            return PrivateRecords(block, lambda part: lambda name: codes[: part.n])

    request = request_for(Twins(), 2, Participation())
    parts = request.layout.split(LocalFleet(Twins(), 9, LedgerBook(2)).ask(request))
    assert parts["a0"].tolist() != parts["a1"].tolist()
