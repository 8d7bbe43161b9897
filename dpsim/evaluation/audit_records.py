"""Audits of whole records: several attributes of one user, and the relation they are under."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.evaluation.audit_composed import Record
from dpsim.evaluation.audit_exact import Law, product_channel
from dpsim.evaluation.audit_sampled import AuditCase
from dpsim.evaluation.audit_scores import all_equal, worst_case
from dpsim.mechanisms.fake_data import FakeData
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import Reports

_SHAPES = ((3, 2), (4, 4))
_FAKE_SIZES = (2, 3)


def split_laws(epsilon: Fraction) -> Iterator[Law]:
    """ε split evenly over the attributes: the product of their channels."""
    for d, size in _SHAPES:
        oracle = GRR(size, epsilon / d)
        yield Law(
            f"record of {d} GRR k={size}",
            Record((oracle,) * d),
            records_of((size,) * d),
            product_channel(*[oracle.channel()] * d),
            d * oracle.loss.epsilon,
            number_in((size,) * d),
        )


def split_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """All attributes differ, and all reports agree."""
    for d, size in _SHAPES:
        oracle = GRR(size, epsilon / d)
        yield AuditCase(
            f"record of {d} GRR k={size}",
            Record((oracle,) * d),
            np.zeros(d, np.uint8),
            np.ones(d, np.uint8),
            all_equal(0, 1),
            d * oracle.loss.epsilon,
            d * oracle.real_epsilon,
        )


def fake_laws(epsilon: Fraction) -> Iterator[Law]:
    """Fake data: whole records at their own loss, and one attribute at ε."""
    mechanism = FakeData(_FAKE_SIZES, epsilon)
    records = records_of(_FAKE_SIZES)
    channel = _fake_channel(mechanism, records)
    column, whole = number_in(_FAKE_SIZES), mechanism.record_loss.epsilon
    yield Law("fake data, whole records", mechanism, records, channel, whole, column)
    for attribute in range(len(_FAKE_SIZES)):
        rows = np.flatnonzero((np.delete(records, attribute, axis=1) == 0).all(axis=1))
        name, claim = f"fake data, attribute {attribute}", mechanism.loss.epsilon
        yield Law(name, mechanism, records[rows], channel[rows], claim, column)


def fake_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """The worst two records, and the worst two values of one attribute."""
    return map(worst_case, fake_laws(epsilon))


def records_of(sizes: tuple[int, ...]) -> NDArray[np.uint8]:
    """All records of a small universe."""
    return np.array(list(product(*map(range, sizes))), np.uint8)


def number_in(sizes: tuple[int, ...]) -> Callable[[Reports], NDArray[Any]]:
    """The place of a record in `records_of`."""
    places = np.array([prod(sizes[place + 1 :]) for place in range(len(sizes))])
    return lambda reports: reports @ places


def _fake_channel(mechanism: FakeData, records: NDArray[np.uint8]) -> NDArray[np.float64]:
    """One attribute by randomized response, by the atoms in the plan; all others uniform."""
    lies = [int(lie) / 2**64 for lie in str(dict(mechanism.parameters)["lie_atoms"]).split(",")]
    d, sizes = len(mechanism.sizes), mechanism.sizes
    total = np.zeros((len(records), len(records)))
    for own in range(d):
        same = records[:, None, own] == records[None, :, own]
        told = np.where(same, 1 - (sizes[own] - 1) * lies[own], lies[own])
        total += told / prod(size for place, size in enumerate(sizes) if place != own) / d
    return total
