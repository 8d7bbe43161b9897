"""How far estimated frequencies lie from the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsim.core.arrays import Counts, Frequencies
from dpsim.core.records import RecordSource, blocks_of
from dpsim.mechanisms.interfaces import FrequencyOracle


@dataclass(frozen=True, slots=True)
class FrequencyError:
    """The root mean square error over all codes, and what the variance formula expects."""

    rmse: float
    expected_rmse: float


def true_frequencies(source: RecordSource, names: Sequence[str]) -> dict[str, Frequencies]:
    """The shares of every code among all users: evaluation only, never part of a release."""
    counts: dict[str, Counts] = {
        name: np.zeros(source.schema[name].size, np.int64) for name in names
    }
    for block in blocks_of(source.n, source.block_size):
        records = source.read(block)
        for name in names:
            counts[name] += np.bincount(records.open(name), minlength=counts[name].size)
    return {name: total / max(1, source.n) for name, total in counts.items()}


def frequency_error(
    estimate: Frequencies, truth: Frequencies, oracle: FrequencyOracle, n: int
) -> FrequencyError:
    """Of one attribute; ``n`` users were counted."""
    variances = [oracle.variance(n, float(share)) for share in truth]
    return FrequencyError(
        float(np.sqrt(np.mean((estimate - truth) ** 2))), float(np.sqrt(np.mean(variances)))
    )
