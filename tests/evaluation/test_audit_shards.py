"""Audits through shards: the path of every run, and noise that blocks might share."""

from contextlib import ExitStack
from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import UserNoise
from dpsim.data.secret_bits import OwnCodes, SecretBits
from dpsim.evaluation.audit_bounds import guess_epsilon
from dpsim.evaluation.audit_mutants import ask_with_shared_streams
from dpsim.evaluation.audit_sampled import AuditSettings
from dpsim.evaluation.audit_shards import (
    WORST_Z,
    ask_fleet,
    audit_independence,
    audit_request,
    audit_round,
    independence,
)
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.hadamard import HadamardResponse
from dpsim.mechanisms.unary import OUE
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet

SETTINGS = AuditSettings(1_000_000, 1e-8, seed=3)
pytestmark = pytest.mark.statistical


def local(shards):
    def ask(source, mechanism, seed):
        with LocalFleet(source, seed, LedgerBook(mechanism.loss), shards=shards) as fleet:
            return ask_fleet(fleet, mechanism)

    return ask


def test_a_round_through_shards_gives_the_bound_of_the_reference():
    found = audit_round(local(4), GRR(4, 1), 1, SETTINGS)
    assert not found.is_violation
    error = 1 / (found.guesses * 0.731 * 0.269) ** 0.5
    assert abs(found.guess_epsilon - 0.985) < 5 * 2**0.5 * error
    assert found.guesses == pytest.approx(650_000, rel=0.01)


def test_twice_epsilon_in_the_shards_is_flagged():
    found = audit_round(local(4), GRR(4, 2), 1, SETTINGS)
    assert found.is_violation
    error = 1 / (found.guesses * 0.881 * 0.119) ** 0.5
    assert abs(found.guess_epsilon - 1.982) < 5 * 2**0.5 * error


def test_neither_shards_nor_blocks_change_what_an_audit_finds():
    small = AuditSettings(30_000, seed=5)
    expected = audit_round(local(1), GRR(4, 1), 1, small)
    assert audit_round(local(3), GRR(4, 1), 1, small, block_size=777) == expected
    assert audit_round(local(1), GRR(4, 1), 1, AuditSettings(30_000, seed=6)) != expected


def test_a_tally_of_many_supports_is_weaker_and_still_honest():
    """OUE's bits are counted apart: who set only one of them is not known any more."""
    oracle = OUE(4, 1)
    found = audit_round(local(2), oracle, Fraction(1), SETTINGS)
    assert not found.is_violation
    assert found.guesses == pytest.approx(500_000 * (oracle.p + oracle.q), rel=0.01)
    error = 1 / (found.guesses * 0.65 * 0.35) ** 0.5
    expected = guess_epsilon(round(found.guesses * 0.65021), found.guesses, SETTINGS.alpha)
    assert abs(found.guess_epsilon - expected) < 5 * error
    assert 0.55 < found.two_arm_epsilon < 0.62


def test_each_arm_has_its_own_draws():
    seeds = []

    def ask(source, mechanism, seed):
        seeds.append((source.bit, seed))
        return np.ones(mechanism.tally_size, np.int64)

    audit_round(ask, GRR(4, 1), 1, AuditSettings(100, seed=7))
    audit_round(ask, GRR(4, 1), 1, AuditSettings(100, seed=8))
    assert len({seed for _, seed in seeds}) == 4
    assert {bit for bit, _ in seeds} == {0, 1}


def kept(oracle, users):
    codes = np.zeros(users.size, np.uint8)
    return oracle.perturb(codes, UserNoise(1, "plan", "x", users)) == codes


def test_shared_noise_shows_between_shards_and_nowhere_else():
    """The figures of the reference: |z| = 500 where noise is shared, about 2 where not."""
    oracle, n = GRR(4, 1), 250_000
    own = [kept(oracle, np.arange(start, start + n)) for start in range(0, 4 * n, n)]
    healthy = independence(np.array(own))
    assert abs(healthy.worst_z) < 5
    assert not healthy.is_violation
    assert healthy.verdict.startswith("no shared noise found in 4 blocks")
    shared = independence(np.array([own[0]] * 4))
    assert shared.worst_z == pytest.approx(500)
    assert shared.is_violation


def test_two_blocks_of_many_that_share_noise_are_named():
    own = [kept(GRR(4, 1), np.arange(start, start + 5000)) for start in range(0, 30_000, 5000)]
    own[4] = own[1]
    found = independence(np.array(own))
    assert found.pair == (1, 4)
    assert found.verdict == "VIOLATION: blocks 1 and 4 share noise"


def test_opposite_noise_is_shared_noise():
    first = kept(GRR(2, 1), np.arange(5000))
    found = independence(np.array([first, ~first]))
    assert found.worst_z < -WORST_Z
    assert found.is_violation


@pytest.mark.parametrize(("shards", "blocks"), [(1, 4), (4, 8), (3, 8)])
def test_blocks_of_a_fleet_share_no_noise(shards, blocks):
    assert not audit_independence(local(shards), blocks).is_violation


def test_one_stream_in_every_block_passes_the_audit_of_reports_and_not_this_one():
    marginal = audit_round(ask_with_shared_streams, GRR(4, 1), 1, SETTINGS)
    assert not marginal.is_violation
    assert marginal.guess_epsilon > 0.9
    assert audit_independence(ask_with_shared_streams, 8).worst_z > 2 * WORST_Z
    assert audit_independence(ask_with_shared_streams, 2).worst_z > 2 * WORST_Z


def test_codes_of_ones_own_show_who_was_kept():
    source = OwnCodes(1000, 20_000, 1000)
    oracle = GRR(20_000, 11)
    tally = local(1)(source, oracle, 9)
    with LocalFleet(source, 9, LedgerBook(oracle.loss)) as fleet:
        plan = audit_request(source, oracle).plan
        assert ask_fleet(fleet, oracle).tolist() == tally.tolist()
    users = np.arange(1000)
    codes = users.astype(np.uint16)
    told = oracle.perturb(codes, UserNoise(9, plan.hash, "secret", users)) == codes
    assert np.mean((tally[:1000] > 0) == told) > 0.95


def test_an_audit_is_charged_like_any_round():
    book = LedgerBook(1)
    with LocalFleet(SecretBits(100, 1, (0, 1), 4), 0, book) as fleet:
        ask_fleet(fleet, GRR(4, 1))
    assert book.ledger.spent.epsilon == 1


def test_what_cannot_be_audited_through_a_tally_is_refused():
    with pytest.raises(InputError, match="needs two codes"):
        audit_round(local(1), GRR(1, 1), 1, SETTINGS)
    with pytest.raises(InputError, match="one count per code"):
        audit_round(local(1), HadamardResponse(4, 1), 1, SETTINGS)
    for wrong in ([[1, 0, 1]], [[1], [0]]):
        with pytest.raises(InputError, match="must be a whole number >= 2"):
            independence(np.array(wrong))
    with pytest.raises(InputError, match="nothing to compare"):
        independence(np.array([[1, 1, 1], [1, 0, 1]]))
    with pytest.raises(InputError, match="blocks must be"):
        audit_independence(local(1), 1)


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_audits_through_ray_shards_find_what_those_in_one_process_do():
    from dpsim.runtime.ray_fleet import RayFleet
    from dpsim.runtime.ray_session import ray_session

    fleets = {}  # both mechanisms ask the same users: no second set of processes

    def ask(source, mechanism, seed):
        if (source, seed) not in fleets:
            book = LedgerBook(30)
            fleets[source, seed] = stack.enter_context(RayFleet(source, seed, book, shards=4))
        return ask_fleet(fleets[source, seed], mechanism)

    with ray_session(12), ExitStack() as stack:
        healthy = audit_round(ask, GRR(4, 1), 1, SETTINGS)
        wrong = audit_round(ask, GRR(4, 2), 1, SETTINGS)
        apart = audit_independence(ask, 8)
    assert healthy == audit_round(local(1), GRR(4, 1), 1, SETTINGS)
    assert not healthy.is_violation
    assert wrong.is_violation
    assert wrong.guess_epsilon == pytest.approx(1.982, abs=0.03)
    assert apart == audit_independence(local(1), 8)
    assert not apart.is_violation
