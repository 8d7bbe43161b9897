"""Mechanisms with a planted privacy bug: an audit that passes one of them is dead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts
from dpsim.core.records import RecordSource, blocks_of
from dpsim.core.rng import UserNoise
from dpsim.data.secret_bits import SECRET
from dpsim.evaluation.audit_composed import Record, Rounds
from dpsim.evaluation.audit_exact import worst_log_ratio
from dpsim.evaluation.audit_frequency import faithful_unary
from dpsim.evaluation.audit_records import fake_cases
from dpsim.evaluation.audit_sampled import AuditCase, Perturbs
from dpsim.evaluation.audit_scores import all_equal, code, one_sided, ones, packed_ones
from dpsim.evaluation.audit_values import laplace_cases
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.interfaces import Randomizer, Reports
from dpsim.mechanisms.longitudinal import LGRR
from dpsim.mechanisms.piecewise import FloatPiecewise
from dpsim.mechanisms.unary import SUE

_ATOMS = 2**32


@dataclass(frozen=True, slots=True, eq=False)
class Tabled:
    """Any finite law: inputs and reports are codes, row x holds the reports' shares."""

    channel: NDArray[np.float64]

    def perturb(self, inputs: Codes, noise: UserNoise) -> Codes:
        """One report per code, by the place of one draw among the shares."""
        draws = noise.stream().draws()
        ends = np.floor(np.cumsum(self.channel, axis=1)[:, :-1] * _ATOMS)
        reports = np.zeros(inputs.size, np.uint16)
        for x, row in enumerate(ends):
            own = inputs == x
            reports[own] = np.searchsorted(row, draws[own], side="right")
        return reports


@dataclass(frozen=True, slots=True)
class Bits:
    """A unary encoding with any p and q, in bytes: each bit has a stream of its own."""

    domain_size: int
    p: float
    q: float

    def perturb(self, inputs: Codes, noise: UserNoise) -> NDArray[np.uint8]:
        """One row of bits per code."""
        columns = []
        for place in range(self.domain_size):
            draws = replace(noise, subject=f"{noise.subject} bit {place}").stream().draws()
            share = np.where(inputs == place, self.p, self.q)
            columns.append(draws < share * _ATOMS)
        return np.stack(columns, axis=1).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Echo:
    """GRR without the check of its domain: a code that is no code is told as it is."""

    oracle: GRR

    def perturb(self, inputs: Codes, noise: UserNoise) -> Codes:
        """One report per code; the truth with probability p, whatever it is."""
        known = inputs < self.oracle.domain_size
        reports = self.oracle.perturb(np.where(known, inputs, 0).astype(inputs.dtype), noise)
        draws = noise.stream().draws(self.oracle.draw_bits)
        return np.where(~known & (draws < self.oracle.truth_atoms), inputs, reports)


def closed_half_spaces(epsilon: float) -> NDArray[np.float64]:
    """Two means at once, as printed in 2019: both half-spaces hold the border t·v = 0.

    Inputs and reports are the four corners of the square. The border's reports come from
    both sides, and so the loss is ln(e^ε + 1).
    """
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    products = corners @ corners.T
    p = 1 / (1 + exp(-epsilon))
    agree, oppose = products >= 0, products <= 0
    law: NDArray[np.float64] = (p * agree + (1 - p) * oppose) / 3
    return law


def ask_with_shared_streams(source: RecordSource, mechanism: Randomizer, seed: int) -> Counts:
    """A round in which every block draws from the beginning of one stream.

    Each report has the right law, so audits of reports pass it; but its noise cancels.
    """
    total = np.zeros(mechanism.tally_size, np.int64)
    for block in blocks_of(source.n, source.block_size):
        noise = UserNoise(seed, "shared", SECRET, np.arange(block.n))
        codes: Any = source.read(block).open(SECRET)
        total += mechanism.tally(mechanism.perturb(codes, noise))
    return total


@dataclass(frozen=True, slots=True)
class Forgetful:
    """A memoized mechanism that draws its permanent answer again in every round."""

    mechanism: Perturbs

    def perturb(self, inputs: NDArray[Any], noise: UserNoise) -> Reports:
        """Reports of a user who is somebody else in every plan."""
        subject = f"{noise.subject} in {noise.plan_hash}"
        return self.mechanism.perturb(inputs, replace(noise, subject=subject))


def planted_bugs(epsilon: Fraction) -> Iterator[AuditCase]:
    """One case per bug; each must be flagged."""
    yield from _budget_bugs(epsilon)
    yield from _domain_bugs(epsilon)
    yield from _value_bugs(epsilon)
    yield from faithful_unary(Fraction(1, 100))


def _budget_bugs(epsilon: Fraction) -> Iterator[AuditCase]:
    """More is spent than is charged."""
    zero, one = np.uint8(0), np.uint8(1)
    more = epsilon * Fraction("1.05")
    for size in (2, 16):
        oracle = GRR(size, more)
        yield AuditCase(f"GRR k={size} with 1.05 ε", oracle, zero, one, code(0, 1), epsilon,
                        oracle.real_epsilon)  # fmt: skip
    whole = GRR(2, epsilon)
    yield AuditCase("record of 3, ε not split", Record((whole,) * 3), np.zeros(3, np.uint8),
                    np.ones(3, np.uint8), all_equal(0, 1), epsilon,
                    3 * whole.real_epsilon)  # fmt: skip
    yield AuditCase("two fresh rounds", Rounds(GRR(4, epsilon), 2), zero, one,
                    all_equal(0, 1), epsilon, 2 * float(epsilon))  # fmt: skip
    memoized = Forgetful(LGRR(4, epsilon, epsilon / 2))
    yield AuditCase("permanent answer drawn again", Rounds(memoized, 6), zero, one,
                    all_equal(0, 1), epsilon, 3 * float(epsilon))  # fmt: skip
    yield replace(next(fake_cases(epsilon)), name="fake data, ε for whole records",
                  claim=epsilon)  # fmt: skip


def _domain_bugs(epsilon: Fraction) -> Iterator[AuditCase]:
    """Values and bits that are told as they are."""
    zero, one = np.uint8(0), np.uint8(1)
    yield AuditCase("GRR k=8, out-of-domain echo", Echo(GRR(8, epsilon)), zero, np.uint8(99),
                    one_sided(99), epsilon)  # fmt: skip
    yield AuditCase("RAPPOR, true bits never cleared", Bits(4, 1.0, 0.25), zero, one,
                    ones(0, 1), epsilon)  # fmt: skip
    per_bit = SUE(4, 2 * epsilon)
    yield AuditCase("SUE, ε per bit", per_bit, zero, one, packed_ones(0, 1), epsilon,
                    per_bit.real_epsilon)  # fmt: skip


def _value_bugs(epsilon: Fraction) -> Iterator[AuditCase]:
    """Means of numbers."""
    law = closed_half_spaces(float(epsilon))
    yield AuditCase("joint Duchi, closed half-spaces", Tabled(law), np.uint8(3), np.uint8(1),
                    code(2, 0), epsilon, worst_log_ratio(law))  # fmt: skip
    (halved,) = laplace_cases(2 * epsilon)
    yield replace(halved, name="Laplace, half the noise", claim=epsilon)
    yield AuditCase("float Piecewise, low bits", FloatPiecewise(epsilon), np.float64(-0.5),
                    np.float64(0.5), _low_bits, epsilon)  # fmt: skip


def _low_bits(reports: Reports) -> NDArray[np.int8]:
    """Small reports that are no multiples of 2^-52: some numbers never yield any."""
    steps = reports * 2.0**52
    is_told = (np.abs(reports) < 1 / 4) & (steps != np.floor(steps))
    return np.asarray(is_told, np.int8)
