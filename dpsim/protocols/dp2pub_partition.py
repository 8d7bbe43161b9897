"""DP2-Pub's recommended local mode: one report on one group of attributes, at the whole ε."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.protocols.base import Fleet, PostProcessing
from dpsim.protocols.collect import Collected, CollectRequest, Item, collect, name_of
from dpsim.protocols.dp2pub_settings import DP2PubSettings
from dpsim.protocols.publication import Cost, Published, attributes_of, given_network, released
from dpsim.protocols.release import Price
from dpsim.protocols.table_release import TableRelease
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.choose_model import ModelChoice, fit_model
from dpsim.synthesis.designs import Design, design_of
from dpsim.synthesis.group_choice import attribute_design, auto_design, pair_design
from dpsim.synthesis.group_reports import GroupOracle, GroupReports

_FEW, _TOO_FEW = 100, 30
"""Users per group: below these a tree or network is doubtful, or refused."""
_DESIGNS: dict[str, Callable[[tuple[int, ...], Fraction], Design]] = {
    "auto": auto_design,
    "product": attribute_design,
    "projected": attribute_design,
    "tree": pair_design,
    "classes": auto_design,
    "posterior": auto_design,
}


@dataclass(frozen=True, slots=True, eq=False)
class FitPartition(PostProcessing):
    """Fit a model of the table to the reports of all groups, and draw records from it."""

    sizes: tuple[int, ...]
    reports: tuple[GroupReports, ...]
    model: ModelChoice
    rows: int
    noise: CentralNoise
    network: BayesNet | None = None

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:  # noqa: ARG002
        """Nothing but reports is read: all of it is post-processing."""
        model = fit_model(self.reports, self.sizes, self.noise, self.model, self.network)
        facts: dict[str, Any] = {
            "model": type(model).__name__,
            "groups": [list(group.attributes) for group in self.reports],
            "reports": [group.n for group in self.reports],
        }
        net = getattr(model, "net", None)
        if isinstance(net, BayesNet):
            facts["network"] = net.to_lists()
        return Published(model.sample(self.rows, self.noise), model, facts)


def design_for(
    sizes: tuple[int, ...], settings: DP2PubSettings, net: BayesNet | None
) -> Design:
    """Which groups are asked about: from domain sizes, ε and the model's name alone."""
    if settings.model != "network":
        return _DESIGNS[settings.model](sizes, settings.epsilon)
    if net is None:
        raise InputError(
            "model = network asks about the families of a given network: name one with "
            "--network"
        )
    families = {tuple(sorted(family)) for family in net.families if len(family) > 1}
    alone = {(a,) for a, size in enumerate(sizes) if size > 1}
    told = {a for family in families for a in family}
    groups = sorted(families) + sorted(group for group in alone if group[0] not in told)
    return design_of(sizes, groups, settings.epsilon)


def first_partition_request(
    source: RecordSource, names: Sequence[str], settings: DP2PubSettings
) -> CollectRequest:
    """One round: each user draws a group without looking, and reports its compound code."""
    attributes = attributes_of(source.schema, names)
    sizes = tuple(attribute.size for attribute in attributes)
    net = given_network(attributes, settings.network)
    if net is not None and settings.model != "network":
        raise InputError("a given network is used with model = network; name it with --model")
    design = design_for(sizes, settings, net)
    _require_users(design, source.n, settings.model)
    items = tuple(
        Item(
            tuple(attributes[a] for a in group.attributes),
            group.mechanism,
            share=group.share,
        )
        for group in design.groups
    )
    rest = (settings.preset, settings.model, settings.participation.parameters)
    name = name_of("dp2pub", settings.seed, items, *rest)
    question = f"one of {len(items)} groups of {len(names)} attributes"
    return CollectRequest(name, 0, question, items, "sample", settings.participation)


def publish_partition(
    fleet: Fleet, names: Sequence[str], settings: DP2PubSettings
) -> TableRelease:
    """Ask, fit, draw."""
    request = first_partition_request(fleet.source, names, settings)
    collected = collect(fleet, request)
    noise = CentralNoise(settings.seed, request.plan.hash)
    attributes = attributes_of(fleet.source.schema, names)
    step = FitPartition(
        sizes=tuple(attribute.size for attribute in attributes),
        reports=_reports(request, collected, names),
        model=cast("ModelChoice", settings.model),
        rows=settings.rows or collected.turnout.counted,
        noise=noise,
        network=given_network(attributes, settings.network),
    )
    published: Published = fleet.learn(step)
    few = [n for n, _ in collected.tallies if n < _FEW]
    if few and settings.model in {"tree", "network"}:
        note = (
            f"{len(few)} groups have fewer than {_FEW} reports: their tables are mostly noise"
        )
        published = replace(published, notes=(*published.notes, note))
    cost = _cost(request, collected, len(names))
    return released(fleet, names, published, cost, settings.trust, noise)


def _reports(
    request: CollectRequest, collected: Collected, names: Sequence[str]
) -> tuple[GroupReports, ...]:
    place = {name: number for number, name in enumerate(names)}
    return tuple(
        GroupReports(
            tuple(place[attribute.name] for attribute in item.attributes),
            cast("GroupOracle", item.mechanism),
            n,
            tally,
        )
        for item, (n, tally) in zip(request.items, collected.tallies, strict=True)
    )


def _require_users(design: Design, n: int, model: str) -> None:
    """Trees and networks need each group's table; the other models pool all groups."""
    least = min(design.expected_users(n))
    if model in {"tree", "network"} and least < _TOO_FEW:
        raise InputError(
            f"{n:,} users in {len(design.groups)} groups leave {least:.0f} for one of them, "
            f"and {_TOO_FEW} is the least for model = {model}; use model = classes, or fewer "
            "attributes"
        )


def _cost(request: CollectRequest, collected: Collected, attributes: int) -> Cost:
    real = max(item.mechanism.real_epsilon for item in request.items)
    kind = type(request.items[0].mechanism).__name__
    prices = (Price(kind, request.loss.epsilon),) * attributes
    return Cost(request.loss, real, (request.plan.hash,), prices, collected.turnout)
