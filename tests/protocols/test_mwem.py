"""MWEM from counts of the shards to a released table: cost, checkpoints, trust."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.records import Block, blocks_of
from dpsim.core.rng import ClientNoise
from dpsim.core.tasks import Desk, OneProcess
from dpsim.data.sources import parse_generated, parse_table
from dpsim.protocols import mwem, mwem_local, mwem_marginals
from dpsim.protocols.curator import Entrusted, read_table
from dpsim.protocols.histogram import HistogramRequest
from dpsim.protocols.mwem import HostMWEM, TryMWEM
from dpsim.protocols.mwem_asked import MWEMAsked
from dpsim.protocols.participation import EVERYBODY, Participation
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.synthesis.contingency import joint_counts

DATA = "chain:n=4000,d=2,k=6,copy=0.6"
USERS = parse_generated(DATA, 900)
NAMES = USERS.schema.names
ASKED = MWEMAsked(Fraction(1), queries=60, iterations=12, seed=5)


def published(asked=ASKED, users=USERS, shards=1, folder=None):
    fleet = LocalFleet(
        Entrusted(users), asked.seed, LedgerBook(20), shards=shards, folder=folder
    )
    if asked.preset == "marginals":
        return mwem_marginals.publish(fleet, users.schema.names, asked)
    return mwem.publish(fleet, users.schema.names, asked)


@pytest.mark.parametrize("preset", ["default", "faithful", "marginals"])
def test_neither_shards_nor_block_size_change_a_release(preset):
    asked = replace(ASKED, preset=preset)
    expected = published(asked)
    for shards, block_size in ((3, 900), (5, 333), (1, 5000)):
        users = parse_generated(DATA, block_size)
        again = published(asked, users, shards)
        assert np.array_equal(again.codes, expected.codes)
        assert again.facts == expected.facts
    assert not np.array_equal(published(replace(asked, seed=6)).codes, expected.codes)


def test_the_shards_count_exactly_and_only_the_host_sees_it():
    request = HistogramRequest("counts", USERS.schema.attributes)
    fleet = LocalFleet(Entrusted(USERS), 0, LedgerBook(1), shards=3)
    assert fleet.ask(request).tolist() == [USERS.n]
    noise = ClientNoise(0, request.plan.hash, Block(0, USERS.n))
    block_totals = [
        request.answer(USERS.read(block), noise) for block in blocks_of(USERS.n, 900)
    ]
    truth = joint_counts(read_table(USERS, NAMES), (0, 1)).ravel()
    assert np.sum(block_totals, axis=0).tolist() == truth.tolist()
    assert fleet.ledger.spent.epsilon == 0


def test_users_who_trust_nobody_are_not_counted():
    fleet = LocalFleet(USERS, 0, LedgerBook(1))
    with pytest.raises(InputError, match="entrust their records to nobody"):
        fleet.ask(HistogramRequest("counts", USERS.schema.attributes))
    with pytest.raises(InputError, match="entrust their records to nobody"):
        mwem.publish(fleet, NAMES, ASKED)


@pytest.mark.parametrize(
    ("preset", "epsilon"),
    [("default", Fraction(1)), ("faithful", Fraction(1) + Fraction(1, 200_000))],
)
def test_the_ledger_holds_what_the_run_really_costs(preset, epsilon):
    release = published(replace(ASKED, preset=preset))
    assert release.loss.epsilon == release.ledger.spent.epsilon == epsilon
    parts = [Fraction(part) for _, part in release.facts["parts"]]
    assert sum(parts) == epsilon


class Diary:
    """A memory that dies after some saves."""

    def __init__(self, lives=10**9):
        self.pages, self.lives = {}, lives

    def load(self, name):
        return self.pages.get(name)

    def save(self, name, content):
        if not self.lives:
            raise KeyboardInterrupt
        self.lives -= 1
        self.pages[name] = content


@pytest.mark.parametrize("deaths", [0, 1, 5, 11])
def test_a_host_killed_after_any_iteration_goes_on_to_the_same_release(deaths):
    sizes = tuple(attribute.size for attribute in USERS.schema)
    host = HostMWEM(ASKED, NAMES, sizes)
    counts = joint_counts(read_table(USERS, NAMES), (0, 1)).ravel()
    expected = host.run((counts,), Desk(OneProcess()))
    diary = Diary(deaths)
    with pytest.raises(KeyboardInterrupt):
        host.run((counts,), Desk(OneProcess(), memory=diary))
    diary.lives = 10**9
    told: list[int] = []
    desk = Desk(OneProcess(), lambda what, done, all_: told.append(done), diary)
    resumed = host.run((counts,), desk)
    assert np.array_equal(resumed.codes, expected.codes)
    assert resumed.facts == expected.facts
    assert told[0] == deaths + 1


def test_checkpoints_are_files_of_the_run(tmp_path):
    published(folder=tmp_path)
    (path,) = tmp_path.glob("state-mwem-*.ckpt")
    assert path.stat().st_mode & 0o77 == 0


def test_trials_are_evaluation_and_cost_nothing_more():
    release = published(replace(ASKED, trials=25))
    assert release.ledger.spent.epsilon == 1
    assert release.trials is not None
    assert {row["metric"] for row in release.trials["errors"]} == {"max", "min", "mse", "mean"}
    assert all(row["trials"] == 25 for row in release.trials["errors"])
    assert published(ASKED).trials is None


class Pieces(OneProcess):
    """A pool of many workers, in one process."""

    workers = 7


def test_trials_do_not_depend_on_who_tries_them():
    sizes = tuple(attribute.size for attribute in USERS.schema)
    step = TryMWEM(HostMWEM(ASKED, NAMES, sizes), 23)
    counts = joint_counts(read_table(USERS, NAMES), (0, 1)).ravel()
    assert step.run((counts,), Desk(OneProcess())) == step.run((counts,), Desk(Pieces()))


def test_local_counts_trust_nobody_and_the_fit_costs_nothing():
    asked = replace(ASKED, preset="local")
    fleet = LocalFleet(USERS, 5, LedgerBook(1), shards=3)
    release = mwem_local.publish_local(fleet, NAMES, asked, EVERYBODY)
    assert release.loss.epsilon == release.ledger.spent.epsilon == 1
    assert release.trust.who == "nobody"
    assert release.codes.shape == (2, USERS.n)
    again = mwem_local.publish_local(
        LocalFleet(USERS, 5, LedgerBook(1)), NAMES, asked, EVERYBODY
    )
    assert np.array_equal(release.codes, again.codes)


def test_local_counts_of_whoever_answered():
    asked = replace(ASKED, preset="local")
    fleet = LocalFleet(USERS, 5, LedgerBook(1))
    late = Participation(Fraction(1, 4))
    release = mwem_local.publish_local(fleet, NAMES, asked, late)
    assert release.codes.shape[1] == release.turnout.counted < USERS.n


@pytest.mark.statistical
def test_error_falls_with_epsilon_in_every_preset():
    truth = joint_counts(read_table(USERS, NAMES), (0, 1)) / USERS.n
    for preset in ("default", "faithful", "marginals"):
        errors = []
        for epsilon in ("1/10", "1", "10"):
            gaps = []
            for seed in range(4):
                asked = replace(ASKED, preset=preset, epsilon=Fraction(epsilon), seed=seed)
                model = published(asked).model
                gaps.append(np.abs(model.marginal((0, 1)) - truth).sum())
            errors.append(np.mean(gaps))
        assert errors[0] > errors[1] > errors[2]


def test_the_built_in_table_is_the_reports():
    table = parse_table("child-health")
    assert (table.n, table.schema.names) == (1_013_184, ("age", "satisfaction"))
    with pytest.raises(InputError, match="takes no numbers"):
        parse_table("child-health:n=5")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "best"}, "preset must be one of"),
        ({"workload": "lines"}, "workload must be one of"),
        ({"preset": "local", "trials": 2}, "not with preset local"),
        ({"delta": Fraction(1, 10)}, "delta belongs to preset marginals"),
        ({"trials": 0}, "trials must be"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        MWEMAsked(Fraction(1), **changes)
