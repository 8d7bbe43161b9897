"""MWEM: a private histogram from a workload of queries, hosted by one actor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.core.plan import Plan, Use
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.protocols.base import Fleet
from dpsim.protocols.curator import require_entrusted
from dpsim.protocols.histogram import HistogramRequest
from dpsim.protocols.mwem_asked import MWEMAsked
from dpsim.protocols.participation import Turnout
from dpsim.protocols.publication import Cost, Published, attributes_of, curator_plan, released
from dpsim.protocols.release import Price
from dpsim.protocols.states import pack, unpack
from dpsim.protocols.table_release import TableRelease
from dpsim.synthesis.mwem.batched import BatchedMWEM, Trials, run_trials
from dpsim.synthesis.mwem.errors import error_table
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.rows import HistogramModel
from dpsim.synthesis.mwem.state import MWEMState
from dpsim.synthesis.mwem.truth import Truth

_TRIALS_PER_TASK = 10
MOST_CELLS = 1 << 27
"""A histogram of more cells would not fit beside its sums: 1 GB."""


@dataclass(frozen=True, slots=True)
class HostMWEM:
    """All iterations, with a checkpoint after each; then rows of the final histogram."""

    asked: MWEMAsked
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def run_of(self) -> MWEM:
        """Settings and workload, checked together."""
        return self.asked.mwem(self.sizes)

    @property
    def plan(self) -> Plan:
        """The settings, the workload and the engine: all that determines the noise."""
        use = Use(self.names, "MWEM", self.run_of.parameters)
        question = f"mwem on {' x '.join(map(str, self.sizes))} cells"
        return curator_plan("mwem", self.asked.seed, question, (use,))

    @property
    def loss(self) -> PrivacyLoss:
        """What the run really costs."""
        return self.run_of.settings.loss

    @property
    def cost(self) -> Cost:
        """The loss, for the release; attributes share it."""
        real = float(self.loss.epsilon)
        prices = (Price("MWEM", self.loss.epsilon),) * len(self.names)
        return Cost(self.loss, real, (self.plan.hash,), prices, Turnout(0, 0, 0))

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:
        """Iterate from where the last checkpoint is."""
        mwem, noise = self.run_of, CentralNoise(self.asked.seed, self.plan.hash)
        truth = Truth.of(mwem.workload, held[0].reshape(self.sizes))
        batch, name = BatchedMWEM.of(mwem, truth), f"mwem-{self.plan.hash[:16]}"
        saved = desk.memory.load(name)
        state = (
            mwem.start(truth, noise) if saved is None else MWEMState.from_arrays(unpack(saved))
        )
        while not mwem.is_done(state):
            state = batch.advance(state, 1, noise)
            desk.memory.save(name, pack(state.to_arrays()))
            desk.tell("measuring", state.iteration, mwem.settings.iterations)
        model = HistogramModel(mwem.output(state))
        rows = self.asked.rows or round(state.total)
        return Published(model.sample(rows, noise), model, self._facts(mwem, state))

    def _facts(self, mwem: MWEM, state: MWEMState) -> dict[str, Any]:
        settings = mwem.settings
        return {
            "parts": [[what, text_of(epsilon)] for what, epsilon in settings.parts],
            "faults": list(settings.faults),
            "iterations": settings.iterations,
            "queries": int(mwem.workload.groups.size - 1),
            "engine": mwem.engine_name,
            "measured": list(state.queries),
            "measurements": state.measured.tolist(),
            "answers": mwem.answers(state).tolist(),
        }


@dataclass(frozen=True, slots=True)
class TryMWEM:
    """Independent trials of one plan, as tasks: evaluation, since it reads the truth.

    Releasing k of them would cost k times the loss; none is released.
    """

    host: HostMWEM
    trials: int

    @property
    def plan(self) -> None:
        """None: nothing is released."""

    @property
    def loss(self) -> None:
        """None: nothing is released."""

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> dict[str, Any]:
        """The table of errors over all trials."""
        mwem = self.host.run_of
        truth = Truth.of(mwem.workload, held[0].reshape(self.host.sizes))
        noise = CentralNoise(self.host.asked.seed, self.host.plan.hash)
        starts = range(0, self.trials, _TRIALS_PER_TASK)
        chunks = [range(s, min(s + _TRIALS_PER_TASK, self.trials)) for s in starts]
        parts: list[Trials] = []
        for part in desk.pool.map(_try, (mwem, truth, noise), chunks):
            parts.append(part)
            done = sum(len(each.trials) for each in parts)
            desk.tell("trying", done, self.trials)
        answers = np.concatenate([part.answers for part in parts])
        return {"errors": error_rows(answers, truth)}


def _try(shared: tuple[MWEM, Truth, CentralNoise], trials: range) -> Trials:
    mwem, truth, noise = shared
    return run_trials(BatchedMWEM.of(mwem, truth), noise, trials)


def error_rows(answers: NDArray[np.float64], truth: Truth) -> list[dict[str, Any]]:
    """Each figure of the errors over the workload: its mean over runs, and its error."""
    return [
        {
            "metric": row.metric,
            "mean": row.mean,
            "standard_error": None if np.isnan(row.standard_error) else row.standard_error,
            "trials": row.trials,
        }
        for row in error_table(answers, truth.answers)
    ]


def first_price(source: RecordSource, names: Sequence[str], asked: MWEMAsked) -> HostMWEM:
    """What is charged: enough to refuse a run before anything happens."""
    require_entrusted(source)
    attributes = attributes_of(source.schema, names)
    sizes = tuple(attribute.size for attribute in attributes)
    if prod(sizes) > MOST_CELLS:
        raise InputError(
            f"{len(names)} attributes have {prod(sizes):,} cells together, and {MOST_CELLS:,} "
            "is the most for a histogram: name fewer with --attributes, or use privbayes"
        )
    if source.n == 0:
        raise InputError("there are no records: a histogram needs one at least")
    host = HostMWEM(asked, tuple(names), sizes)
    _ = host.run_of
    return host


def publish(fleet: Fleet, names: Sequence[str], asked: MWEMAsked) -> TableRelease:
    """Have the shards count, and the host iterate; then, if asked, try it again and again."""
    host = first_price(fleet.source, names, asked)
    attributes = attributes_of(fleet.source.schema, names)
    request = HistogramRequest(f"{host.plan.experiment} counts", attributes)
    counted = int(fleet.ask(request)[0])
    published: Published = fleet.learn(host, request)
    noise = CentralNoise(asked.seed, host.plan.hash)
    cost = Cost(
        host.loss, float(host.loss.epsilon), (request.plan.hash, host.plan.hash),
        host.cost.prices, Turnout(counted, 0, 0),
    )  # fmt: skip
    release = released(fleet, names, published, cost, asked.trust, noise)
    if asked.trials == 1:
        return release
    return replace(release, trials=fleet.learn(TryMWEM(host, asked.trials), request))
