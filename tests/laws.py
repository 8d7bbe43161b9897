"""Laws that every frequency oracle obeys. All but the sampling law are exact: no draw."""

from statistics import NormalDist

import numpy as np

WORST_P = 1e-9
"""Below it a sample is taken as evidence against its law."""


def assert_is_stochastic(channel):
    """Each row is a distribution over reports."""
    assert channel.min() >= 0
    np.testing.assert_allclose(channel.sum(axis=1), 1, rtol=0, atol=1e-12)


def assert_loss_is(channel, epsilon):
    """The worst log-ratio of any report between any two codes is ε, no more and no less."""
    worst = np.log(channel.max(axis=0)) - np.log(channel.min(axis=0))
    assert abs(worst.max() - epsilon) <= 1e-9 * max(1, epsilon)


def assert_estimate_inverts(oracle):
    """Expected counts of a population of one code are estimated as exactly that code."""
    n = 1 << 20  # a power of two: counts/n is exact
    channel = oracle.channel()
    estimates = np.array([oracle.estimate(row * n, n) for row in channel])
    gap = channel.max() - channel.min()
    tolerance = 4e-16 / gap if gap else 0
    truth = np.eye(len(channel))
    np.testing.assert_allclose(estimates, truth, rtol=1e-15, atol=tolerance)


def assert_variance_is_the_channels(oracle, frequencies, n):
    """`variance` is what channel and estimator imply for a fixed population."""
    channel = oracle.channel()
    size = len(channel)
    origin = oracle.estimate(np.zeros(size), n)
    weights = np.array([oracle.estimate(unit, n) - origin for unit in np.eye(size)]).T
    covariance = sum(
        n * share * (np.diag(row) - np.outer(row, row))
        for share, row in zip(frequencies, channel, strict=True)
    )
    implied = np.einsum("ij,jk,ik->i", weights, covariance, weights)
    stated = [oracle.variance(n, float(share)) for share in frequencies]
    np.testing.assert_allclose(stated, implied, rtol=1e-6)


def assert_samples_follow(channel, perturb, draws, truths=None):
    """Chi-square of the reports of many users who hold the same code, for each code."""
    code_type = np.min_scalar_type(len(channel) - 1)
    for truth in range(len(channel)) if truths is None else truths:
        reports = perturb(np.full(draws.size, truth, code_type), draws)
        counts = np.bincount(reports, minlength=len(channel))
        assert_counts_follow(counts, channel[truth])


def assert_counts_follow(counts, law):
    """Chi-square of counts against a law whose cells expect at least five each."""
    assert counts.shape == law.shape
    assert not counts[law == 0].any()
    expected = counts.sum() * law[law > 0]
    assert expected.min() >= 5, "too few samples for this law"
    statistic = ((counts[law > 0] - expected) ** 2 / expected).sum()
    assert statistic <= chi_square_limit(expected.size - 1)


def chi_square_limit(freedom):
    """The value exceeded with probability 1e-9 (Wilson and Hilferty)."""
    if freedom == 0:
        return 0.0
    z = -NormalDist().inv_cdf(WORST_P)
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + z * spread**0.5) ** 3
