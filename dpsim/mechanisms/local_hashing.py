"""Local hashing: randomized response on a hash of the code."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts
from dpsim.core.checks import require_at_least, require_codes
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import CountGenerator, UserNoise
from dpsim.mechanisms._hash_kernels import count_supports, hashed, two_words
from dpsim.mechanisms.atoms import exp_of, response_atoms
from dpsim.mechanisms.grr import GRR
from dpsim.mechanisms.pure import PureOracle

_MOST_BUCKETS = 1 << 16


@dataclass(frozen=True, slots=True, init=False)
class LocalHashing(PureOracle):
    """Hash the code into one of g buckets under a public key, and report the bucket by GRR.

    Each user has a 64-bit key of their own, drawn like noise and sent with the report. A report
    (key, y) supports every code that the key hashes into y: the true one with GRR's p, any
    other with q = 1/g, whatever GRR does, since the keys are uniform::

        p = T/A, from GRR on g values     q = 1/g     real ε = ln(T/m)

    The concrete hash is uniform for each code up to 2^-32, and pairs of codes collide at the
    rate 1/g; tests compare it with the ideal hash that the formulas suppose. A server that
    knows the user's index could derive the key itself, and the report would be y alone.

    Guarantees ε under replacement of one user's value, for every key.

    References:
        Bassily, Smith. Local, private, efficient protocols for succinct histograms.
        STOC 2015.
        Wang, Blocki, Li, Jha. Locally differentially private protocols for frequency
        estimation. USENIX Security 2017.
    """

    buckets: int

    def __init__(self, domain_size: int, epsilon: object, buckets: int) -> None:
        self._declare(domain_size, epsilon)
        if not 2 <= require_at_least(2, buckets=buckets) <= _MOST_BUCKETS:  # noqa: PLR2004
            raise InputError(f"buckets must be from 2 to {_MOST_BUCKETS:,}, got {buckets:,}")
        object.__setattr__(self, "buckets", int(buckets))
        self._require_gap()

    @property
    def p(self) -> float:
        """Probability that a report names the bucket of the true code."""
        bits, truth, _ = self._atoms
        return 1.0 if self.domain_size == 1 else truth / (1 << bits)

    @property
    def q(self) -> float:
        """Probability that a report names the bucket of one given other code."""
        return 1 / self.buckets

    @property
    def gap(self) -> float:
        """The difference p - q, from whole atoms."""
        bits, truth, _ = self._atoms
        return (truth * self.buckets - (1 << bits)) / (self.buckets << bits)

    @property
    def odds(self) -> tuple[int, int]:
        """Atoms of the true bucket and of one other."""
        return self._atoms[1:]

    @property
    def parameters(self) -> Parameters:
        """Domain, ε, buckets and the atoms made of them."""
        atoms = zip(("draw_bits", "truth_atoms", "lie_atoms"), self._atoms, strict=True)
        return (*parameters_of(self), *atoms)

    @property
    def report_type(self) -> np.dtype[Any]:
        """A key and the code of a bucket."""
        return np.dtype([("key", np.uint64), ("code", np.min_scalar_type(self.buckets - 1))])

    @property
    def report_bytes(self) -> float:
        """Eight bytes of key, and the code of a bucket."""
        return self.report_type.itemsize

    def perturb(self, inputs: Codes, noise: UserNoise) -> NDArray[Any]:
        """One key and one bucket per code."""
        require_codes(inputs, self.domain_size)
        reports = np.zeros(inputs.size, self.report_type)
        if self.domain_size > 1:
            stream = noise.stream()
            keys, words = two_words(stream.users, (stream.key[0], stream.key[1]))
            response = GRR(self.buckets, self.epsilon)
            if response.draw_bits == 32:  # noqa: PLR2004
                words = (words >> np.uint64(32)).astype(np.uint32)
            reports["key"] = keys
            reports["code"] = response.respond(self.buckets_of(inputs, keys), words)
        return reports

    def buckets_of(self, codes: Codes, keys: NDArray[np.uint64]) -> Codes:
        """The bucket of each code under the key beside it."""
        places: Codes = hashed(keys, codes.astype(np.uint32), self.buckets)
        return places.astype(np.min_scalar_type(self.buckets - 1), copy=False)

    def tally(self, reports: NDArray[Any]) -> Counts:
        """How many reports support each code: one hash per report and code."""
        if self.domain_size == 1:
            return np.array([reports.size], np.int64)
        codes = reports["code"].astype(np.uint16)
        if codes.size and int(codes.max()) >= self.buckets:
            raise InputError(f"reports must name one of {self.buckets} buckets")
        keys = np.ascontiguousarray(reports["key"])
        counts: Counts = count_supports(keys, codes, self.buckets, self.domain_size)
        return counts

    def simulate(self, histogram: Counts, generator: CountGenerator) -> Counts:
        """The exact law of the tally under an ideal hash: two binomials per code."""
        if self.domain_size == 1:
            return histogram.copy()
        others = histogram.sum() - histogram
        kept, lent = generator.binomial(histogram, self.p), generator.binomial(others, self.q)
        return np.asarray(kept + lent, np.int64)

    def channel(self, key: int) -> NDArray[np.float64]:
        """The exact law under one key: row v holds the probability of each bucket."""
        codes = np.arange(self.domain_size, dtype=np.uint32)
        places = self.buckets_of(codes, np.full(self.domain_size, key, np.uint64))
        return GRR(self.buckets, self.epsilon).channel()[places]

    @property
    def _atoms(self) -> tuple[int, int, int]:
        return response_atoms(self.buckets, self.epsilon)


@dataclass(frozen=True, slots=True, init=False)
class OLH(LocalHashing):
    """Optimized local hashing: as many buckets as make the variance smallest.

    For a rare code the variance is ``(e^ε - 1 + g)² / (n(e^ε - 1)²(g - 1))``. Over whole
    numbers its least is at the smallest g with ``(g - 1) g ≥ e^(2ε)``, about e^ε + 1; beyond
    65,536 buckets nothing is gained.

    Guarantees ε under replacement of one user's value.
    """

    def __init__(self, domain_size: int, epsilon: object) -> None:
        self._declare(domain_size, epsilon)
        LocalHashing.__init__(self, domain_size, epsilon, optimal_buckets(self.epsilon))


@dataclass(frozen=True, slots=True, init=False)
class BLH(LocalHashing):
    """Binary local hashing: two buckets, so that a report beside its key is one bit.

    Guarantees ε under replacement of one user's value.
    """

    def __init__(self, domain_size: int, epsilon: object) -> None:
        LocalHashing.__init__(self, domain_size, epsilon, 2)


def optimal_buckets(epsilon: Fraction) -> int:
    """The number of buckets g with the smallest variance, from 2 to 65,536."""
    with localcontext(prec=60):
        # (g-1) g >= e² is the same as g >= 1/2 + sqrt(1/4 + e²).
        root = Decimal("0.5") + (Decimal("0.25") + exp_of(epsilon) ** 2).sqrt()
        return min(_MOST_BUCKETS, int(root.to_integral_value(rounding=ROUND_CEILING)))
