"""DP2-Pub with a trusted curator, corrected: both stages paid for, clusters disjoint."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.exact import text_of
from dpsim.core.plan import Plan, Use
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise, UserNoise
from dpsim.core.tasks import Desk
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.curator import CuratorTable
from dpsim.protocols.participation import Turnout
from dpsim.protocols.publication import Cost, Published, curator_plan
from dpsim.protocols.release import Price
from dpsim.synthesis.attribute_clustering import ClusterCaps, cluster_at_random
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.channel_em import most_likely_law
from dpsim.synthesis.cluster_budget import budgets_by_importance, public_entropy
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.exponential_search import DrawSettings, draw_network
from dpsim.synthesis.pram import redraw_table
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable


@dataclass(frozen=True, slots=True)
class PublishTrusted:
    """Draw a network for half of ε, then randomize the records of its clusters for the rest.

    With a given network, all of ε goes to the records. Cluster importance is public: it comes
    from domain sizes, not from the records. Guarantees ε when one record is replaced.
    """

    source: RecordSource
    names: tuple[str, ...]
    epsilon: Fraction
    parents: int
    seed: int
    network: BayesNet | None = None

    @property
    def structure_epsilon(self) -> Fraction:
        """What the network costs."""
        searched = sum(size > 1 for size in self._table.sizes) > 1
        return self.epsilon / 2 if self.network is None and searched else Fraction(0)

    @property
    def plan(self) -> Plan:
        """Both stages, and whatever else determines their noise."""
        network = "" if self.network is None else str(self.network.to_lists())
        structure = (
            ("epsilon", text_of(self.structure_epsilon)),
            ("parents", self.parents),
            ("network", network),
        )
        records = (("epsilon", text_of(self.epsilon - self.structure_epsilon)),)
        uses = (
            Use(self.names, "exponential network", structure),
            Use(self.names, "GRR by clusters", records),
        )
        question = f"trusted publication of {len(self.names)} attributes"
        return curator_plan("dp2pub trusted", self.seed, question, uses)

    @property
    def loss(self) -> PrivacyLoss:
        """ε: the network's and the records' parts."""
        return PrivacyLoss(self.epsilon)

    @property
    def cost(self) -> Cost:
        """The loss, for the release; attributes share it."""
        price = Price("GRR in clusters", self.epsilon - self.structure_epsilon)
        hashes, prices = (self.plan.hash,), (price,) * len(self.names)
        turnout = Turnout(self.source.n, 0, 0)
        return Cost(self.loss, float(self.epsilon), hashes, prices, turnout)

    @property
    def _table(self) -> CuratorTable:
        return CuratorTable(self.source, self.names)

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:  # noqa: ARG002
        """Network, clusters, randomized records, invariant PRAM."""
        noise = CentralNoise(self.seed, self.plan.hash)
        net = self.network or self._net(noise, desk)
        sizes = self._table.sizes
        caps = ClusterCaps.for_users(self._table.n)
        clustering = cluster_at_random(net.parents, noise, sizes, caps)
        entropies = [public_entropy(size) for size in sizes]
        left = self.epsilon - self.structure_epsilon
        budgets = budgets_by_importance(clustering, entropies, left)
        reports = self._randomize(budgets)
        # From the uniform law: half of ε over all attributes says little, and steps that start
        # from margins of so much noise end farther from the truth than no steps at all.
        laws = [
            most_likely_law(
                joint_counts(reports.table, cluster), reports.channels_of(cluster)
            ).law
            for cluster in clustering.clusters
        ]
        redrawn = redraw_table(reports, clustering, laws, noise)
        facts = {
            "network": net.to_lists(),
            "clusters": [list(cluster) for cluster in clustering.clusters],
        }
        return Published(redrawn.codes, facts=facts)

    def _net(self, noise: CentralNoise, desk: Desk) -> BayesNet:
        sizes = self._table.sizes
        if not self.structure_epsilon:
            return BayesNet(tuple(range(len(sizes))), ((),) * len(sizes))
        cells = float(ClusterCaps.for_users(self._table.n).cells)
        drawn = draw_network(
            self._table,
            DrawSettings(self.parents, cells),
            self.structure_epsilon,
            noise,
            desk.pool,
            lambda *n: desk.tell("searching", *n),
        )
        return drawn.net

    def _randomize(self, budgets: tuple[Fraction, ...]) -> SplitReports:
        """Each attribute through its own GRR, as users would have done it."""
        table = self._table.open()
        users = np.arange(table.n)
        channels, rows = [], []
        for name, size, budget, codes in zip(
            self.names, table.sizes, budgets, table.codes, strict=True
        ):
            channel = GRR(size, budget or self.epsilon)
            noise = UserNoise(self.seed, self.plan.hash, name, users)
            rows.append(channel.perturb(codes, noise))
            channels.append(channel)
        codes = np.stack(rows).astype(table.codes.dtype, copy=False)
        return SplitReports(CodeTable(table.sizes, codes), tuple(channels))
