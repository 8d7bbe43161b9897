"""Audits of memoized mechanisms: one report against ε₁, many rounds against ε∞."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dpsim.evaluation.audit_composed import Rounds
from dpsim.evaluation.audit_exact import Law, bits_channel
from dpsim.evaluation.audit_sampled import AuditCase
from dpsim.evaluation.audit_scores import all_equal, bit_of, code, packed_ones
from dpsim.mechanisms.interfaces import Reports
from dpsim.mechanisms.longitudinal import LGRR, LOSUE, LSUE, RAPPOR

ROUNDS = 4
_SIZE = 4
_ZERO, _ONE = np.uint8(0), np.uint8(1)


def _bitwise(epsilon: Fraction) -> dict[str, LOSUE | LSUE | RAPPOR]:
    return {
        "L-OSUE": LOSUE(_SIZE, epsilon, epsilon / 2),
        "L-SUE": LSUE(_SIZE, epsilon, epsilon / 2),
        "RAPPOR": RAPPOR(_SIZE, epsilon),
    }


def longitudinal_laws(epsilon: Fraction) -> Iterator[Law]:
    """One report: it must cost no more than ε₁, where one is stated."""
    coded = LGRR(_SIZE, epsilon, epsilon / 2)
    codes = np.arange(_SIZE, dtype=np.uint8)
    yield Law("L-GRR, one report", coded, codes, coded.channel(), coded.first_epsilon)
    for name, bitwise in _bitwise(epsilon).items():
        claim = bitwise.loss.epsilon if name == "RAPPOR" else bitwise.first_epsilon
        law = bits_channel(bitwise.p, bitwise.q)
        yield Law(f"{name}, one report", bitwise, codes[:2], law, claim, _two_bits)


def longitudinal_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """Several rounds on one value: all agree. They must cost no more than ε∞."""
    coded = LGRR(_SIZE, epsilon, epsilon / 2)
    yield AuditCase(
        "L-GRR, one report",
        coded,
        _ZERO,
        _ONE,
        code(0, 1),
        coded.first_epsilon,
        coded.first_report_epsilon,
    )
    yield AuditCase(
        f"L-GRR, {ROUNDS} rounds",
        Rounds(coded, ROUNDS),
        _ZERO,
        _ONE,
        all_equal(0, 1),
        coded.loss.epsilon,
        coded.loss_after(ROUNDS),
    )
    for name, bitwise in _bitwise(epsilon).items():
        yield AuditCase(
            f"{name}, {ROUNDS} rounds",
            Rounds(bitwise, ROUNDS),
            _ZERO,
            _ONE,
            packed_ones(0, 1),
            bitwise.loss.epsilon,
            bitwise.loss_after(ROUNDS),
        )


def _two_bits(reports: Reports) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return 2 * bit_of(reports, 0).astype(np.int64) + bit_of(reports, 1)
