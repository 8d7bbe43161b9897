"""Reports as they are on average, from a known law of whole records."""

import numpy as np

from dpsim.core.rng import UserNoise
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.synthesis.group_reports import GroupReports


def marginal(joint, attributes):
    others = tuple(axis for axis in range(joint.ndim) if axis not in attributes)
    left = [axis for axis in range(joint.ndim) if axis in attributes]
    return joint.sum(axis=others).transpose([left.index(axis) for axis in attributes])


def expected_reports(joint, attributes, epsilon=1, n=10**9, make=SubsetSelection):
    """The tally nearest to its mean: noise is rounding only."""
    law = marginal(joint, attributes).ravel()
    oracle = make(law.size, epsilon)
    tally = np.rint(n * (oracle.q + oracle.gap * law)).astype(np.int64)
    return GroupReports(tuple(attributes), oracle, n, tally)


def drawn_reports(codes, sizes, attributes, oracle, seed):
    """Real perturbed reports of some users."""
    cells = np.zeros(codes.shape[1], np.uint32)
    for attribute in attributes:
        cells = cells * np.uint32(sizes[attribute]) + codes[attribute].astype(np.uint32)
    noise = UserNoise(seed, "plan", str(attributes), np.arange(cells.size))
    tally = oracle.tally(oracle.perturb(cells, noise))
    return GroupReports(tuple(attributes), oracle, cells.size, tally)


def mixture(weights, *laws):
    """The joint table of a mixture: laws by attribute, one row per class."""
    joint = np.zeros([np.array(law).shape[1] for law in laws])
    for z, weight in enumerate(weights):
        part = np.array(weight, float)
        for law in laws:
            part = np.multiply.outer(part, np.array(law, float)[z])
        joint = joint + part
    return joint
