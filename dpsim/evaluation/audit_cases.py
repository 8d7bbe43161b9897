"""What to audit: every family of mechanisms, at any ε."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpsim.evaluation.audit_exact import Law
from dpsim.evaluation.audit_frequency import (
    grr_cases,
    grr_laws,
    hadamard_cases,
    hadamard_laws,
    hashing_cases,
    hashing_laws,
    subset_cases,
    subset_laws,
    unary_cases,
    unary_laws,
)
from dpsim.evaluation.audit_records import fake_cases, fake_laws, split_cases, split_laws
from dpsim.evaluation.audit_rounds import longitudinal_cases, longitudinal_laws
from dpsim.evaluation.audit_sampled import AuditCase
from dpsim.evaluation.audit_values import (
    duchi_cases,
    duchi_laws,
    grid_cases,
    grid_laws,
    laplace_cases,
    laplace_laws,
    pair_cases,
    pair_laws,
    pckv_cases,
    pckv_laws,
)


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of mechanism: what is sampled of it, and what is checked exactly."""

    cases: Callable[[Fraction], Iterator[AuditCase]]
    laws: Callable[[Fraction], Iterator[Law]]


FAMILIES: Final = {
    "grr": Family(grr_cases, grr_laws),
    "unary": Family(unary_cases, unary_laws),
    "hashing": Family(hashing_cases, hashing_laws),
    "subset": Family(subset_cases, subset_laws),
    "hadamard": Family(hadamard_cases, hadamard_laws),
    "record": Family(split_cases, split_laws),
    "fake-data": Family(fake_cases, fake_laws),
    "duchi": Family(duchi_cases, duchi_laws),
    "piecewise": Family(grid_cases, grid_laws),
    "laplace": Family(laplace_cases, laplace_laws),
    "key-value": Family(pair_cases, pair_laws),
    "pckv": Family(pckv_cases, pckv_laws),
    "longitudinal": Family(longitudinal_cases, longitudinal_laws),
}


def doubled(family: Family, epsilon: Fraction) -> Iterator[AuditCase]:
    """The family's own cases at twice the ε that they claim: their events must show it."""
    for honest, case in zip(family.cases(epsilon), family.cases(2 * epsilon), strict=True):
        yield replace(case, name=f"{case.name}, twice ε", claim=honest.claim)
