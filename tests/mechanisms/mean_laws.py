"""Laws of mechanisms for means. All but the last are exact: no draw."""

import numpy as np

from dpsim.core.rng import UserNoise

SHARE = 2.0**-31
"""How far the mean of a report may lie from its number."""


def noise_for(n, seed=1, plan="law", start=0):
    return UserNoise(seed, plan, "x", np.arange(start, start + n))


def values_of(mechanism, reports):
    """What each single report stands for: through `tally` and `estimate`."""
    return np.array([mechanism.estimate(mechanism.tally(reports[i : i + 1]), 1)
                     for i in range(reports.size)])  # fmt: skip


def moments(mechanism, reports, inputs):
    """Mean and variance of what a report stands for, by enumeration, for each input."""
    channel, values = mechanism.channel(inputs), values_of(mechanism, reports)
    means = channel @ values
    return means, channel @ values**2 - means**2


def squared_error_ratio(perturbing, stating, inputs, repeats):
    """Mean over repeats of squared error over stated variance; 1 in expectation."""
    n = inputs.size
    stated = stating.variance(n, inputs.mean(), (inputs**2).mean())
    everybody = noise_for(n * repeats)
    reports = perturbing.perturb(np.tile(inputs, repeats), everybody).reshape(repeats, n)
    means = [stating.estimate(stating.tally(row), n) for row in reports]
    return np.mean((np.array(means) - inputs.mean()) ** 2) / stated
