"""MWEM without trust: perturbed counts come in, and the iterations cost nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpsim.core.records import RecordSource
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Desk
from dpsim.mechanisms.adaptive import adaptive
from dpsim.mechanisms.interfaces import FrequencyOracle
from dpsim.mechanisms.postprocess import norm_sub
from dpsim.protocols.base import Fleet, PostProcessing
from dpsim.protocols.collect import CollectRequest, Item, collect, name_of
from dpsim.protocols.mwem_asked import MWEMAsked
from dpsim.protocols.participation import Participation
from dpsim.protocols.publication import Cost, Published, attributes_of, released
from dpsim.protocols.release import Price
from dpsim.protocols.table_release import TableRelease
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.noiseless import fit_to_answers
from dpsim.synthesis.mwem.rows import HistogramModel
from dpsim.synthesis.mwem.truth import Truth


@dataclass(frozen=True, slots=True, eq=False)
class FitLocalCounts(PostProcessing):
    """Move a uniform guess towards the workload's answers of a private histogram.

    No noise is added: the query that is answered worst is taken in each iteration. Where the
    histogram is mostly noise, the guess keeps less of it than the histogram itself.
    """

    asked: MWEMAsked
    histogram: NDArray[np.float64]
    """Private already: estimated counts, none negative."""
    noise: CentralNoise

    def run(self, held: tuple[NDArray[Any], ...], desk: Desk) -> Published:  # noqa: ARG002
        """Iterate, then draw rows."""
        mwem = self.asked.mwem(self.histogram.shape)
        total = round(float(self.histogram.sum()))
        private = Truth(total, mwem.workload.answers(self.histogram))
        model = HistogramModel(fit_to_answers(mwem, private, self.noise, desk.tell))
        rows = self.asked.rows or total
        facts = {
            "iterations": mwem.settings.iterations,
            "queries": int(mwem.workload.groups.size - 1),
            "engine": mwem.engine_name,
            "answers": mwem.engine.answers(model.guess).tolist(),
        }
        return Published(model.sample(rows, self.noise), model, facts)


def first_request(
    source: RecordSource, names: Sequence[str], asked: MWEMAsked, how: Participation
) -> CollectRequest:
    """One perturbed cell per user, at the whole ε: GRR or OUE, whichever errs less."""
    attributes = attributes_of(source.schema, names)
    sizes = tuple(attribute.size for attribute in attributes)
    mwem: MWEM = asked.mwem(sizes)
    cells = int(np.prod(sizes))
    item = Item(attributes, adaptive(cells, asked.epsilon))
    parameters = [str(pair) for pair in mwem.parameters]
    name = name_of("mwem local", asked.seed, [item], parameters, how.parameters)
    question = f"one of {cells:,} cells of {len(names)} attributes"
    return CollectRequest(name, 0, question, (item,), participation=how)


def publish_local(
    fleet: Fleet, names: Sequence[str], asked: MWEMAsked, how: Participation
) -> TableRelease:
    """Ask for cells, estimate their counts, and fit."""
    request = first_request(fleet.source, names, asked, how)
    collected = collect(fleet, request)
    (n, tally), (item,) = collected.tallies[0], request.items
    oracle = cast("FrequencyOracle", item.mechanism)
    sizes = tuple(attribute.size for attribute in item.attributes)
    counts = norm_sub(oracle.estimate(tally, n)).reshape(sizes) * n
    noise = CentralNoise(asked.seed, request.plan.hash)
    published: Published = fleet.learn(FitLocalCounts(asked, counts, noise))
    price = Price(type(oracle).__name__, asked.epsilon)
    cost = Cost(
        request.loss, oracle.real_epsilon, (request.plan.hash,), (price,) * len(sizes),
        collected.turnout,
    )  # fmt: skip
    return released(fleet, names, published, cost, asked.trust, noise)
