"""PrivBayes: a trusted curator publishes a table from a private network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.plan import Plan, Use
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.protocols.base import Fleet
from dpsim.protocols.curator import CuratorTable, require_entrusted
from dpsim.protocols.participation import Turnout
from dpsim.protocols.publication import Cost, Published, attributes_of, curator_plan, released
from dpsim.protocols.release import Price
from dpsim.protocols.table_release import TableRelease, Trust
from dpsim.synthesis.privbayes import Part, PrivBayesSettings, fit_privbayes, privbayes_budget

PRESETS = ("default", "network", "classes", "faithful")


@dataclass(frozen=True, slots=True)
class PrivBayesAsked:
    """A table drawn from a model that a trusted curator fits under pure ε.

    Presets::

        default    classes where every attribute has two values, else network
        network    noisy margins, then a tree and second parents from noisy pair tables
        classes    all pairs of two-valued attributes, and a mixture of classes
        faithful   the paper's PrivBayes: β = 0.3 of ε for the network, θ = 4

    Margins come first, so that rare values share a cell and tables stay small; tables are
    made consistent with their margins instead of being clipped. Every part of ε is charged
    before the records are read.

    Guarantees ε when one record is replaced; the number of records and the domains are
    public. The curator is trusted with the records.

    References:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao. PrivBayes: private data release via
        Bayesian networks. ACM TODS 2017.
    """

    epsilon: Fraction
    preset: str = "default"
    parents: int | None = None
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}")
        if self.parents is not None and self.preset != "faithful":
            raise InputError("parents are chosen by privbayes itself; only faithful takes them")
        if self.parents is not None:
            require_at_least(0, parents=self.parents)

    @property
    def settings(self) -> PrivBayesSettings:
        """How the loss is spent."""
        method: Any = "auto" if self.preset == "default" else self.preset
        if self.parents is None:
            return PrivBayesSettings(method)
        return PrivBayesSettings(method, parents=self.parents)

    @property
    def trust(self) -> Trust:
        """The curator is trusted."""
        model = "central: a trusted curator holds the records"
        return Trust("curator", model, text_of(self.epsilon), self.preset)


@dataclass(frozen=True, slots=True)
class PublishPrivBayes:
    """Fit the model where the records are, then draw new ones from it."""

    source: RecordSource
    names: tuple[str, ...]
    asked: PrivBayesAsked

    @property
    def parts(self) -> tuple[Part, ...]:
        """What ε is spent on."""
        return privbayes_budget(self.asked.epsilon, self.asked.settings, self._table.sizes)

    @property
    def plan(self) -> Plan:
        """All parts, and whatever else determines their noise."""
        kind = (("preset", self.asked.preset), ("parents", self.asked.parents))
        uses = tuple(
            Use(self.names, what, (("epsilon", text_of(epsilon)), *kind))
            for what, epsilon in self.parts
        )
        question = f"privbayes publication of {len(self.names)} attributes"
        return curator_plan("privbayes", self.asked.seed, question, uses)

    @property
    def loss(self) -> PrivacyLoss:
        """ε: all parts together."""
        return PrivacyLoss(sum((epsilon for _, epsilon in self.parts), Fraction(0)))

    @property
    def cost(self) -> Cost:
        """The loss, for the release; attributes share it."""
        prices = (Price("noisy tables", self.asked.epsilon),) * len(self.names)
        turnout = Turnout(self.source.n, 0, 0)
        real = float(self.loss.epsilon)
        return Cost(self.loss, real, (self.plan.hash,), prices, turnout)

    @property
    def _table(self) -> CuratorTable:
        return CuratorTable(self.source, self.names)

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:  # noqa: ARG002
        """Fit and sample."""
        noise = CentralNoise(self.asked.seed, self.plan.hash)
        fitted = fit_privbayes(
            self._table, self.asked.settings, self.asked.epsilon, noise, desk.pool
        )
        facts: dict[str, Any] = {
            "parts": [[what, text_of(epsilon)] for what, epsilon in fitted.parts]
        }
        if fitted.net is not None:
            facts["network"] = fitted.net.to_lists()
        rows = self.asked.rows or self.source.n
        codes = fitted.model.sample(rows, noise)
        return Published(codes, fitted.model, facts, fitted.notes)


def first_price(
    source: RecordSource, names: Sequence[str], asked: PrivBayesAsked
) -> PublishPrivBayes:
    """What is charged: enough to refuse a run before anything happens."""
    require_entrusted(source)
    attributes_of(source.schema, names)
    require_at_least(2, records=source.n)
    return PublishPrivBayes(source, tuple(names), asked)


def publish(fleet: Fleet, names: Sequence[str], asked: PrivBayesAsked) -> TableRelease:
    """Have the curator fit the model and draw the table."""
    step = first_price(fleet.source, names, asked)
    published: Published = fleet.learn(step)
    noise = CentralNoise(asked.seed, step.plan.hash)
    return released(fleet, names, published, step.cost, asked.trust, noise)
