"""Audits of mechanisms for numbers: means in [-1, 1], and values of keys that may be absent."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsim.evaluation.audit_exact import Law
from dpsim.evaluation.audit_sampled import AuditCase
from dpsim.evaluation.audit_scores import code, one_sided, sign, tails, worst_case
from dpsim.mechanisms.duchi import Duchi
from dpsim.mechanisms.duchi_joint import JointDuchi
from dpsim.mechanisms.f2m import F2M
from dpsim.mechanisms.hybrid import Hybrid
from dpsim.mechanisms.interfaces import Reports
from dpsim.mechanisms.laplace import LocalLaplace
from dpsim.mechanisms.pairs import NEGATIVE, POSITIVE
from dpsim.mechanisms.pckv import PCKVGRR, PCKVUE
from dpsim.mechanisms.piecewise import Piecewise
from dpsim.mechanisms.privkv import FaithfulPrivKV, PrivKV, PrivKVMRound
from dpsim.mechanisms.state_encoding import StateEncoding

LOW, HIGH, ABSENT = np.float64(-1), np.float64(1), np.float64("nan")
_NUMBERS = np.array([-1.0, -0.3, 0.0, 0.6, 1.0])
_STATES = np.array([ABSENT, HIGH, LOW])
_POINTS = 64
"""Points of the grid whose law is checked; the sampled ones have as many as in a run."""


def duchi_laws(epsilon: Fraction) -> Iterator[Law]:
    """One number; and several at once, from all corners."""
    one = Duchi(epsilon)
    yield Law("Duchi", one, _NUMBERS, one.channel(_NUMBERS.tolist()), one.loss.epsilon)
    for d in (2, 3, 4):
        joint = JointDuchi(d, epsilon)
        corners = 2.0 * (np.arange(2**d)[:, None] >> np.arange(d) & 1) - 1
        yield Law(f"joint Duchi d={d}", joint, corners, joint.channel(), joint.loss.epsilon)


def duchi_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """The sign; and signs that lean towards one of two opposite corners."""
    one = Duchi(epsilon)
    yield AuditCase("Duchi", one, LOW, HIGH, code(0, 1), one.loss.epsilon, one.real_epsilon)
    d = 4
    joint = JointDuchi(d, epsilon)
    yield AuditCase(
        f"joint Duchi d={d}",
        joint,
        np.full(d, LOW),
        np.full(d, HIGH),
        lambda reports: tails(d / 2 - 1, d / 2 + 1)(np.bitwise_count(reports)),
        joint.loss.epsilon,
        joint.real_epsilon,
    )


def grid_laws(epsilon: Fraction) -> Iterator[Law]:
    """Every point of a small grid, for numbers on and between its points."""
    inputs = _NUMBERS.tolist()
    for name, mechanism in (
        ("Piecewise", Piecewise(epsilon, _POINTS)),
        ("Hybrid", Hybrid(epsilon, _POINTS)),
    ):
        law = mechanism.channel(inputs)
        yield Law(f"{name}, {_POINTS} points", mechanism, _NUMBERS, law, mechanism.loss.epsilon)


def grid_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """Points near one end of the grid, out of reach of the other end's neighborhood."""
    grid = Piecewise(epsilon)
    ends = (grid.layout.width - 1, grid.points - grid.layout.width)
    yield AuditCase(
        "Piecewise", grid, LOW, HIGH, tails(*ends), grid.loss.epsilon, grid.real_epsilon
    )
    mixed = Hybrid(epsilon)

    def score(reports: Reports) -> NDArray[np.int8]:
        """Two signs come first, then the grid."""
        places = reports.astype(np.int64) - 2
        is_high = (reports == 1) | (places >= ends[1])
        return sign(is_high, (reports == 0) | ((places >= 0) & (places <= ends[0])))

    yield AuditCase("Hybrid", mixed, LOW, HIGH, score, mixed.loss.epsilon, mixed.real_epsilon)


def laplace_laws(epsilon: Fraction) -> Iterator[Law]:
    """Reports clamped to a small grid: the worst ratio is reached at both ends."""
    grid = LocalLaplace(epsilon, _POINTS)
    yield Law(
        f"Laplace, {_POINTS} points",
        grid,
        _NUMBERS,
        grid.channel(_NUMBERS.tolist()),
        grid.loss.epsilon,
        lambda reports: np.clip(reports, 0, _POINTS - 1),
    )


def laplace_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """Beyond either end of the grid."""
    grid = LocalLaplace(epsilon)
    score = tails(0, grid.points - 1)
    yield AuditCase("Laplace", grid, LOW, HIGH, score, grid.loss.epsilon, grid.real_epsilon)


_OneKey: TypeAlias = PrivKV | FaithfulPrivKV | PrivKVMRound | StateEncoding


def _one_key(epsilon: Fraction) -> dict[str, _OneKey]:
    return {
        "PrivKV": PrivKV(epsilon),
        "PrivKV faithful": FaithfulPrivKV(epsilon, epsilon),
        "PrivKVM round, mean 0.3": PrivKVMRound(epsilon, epsilon, "0.3"),
        "state encoding": StateEncoding(epsilon),
    }


def pair_laws(epsilon: Fraction) -> Iterator[Law]:
    """Absent, +1 and -1."""
    for name, mechanism in _one_key(epsilon).items():
        yield Law(name, mechanism, _STATES, mechanism.channel(), mechanism.loss.epsilon)
    both = F2M(epsilon)
    yield Law("F2M", both, _STATES, both.channel(), both.loss.epsilon)


def pair_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """A positive value against an absent one, and against a negative one."""
    for name in ("PrivKV", "PrivKV faithful"):
        mechanism = _one_key(epsilon)[name]
        claim, atoms = mechanism.loss.epsilon, mechanism.atoms
        yield AuditCase(
            f"{name} +1 or absent",
            mechanism,
            ABSENT,
            HIGH,
            one_sided(POSITIVE),
            claim,
            log(atoms.kept / atoms.fake_plus),
        )
        yield AuditCase(
            f"{name} +1 or -1",
            mechanism,
            LOW,
            HIGH,
            code(NEGATIVE, POSITIVE),
            claim,
            log(atoms.kept / atoms.flipped),
        )
    for law in pair_laws(epsilon):
        if law.name in {"PrivKVM round, mean 0.3", "state encoding", "F2M"}:
            yield worst_case(law)


def pckv_laws(epsilon: Fraction) -> Iterator[Law]:
    """Two keys, padded to two: all nine sets, by the atoms in the plan."""
    d = pad = 2
    sets = np.array(list(product(_STATES, repeat=d)))
    each = PCKVUE(d, epsilon, pad)
    yield Law(
        f"PCKV-UE d={d}", each, sets, _each_channel(each, sets), each.loss.epsilon, _states_of
    )
    sampled = PCKVGRR(d, epsilon, pad)
    law = _sampled_channel(sampled, sets)
    yield Law(f"PCKV-GRR d={d}", sampled, sets, law, sampled.loss.epsilon)


def pckv_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """The worst two sets."""
    return map(worst_case, pckv_laws(epsilon))


def _places(row: NDArray[np.float64], pad: int) -> list[tuple[int, float]]:
    """The padded set that one pair is drawn from; dummies follow the keys, with value 0."""
    held = [(key, float(value)) for key, value in enumerate(row) if not np.isnan(value)]
    return held + [(row.size + place, 0.0) for place in range(pad - len(held))]


def _each_channel(each: PCKVUE, sets: NDArray[np.float64]) -> NDArray[np.float64]:
    atoms = dict(each.parameters)
    flipped, other = (int(atoms[key] or 0) / 2**64 for key in ("flipped_atoms", "other_atoms"))
    noise = np.array([1 - 2 * other, other, other])
    told = {1.0: np.array([0.5, 0.5 - flipped, flipped])}
    told[-1.0] = told[1.0][[0, 2, 1]]
    rows = []
    for row in sets:
        places = _places(row, each.pad_length)
        laws = [
            np.outer(*(told[value] if key == own else noise for own in range(each.keys)))
            for key, value in places
        ]
        rows.append(np.mean(laws, axis=0).ravel())
    return np.array(rows)


def _states_of(reports: Reports) -> NDArray[np.int64]:
    """Absent, positive or negative for each of two keys, as one number."""
    plus, minus = reports[:, 0].astype(np.int64), reports[:, 1].astype(np.int64)
    first, second = ((plus >> key & 1) + 2 * (minus >> key & 1) for key in (0, 1))
    return np.asarray(3 * first + second)


def _sampled_channel(sampled: PCKVGRR, sets: NDArray[np.float64]) -> NDArray[np.float64]:
    codes = 2 * (sampled.keys + sampled.pad_length)
    rows = []
    for row in sets:
        law = np.full(codes, sampled.lie_atoms / 2**64)
        extra = (sampled.truth_atoms - sampled.lie_atoms) / 2**64 / sampled.pad_length
        for key, value in _places(row, sampled.pad_length):
            law[2 * key] += extra * (1 + value) / 2
            law[2 * key + 1] += extra * (1 - value) / 2
        rows.append(law)
    return np.array(rows)
