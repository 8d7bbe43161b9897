"""Compiled loops over groups and classes: likelihood, its gradient, and drawing of codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class Evidence(NamedTuple):
    """The reports of all groups in a few flat arrays; group g owns ``first[g]:first[g+1]``."""

    members: Places
    """Places in ``starts`` and ``widths``: the axes of all groups, one after the other."""
    starts: Places
    """By axis: where its attribute's codes begin in a class's row of laws."""
    widths: Places
    """By axis: its attribute's domain size."""
    first: Places
    """Places in ``supports``: the cells of all groups, one after the other."""
    supports: Floats
    n: Floats
    q: Floats
    gap: Floats
    freedom: Floats
    """By group: 0 where the likelihood is exact, else the weight of the binomial one."""


@njit(cache=True, nogil=True)
def _prefixes(law: Floats, evidence: Evidence, group: int, prefix: Floats) -> int:
    """Products of the first 0, 1, ... axes' laws; returns where the longest begins."""
    prefix[0] = 1.0
    begin, length = 0, 1
    for axis in range(evidence.members[group], evidence.members[group + 1] - 1):
        start, width = evidence.starts[axis], evidence.widths[axis]
        after = begin + length
        for i in range(length):
            share = prefix[begin + i]
            for j in range(width):
                prefix[after + i * width + j] = share * law[start + j]
        begin, length = after, length * width
    return begin


@njit(cache=True, nogil=True)
def _expect(
    weights: Floats, laws: Floats, evidence: Evidence, group: int, work: tuple[Floats, ...]
) -> int:
    """The model's law of one group's cells, in ``work[1]``; prefixes stay in ``work[0]``."""
    prefix, expected = work[0], work[1]
    cells = evidence.first[group + 1] - evidence.first[group]
    last = evidence.members[group + 1] - 1
    start, width = evidence.starts[last], evidence.widths[last]
    expected[:cells] = 0.0
    begin = 0
    for z in range(weights.size):
        begin = _prefixes(laws[z], evidence, group, prefix[z])
        for i in range(cells // width):
            share = weights[z] * prefix[z, begin + i]
            for j in range(width):
                expected[i * width + j] += share * laws[z, start + j]
    return begin


@njit(cache=True, nogil=True)
def log_likelihood(
    weights: Floats, laws: Floats, evidence: Evidence, work: tuple[Floats, ...]
) -> float:
    """Of all reports, up to a constant: ``Σ C log λ``, or the binomial one weighted."""
    total = 0.0
    for group in range(evidence.n.size):
        _expect(weights, laws, evidence, group, work)
        q, gap, n = evidence.q[group], evidence.gap[group], evidence.n[group]
        freedom, first = evidence.freedom[group], evidence.first[group]
        for cell in range(evidence.first[group + 1] - first):
            rate = q + gap * work[1][cell]
            count = evidence.supports[first + cell]
            if freedom == 0.0:
                total += count * np.log(rate)
            else:
                no = max(1.0 - rate, 1e-12)
                total += freedom * (count * np.log(rate) + (n - count) * np.log(no))
    return total


@njit(cache=True, nogil=True)
def _slopes(evidence: Evidence, group: int, slope: Floats) -> None:
    """Replace the expected law of a group's cells by the likelihood's derivatives."""
    q, gap, n = evidence.q[group], evidence.gap[group], evidence.n[group]
    freedom, first = evidence.freedom[group], evidence.first[group]
    for cell in range(evidence.first[group + 1] - first):
        rate = q + gap * slope[cell]
        count = evidence.supports[first + cell]
        if freedom == 0.0:
            slope[cell] = gap * count / rate
        else:
            no = max(1.0 - rate, 1e-12)
            slope[cell] = gap * freedom * (count - n * rate) / (rate * no)


@njit(cache=True, nogil=True)
def likelihood_gradient(
    weights: Floats,
    laws: Floats,
    evidence: Evidence,
    work: tuple[Floats, ...],
    by_weight: Floats,
    by_law: Floats,
) -> None:
    """The derivatives of the log-likelihood by each weight and by each entry of the laws."""
    prefix, slope, back = work[0], work[1], work[2]
    by_weight[:] = 0.0
    by_law[:] = 0.0
    for group in range(evidence.n.size):
        begin = _expect(weights, laws, evidence, group, work)
        _slopes(evidence, group, slope)
        opening, closing = evidence.members[group], evidence.members[group + 1]
        for z in range(weights.size):
            # From the last axis to the first, which leaves the sum over all cells.
            current, place = slope, begin
            length = evidence.first[group + 1] - evidence.first[group]
            for axis in range(closing - 1, opening - 1, -1):
                start, width = evidence.starts[axis], evidence.widths[axis]
                length //= width
                for i in range(length):
                    share = weights[z] * prefix[z, place + i]
                    total = 0.0
                    for j in range(width):
                        by_law[z, start + j] += share * current[i * width + j]
                        total += current[i * width + j] * laws[z, start + j]
                    back[i] = total
                current = back
                if axis > opening:
                    place -= length // evidence.widths[axis - 1]
            by_weight[z] += back[0]


@njit(cache=True, nogil=True)
def spread(
    place: Floats, sizes: Places, scales: Floats, weights: Floats, laws: Floats
) -> tuple[Floats, Floats]:
    """Weights and laws at a place of the sampler; returns each attribute's τ and σ.

    A place holds, in standard units: the common logits η, log τ by attribute, the classes'
    deviations δ, log σ by attribute, the classes' logits, and the common part of log σ.
    """
    classes, codes = laws.shape
    attributes = sizes.size
    at_delta = codes + attributes
    at_sigma = at_delta + classes * codes
    at_class = at_sigma + attributes
    _softmax(place[at_class : at_class + classes] * scales[5], weights)
    tau, sigma = np.empty(attributes), np.empty(attributes)
    begin = 0
    for a in range(attributes):
        end = begin + sizes[a]
        tau[a] = np.exp(scales[0] + scales[1] * place[codes + a])
        common = scales[2] + scales[3] * place[at_class + classes]
        sigma[a] = np.exp(common + scales[4] * place[at_sigma + a])
        for z in range(classes):
            shift = at_delta + z * codes
            logits = tau[a] * place[begin:end] + sigma[a] * place[shift + begin : shift + end]
            _softmax(logits, laws[z, begin:end])
        begin = end
    return tau, sigma


@njit(cache=True, nogil=True)
def _softmax(logits: Floats, shares: Floats) -> None:
    most = logits.max()
    total = 0.0
    for i in range(logits.size):
        shares[i] = np.exp(logits[i] - most)
        total += shares[i]
    for i in range(logits.size):
        shares[i] /= total


@njit(cache=True, nogil=True)
def pull_back(
    place: Floats,
    sizes: Places,
    scales: Floats,
    values: tuple[Floats, Floats, Floats, Floats],
    slopes: tuple[Floats, Floats, Floats],
) -> None:
    """Turn derivatives by weights and laws into the log posterior's slope at a place."""
    weights, laws, tau, sigma = values
    by_weight, by_law, slope = slopes
    classes, codes = laws.shape
    at_delta = codes + sizes.size
    at_sigma = at_delta + classes * codes
    at_class = at_sigma + sizes.size
    for i in range(slope.size):
        slope[i] = -place[i]
    mean = 0.0
    for z in range(classes):
        mean += weights[z] * by_weight[z]
    for z in range(classes):
        slope[at_class + z] += scales[5] * weights[z] * (by_weight[z] - mean)
    begin = 0
    for a in range(sizes.size):
        end = begin + sizes[a]
        by_tau, by_sigma = 0.0, 0.0
        for z in range(classes):
            mean = 0.0
            for i in range(begin, end):
                mean += laws[z, i] * by_law[z, i]
            for i in range(begin, end):
                step = laws[z, i] * (by_law[z, i] - mean)
                own = at_delta + z * codes + i
                slope[i] += tau[a] * step
                slope[own] += sigma[a] * step
                by_tau += step * place[i]
                by_sigma += step * place[own]
        slope[codes + a] += scales[1] * tau[a] * by_tau
        slope[at_sigma + a] += scales[4] * sigma[a] * by_sigma
        slope[at_class + classes] += scales[3] * sigma[a] * by_sigma
        begin = end


@njit(cache=True, nogil=True)
def leap(
    place: Floats,
    momentum: Floats,
    setting: tuple[Places, Floats, Evidence],
    state: tuple[Floats, Floats, Floats, Floats, Floats],
    work: tuple[Floats, ...],
    pace: tuple[float, int],
) -> float:
    """Some leapfrog steps in place; returns the log posterior at their end, up to a constant.

    ``state`` holds weights, laws, their derivatives and the slope at the place; ``pace`` the
    size of a step and their number.
    """
    sizes, scales, evidence = setting
    step, steps = pace
    weights, laws, by_weight, by_law, slope = state
    for _ in range(steps):
        for i in range(place.size):
            momentum[i] += 0.5 * step * slope[i]
            place[i] += step * momentum[i]
        tau, sigma = spread(place, sizes, scales, weights, laws)
        likelihood_gradient(weights, laws, evidence, work, by_weight, by_law)
        pull_back(place, sizes, scales, (weights, laws, tau, sigma), (by_weight, by_law, slope))
        for i in range(place.size):
            momentum[i] += 0.5 * step * slope[i]
    total: float = log_likelihood(weights, laws, evidence, work)
    for i in range(place.size):
        total -= 0.5 * place[i] * place[i]
    return total


@njit(cache=True, nogil=True)
def draw_in_class(classes: Places, uniforms: Floats, ends: Floats, codes: NDArray[Any]) -> None:
    """By record: the first code whose end, in the record's class, is above its uniform."""
    for i in range(classes.size):
        low, high = 0, ends.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if ends[classes[i], middle] > uniforms[i]:
                high = middle
            else:
                low = middle + 1
        codes[i] = low
