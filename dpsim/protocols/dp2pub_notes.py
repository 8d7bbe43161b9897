"""DP2-Pub as its notes have it: overlapping clusters, and not the loss they announce."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from dpsim.core.exact import text_of
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.base import PostProcessing
from dpsim.protocols.publication import Published
from dpsim.protocols.reports import report_table
from dpsim.synthesis.notes import redraw_as_notes
from dpsim.synthesis.notes_clusters import OverlappingClusters, SharedRule, notes_clusters
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.structure_search import search_as_notes
from dpsim.synthesis.table import CodeTable


@dataclass(frozen=True, slots=True)
class NotesClusters(PostProcessing):
    """Learn the notes' network and overlapping clusters from the first reports."""

    sizes: tuple[int, ...]
    parents: int
    noise: CentralNoise

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> LearnedClusters:
        """Network and clusters; search tables are counted as tasks."""
        return _learn(self, report_table(self.sizes, held[0]), desk)


@dataclass(frozen=True, slots=True)
class LearnedClusters:
    """What the notes learn before anything is published."""

    network: list[list[int | list[int]]]
    clusters: OverlappingClusters

    def facts(self, rule: SharedRule) -> dict[str, Any]:
        """Network and clusters as plain values."""
        return {
            "network": self.network,
            "clusters": [list(cluster) for cluster in self.clusters.clusters],
            "importance_sum": sum(self.clusters.importances),
            "used_share": float(self.clusters.used_share(rule)),
        }


@dataclass(frozen=True, slots=True)
class PublishNotesPram(PostProcessing):
    """The notes' PRAM of the first reports: post-processing, whatever its budgets."""

    channels: tuple[GRR, ...]
    epsilon: Fraction
    parents: int
    noise: CentralNoise

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' domain sizes."""
        return tuple(channel.domain_size for channel in self.channels)

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:
        """Learn, then redraw each attribute from its row of Q'."""
        table = report_table(self.sizes, held[0])
        learned = _learn(self, table, desk)
        budgets = learned.clusters.budgets(self.epsilon, "smallest")
        redrawn = redraw_as_notes(SplitReports(table, self.channels), budgets, self.noise)
        return Published(redrawn.codes, facts=learned.facts("smallest"))


@dataclass(frozen=True, slots=True)
class PublishReports(PostProcessing):
    """The second reports as they came: private already, and all that is published."""

    channels: tuple[GRR, ...]
    learned: LearnedClusters

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:  # noqa: ARG002
        """The rows of whoever was counted."""
        sizes = tuple(channel.domain_size for channel in self.channels)
        facts = self.learned.facts("first")
        facts["keep_probabilities"] = [channel.p for channel in self.channels]
        return Published(report_table(sizes, held[0]).codes, facts=facts)


def second_budgets(learned: LearnedClusters, epsilon: Fraction) -> tuple[Fraction, ...]:
    """The loss of each attribute's second report: ε PBC/|CL| of its first cluster."""
    return learned.clusters.budgets(epsilon, "first")


def cost_note(epsilon: Fraction, really: Fraction, why: str) -> str:
    """The true loss beside the announced one."""
    return f"announced as ε={text_of(epsilon)}, really costs ε={float(really):.6g}: {why}"


def _learn(
    step: NotesClusters | PublishNotesPram, table: CodeTable, desk: Desk
) -> LearnedClusters:
    found = search_as_notes(
        table, step.parents, step.noise, desk.pool, lambda *n: desk.tell("searching", *n)
    )
    clusters = notes_clusters(found.net.parents, table.sizes, step.noise)
    return LearnedClusters(found.net.to_lists(), clusters)
