"""DP2-Pub in all presets: what it costs, what it publishes, and what it refuses."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.ledger import BudgetExceededError
from dpsim.data.sources import parse_generated
from dpsim.protocols.curator import Entrusted
from dpsim.protocols.dp2pub import first_price, publish
from dpsim.protocols.dp2pub_settings import PRESETS, DP2PubSettings
from dpsim.protocols.dp2pub_trusted import PublishTrusted
from dpsim.protocols.participation import Participation
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet

DATA = "chain:n=3000,d=5,k=2-4,copy=0.8"
USERS = parse_generated(DATA, 700)
NAMES = USERS.schema.names
SIZES = tuple(attribute.size for attribute in USERS.schema)


def trusting(users, preset):
    return Entrusted(users) if preset == "trusted" else users


def published(preset, epsilon="2", users=USERS, shards=1, **changes):
    settings = DP2PubSettings(Fraction(epsilon), preset, **changes)
    users = trusting(users, preset)
    fleet = LocalFleet(users, settings.seed, LedgerBook(settings.limit), shards=shards)
    return publish(fleet, users.schema.names, settings)


@pytest.mark.parametrize("preset", PRESETS)
def test_neither_shards_nor_block_size_change_a_record(preset):
    expected = published(preset)
    for shards, block_size in ((3, 700), (7, 311), (1, 9000)):
        users = parse_generated(DATA, block_size)
        assert np.array_equal(
            published(preset, users=users, shards=shards).codes, expected.codes
        )
    assert not np.array_equal(published(preset, seed=1).codes, expected.codes)


@pytest.mark.parametrize("preset", PRESETS)
def test_another_budget_gives_another_table(preset):
    assert not np.array_equal(published(preset, "1").codes, published(preset, "2").codes)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_release_has_the_domains_labels_and_ledger_of_its_schema(preset):
    release = published(preset)
    assert release.codes.shape == (len(SIZES), USERS.n)
    assert (release.codes < np.array(SIZES)[:, None]).all()
    frame = release.frame()
    assert tuple(frame.columns) == NAMES
    for attribute in USERS.schema:
        assert set(frame[attribute.name]) <= set(attribute.labels)
    assert release.ledger.spent == release.loss
    assert len(release.sample(17)) == 17


@pytest.mark.parametrize("preset", [preset for preset in PRESETS if preset != "faithful-local"])
def test_every_preset_but_one_costs_epsilon(preset):
    release = published(preset, "3/2")
    assert release.loss.epsilon == Fraction(3, 2)
    assert release.paid.real_epsilon <= 1.5 * (1 + 1e-9)


def test_faithful_local_reports_twice_pays_for_both_and_says_so():
    release = published("faithful-local", "3/2")
    share = Fraction(release.facts["used_share"]).limit_denominator(10**12)
    assert float(release.loss.epsilon) == pytest.approx(1.5 * (1 + float(share)), rel=1e-9)
    assert Fraction(3, 2) < release.loss.epsilon <= 3
    assert [charge.round_id for charge in release.ledger.charges] == [0, 1]
    assert release.trust.nominal_epsilon == "1.5"
    assert any("announced as ε=1.5, really costs ε=" in note for note in release.notes)


def test_faithful_local_is_refused_by_a_ledger_of_what_it_announces():
    settings = DP2PubSettings(Fraction(2), "faithful-local")
    fleet = LocalFleet(USERS, 0, LedgerBook(2))
    with pytest.raises(BudgetExceededError):
        publish(fleet, NAMES, settings)
    assert fleet.ledger.spent.epsilon == 2


@pytest.mark.parametrize("preset", ["local", "trusted"])
def test_corrected_clusters_are_a_partition(preset):
    clusters = published(preset, "40").facts["clusters"]
    assert sorted(name for cluster in clusters for name in cluster) == sorted(NAMES)


def test_overlapping_clusters_are_the_notes_own():
    clusters = published("faithful-pram", "40", parents=2).facts["clusters"]
    assert {name for cluster in clusters for name in cluster} == set(NAMES)
    assert sum(map(len, clusters)) > len(NAMES)


def test_the_global_generator_is_not_touched():
    before = np.random.get_state(legacy=True)  # noqa: NPY002
    for preset in PRESETS:
        published(preset)
    assert str(before) == str(np.random.get_state(legacy=True))  # noqa: NPY002


def test_too_few_users_for_any_structure_get_a_warning_not_silence():
    release = published("local", "1/2")
    assert any("signal below noise" in note for note in release.notes)
    assert all(len(cluster) == 1 for cluster in release.facts["clusters"])


def test_strong_signals_are_found_and_kept_together():
    release = published("local", "60")
    assert "network" in release.facts
    assert max(map(len, release.facts["clusters"])) > 1
    assert not any("below noise" in note for note in release.notes)


def test_a_given_network_is_used_and_costs_the_curator_nothing():
    chain = tuple((NAMES[i], (NAMES[i - 1],)) for i in range(1, len(NAMES)))
    release = published("trusted", "4", network=chain)
    assert sorted(
        (child, tuple(parents)) for child, parents in release.facts["network"]
    ) == sorted([(NAMES[0], ()), *chain])
    step = first_price(
        Entrusted(USERS), NAMES, DP2PubSettings(Fraction(4), "trusted", network=chain)
    )
    assert isinstance(step, PublishTrusted)
    assert step.structure_epsilon == 0
    assert step.loss.epsilon == 4


def test_dropped_users_leave_no_row():
    release = published("local", participation=Participation(Fraction(1, 4)))
    assert release.codes.shape[1] == release.turnout.counted < USERS.n
    assert release.turnout.dropped > 0


def test_constant_attributes_are_published_for_free():
    nodes = parse_generated("chain:n=500,d=3,k=3").nodes
    one = parse_generated("uniform:n=500,d=1,k=1").nodes[0]
    users = replace(
        parse_generated("chain:n=500,d=3,k=3", 100), nodes=(*nodes, replace(one, name="c"))
    )
    for preset in PRESETS:
        release = published(preset, users=users)
        assert (release.codes[3] == 0).all()
        assert release.loss.epsilon <= DP2PubSettings(Fraction(2), preset).limit


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "best"}, "preset must be one of partition, local"),
        ({"model": "forest"}, "model must be one of auto, product"),
        ({"preset": "local", "model": "tree"}, "belongs to preset partition"),
        ({"preset": "local", "rows": 5}, "one row per user; leave out rows"),
        ({"preset": "faithful-pram", "network": ()}, "find their own network"),
        ({"parents": -1}, "parents must be"),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        DP2PubSettings(Fraction(1), **changes)


def test_a_curator_has_no_dropouts():
    with pytest.raises(InputError, match="a curator holds all records"):
        published("trusted", participation=Participation(Fraction(1, 4)))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (((NAMES[0], (NAMES[1],)), (NAMES[1], (NAMES[0],))), "has a cycle"),
        ((("nobody", ()),), "no attribute 'nobody'"),
        (((NAMES[0], (NAMES[1], NAMES[1])),), "a parent twice"),
    ],
)  # fmt: skip
def test_a_network_that_is_none_is_refused_before_anything_is_charged(network, message):
    settings = DP2PubSettings(Fraction(1), "trusted", network=network)
    fleet = LocalFleet(Entrusted(USERS), 0, LedgerBook(1))
    with pytest.raises(InputError, match=message):
        publish(fleet, NAMES, settings)
    assert not fleet.ledger.charges


@pytest.mark.parametrize("preset", PRESETS)
def test_a_table_without_information_is_refused(preset):
    source = replace(parse_generated("uniform:n=5,d=2,k=1"), block_size=5)
    with pytest.raises(InputError, match="one value only"):
        first_price(
            trusting(source, preset), source.schema.names, DP2PubSettings(Fraction(1), preset)
        )


def test_attributes_must_be_named_once():
    with pytest.raises(InputError, match="each once"):
        first_price(USERS, (NAMES[0], NAMES[0]), DP2PubSettings(Fraction(1), "local"))


def test_one_attribute_is_a_table_too():
    for preset in PRESETS:
        settings = DP2PubSettings(Fraction(2), preset)
        release = publish(
            LocalFleet(trusting(USERS, preset), 0, LedgerBook(settings.limit)),
            NAMES[:1],
            settings,
        )
        assert release.codes.shape == (1, USERS.n)


def test_users_who_trust_nobody_have_no_curator():
    settings = DP2PubSettings(Fraction(1), "trusted")
    fleet = LocalFleet(USERS, 0, LedgerBook(1))
    with pytest.raises(InputError, match="entrust their records to nobody"):
        publish(fleet, NAMES, settings)
    assert not fleet.ledger.charges


@pytest.mark.parametrize("preset", PRESETS)
def test_memory_that_nobody_wrote_changes_nothing(preset, monkeypatch):
    expected = published(preset)
    empty = np.empty

    def poisoned(*args, **kwargs):
        array = empty(*args, **kwargs)
        array.fill(np.nan if array.dtype.kind == "f" else 77)
        return array

    monkeypatch.setattr(np, "empty", poisoned)
    assert np.array_equal(published(preset).codes, expected.codes)
