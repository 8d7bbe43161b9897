"""The compiled loop of invariant PRAM: one draw per record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_BELOW_ONE = 1 - 2.0**-53


@njit(nogil=True)
def _place_of(sums: NDArray[np.float64], target: float) -> int:
    """The first place whose running sum exceeds the target."""
    low, high = 0, sums.size - 1
    # Below the last sum whatever was rounded: so no cell without mass is ever drawn.
    target = min(target, sums[high] * _BELOW_ONE)
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def redraw_rows(
    reports: NDArray[Any],
    draws: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    weights: NDArray[np.float64],
    strides: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[Any]:
    """New codes for reports of shape (axes, n), from one number in [0, 1] per record.

    Row t of the tables belongs to one set of kept axes: ``cumulative[t]`` are running sums of
    the law within blocks of ``lengths[t]`` cells, one block per combination of kept codes;
    ``strides[t]`` are those of the block number for kept axes, and minus those of the place
    within a block for the others. The last row keeps nothing: it always has weight.
    """
    axes, n = reports.shape
    sets = weights.size
    redrawn = np.empty_like(reports)
    reached, starts = np.empty(sets), np.empty(sets, np.int64)
    for i in range(n):
        total = 0.0
        for t in range(sets):
            number = 0
            for axis in range(axes):
                number += max(strides[t, axis], 0) * np.int64(reports[axis, i])
            starts[t] = number * lengths[t]
            total += weights[t] * cumulative[t, starts[t] + lengths[t] - 1]
            reached[t] = total
        left, chosen = draws[i] * total, 0
        while chosen < sets - 1 and left >= reached[chosen]:
            chosen += 1
        if chosen > 0:
            left -= reached[chosen - 1]
        first = starts[chosen]
        block = cumulative[chosen, first : first + lengths[chosen]]
        place = _place_of(block, left / weights[chosen])
        for axis in range(axes):
            stride = strides[chosen, axis]
            if stride > 0:
                redrawn[axis, i] = reports[axis, i]
            else:
                redrawn[axis, i] = place // -stride
                place %= -stride
    return redrawn
