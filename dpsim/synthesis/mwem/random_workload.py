"""Random workloads: distinct boxes, drawn by address, as in the MWEM report."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis.mwem.workloads import BoxWorkload, Integers, domain_of

_SUBJECT = "mwem workload"
_SHIFT = np.uint64(32)


def random_boxes(shape: Sequence[int], n: int, noise: CentralNoise) -> BoxWorkload:
    """Distinct boxes: in each attribute lo is uniform, then hi is uniform in lo..last.

    Candidate i owns the words 2di .. 2d(i + 1) - 1; the first n different ones are taken, so a
    longer workload begins with a shorter one of the same seed.
    """
    sizes = domain_of(shape)
    wanted = require_at_least(1, n=n)
    most = prod(size * (size + 1) // 2 for size in sizes)
    if wanted > most:
        raise InputError(f"n must be <= {most}, the number of boxes over {sizes}, got {wanted}")
    found: dict[tuple[int, ...], None] = {}
    drawn, batch = 0, wanted
    while len(found) < wanted:
        for row in _candidates(sizes, noise, drawn, batch).tolist():
            found.setdefault(tuple(row))
        drawn, batch = drawn + batch, drawn + batch
    return BoxWorkload.of(sizes, list(found)[:wanted])


def _candidates(sizes: tuple[int, ...], noise: CentralNoise, first: int, n: int) -> Integers:
    width = 2 * len(sizes)
    words = noise.words(Purpose.START, _SUBJECT, n * width, first * width) >> _SHIFT
    words = words.reshape(n, width)
    extents = np.array(sizes, np.uint64)
    lower = (words[:, 0::2] * extents) >> _SHIFT
    upper = lower + ((words[:, 1::2] * (extents - lower)) >> _SHIFT)
    return np.stack([lower, upper], axis=2).reshape(n, width).astype(np.int64)
