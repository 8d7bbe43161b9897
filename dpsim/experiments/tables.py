"""From a specification to a published table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.records import RecordSource
from dpsim.experiments.spec import RunSpec
from dpsim.protocols import dp2pub, mwem, mwem_local, mwem_marginals, privbayes
from dpsim.protocols.base import Fleet, Priced
from dpsim.protocols.dp2pub_settings import DP2PubSettings
from dpsim.protocols.mwem_asked import MWEMAsked
from dpsim.protocols.table_release import TableRelease


def dp2pub_settings(spec: RunSpec) -> DP2PubSettings:
    """What a specification asks of DP2-Pub."""
    return DP2PubSettings(
        epsilon=require_epsilon(spec.epsilon),
        preset=spec.preset or "partition",
        parents=spec.parents,
        model=spec.model or "auto",
        rows=spec.rows,
        network=spec.network,
        time_limit=spec.time_limit,
        seed=spec.seed,
        participation=spec.participation,
    )


def privbayes_asked(spec: RunSpec) -> privbayes.PrivBayesAsked:
    """What a specification asks of PrivBayes."""
    if spec.network is not None or spec.model is not None:
        raise InputError("privbayes takes neither --network nor --model; see dpsim explain")
    if not spec.participation.is_certain:
        raise InputError("a curator holds all records; dropout and deadlines are for reports")
    return privbayes.PrivBayesAsked(
        epsilon=require_epsilon(spec.epsilon),
        preset=spec.preset or "default",
        parents=spec.parents,
        rows=spec.rows,
        seed=spec.seed,
    )


def mwem_asked(spec: RunSpec) -> MWEMAsked:
    """What a specification asks of MWEM."""
    if spec.preset != "local" and not spec.participation.is_certain:
        raise InputError("a curator holds all records; dropout and deadlines are for reports")
    return MWEMAsked(
        epsilon=require_epsilon(spec.epsilon),
        delta=Fraction(spec.delta),
        preset=spec.preset or "default",
        workload=spec.workload or "boxes",
        queries=spec.queries,
        iterations=spec.iterations,
        replays=spec.replays,
        fit=spec.fit,
        selection=spec.selection,
        noise=spec.noise,
        output=spec.output,
        measure_share=Fraction(spec.measure_share),
        trials=spec.trials,
        rows=spec.rows,
        seed=spec.seed,
    )


def first_price(spec: RunSpec, source: RecordSource, names: Sequence[str]) -> Priced:
    """What is charged first."""
    if spec.method == "dp2pub":
        return dp2pub.first_price(source, names, dp2pub_settings(spec))
    if spec.method == "privbayes":
        return privbayes.first_price(source, names, privbayes_asked(spec))
    asked = mwem_asked(spec)
    if asked.preset == "local":
        return mwem_local.first_request(source, names, asked, spec.participation)
    if asked.preset == "marginals":
        return mwem_marginals.first_price(source, names, asked)
    return mwem.first_price(source, names, asked)


def publish(spec: RunSpec, fleet: Fleet, names: Sequence[str]) -> TableRelease:
    """Run the method on a fleet."""
    if spec.method == "dp2pub":
        return dp2pub.publish(fleet, names, dp2pub_settings(spec))
    if spec.method == "privbayes":
        return privbayes.publish(fleet, names, privbayes_asked(spec))
    asked = mwem_asked(spec)
    if asked.preset == "local":
        return mwem_local.publish_local(fleet, names, asked, spec.participation)
    if asked.preset == "marginals":
        return mwem_marginals.publish(fleet, names, asked)
    return mwem.publish(fleet, names, asked)


def limit_of(spec: RunSpec, asked: PrivacyLoss) -> PrivacyLoss:
    """The most that the method may cost, unless the specification says."""
    if spec.method != "dp2pub":
        return asked
    return PrivacyLoss(dp2pub_settings(spec).limit, unit=asked.unit, neighbors=asked.neighbors)
