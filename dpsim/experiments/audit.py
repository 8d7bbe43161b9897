"""All audits at once: exact laws, sampled reports, rounds through a fleet, planted bugs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from dpsim.core.arrays import Counts
from dpsim.core.records import RecordSource
from dpsim.evaluation.audit_cases import FAMILIES, doubled
from dpsim.evaluation.audit_exact import WORST_P, Law, check_channel, sample_law
from dpsim.evaluation.audit_mutants import ask_with_shared_streams, planted_bugs
from dpsim.evaluation.audit_sampled import AuditResult, AuditSettings, audit
from dpsim.evaluation.audit_shards import (
    Ask,
    Independence,
    ask_fleet,
    audit_independence,
    audit_round,
)
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import Randomizer
from dpsim.runtime.factory import FleetName, FleetPlace, open_fleet
from dpsim.runtime.ledger_book import LedgerBook

NO_PROOF = "a passed audit is no proof: smaller or other violations stay unseen"
EPSILON = Fraction(1)
_SHARDS = 4
_BLOCKS = 8
_CODES = 4
_BLOCK_SIZE = 1 << 16


@dataclass(frozen=True, slots=True)
class AuditJob:
    """Which families are audited, how thoroughly, and through which fleet."""

    families: tuple[str, ...]
    settings: AuditSettings
    through: FleetName = "local"
    mutants: bool = False


def run_audit(job: AuditJob) -> dict[str, Any]:
    """Everything that was found, as one JSON object."""
    families = [FAMILIES[name] for name in job.families]
    laws = [law for family in families for law in family.laws(EPSILON)]
    exact = [_exact(law, job.settings) for law in laws]
    cases = [case for family in families for case in family.cases(EPSILON)]
    sampled = [_sampled(audit(case, job.settings), job.settings.trials) for case in cases]
    mutants = []
    if job.mutants:
        bugs = [case for family in families for case in doubled(family, EPSILON)]
        bugs += planted_bugs(EPSILON)
        mutants = [_sampled(audit(case, job.settings), job.settings.trials) for case in bugs]
    with _asking(job.through) as ask:
        fleet = [_round(ask, job), _blocks("blocks share no noise", ask, job)]
        if job.mutants:
            mutants += [
                _round(ask, job, 2 * EPSILON),
                _blocks("same stream in every shard", ask_with_shared_streams, job),
            ]
    flagged = [row["name"] for row in (*exact, *sampled, *fleet) if row["is_violation"]]
    missed = [row["name"] for row in mutants if not row["is_violation"]]
    return {
        "format": 1,
        "command": "audit",
        "families": list(job.families),
        "trials": job.settings.trials,
        "alpha": job.settings.alpha,
        "seed": job.settings.seed,
        "through": job.through,
        "exact": exact,
        "sampled": sampled,
        "fleet": fleet,
        "mutants": mutants,
        "flagged": flagged,
        "missed": missed,
        "passed": not flagged and not missed,
        "notes": [NO_PROOF],
    }


@contextmanager
def _asking(through: FleetName) -> Iterator[Ask]:
    """Rounds through shards as every run holds them; Ray is started once for all of them."""
    place = FleetPlace(through, _SHARDS)

    def ask(source: RecordSource, mechanism: Randomizer, seed: int) -> Counts:
        with open_fleet(place, source, seed, LedgerBook(mechanism.loss)) as fleet:
            return ask_fleet(fleet, mechanism)

    if through == "local":
        yield ask
        return
    from dpsim.runtime.ray_session import ray_session  # noqa: PLC0415 - local needs no Ray

    with ray_session(_SHARDS):
        yield ask


def _round(ask: Ask, job: AuditJob, epsilon: Fraction = EPSILON) -> dict[str, Any]:
    found = audit_round(ask, GRR(_CODES, epsilon), EPSILON, job.settings, _BLOCK_SIZE)
    is_honest = epsilon == EPSILON
    name = f"GRR k={_CODES} through {job.through} shards"
    return _sampled(found, job.settings.trials) | {
        "name": name if is_honest else f"{name}, twice ε"
    }


def _blocks(name: str, ask: Ask, job: AuditJob) -> dict[str, Any]:
    return _independence(name, audit_independence(ask, _BLOCKS, job.settings.seed))


def _exact(law: Law, settings: AuditSettings) -> dict[str, Any]:
    check, p_value = check_channel(law.channel, law.claim), sample_law(law, settings)
    is_followed = p_value >= WORST_P
    verdict = "sound" if check.is_sound else "VIOLATION"
    return {
        "name": law.name,
        "claim": check.claim,
        "exact": _number(check.epsilon),
        "sampler_p_value": p_value,
        "is_violation": not (check.is_sound and is_followed),
        "verdict": verdict if is_followed else "VIOLATION: reports do not follow the law",
    }


def _sampled(found: AuditResult, trials: int) -> dict[str, Any]:
    return {
        "name": found.name,
        "claim": found.claim,
        "exact": None if found.exact is None else _number(found.exact),
        "guess_epsilon": _number(found.guess_epsilon),
        "two_arm_epsilon": _number(found.two_arm_epsilon),
        "guesses": found.guesses,
        "guessed_share": found.guesses / trials,
        "p_value": found.p_value,
        "smallest_excess": _number(found.excess),
        "is_violation": found.is_violation,
        "verdict": found.verdict,
    }


def _independence(name: str, found: Independence) -> dict[str, Any]:
    return {
        "name": name,
        "blocks": found.blocks,
        "z": found.worst_z,
        "is_violation": found.is_violation,
        "verdict": found.verdict,
    }


def _number(value: float) -> float | None:
    """None where JSON has no number."""
    return value if isfinite(value) else None
