"""Hadamard response: one index, whose parity with the code's row is probably even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Codes, Counts, Draws, Frequencies
from dpsim.core.checks import require_at_least, require_codes
from dpsim.core.plan import Parameters, parameters_of
from dpsim.core.rng import UserNoise
from dpsim.mechanisms._hash_kernels import two_words
from dpsim.mechanisms.atoms import response_atoms
from dpsim.mechanisms.pure import PureOracle


@dataclass(frozen=True, slots=True, init=False)
class HadamardResponse(PureOracle):
    """Report an index j < K whose parity with the row r = v + 1 of the code is likely even.

    K is the least power of two above k. An index is drawn uniformly, from the top bits of a
    word. An even parity of ``r & j`` is wanted, or an odd one for Q of A = 2^32 atoms (2^64
    where 32 bits would waste more than 1e-5 of ε); if j has the other parity, the lowest bit
    of r is flipped in it. So j is uniform on the wanted half, exactly::

        Q = ⌈A / (e^ε + 1)⌉     p = (A - Q)/A     q = 1/2     real ε = ln((A - Q)/Q)

    An index supports the codes with whose rows it has even parity; rows of different codes
    agree on exactly half of the indices. A tally counts indices, and one fast Walsh-Hadamard
    transform turns it into supports, in O(K log K).

    Guarantees ε under replacement of one user's value.

    References:
        Acharya, Sun, Zhang. Hadamard response: estimating distributions privately,
        efficiently, and with little communication. AISTATS 2019.
    """

    def __init__(self, domain_size: int, epsilon: object) -> None:
        self._declare(domain_size, epsilon)
        self._require_gap()

    @property
    def order(self) -> int:
        """The number of indices K: the least power of two above k."""
        return 1 << self.domain_size.bit_length()

    @property
    def p(self) -> float:
        """Probability of even parity with the true row."""
        bits, even, _ = self._atoms
        return 1.0 if self.domain_size == 1 else even / (1 << bits)

    @property
    def q(self) -> float:
        """Probability of even parity with any other row."""
        return 0.5

    @property
    def gap(self) -> float:
        """The difference p - q, from whole atoms."""
        bits, even, odd = self._atoms
        return (even - odd) / (2 << bits)

    @property
    def odds(self) -> tuple[int, int]:
        """Atoms of even and of odd parity."""
        return self._atoms[1:]

    @property
    def parameters(self) -> Parameters:
        """Domain, ε and the atoms made of them."""
        atoms = zip(("draw_bits", "even_atoms", "odd_atoms"), self._atoms, strict=True)
        return (*parameters_of(self), *atoms)

    @property
    def tally_size(self) -> int:
        """One count per index."""
        return self.order

    @property
    def report_bytes(self) -> float:
        """One index."""
        return np.min_scalar_type(self.order - 1).itemsize

    def perturb(self, inputs: Codes, noise: UserNoise) -> Codes:
        """One index per code."""
        stream = noise.stream()
        first, second = two_words(stream.users, (stream.key[0], stream.key[1]))
        return self.respond(inputs, first, second)

    def respond(self, codes: Codes, places: Draws, draws: Draws) -> Codes:
        """One index per code: from the top bits of one word, its parity by another."""
        require_codes(codes, self.domain_size)
        kind: Any = np.min_scalar_type(self.order - 1)
        if self.domain_size == 1:
            return np.zeros(codes.size, kind)
        bits, _, odd = self._atoms
        rows = codes.astype(kind) + kind.type(1)
        indices: Codes = (places >> np.uint64(64 - self.domain_size.bit_length())).astype(kind)
        wanted = draws < np.uint64(odd << (64 - bits))
        moved = (np.bitwise_count(rows & indices) & 1).astype(np.bool_) != wanted
        lowest = rows & (~rows + kind.type(1))
        reports: Codes = indices ^ (lowest * moved)
        return reports

    def tally(self, reports: Codes) -> Counts:
        """How often each index was reported."""
        return np.bincount(reports, minlength=self.order).astype(np.int64, copy=False)

    def estimate(self, tally: Counts, n: int) -> Frequencies:
        """Unbiased frequencies: half the transform over n, divided by p - q."""
        require_at_least(1, n=n)
        if self.domain_size == 1:
            return np.ones(1)
        return walsh_hadamard(tally)[1 : self.domain_size + 1] / (2 * self.gap * n)

    def channel(self) -> NDArray[np.float64]:
        """The exact law: row v holds the probability of each index given code v."""
        if self.domain_size == 1:
            return np.array([[1.0, 0.0]])
        rows = np.arange(1, self.domain_size + 1, dtype=np.uint64)[:, None]
        odd = np.bitwise_count(rows & np.arange(self.order, dtype=np.uint64)) & 1
        return np.where(odd == 1, 1 - self.p, self.p) * (2 / self.order)

    @property
    def _atoms(self) -> tuple[int, int, int]:
        return response_atoms(2, self.epsilon)


def walsh_hadamard(values: NDArray[Any]) -> NDArray[Any]:
    """Row r of the result: all values with even parity of ``r & j``, less the odd ones."""
    result = values.copy()
    half = 1
    while half < values.size:
        pairs = result.reshape(-1, 2, half)
        left, right = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = left, right
        half *= 2
    return result
