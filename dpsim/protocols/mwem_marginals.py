"""MWEM on tables of many attributes: whole marginals, and a graphical model of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from dpsim.core.exact import text_of
from dpsim.core.plan import Plan, Use
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.protocols.base import Fleet
from dpsim.protocols.curator import CuratorTable, require_entrusted
from dpsim.protocols.mwem_asked import MWEMAsked
from dpsim.protocols.participation import Turnout
from dpsim.protocols.publication import Cost, Published, attributes_of, curator_plan, released
from dpsim.protocols.release import Price
from dpsim.protocols.states import pack, unpack
from dpsim.protocols.table_release import TableRelease
from dpsim.synthesis.marginal_mwem import MarginalMWEM
from dpsim.synthesis.marginal_settings import MarginalSettings
from dpsim.synthesis.marginal_state import MarginalState


@dataclass(frozen=True, slots=True)
class HostMarginals:
    """All iterations, with a checkpoint after each; then rows of the graphical model."""

    source: RecordSource
    names: tuple[str, ...]
    asked: MWEMAsked

    @property
    def settings(self) -> MarginalSettings:
        """How ε is spent; iterations as asked, else the default."""
        settings = MarginalSettings(epsilon=self.asked.epsilon, delta=self.asked.delta)
        if self.asked.iterations is None:
            return settings
        return replace(settings, iterations=self.asked.iterations)

    @property
    def plan(self) -> Plan:
        """The settings: all that determines the noise."""
        use = Use(self.names, "marginal MWEM", self.settings.parameters)
        question = f"marginals of {len(self.names)} attributes"
        return curator_plan("mwem marginals", self.asked.seed, question, (use,))

    @property
    def loss(self) -> PrivacyLoss:
        """What all iterations cost."""
        return self.settings.loss

    @property
    def cost(self) -> Cost:
        """The loss, for the release; attributes share it."""
        prices = (Price("marginal MWEM", self.loss.epsilon),) * len(self.names)
        turnout = Turnout(self.source.n, 0, 0)
        return Cost(self.loss, float(self.loss.epsilon), (self.plan.hash,), prices, turnout)

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:  # noqa: ARG002
        """Iterate from where the last checkpoint is."""
        noise = CentralNoise(self.asked.seed, self.plan.hash)
        table = CuratorTable(self.source, self.names).open()
        mwem = MarginalMWEM(self.settings, table.sizes)
        truth, name = mwem.truth(table), f"marginals-{self.plan.hash[:16]}"
        saved = desk.memory.load(name)
        state = (
            mwem.start(truth, noise)
            if saved is None
            else MarginalState.from_arrays(unpack(saved))
        )
        while not mwem.is_done(state):
            state = mwem.advance(state, truth, noise)
            desk.memory.save(name, pack(state.to_arrays()))
            desk.tell("measuring", state.iteration, self.settings.iterations)
        model = mwem.model(state)
        rows = self.asked.rows or self.source.n
        facts = {
            "parts": [[what, text_of(part)] for what, part in self.settings.parts],
            "iterations": state.iteration,
            "clusters": [list(each.attributes) for each in state.measurements],
            "network": model.network.net.to_lists(),
        }
        return Published(model.sample(rows, noise), model, facts)


def first_price(source: RecordSource, names: Sequence[str], asked: MWEMAsked) -> HostMarginals:
    """What is charged: enough to refuse a run before anything happens."""
    require_entrusted(source)
    attributes_of(source.schema, names)
    host = HostMarginals(source, tuple(names), asked)
    _ = host.settings
    return host


def publish(fleet: Fleet, names: Sequence[str], asked: MWEMAsked) -> TableRelease:
    """Have the curator measure marginals and draw the table."""
    host = first_price(fleet.source, names, asked)
    published: Published = fleet.learn(host)
    noise = CentralNoise(asked.seed, host.plan.hash)
    return released(fleet, names, published, host.cost, asked.trust, noise)
