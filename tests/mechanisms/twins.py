"""The random words of a user, by numpy's own Philox, and what integers make of them."""

from itertools import product

import numpy as np

from dpsim.core.rng import UserNoise

ALL = 2**64


def noise_for(n, plan="plan", seed=3, users=None):
    return UserNoise(seed, plan, "item", np.arange(n) if users is None else np.array(users))


def words(key, user, step):
    """Four words of one counter; numpy adds one before it draws."""
    counter = (int(user) + (step << 64) + (1 << 128)) - 1
    return [int(word) for word in np.random.Philox(key=key, counter=counter).random_raw(4)]


def place(word, size):
    return word * size // ALL


def respond(code, word, truth, lie):
    if word < truth:
        return code
    others = (word - truth) // lie
    return others + (others >= code)


def lane_draws(key, user, step, size=64):
    """The draws of 64 bits that `coins` compares, one per lane; few lanes share a word."""
    width = 16 if size <= 16 else 64
    stream = [word for part in range(width // 4) for word in words(key, user, step + part)]
    levels = [word >> shift for word in stream for shift in range(0, 64, width)]
    return [
        sum(((word >> lane) & 1) << (63 - level) for level, word in enumerate(levels))
        for lane in range(size)
    ]


def row_draws(key, user, step, size, stride=16):
    """The draws of a row of bits, 64 in one block of steps."""
    return [
        draw
        for block in range((size + 63) // 64)
        for draw in lane_draws(key, user, step + stride * block, min(64, size - 64 * block))
    ]


def threshold(value, low, span):
    if value >= 1:
        return low + span
    return low + min(int(np.rint((1 + value) * 0.5 * float(span))), span)


def delta_variance(estimate, law, n):
    """Variance of ``estimate(tally, n)`` by the delta method, for reports with these laws.

    ``law`` maps each report's tally (a tuple) to its probability.
    """
    tallies, shares = np.array(list(law)), np.array(list(law.values()))
    mean = shares @ tallies
    covariance = (tallies.T * shares) @ tallies - np.outer(mean, mean)
    step = 1e-6
    gradients = []
    for axis in range(mean.size):
        move = np.zeros(mean.size)
        move[axis] = step
        above, below = (estimate(mean + s * move, 1) for s in (1, -1))
        gradients.append((np.array(above, float) - np.array(below, float)) / (2 * step))
    gradient = np.array(gradients)
    return np.einsum("ik,ij,jk->k", gradient, covariance, gradient) / n


def mixture(channel, frequency, mean):
    """The law of a report when a share holds the key, with values of this mean."""
    present = (1 + mean) / 2 * channel[1] + (1 - mean) / 2 * channel[2]
    return frequency * present + (1 - frequency) * channel[0]


def worst_ratio(rows):
    """The largest ratio of any report's probability between any two rows."""
    return max(
        above[report] / below[report]
        for above, below in product(rows, repeat=2)
        for report in range(len(above))
    )
