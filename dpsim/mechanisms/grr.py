"""Generalized randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts, Draws
from dpsim.core.checks import require_codes
from dpsim.core.errors import InputError
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import CountGenerator, UserNoise
from dpsim.mechanisms.atoms import response_atoms
from dpsim.mechanisms.pure import PureOracle

_COMPARE_UP_TO = 24
"""Domains up to this size are tallied by comparison: faster there than one bincount."""


@dataclass(frozen=True, slots=True, init=False)
class GRR(PureOracle):
    """Tell the truth with probability p, else name another code uniformly.

    Probabilities are counted in atoms, the A = 2^32 values of one draw (2^64 where 32 bits
    would waste more than 1e-5 of ε). Of k codes, each false one gets m atoms and the true one
    the remaining T::

        m = ⌈A / (e^ε + k - 1)⌉     T = A - (k - 1) m     p = T/A     q = m/A

    Rounding m up makes T/m ≤ e^ε: the real loss ln(T/m) never exceeds the ε that is charged,
    and `estimate` inverts the real p and q. One code only: the identity, at no loss.

    Guarantees ε under replacement of one user's value.

    References:
        Kairouz, Bonawitz, Ramage. Discrete distribution estimation under local privacy.
        ICML 2016.
        Wang, Blocki, Li, Jha. Locally differentially private protocols for frequency
        estimation. USENIX Security 2017.
    """

    def __init__(self, domain_size: int, epsilon: object) -> None:
        self._declare(domain_size, epsilon)
        self._require_gap()

    @property
    def draw_bits(self) -> int:
        """Bits per draw: 32, or 64 for large domains and extreme ε."""
        return response_atoms(self.domain_size, self.epsilon)[0]

    @property
    def truth_atoms(self) -> int:
        """Draws that tell the truth: T."""
        return response_atoms(self.domain_size, self.epsilon)[1]

    @property
    def lie_atoms(self) -> int:
        """Draws that name one given false code: m."""
        return response_atoms(self.domain_size, self.epsilon)[2]

    @property
    def p(self) -> float:
        """Probability of the truth."""
        return self.truth_atoms / (1 << self.draw_bits)

    @property
    def q(self) -> float:
        """Probability of one given false code."""
        return self.lie_atoms / (1 << self.draw_bits)

    @property
    def gap(self) -> float:
        """The difference p - q, from whole atoms."""
        return (self.truth_atoms - self.lie_atoms) / (1 << self.draw_bits)

    @property
    def odds(self) -> tuple[int, int]:
        """T and m: a report is the truth of one code and a lie of any other."""
        return self.truth_atoms, self.lie_atoms

    @property
    def parameters(self) -> Parameters:
        """Domain, ε and the atoms made of them."""
        atoms = zip(("draw_bits", "truth_atoms", "lie_atoms"), self._atoms, strict=True)
        return (*parameters_of(self), *atoms)

    @property
    def report_bytes(self) -> float:
        """One code."""
        return np.min_scalar_type(self.domain_size - 1).itemsize

    def perturb(self, inputs: Codes, noise: UserNoise) -> Codes:
        """One report per code."""
        return self.respond(inputs, noise.stream().draws(self.draw_bits))

    def respond(self, codes: Codes, draws: Draws) -> Codes:
        """One report per code, from one draw per code, in integers only."""
        require_codes(codes, self.domain_size)
        if self.domain_size == 1:
            return codes.copy()
        if draws.dtype.itemsize * 8 != self.draw_bits:
            raise InputError(f"draws must have {self.draw_bits} bits, got {draws.dtype}")
        kind: Any = draws.dtype.type
        # Below T the draw tells the truth. The subtraction wraps around there, and the
        # meaningless lie it yields is replaced. Bits are selected by a mask of all ones or
        # none: twenty times as fast as a masked copy.
        lies: Codes = ((draws - kind(self.truth_atoms)) // kind(self.lie_atoms)).astype(
            codes.dtype
        )
        lies += lies >= codes  # k-1 places for k codes: skip the true one
        truthful = (draws < kind(self.truth_atoms)).astype(codes.dtype)
        np.negative(truthful, out=truthful)
        reports: Codes = lies ^ ((lies ^ codes) & truthful)
        return reports

    def tally(self, reports: Codes) -> Counts:
        """How often each code was reported."""
        if self.domain_size <= _COMPARE_UP_TO:
            counts = [np.count_nonzero(reports == code) for code in range(self.domain_size)]
            return np.array(counts, np.int64)
        return np.bincount(reports, minlength=self.domain_size).astype(np.int64, copy=False)

    def simulate(self, histogram: Counts, generator: CountGenerator) -> Counts:
        """The exact law of the tally: some of each code are kept, the rest are uniform.

        Keeping with probability λ = p - q and else naming any of the k codes uniformly is the
        same channel, and needs k binomials and one multinomial.
        """
        if self.domain_size == 1:
            return histogram.copy()
        kept = generator.binomial(histogram, self.gap)
        rest = int(histogram.sum() - kept.sum())
        uniform = np.full(self.domain_size, 1 / self.domain_size)
        return kept + generator.multinomial(rest, uniform)

    def channel(self) -> NDArray[np.float64]:
        """The exact law: row v holds the probabilities of each report given code v."""
        if self.domain_size == 1:
            return np.ones((1, 1))
        return np.where(np.eye(self.domain_size, dtype=bool), self.p, self.q)

    @property
    def _atoms(self) -> tuple[int, int, int]:
        return response_atoms(self.domain_size, self.epsilon)
