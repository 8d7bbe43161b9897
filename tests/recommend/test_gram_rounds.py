"""Both rounds, whole: the same bits in any pieces and by any trust that shares a law."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.recommend.gram_budget import StageNoise, budget_of
from dpsim.recommend.gram_rounds import (
    fit_gram,
    measured_rows,
    measured_totals,
    shared_totals,
)
from dpsim.recommend.gram_settings import MEANS_ONLY_SHARES, GramSettings
from dpsim.recommend.noise_parties import first_users, masked, party_shares, unmasked
from dpsim.recommend.split_sums import totals
from tests.recommend.stand_in import SCALE, cut, noise_of, rmse, split, stand_in

NOISE = CentralNoise(5, "plan")
DATA = stand_in(2_000, 60, 12, seed=3)
TRAIN, TEST = split(DATA, 3_000)
BASE = GramSettings.of(2_000, 60, SCALE, 5)


@pytest.mark.parametrize(
    "settings",
    [
        BASE,
        BASE.but(protects="user"),
        BASE.but(trust="distributed", colluders=2),
        BASE.but(head="top_n", shares=(), popular=30),
        BASE.but(protects="user", trust="local"),
    ],
    ids=["rating", "user", "distributed", "top-n", "local"],
)
def test_any_pieces_give_the_same_bits(settings):
    whole = fit_gram([TRAIN], settings, NOISE).to_bytes()
    for n in (3, 7, 16):
        assert fit_gram(cut(TRAIN, n), settings, NOISE).to_bytes() == whole


def test_any_blocks_of_rows_give_the_same_bits(monkeypatch):
    whole = fit_gram([TRAIN], BASE, NOISE).to_bytes()
    shared = BASE.but(trust="distributed")
    hidden = fit_gram(cut(TRAIN, 3), shared, NOISE).to_bytes()
    monkeypatch.setattr("dpsim.recommend.gram_rounds.BLOCK_ENTRIES", 100)
    assert fit_gram([TRAIN], BASE, NOISE).to_bytes() == whole
    assert fit_gram(cut(TRAIN, 3), shared, NOISE).to_bytes() == hidden


def test_another_seed_or_plan_gives_other_noise():
    models = {
        fit_gram([TRAIN], BASE, CentralNoise(seed, plan)).to_bytes()
        for seed, plan in ((5, "plan"), (6, "plan"), (5, "other"))
    }
    assert len(models) == 3


@pytest.mark.parametrize("protects", ["rating", "user"])
def test_the_model_converges_to_the_one_without_noise(protects):
    settings = BASE.but(protects=protects, kept=4)
    users, items, _ = TEST
    exact = fit_gram([TRAIN], settings.but(epsilon=None), NOISE)
    wanted = exact.predict(TRAIN, users, items)
    errors = [
        np.abs(fit_gram([TRAIN], settings.but(epsilon=epsilon), NOISE)
               .predict(TRAIN, users, items) - wanted).mean()
        for epsilon in (1, 5, 30)
    ]  # fmt: skip
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < (0.02 if protects == "rating" else 0.1)


def test_without_noise_every_trust_gives_the_same_model():
    exact = BASE.but(epsilon=None)
    whole = fit_gram([TRAIN], exact, NOISE)
    hidden = fit_gram(cut(TRAIN, 4), exact.but(trust="distributed"), NOISE)
    np.testing.assert_array_equal(hidden.factors, whole.factors)
    np.testing.assert_array_equal(hidden.means, whole.means)


def test_a_gram_hidden_by_noise_leaves_means_and_biases():
    model = fit_gram([TRAIN], BASE.but(epsilon="0.1"), NOISE)
    assert model.rank == 0
    assert rmse(model, TRAIN, TEST) == rmse(model.without_gram(), TRAIN, TEST)
    means = fit_gram([TRAIN], BASE.but(shares=MEANS_ONLY_SHARES), NOISE)
    assert means.rank == 0


def test_every_entry_of_sums_and_gram_gets_noise_even_where_nobody_rated():
    budget = budget_of(BASE)
    nothing = np.zeros(BASE.totals_size, np.int64)
    noisy = measured_totals(nothing, budget, BASE, NOISE)
    assert np.count_nonzero(noisy[:-2]) > 0.7 * noisy.size
    assert noisy[-2:].all()
    rows = measured_rows(np.zeros(BASE.triangle_size, np.int64), (0, 59), budget, 60, NOISE)
    assert rows.all()
    assert np.unique(rows).size == rows.size


@pytest.mark.statistical
def test_parties_together_add_the_noise_of_one_aggregator():
    settings = BASE.but(trust="distributed", parties=4, colluders=1)
    noise = noise_of(settings, "gram")
    n = 40_000
    shares = party_shares(noise, Block(0, 2_000), 2_000, NOISE, ("gram", 0, n))
    assert abs(shares.std() / 4**16 / noise.sd - 1) < 5 * (2 * n) ** -0.5
    honest = party_shares(noise, Block(500, 1_500), 2_000, NOISE, ("gram", 0, n))
    central = budget_of(settings.but(colluders=0)).sd("gram")
    assert abs(honest.std() / 4**16 / central - 1) < 5 * (2 * n) ** -0.5
    one = party_shares(noise, Block(0, 500), 2_000, NOISE, ("gram", 0, n))
    assert abs(np.corrcoef(one, honest)[0, 1]) < 5 * n**-0.5


def test_parties_belong_to_users_and_not_to_pieces():
    assert first_users(10, 4) == (0, 2, 5, 7)
    noise = noise_of(BASE.but(trust="distributed"), "items")
    whole = party_shares(noise, Block(0, 2_000), 2_000, NOISE, ("items", 0, 50))
    parts = [
        party_shares(noise, Block(start, 250), 2_000, NOISE, ("items", 0, 50))
        for start in range(0, 2_000, 250)
    ]
    np.testing.assert_array_equal(sum(parts), whole)
    late = party_shares(noise, Block(0, 2_000), 2_000, NOISE, ("items", 20, 30))
    np.testing.assert_array_equal(late, whole[20:])


def test_masks_hide_every_answer_and_cancel_in_the_sum():
    values = [np.array([3, -4, 2**62]), np.array([-5, 0, 2**61]), np.array([1, 1, -1])]
    hidden = [masked(value, place, 3, NOISE, ("x", 0)) for place, value in enumerate(values)]
    np.testing.assert_array_equal(unmasked(hidden), sum(values))
    for mask, value in zip(hidden, values, strict=True):
        assert not (mask.view(np.int64) == value).any()
    lost = unmasked(hidden[:2])
    assert (np.abs(lost.astype(np.float64)) > 2**40).all()
    later = masked(values[0][1:], 0, 3, NOISE, ("x", 1))
    np.testing.assert_array_equal(later, hidden[0][1:])


def test_a_single_piece_has_nobody_to_share_masks_with():
    assert unmasked([masked(np.array([7]), 0, 1, NOISE, ("x", 0))]).tolist() == [7]


def test_local_noise_drowns_what_central_noise_shows():
    central = fit_gram([TRAIN], BASE.but(protects="user"), NOISE)
    local = fit_gram([TRAIN], BASE.but(protects="user", trust="local"), NOISE)
    assert rmse(local, TRAIN, TEST) > rmse(central, TRAIN, TEST) + 0.02


def test_answers_that_do_not_fit_are_refused():
    budget = budget_of(BASE)
    with pytest.raises(InputError, match="totals must be 122 whole numbers"):
        measured_totals(np.zeros(121, np.int64), budget, BASE, NOISE)
    with pytest.raises(InputError, match="totals must be 122 whole numbers"):
        measured_totals(np.zeros(122), budget, BASE, NOISE)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rows 0 to 2 must be 117 whole numbers"):
        measured_rows(np.zeros(3, np.int64), (0, 2), budget, 60, NOISE)
    with pytest.raises(InputError, match="the pieces must hold 2000 users in all"):
        fit_gram([TRAIN.part(Block(0, 10))], BASE, NOISE)
    with pytest.raises(InputError, match="only Gaussian noise is divided"):
        party_shares(
            StageNoise(DiscreteLaplace(1, 1), 1), Block(0, 1), 1, NOISE, ("items", 0, 1)
        )
    with pytest.raises(InputError, match="masked answers must be words"):
        unmasked([np.zeros(2, np.uint64), np.zeros(3, np.uint64)])
    with pytest.raises(InputError, match="one answer at least"):
        unmasked([])


def test_shares_are_added_to_sums_only_where_their_parties_are():
    settings = BASE.but(trust="distributed", parties=1)
    budget, parts = budget_of(settings), cut(TRAIN, 2)
    first, second = (shared_totals(part, budget, settings, NOISE) for part in parts)
    assert (first != totals(parts[0], settings)).mean() > 0.9
    np.testing.assert_array_equal(second, totals(parts[1], settings))
