"""Noisy counts of every attribute's values: what a central method asks first."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from dpsim.core.budget import split
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.noisy_tables import Table, lift, project
from dpsim.synthesis.table import CodeTable

WHOLE_TABLE = 2
"""What replacing one record changes in the cells of a table, in sum."""

_LIFT = 1e-4
_BINARY = 2


def margin_mechanisms(
    sizes: Sequence[int], epsilon: Fraction
) -> tuple[DiscreteLaplace | None, ...]:
    """One mechanism per attribute, with ε by the root of its size: the least sum of errors.

    Two values are one count, which a record moves by 1; a constant is not asked for.
    """
    roots = [Fraction(isqrt(10_000 * size), 100) if size > 1 else 0 for size in sizes]
    if not any(roots):
        return (None,) * len(sizes)
    return tuple(
        DiscreteLaplace(part, 1 if size == _BINARY else WHOLE_TABLE) if part else None
        for part, size in zip(split(epsilon, roots), sizes, strict=True)
    )


def measure_margins(
    table: CodeTable, epsilon: Fraction, noise: CentralNoise
) -> tuple[Table, ...]:
    """Noisy counts of every attribute's values, projected, with the public total n."""
    margins = []
    for attribute, mechanism in enumerate(margin_mechanisms(table.sizes, epsilon)):
        counts, subject = joint_counts(table, (attribute,)), f"margin {attribute}"
        if mechanism is None:
            margins.append(np.array([float(table.n)]))
        elif mechanism.sensitivity == 1:
            first = mechanism.measure(counts[:1], noise, subject).clip(0, table.n)
            margins.append(lift(np.array([first[0], table.n - first[0]], float), _LIFT))
        else:
            measured = mechanism.measure(counts, noise, subject).astype(np.float64)
            margins.append(lift(project(measured, table.n), _LIFT))
    return tuple(margins)
