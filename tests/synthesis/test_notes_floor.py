"""The sampling floor of the notes' metrics: exact means, by enumeration."""

from itertools import product
from math import pi, sqrt

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.synthesis.notes_floor import (
    Expected,
    floor_of_drawn_sizes,
    floor_of_mean,
    floor_of_report,
    floor_of_resampling,
)


def moments(values, chances):
    mean = float(np.dot(values, chances))
    return mean, sqrt(max(0.0, float(np.dot(np.square(values), chances)) - mean**2))


def enumerated_report(size, n, keep):
    """All truths and all reports of all users."""
    tvds, squares, chances = [], [], []
    cells = list(product(range(size), repeat=2))
    for users in product(cells, repeat=n):
        truth = np.bincount([each for each, _ in users], minlength=size)
        report = np.bincount([each for _, each in users], minlength=size)
        tvds.append(np.abs(truth - report).sum() / (2 * n))
        squares.append(((truth - report) ** 2).sum() / size)
        lie = (1 - keep) / (size - 1)
        chances.append(np.prod([(keep if a == b else lie) / size for a, b in users]))
    return moments(tvds, chances), moments(squares, chances)


@pytest.mark.parametrize(("size", "n"), [(2, 1), (2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.5, 1.0])
def test_the_means_are_those_of_all_cases(size, n, keep):
    (tvd, _), (square, _) = enumerated_report(size, n, keep)
    floor = floor_of_report(size, n, keep)
    assert floor.tvd == pytest.approx(tvd, abs=1e-12)
    assert floor.mse_counts == pytest.approx(square, abs=1e-12)


def simulated(size, n, keep, repeats=4000):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, size, (repeats, n))
    lies = (truth + rng.integers(1, size, truth.shape)) % size
    report = np.where(rng.random(truth.shape) < keep, truth, lies)
    rows = np.arange(repeats)[:, None] * size
    difference = [
        np.bincount((rows + each).ravel(), minlength=size * repeats) for each in (truth, report)
    ]
    cells = (difference[0] - difference[1]).reshape(repeats, size)
    return np.abs(cells).sum(axis=1) / (2 * n), (cells**2).mean(axis=1)


@pytest.mark.statistical
@pytest.mark.parametrize(("size", "n", "keep"), [(2, 200, 0.5), (5, 300, 0.2), (40, 200, 0.1)])
def test_the_standard_deviations_are_those_of_samples(size, n, keep):
    tvds, squares = simulated(size, n, keep)
    floor = floor_of_report(size, n, keep)
    assert np.std(tvds) == pytest.approx(floor.tvd_sd, rel=5 / sqrt(8000) + 0.01)
    assert np.std(squares) == pytest.approx(floor.mse_counts_sd, rel=0.12)
    assert abs(np.mean(tvds) - floor.tvd) < 5 * floor.tvd_sd / sqrt(4000)


def test_resampling_is_what_all_cases_say():
    size, n = 2, 3
    tvd = square = 0.0
    users = list(product(range(size), repeat=n))
    for truth, report, made in product(users, repeat=3):
        counts = [np.bincount(each, minlength=size) for each in (truth, report, made)]
        chance = size**-n * size**-n * np.prod(counts[1][list(made)] / n)
        tvd += chance * np.abs(counts[0] - counts[2]).sum() / (2 * n)
        square += chance * ((counts[0] - counts[2]) ** 2).sum() / size
    floor = floor_of_resampling(size, n)
    assert floor.tvd == pytest.approx(tvd, abs=1e-12)
    assert floor.mse_counts == pytest.approx(square, abs=1e-12)


PRINTED = {
    (50, 10_000): ((0.061748, 0.061768, 0.061796), (155.74994, 155.59988, 155.93071)),
    (50, 1000): ((0.19542, 0.19574, 0.19506), (16.159276, 16.189204, 16.137156)),
    (100, 1000): ((0.19771, 0.19794, 0.19771), (15.878241, 15.913671, 15.928150)),
}
"""TVD and MSE of the notes' tables at ε = 1, 5, 10, by attributes and users."""
FLOORS = {
    (50, 10_000): Expected(0.06266, 0.0008, 160.94, 4.0),
    (50, 1000): Expected(0.19675, 0.0025, 16.094, 0.40),
    (100, 1000): Expected(0.19675, 0.0018, 16.094, 0.28),
}


@pytest.mark.parametrize(("d", "n"), PRINTED)
def test_the_notes_tables_are_the_sampling_floor(d, n):
    parts = [floor_of_report(size, n, 1 / size) for size in range(100, 151)]
    floor, known = floor_of_drawn_sizes(parts, d), FLOORS[d, n]
    assert floor.tvd == pytest.approx(known.tvd, abs=5e-6)
    assert floor.tvd_sd == pytest.approx(known.tvd_sd, abs=5e-5)
    assert floor.mse_counts == pytest.approx(known.mse_counts, abs=5e-3)
    assert floor.mse_counts_sd == pytest.approx(known.mse_counts_sd, rel=0.025)
    tvds, errors = PRINTED[d, n]
    assert all(abs(value - floor.tvd) < 1.4 * floor.tvd_sd for value in tvds)
    spread = 1.4 * floor.mse_counts_sd
    assert all(abs(value - floor.mse_counts) < spread for value in errors)


@pytest.mark.parametrize(("size", "normal"), [(100, 0.1775), (125, 0.1987), (150, 0.2178)])
def test_the_normal_law_is_high_by_about_a_percent(size, normal):
    floor = floor_of_report(size, 1000, 1 / size)
    assert sqrt((size - 1) / (pi * 1000)) == pytest.approx(normal, abs=5e-5)
    assert 0.990 < floor.tvd / normal < 0.995
    assert floor.tvd_sd == pytest.approx(sqrt((1 - 1 / size) * (1 - 2 / pi) / 2000), rel=0.02)


def test_many_users_follow_the_normal_law():
    floor = floor_of_report(10, 10**6, 0.3)
    assert floor.tvd == pytest.approx(sqrt(10 * 0.7 / (pi * 10**6)), rel=1e-5)
    assert floor.mse_counts == pytest.approx(2 * 10**6 * 0.7 / 10)


def test_resampling_raises_the_floor_by_the_root_of_three_halves():
    floor = floor_of_resampling(100, 5000)
    assert floor.tvd == pytest.approx(0.0972, abs=2e-4)
    assert floor.tvd == pytest.approx(sqrt(3 * 99 / (2 * pi * 5000)), rel=3e-3)
    chance = floor_of_report(100, 5000, 0.01)
    assert floor.tvd / chance.tvd == pytest.approx(sqrt(1.5), rel=2e-3)
    assert floor.mse_counts / chance.mse_counts == pytest.approx(1.5, rel=1e-3)


def test_epsilon_has_no_visible_effect_at_the_notes_sizes():
    chance, best = (floor_of_report(125, 1000, keep) for keep in (1 / 125, 0.009754))
    assert abs(chance.tvd - best.tvd) < 0.1 * chance.tvd_sd


def test_means_over_attributes_and_over_drawn_sizes():
    one, two = Expected(0.1, 0.03, 5, 2), Expected(0.3, 0.04, 9, 1)
    mean = floor_of_mean([one, two])
    assert (mean.tvd, mean.tvd_sd) == pytest.approx((0.2, 0.025))
    assert (mean.mse_counts, mean.mse_counts_sd) == pytest.approx((7, sqrt(5) / 2))
    drawn = floor_of_drawn_sizes([one, two], 2)
    assert (drawn.tvd, drawn.mse_counts) == pytest.approx((0.2, 7))
    assert drawn.tvd_sd == pytest.approx(sqrt((0.00125 + 0.01) / 2))
    assert drawn.mse_counts_sd == pytest.approx(sqrt((2.5 + 4) / 2))


def test_faults_are_named():
    with pytest.raises(InputError, match="size must be"):
        floor_of_report(1, 10, 0.5)
    with pytest.raises(InputError, match="n must be"):
        floor_of_resampling(3, 0)
    with pytest.raises(InputError, match="keep must be"):
        floor_of_report(3, 10, 1.5)
    for function in (floor_of_mean, lambda parts: floor_of_drawn_sizes(parts, 3)):
        with pytest.raises(InputError, match="one attribute at least"):
            function([])
