"""What a host learns is the same on Ray as in one process, whoever dies meanwhile."""

import os
import signal
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.tasks import OneProcess
from dpsim.data.sources import parse_generated
from dpsim.protocols import dp2pub, mwem, privbayes
from dpsim.protocols.base import PostProcessing
from dpsim.protocols.curator import Entrusted
from dpsim.protocols.dp2pub_settings import DP2PubSettings
from dpsim.protocols.mwem_asked import MWEMAsked
from dpsim.protocols.privbayes import PrivBayesAsked
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.runtime.ray_fleet import RayFleet
from dpsim.runtime.ray_pool import RayPool
from dpsim.runtime.ray_session import ray_session

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

USERS = parse_generated("chain:n=60000,d=40,k=3,copy=0.9", block_size=9_000)
NAMES = USERS.schema.names
SETTINGS = DP2PubSettings(Fraction(200), "local", seed=3)
PAUSE = 0.02


@pytest.fixture(scope="module", autouse=True)
def session():
    with ray_session(4, processors=2):
        yield


@pytest.fixture(scope="module")
def expected():
    return dp2pub.publish(LocalFleet(USERS, 3, LedgerBook(200)), NAMES, SETTINGS)


def workers(name):
    """Processes that run a Ray task or method of this name now."""
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_text().startswith(name):
                yield int(folder.name)
        except OSError:
            continue


def kill_once(name, killed):
    """Wait until somebody runs a task of this name, and kill that process."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for pid in workers(name):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return
        time.sleep(PAUSE)


def published(folder=None, kill=None):
    killed: list[int] = []
    killer = threading.Thread(target=kill_once, args=(kill, killed)) if kill else None
    with RayFleet(USERS, 3, LedgerBook(200), shards=3, folder=folder) as fleet:
        if killer:
            killer.start()
        release = dp2pub.publish(fleet, NAMES, SETTINGS)
        spent = fleet.ledger.spent.epsilon
    if killer:
        killer.join()
        assert killed, f"no process ran {kill}"
    return release, spent


def test_a_table_published_on_ray_has_the_bits_of_one_process(expected):
    release, spent = published()
    assert np.array_equal(release.codes, expected.codes)
    assert release.facts == expected.facts
    assert spent == 200


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("victim", ["ray::_run", "ray::Host.learn"])
def test_a_search_worker_or_the_host_may_die_and_the_table_is_the_same(
    victim, kept, expected, tmp_path
):
    release, spent = published(tmp_path if kept else None, victim)
    assert np.array_equal(release.codes, expected.codes)
    assert spent == 200


def test_a_curators_table_has_the_same_bits_too():
    users = Entrusted(parse_generated("chain:n=5000,d=6,k=4,copy=0.8", block_size=900))
    asked = PrivBayesAsked(Fraction(1), seed=3)
    local = privbayes.publish(LocalFleet(users, 3, LedgerBook(1)), users.schema.names, asked)
    with RayFleet(users, 3, LedgerBook(1), shards=2) as fleet:
        release = privbayes.publish(fleet, users.schema.names, asked)
    assert np.array_equal(release.codes, local.codes)


class Stranger(PostProcessing):
    """A step that dpsim does not define."""

    def run(self, held, desk):
        return held


def test_a_host_refuses_steps_that_dpsim_does_not_define():
    with pytest.raises(InputError, match=r"steps of dpsim.protocols only"):
        LocalFleet(USERS, 3, LedgerBook(1)).learn(Stranger())


def power(base, exponent):
    return base**exponent


def test_tasks_come_back_in_order_with_the_bits_of_one_process():
    exponents = list(range(50))
    found = list(RayPool().map(power, 3, exponents))
    assert found == list(OneProcess().map(power, 3, exponents)) == [3**e for e in exponents]


def refuse(shared, item):
    raise InputError(f"item {item} is refused")


def test_an_error_of_a_task_arrives_as_it_was_raised():
    with pytest.raises(InputError, match="item 1 is refused"):
        list(RayPool().map(refuse, None, [1]))


def test_an_mwem_host_may_die_between_iterations_and_the_release_is_the_same(tmp_path):
    users = Entrusted(parse_generated("zipf:n=20000,d=2,k=90", block_size=5_000))
    asked = MWEMAsked(Fraction(1), queries=4_000, iterations=160, replays=60, seed=3)
    local = mwem.publish(LocalFleet(users, 3, LedgerBook(1)), users.schema.names, asked)
    killed: list[int] = []
    killer = threading.Thread(target=kill_once, args=("ray::Host.learn", killed))
    with RayFleet(users, 3, LedgerBook(1), shards=2, folder=tmp_path) as fleet:
        killer.start()
        release = mwem.publish(fleet, users.schema.names, asked)
        assert fleet.ledger.spent.epsilon == 1
    killer.join()
    assert killed
    assert np.array_equal(release.codes, local.codes)
    assert list(tmp_path.glob("state-mwem-*.ckpt"))
