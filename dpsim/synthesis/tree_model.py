"""Trees and networks of attributes from reports about groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError
from dpsim.mechanisms.postprocess import norm_sub
from dpsim.synthesis.bayes_net import BayesNet, NetworkModel
from dpsim.synthesis.group_reports import GroupReports, require_groups
from dpsim.synthesis.margins import pooled_margins, projected_margin, require_margins

FEW_USERS, TOO_FEW_USERS = 100, 30
"""Users of a group below which its table is doubtful, and below which it is refused."""

_SWEEPS, _FLOOR = 30, 1e-9
_SCORE_BITS = 40  # mutual information of copies differs in the last bits of a float


@dataclass(frozen=True, slots=True, eq=False)
class FamilyTable:
    """A joint law of some attributes, and how much of what the reports say it keeps."""

    law: Frequencies
    kept: float
    """κ: 0 where the reports show no dependence, towards 1 where all they show is signal."""


def groups_of_few(reports: Sequence[GroupReports]) -> tuple[tuple[int, ...], ...]:
    """The groups of several attributes whose tables are doubtful, having too few users."""
    return tuple(
        group.attributes
        for group in reports
        if len(group.attributes) > 1 and group.n < FEW_USERS
    )


def fit_tree(reports: Sequence[GroupReports], sizes: tuple[int, ...]) -> NetworkModel:
    """The tree whose pairs have the most mutual information, by shrunken pair tables.

    Pairs without signal have no edge. Ties: rounded to 2^-40 nats, the lowest indices first.
    """
    margins = _margins(reports, sizes)
    scored = []
    for pair in combinations(range(len(sizes)), 2):
        table = family_table(reports, pair, margins)
        if table is not None and table.kept > 0:
            scored.append((-round(_information(table.law) * 2**_SCORE_BITS), pair, table.law))
    scored.sort(key=lambda each: each[:2])
    return _rooted(_spanning([(pair, law) for _, pair, law in scored], len(sizes)), margins)


def fit_network(
    reports: Sequence[GroupReports], sizes: tuple[int, ...], net: BayesNet
) -> NetworkModel:
    """A given network, each child's table by the reports of groups that hold its family."""
    margins = _margins(reports, sizes)
    if len(net.order) != len(sizes):
        raise InputError(
            f"the network has {len(net.order)} attributes and the table {len(sizes)}"
        )
    tables = []
    for attribute, family in enumerate(net.families):
        if len(family) == 1:
            tables.append(margins[attribute])
            continue
        table = family_table(reports, family, margins)
        if table is None:
            raise InputError(
                f"no group holds the attributes {family}: ask about them together, or give "
                f"attribute {attribute} other parents"
            )
        tables.append(table.law)
    return NetworkModel(net, tuple(tables))


def cluster_net(clusters: Sequence[tuple[int, ...]], attributes: int) -> BayesNet:
    """Full dependence within each attribute cluster, none between: a partition is required."""
    members = [attribute for cluster in clusters for attribute in cluster]
    if sorted(members) != list(range(attributes)):
        raise InputError(
            f"clusters must hold each of {attributes} attributes exactly once, got "
            f"{len(members)} memberships of {len(set(members))} attributes"
        )
    parents: dict[int, tuple[int, ...]] = {}
    for cluster in clusters:
        ordered = sorted(cluster)
        parents.update({a: tuple(ordered[:place]) for place, a in enumerate(ordered)})
    order = tuple(attribute for cluster in clusters for attribute in sorted(cluster))
    return BayesNet(order, tuple(parents[attribute] for attribute in range(attributes)))


def family_table(
    reports: Sequence[GroupReports],
    family: tuple[int, ...],
    margins: Sequence[Frequencies],
) -> FamilyTable | None:
    """The joint law of a family with given margins, from all groups that hold it.

    Of the estimate t, the part y beyond margins and their product is kept by
    ``κ = max(0, 1 - df v / |y|²)``, where noise alone would give |y|² = df v. The sum is
    projected on the simplex and fitted to the margins by proportional sweeps. None where no
    group holds the family.
    """
    pooled = _pooled(reports, family, [margin.size for margin in margins])
    if pooled is None:
        return None
    estimate, variance = pooled
    independent = np.ones(())
    for attribute in family:
        independent = np.multiply.outer(independent, margins[attribute])
    signal = _interaction(estimate - independent)
    freedom = estimate.size - 1 - sum(size - 1 for size in estimate.shape)
    power = float((signal**2).sum())
    kept = max(0.0, 1 - freedom * variance / power) if power > 0 else 0.0
    law = norm_sub((independent + kept * signal).ravel()).reshape(estimate.shape)
    return FamilyTable(
        _fitted(law, [margins[a] for a in family]) if kept else independent, kept
    )


def _pooled(
    reports: Sequence[GroupReports], family: tuple[int, ...], sizes: list[int]
) -> tuple[Frequencies, float] | None:
    """The family's table by inverse variances, and the variance of one of its dimensions."""
    total, weight = np.zeros([sizes[attribute] for attribute in family]), 0.0
    for group in reports:
        if not set(family) <= set(group.attributes) or not group.n:
            continue
        if group.n < TOO_FEW_USERS:
            raise InputError(
                f"group {group.attributes} has {group.n} users, and a table needs "
                f"{TOO_FEW_USERS} at least: use fewer groups, or fit classes"
            )
        table, variance = _marginal_table(group, family, sizes)
        total += table / variance
        weight += 1 / variance
    return (total / weight, 1 / weight) if weight else None


def _marginal_table(
    group: GroupReports, family: tuple[int, ...], sizes: list[int]
) -> tuple[Frequencies, float]:
    """One group's table of the family; v = mean λ(1-λ) / (n(p-q)²) per dimension and cell."""
    estimate = group.estimate()
    rates = np.clip(group.mechanism.q + group.mechanism.gap * estimate, 0, 1)
    noise = float((rates * (1 - rates)).mean()) / group.freedom
    noise /= group.n * group.mechanism.gap**2
    axes = tuple(group.attributes.index(attribute) for attribute in family)
    others = tuple(axis for axis in range(len(group.attributes)) if axis not in axes)
    table = estimate.reshape([sizes[a] for a in group.attributes]).sum(axis=others)
    left = [axis for axis in range(len(group.attributes)) if axis in axes]
    table = table.transpose([left.index(axis) for axis in axes])
    return table, noise * group.cells / table.size


def _interaction(table: Frequencies) -> Frequencies:
    """The table less what its one-way margins explain: all of them are 0 in the result."""
    result = table - table.mean()
    mains = [
        result.mean(
            axis=tuple(other for other in range(table.ndim) if other != axis), keepdims=True
        )
        for axis in range(table.ndim)
    ]
    for main in mains:
        result = result - main
    return np.asarray(result, np.float64)


def _fitted(law: Frequencies, margins: Sequence[Frequencies]) -> Frequencies:
    """Iterative proportional fitting, from cells of 1e-9 at least."""
    law = np.maximum(law, _FLOOR)
    for _ in range(_SWEEPS):
        for axis, margin in enumerate(margins):
            others = tuple(other for other in range(law.ndim) if other != axis)
            now = law.sum(axis=others)
            ratio = np.divide(margin, now, out=np.zeros_like(now), where=now > 0)
            law = law * ratio.reshape([-1 if axis == a else 1 for a in range(law.ndim)])
    return np.asarray(law / law.sum(), np.float64)


def _information(law: Frequencies) -> float:
    """Mutual information of a pair, in nats."""
    independent = np.outer(law.sum(axis=1), law.sum(axis=0))
    used = law > 0
    return float((law[used] * np.log(law[used] / independent[used])).sum())


def _spanning(
    ranked: list[tuple[tuple[int, int], Frequencies]], attributes: int
) -> dict[tuple[int, int], Frequencies]:
    """The first edges that close no circle."""
    parts = list(range(attributes))
    kept = {}
    for (a, b), law in ranked:
        if parts[a] != parts[b]:
            kept[a, b] = law
            gone = parts[b]
            parts = [parts[a] if part == gone else part for part in parts]
    return kept


def _rooted(
    edges: dict[tuple[int, int], Frequencies], margins: Sequence[Frequencies]
) -> NetworkModel:
    """The forest with edges away from the lowest index of each part."""
    order: list[int] = []
    parents: list[tuple[int, ...]] = [() for _ in margins]
    tables = list(margins)
    for root in range(len(margins)):
        waiting = [] if root in order else [root]
        while waiting:
            here = waiting.pop(0)
            order.append(here)
            for (a, b), law in sorted(edges.items(), key=lambda each: each[0]):
                child = b if a == here else a
                if here in (a, b) and child not in order and child not in waiting:
                    parents[child] = (here,)
                    tables[child] = np.ascontiguousarray(law if a == here else law.T)
                    waiting.append(child)
    return NetworkModel(BayesNet(tuple(order), tuple(parents)), tuple(tables))


def _margins(reports: Sequence[GroupReports], sizes: tuple[int, ...]) -> list[Frequencies]:
    require_groups(reports, sizes)
    pooled = require_margins(pooled_margins(reports, sizes))
    return [projected_margin(margin) for margin in pooled]
