"""Audits of frequency oracles: two codes, and the reports that support just one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsim.evaluation.audit_exact import Law
from dpsim.evaluation.audit_sampled import AuditCase
from dpsim.evaluation.audit_scores import code, packed_ones, worst_case
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.hadamard import HadamardResponse
from dpsim.mechanisms.interfaces import Reports
from dpsim.mechanisms.local_hashing import BLH, OLH, LocalHashing
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.mechanisms.unary import OUE, SUE, FaithfulOUE, FaithfulSUE

_ZERO, _ONE = np.uint8(0), np.uint8(1)
_SIZE = 16
_SMALL = 4
"""Codes of the oracles whose reports are listed one by one."""


def grr_laws(epsilon: Fraction) -> Iterator[Law]:
    """The whole channel."""
    for size in (1, 2, 3, 16, 100):
        oracle, codes = GRR(size, epsilon), np.arange(size, dtype=np.uint8)
        yield Law(f"GRR k={size}", oracle, codes, oracle.channel(), oracle.loss.epsilon)


def grr_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """The report is one of the two codes."""
    for size in (2, 16, 100):
        oracle = GRR(size, epsilon)
        yield AuditCase(
            f"GRR k={size}",
            oracle,
            _ZERO,
            _ONE,
            code(0, 1),
            oracle.loss.epsilon,
            oracle.real_epsilon,
        )


def unary_laws(epsilon: Fraction) -> Iterator[Law]:
    """All 2^k reports; those of the faithful variants at the loss that they charge."""
    codes = np.arange(_SMALL, dtype=np.uint8)
    for kind in (SUE, OUE, FaithfulSUE, FaithfulOUE):
        oracle = kind(_SMALL, epsilon)
        name, claim = f"{kind.__name__} k={_SMALL}", oracle.loss.epsilon
        yield Law(name, oracle, codes, oracle.channel(), claim, lambda reports: reports[:, 0])


def unary_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """Exactly one of the two bits is set."""
    for kind in (SUE, OUE):
        oracle = kind(_SIZE, epsilon)
        yield AuditCase(
            f"{kind.__name__} k={_SIZE}",
            oracle,
            _ZERO,
            _ONE,
            packed_ones(0, 1),
            oracle.loss.epsilon,
            oracle.real_epsilon,
        )


def faithful_unary(epsilon: Fraction) -> Iterator[AuditCase]:
    """The released formulas, claiming the ε that was asked for: broken where it is small."""
    for law in unary_laws(epsilon):
        if law.name.startswith("Faithful"):
            case = worst_case(law)
            yield AuditCase(
                f"{law.name} claims ε={float(epsilon):g}",
                case.mechanism,
                case.input0,
                case.input1,
                case.score,
                epsilon,
                case.exact,
            )


def hashing_laws(epsilon: Fraction) -> Iterator[Law]:
    """Whether a report names the bucket of either code, for keys as uniform as they should."""
    codes = np.arange(2, dtype=np.uint8)
    for kind in (OLH, BLH):
        oracle = kind(_SIZE, epsilon)
        name, claim = f"{kind.__name__} k={_SIZE}", oracle.loss.epsilon
        yield Law(name, oracle, codes, _bucket_channel(oracle), claim, _buckets_named(oracle))


def hashing_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """The report names the bucket of one code, and the other has another one."""
    return map(worst_case, hashing_laws(epsilon))


def _buckets_named(oracle: LocalHashing) -> Callable[[Reports], NDArray[np.int64]]:
    """0 for neither bucket, 1 for that of code 0, 2 for that of code 1, 3 if they are one."""

    def column(reports: Reports) -> NDArray[np.int64]:
        named = [
            reports["code"]
            == oracle.buckets_of(np.full(reports.size, each, np.uint32), reports["key"])
            for each in (0, 1)
        ]
        return np.asarray(named[0] + 2 * named[1], np.int64)

    return column


def _bucket_channel(oracle: LocalHashing) -> NDArray[np.float64]:
    """Two codes share a bucket for one key in g; each lie has the same probability."""
    together, p = 1 / oracle.buckets, oracle.p
    lie = (1 - p) / (oracle.buckets - 1)
    own, other, both = (1 - together) * p, (1 - together) * lie, together * p
    rest = 1 - own - other - both
    return np.array([[rest, own, other, both], [rest, other, own, both]])


def subset_laws(epsilon: Fraction) -> Iterator[Law]:
    """Every subset."""
    for size, subset_size in ((_SMALL, None), (7, 3)):
        oracle = SubsetSelection(size, epsilon, subset_size)
        subsets = combinations(range(size), oracle.subset_size)
        place_of = np.zeros(2**size, np.int64)
        for place, subset in enumerate(subsets):
            place_of[sum(1 << member for member in subset)] = place
        yield Law(
            f"subset k={size} w={oracle.subset_size}",
            oracle,
            np.arange(size, dtype=np.uint8),
            oracle.channel(),
            oracle.loss.epsilon,
            _looked_up(place_of),
        )


def _looked_up(table: NDArray[np.int64]) -> Callable[[Reports], NDArray[np.int64]]:
    return lambda reports: table[reports[:, 0]]


def subset_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """The subset holds just one of the two codes."""
    oracle = SubsetSelection(_SIZE, epsilon)
    yield AuditCase(
        f"subset k={_SIZE}",
        oracle,
        _ZERO,
        _ONE,
        packed_ones(0, 1),
        oracle.loss.epsilon,
        oracle.real_epsilon,
    )


def hadamard_laws(epsilon: Fraction) -> Iterator[Law]:
    """Every index."""
    for size in (_SMALL, _SIZE):
        oracle, codes = HadamardResponse(size, epsilon), np.arange(size, dtype=np.uint8)
        claim = oracle.loss.epsilon
        yield Law(f"Hadamard k={size}", oracle, codes, oracle.channel(), claim)


def hadamard_cases(epsilon: Fraction) -> Iterator[AuditCase]:
    """Even parity with one row, odd with the other."""
    *_, large = hadamard_laws(epsilon)
    yield worst_case(large)
