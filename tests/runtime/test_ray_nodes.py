"""Two nodes on one machine: one of them is lost in mid-round."""

import os
import signal

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

from dpsim.data.sources import parse_generated
from dpsim.protocols.frequency import Round, frequency_request
from dpsim.runtime import ray_session
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.runtime.progress import RoundProgress
from dpsim.runtime.ray_fleet import RayFleet

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FAST_CHECKS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 3,
}


@pytest.fixture
def cluster():
    ray_session._require_token()
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 2,
            "resources": {"shard": 2},
            "include_dashboard": False,
            "_system_config": FAST_CHECKS,
        },
    )
    yield cluster
    cluster.shutdown()


def node_of(actor):
    return ray.get(
        actor.__ray_call__.remote(lambda _self: ray.get_runtime_context().get_node_id())
    )


def test_a_node_removed_in_mid_round_costs_time_and_nothing_else(cluster):
    users = parse_generated("planted:n=4000000,d=4,k=5", block_size=65_536)
    request = frequency_request(users.schema, users.schema.names, "1", Round(3))
    expected = LocalFleet(users, 3, LedgerBook(1)).ask(request)
    doomed = cluster.add_node(num_cpus=1, resources={"shard": 1})
    cluster.wait_for_nodes()
    lost: list[int] = []
    seen: list[RoundProgress] = []

    def watch(progress):
        seen.append(progress)
        if lost and progress.blocks_done >= progress.blocks // 4:
            cluster.remove_node(doomed, allow_graceful=False)
            os.kill(lost.pop(), signal.SIGKILL)  # a lost machine takes its processes along

    book = LedgerBook(1)
    with ray_session.ray_session(2, cluster.address):
        with RayFleet(users, 3, book, shards=2, watch=watch) as fleet:
            here = ray.get_runtime_context().get_node_id()
            away = [node_of(actor) != here for actor in fleet._shards]
            assert sorted(away) == [False, True], "the shards must be on both nodes"
            lost.append(fleet.infos[away.index(True)].pid)
            np.testing.assert_array_equal(fleet.ask(request), expected)
            assert not lost
            assert {node_of(actor) for actor in fleet._shards} == {here}
    assert seen[-1].retries > 0
    assert len(book.ledger.charges) == 1
