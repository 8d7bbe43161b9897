"""DP2-Pub corrected, without a curator: gate, network, attribute clusters, invariant PRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.base import PostProcessing
from dpsim.protocols.publication import Published
from dpsim.protocols.reports import report_table
from dpsim.synthesis.attribute_clustering import (
    AttributeClustering,
    ClusterCaps,
    cluster_by_entropy,
)
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.channel_em import cluster_law
from dpsim.synthesis.gate import Gate, examine_pairs
from dpsim.synthesis.law_entropy import entropy_of_law, information_of_law
from dpsim.synthesis.pram import redraw_table
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.structure_search import SearchSettings, search


@dataclass(frozen=True, slots=True)
class PublishLocal(PostProcessing):
    """Redraw the reports so that the laws of attribute clusters are the most likely ones.

    Nothing but the reports is read: all of it is post-processing.
    """

    channels: tuple[GRR, ...]
    parents: int
    noise: CentralNoise
    network: BayesNet | None = None
    time_limit: float | None = None

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:
        """Gate, search, cluster, redraw."""
        sizes = tuple(channel.domain_size for channel in self.channels)
        reports = SplitReports(report_table(sizes, held[0]), self.channels)
        gate = examine_pairs(reports.table, pool=desk.pool)
        laws = [cluster_law(reports, (attribute,)).law for attribute in range(len(sizes))]
        information = _information(reports, gate)
        net, notes = self._net(reports, gate, laws, desk)
        clustering = AttributeClustering.singletons(len(sizes))
        if net is not None:
            entropies = [entropy_of_law(law) for law in laws]
            caps = ClusterCaps.for_users(reports.table.n)
            clustering = cluster_by_entropy(net.parents, entropies, sizes, caps, information)
        joint = [
            laws[cluster[0]] if len(cluster) == 1 else cluster_law(reports, cluster).law
            for cluster in clustering.clusters
        ]
        redrawn = redraw_table(reports, clustering, joint, self.noise)
        facts: dict[str, Any] = {"clusters": [list(c) for c in clustering.clusters]}
        facts["pairs_that_pass"] = len(gate.passed)
        if net is not None:
            facts["network"] = net.to_lists()
        return Published(redrawn.codes, facts=facts, notes=notes)

    def _net(
        self, reports: SplitReports, gate: Gate, laws: Sequence[NDArray[Any]], desk: Desk
    ) -> tuple[BayesNet | None, tuple[str, ...]]:
        """The network that is given, or found among the pairs that show more than noise."""
        if self.network is not None:
            return self.network, ()
        signal = gate.signal
        if signal.is_below_noise:
            needed = signal.users_needed
            more = (
                "" if needed is None else f"; about {needed:,} users might show the strongest"
            )
            return None, (
                f"signal below noise: of {signal.tested} pairs of attributes none shows more "
                f"than chance at this ε{more}. Attributes are published as independent",
            )
        root = max(range(len(laws)), key=lambda a: (round(entropy_of_law(laws[a]) * 2**40), -a))
        settings = SearchSettings(
            self.parents, "corrected", root=root, time_limit=self.time_limit
        )
        found = search(
            reports.table, settings, desk.pool, None, lambda *n: desk.tell("searching", *n)
        )
        notes = () if found.is_complete else ("the search was ended by its time limit",)
        return _only_passed(found.net, gate), notes


def _only_passed(net: BayesNet, gate: Gate) -> BayesNet:
    """The network without parents that show no more than chance beside their child."""
    passed = set(gate.passed)
    parents = tuple(
        tuple(p for p in found if (min(p, child), max(p, child)) in passed)
        for child, found in enumerate(net.parents)
    )
    return BayesNet(net.order, parents)


def _information(reports: SplitReports, gate: Gate) -> NDArray[np.float64]:
    """Mutual information of the most likely law of each pair that passed, 0 of the others."""
    d = len(reports.channels)
    found = np.zeros((d, d))
    for one, other in gate.passed:
        law = cluster_law(reports, (one, other)).law
        found[one, other] = found[other, one] = information_of_law(law)
    return found
