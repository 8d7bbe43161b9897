"""Laws of oracles whose reports support codes, and what their tests share."""

from itertools import combinations

import numpy as np

from dpsim.core.rng import UserNoise


def noise_for(users, seed=1, subject="x"):
    """Noise of some users: a number of them, or their global indices."""
    places = np.arange(users) if isinstance(users, int) else np.asarray(users)
    return UserNoise(seed, "plan", subject, places)


def words(noise, step):
    """The four words of one step of each user, by numpy's own Philox."""
    key = noise.stream().key
    # numpy counts up before it draws: one less than the counter (user, step, 1, 0).
    counters = [int(user) + (int(step) << 64) + (1 << 128) - 1 for user in noise.users]
    rows = [np.random.Philox(key=key, counter=at).random_raw(4) for at in counters]
    return np.array(rows, np.uint64).reshape(-1, 4)


def bits_of(reports, size):
    """Packed reports as a matrix of zeros and ones."""
    rows = np.ascontiguousarray(reports).view(np.uint8).reshape(len(reports), -1)
    return np.unpackbits(rows, axis=1, bitorder="little")[:, :size]


def all_bits(size):
    """The tallies of the 2^k unary reports, in the order of `channel`."""
    return (np.arange(2**size)[:, None] >> np.arange(size)) & 1


def all_subsets(size, chosen):
    """The tallies of all subsets, in the order of `channel`."""
    return np.array(
        [np.isin(np.arange(size), each) for each in combinations(range(size), chosen)]
    )


def assert_estimate_inverts(oracle, channel, tallies):
    """The expected tally of a population of one code is estimated as exactly that code."""
    n = 1 << 20
    estimates = [oracle.estimate(row @ tallies * n, n) for row in channel]
    tolerance = 1e-14 / abs(oracle.gap)
    np.testing.assert_allclose(estimates, np.eye(len(channel)), rtol=0, atol=tolerance)


def assert_variance_is_the_channels(oracle, channel, tallies, shares, n):
    """`variance` is what channel and estimator imply for a fixed population."""
    values = np.array([oracle.estimate(n * tally, n) for tally in tallies])
    means = channel @ values
    spread = channel @ values**2 - means**2
    stated = [oracle.variance(n, float(share)) for share in shares]
    np.testing.assert_allclose(stated, shares @ spread / n, rtol=1e-6)


def mean_ratio(perturbing, stating, counts, repeats, seed=1):
    """Mean over codes and repeats of squared error over stated variance; 1 in expectation."""
    n = sum(counts)
    codes = np.tile(np.repeat(np.arange(len(counts)), counts), repeats).astype(np.uint8)
    reports = perturbing.perturb(codes, noise_for(codes.size, seed))
    truth = np.array(counts) / n
    expected = np.array([stating.variance(n, float(share)) for share in truth])
    tallies = [perturbing.tally(reports[i : i + n]) for i in range(0, codes.size, n)]
    errors = [(perturbing.estimate(tally, n) - truth) ** 2 / expected for tally in tallies]
    return float(np.mean(errors))


def spread_of_ratio(counts, repeats):
    """The standard deviation of `mean_ratio` if errors are normal and independent."""
    return (2 / (len(counts) * repeats)) ** 0.5
