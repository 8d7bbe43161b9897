"""What the Gram gains on generated ratings; the full table is scripts/bench/gram_gaps.py."""

import pytest

from dpsim.core.rng import CentralNoise
from dpsim.recommend.gram_rounds import fit_gram
from dpsim.recommend.gram_settings import GramSettings
from tests.recommend.stand_in import SCALE, rmse, split, stand_in


@pytest.fixture(scope="module")
def crowd():
    return split(stand_in(50_000), 20_000)


@pytest.fixture(scope="module")
def few():
    return split(stand_in(5_000), 10_000)


def gap(data, epsilon, seed=0, **changes):
    train, test = data
    settings = GramSettings.of(train.n, 500, SCALE, epsilon, **changes)
    model = fit_gram([train], settings, CentralNoise(seed, "gap"))
    return rmse(model.without_gram(), train, test) - rmse(model, train, test)


@pytest.mark.statistical
def test_taste_of_a_crowd_is_seen_at_the_price_of_one_epsilon(crowd):
    assert gap(crowd, 1) >= 0.040
    assert gap(crowd, "0.5") >= 0.025
    assert gap(crowd, 5, protects="user") >= 0.035


@pytest.mark.statistical
@pytest.mark.parametrize("protects", ["rating", "user"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 1, 2, 5])
def test_a_gram_is_never_worse_than_its_own_means(few, epsilon, protects):
    for seed in range(2):
        assert gap(few, epsilon, seed, protects=protects) >= -0.002


@pytest.mark.statistical
def test_more_noise_than_stated_would_close_the_gap(crowd):
    assert gap(crowd, "0.1") < 0.010
