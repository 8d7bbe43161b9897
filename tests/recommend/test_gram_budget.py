"""Settings, parts and noise: what is charged is what is spent, in every mode of trust."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.plan import Plan, Use
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CentralNoise
from dpsim.evaluation.audit_bounds import two_arm_epsilon
from dpsim.mechanisms.discrete_gaussian import DiscreteGaussian
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.recommend.gaussian_accounting import gaussian_epsilon
from dpsim.recommend.gram_budget import budget_of
from dpsim.recommend.gram_planning import TasteGuess, forecast, proposed
from dpsim.recommend.gram_sensitivity import gram_sensitivity
from dpsim.recommend.gram_settings import (
    MEANS_ONLY_SHARES,
    POPULARITY_SHARES,
    GramSettings,
)
from tests.recommend.stand_in import SCALE, noise_of

BASE = GramSettings.of(1_000, 500, SCALE, 1)
modes = st.builds(
    lambda head, way, epsilon: GramSettings.of(
        1_000, 500, SCALE, epsilon, head=head, protects=way[0], trust=way[1]
    ),
    st.sampled_from(["ratings", "top_n"]),
    st.sampled_from(
        [("rating", "central"), ("user", "central"), ("rating", "distributed"),
         ("user", "distributed"), ("user", "local")]
    ),
    st.fractions("0.05", 20, max_denominator=20),
)  # fmt: skip


@given(modes)
def test_the_parts_sum_to_exactly_the_whole_loss(settings):
    parts = budget_of(settings).parts
    total = parts[0].loss
    for part in parts[1:]:
        total = total + part.loss
    assert total == PrivacyLoss(
        settings.epsilon, settings.delta, unit=settings.protects, neighbors=settings.neighbors
    )
    wanted = {"items", "gram"} | ({"global"} if settings.head == "ratings" else set())
    assert {stage for part in parts for stage in part.stages} == wanted


@given(modes)
def test_gaussian_stages_cost_no_more_than_their_part(settings):
    budget = budget_of(settings)
    part = budget.parts[-1]
    honest = settings.parties if settings.trust == "distributed" else 1
    rhos = [noise_of(settings, stage).law.rho / honest for stage in part.stages]
    rho = sum(rhos, Fraction(0))
    assert rho <= part.rho
    assert gaussian_epsilon(part.rho, settings.delta) <= part.loss.epsilon
    assert float(gaussian_epsilon(rho, settings.delta)) > 0.998 * float(part.loss.epsilon)


def test_the_noise_of_each_stage_is_that_of_the_tables():
    budget = budget_of(BASE)
    assert isinstance(noise_of(BASE, "global").law, DiscreteLaplace)
    assert noise_of(BASE, "items").law == DiscreteLaplace("0.3", 4)
    assert budget.sd("items") == pytest.approx(2**0.5 / 0.3, rel=1e-2)
    assert budget.sd("gram") == pytest.approx(9.016 * 1.2044 / 1.3265, rel=1e-3)
    user = budget_of(BASE.but(protects="user"))
    rho = user.parts[1].rho
    assert user.sd("items") == pytest.approx(3 / (2 * float(rho) / 3) ** 0.5, rel=1e-3)
    assert user.sd("gram") == pytest.approx(0.5**0.5 / (4 * float(rho) / 3) ** 0.5, rel=1e-3)


def test_colluders_are_paid_for_by_more_noise():
    trusting = budget_of(BASE.but(trust="distributed"))
    careful = budget_of(BASE.but(trust="distributed", colluders=12))
    assert trusting.sd("gram") == pytest.approx(careful.sd("gram") / 2, rel=1e-6)
    assert trusting.parts == careful.parts
    noise = noise_of(BASE.but(trust="distributed", colluders=12), "gram")
    needed = gram_sensitivity(BASE) ** 2 / (2 * careful.parts[0].rho * Fraction(6, 10))
    assert noise.law.sigma**2 * (noise.parties - 12) >= needed * (1 - Fraction(1, 10**6))


def test_local_noise_is_larger_by_the_root_of_twice_the_users():
    central = budget_of(BASE.but(protects="user", shares=(0.1, 0.3, 0.6)))
    local = budget_of(BASE.but(protects="user", trust="local"))
    ratio = local.sd("gram") / central.sd("gram")
    parts = float(central.parts[1].rho / local.parts[0].rho) ** 0.5
    shares = (float(Fraction(2, 3)) / 0.6) ** 0.5
    assert ratio == pytest.approx((2 * 1_000) ** 0.5 * parts * shares, rel=1e-3)
    assert noise_of(
        BASE.but(protects="user", trust="local"), "gram"
    ).summed.sigma == pytest.approx(local.sd("gram") * 4**16, rel=1e-9)


def test_without_epsilon_there_is_no_noise_and_no_guarantee():
    settings = BASE.but(epsilon=None)
    assert budget_of(settings).parts == ()
    assert budget_of(settings).noise == ()
    assert budget_of(settings).sd("gram") == 0
    assert settings.guarantee == "none"


def test_guarantees_are_said_in_full():
    assert BASE.guarantee == "ε = 1, δ = 0.000001 if one rating is added or removed"
    means = BASE.but(shares=MEANS_ONLY_SHARES)
    assert means.guarantee == "ε = 1 if one rating is added or removed"
    assert [part.loss.delta for part in budget_of(means).parts] == [0, 0]
    local = BASE.but(protects="user", trust="local")
    assert local.guarantee == "ε = 1, δ = 0.000001 if one user is replaced"


def projected(law, shift, n, subject):
    """Entries of 0 and of the sensitivity, through the measuring that releases them."""
    values = np.full(n, shift, np.int64)
    return law.measure(values, CentralNoise(11, "a"), subject) / float(law.sigma)


@pytest.mark.statistical
@pytest.mark.parametrize(("divisor", "is_flagged"), [(1, False), (2, True)])
def test_halved_noise_is_flagged_by_an_audit_and_full_noise_is_not(divisor, is_flagged):
    settings = BASE.but(protects="user", epsilon=4)
    stated = noise_of(settings, "gram").law
    law = DiscreteGaussian(stated.sigma / divisor, stated.sensitivity)
    n, claim = 1_000_000, gaussian_epsilon(stated.rho, settings.delta)
    here = projected(law, int(stated.sensitivity), n, "one")
    there = projected(law, 0, n, "zero")
    threshold = 3.2
    bound = two_arm_epsilon(
        int((here > threshold).sum()), n, int((there > threshold).sum()), n, 1e-6, 1e-6
    )
    assert (bound > float(claim)) == is_flagged


def test_the_plan_holds_every_setting_and_every_one_changes_its_hash():
    def hash_of(settings):
        use = Use(("ratings",), "gram", settings.parameters)
        return Plan("demo", 0, "totals", (use,)).hash

    changed = {
        "n_users": 999, "n_items": 499, "epsilon": 2, "delta": Fraction(1, 10**5),
        "head": "top_n", "protects": "user", "trust": "distributed", "popular": 400,
        "bound": 2, "damping": 5, "weight_cap": 4, "bits": 15, "kept": 9, "parties": 8,
        "colluders": 1, "shares": (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)),
    }  # fmt: skip
    hashes = {hash_of(BASE)}
    for name, value in changed.items():
        extra: dict[str, object] = {"shares": ()} if name == "head" else {}
        extra |= {"popular": 0} if name == "n_items" else {}
        hashes.add(hash_of(BASE.but(**extra | {name: value})))
    assert len(hashes) == len(changed) + 1
    assert len(BASE.parameters) == len(changed) + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"delta": 0}, "delta must be > 0 and < 1"),
        ({"delta": 1}, "delta must be > 0 and < 1"),
        ({"n_users": 0}, "n_users must be"),
        ({"n_items": 1}, "n_items must be"),
        ({"popular": 1}, r"popular must lie in 2\.\.500"),
        ({"popular": 501}, r"popular must lie in 2\.\.500"),
        ({"shares": (0.5, 0.5, 0.5)}, "shares must be three numbers >= 0 that sum to 1"),
        ({"shares": (0.5, 0.5)}, "shares must be three numbers"),
        ({"shares": (1, 0, 0)}, "shares must be > 0 for the items' sums"),
        ({"shares": (0, "0.4", "0.6")}, "for the global mean"),
        ({"head": "rating"}, "head must be one of ratings, top_n, got 'rating'"),
        ({"protects": "item"}, "protects must be one of rating, user"),
        ({"trust": "none"}, "trust must be one of central, distributed, local"),
        ({"trust": "local"}, 'write protects = "user"'),
        ({"colluders": 16}, "colluders must be fewer than the 16 parties, got 16"),
        ({"bound": 0}, "bound must be > 0 and <= 16"),
        ({"damping": -1}, "damping must be >= 0"),
        ({"bits": 17}, r"bits must lie in 12\.\.16"),
        ({"n_users": 2**31}, "n_users times bound² must stay below"),
        ({"kept": -1}, "kept must be"),
    ],
)
def test_bad_settings_are_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        BASE.but(**changes)


def test_a_gram_that_cannot_be_seen_is_not_bought():
    small, large = BASE.but(n_users=1_000), BASE.but(n_users=50_000)
    assert forecast(small).seen == 0
    assert "no direction should be seen" in str(forecast(small))
    assert proposed(small).shares == MEANS_ONLY_SHARES
    assert forecast(large).seen == 6
    assert proposed(large) == large
    ranking = GramSettings.of(50, 500, SCALE, "0.1", head="top_n")
    assert proposed(ranking).shares == POPULARITY_SHARES
    exact = small.but(epsilon=None)
    assert proposed(exact) == exact


def test_the_forecast_is_near_what_the_tables_measured():
    """10,000 users, ε = 1: one or two directions; eigenvalues near 300 to 136."""
    made = forecast(BASE.but(n_users=10_000))
    assert made.seen in (1, 2, 3)
    assert 250 < made.strengths[0] < 450
    assert 100 < made.strengths[-1] < 180
    assert made.answer_bytes == 8 * 124_750


@given(st.floats(1, 400), st.floats(0, 2))
def test_guessed_shares_are_shares(ratings, popularity):
    guess = TasteGuess(ratings_per_user=ratings, popularity=popularity)
    assert 1 / 500 <= guess.concentration(500) * (1 + 1e-9) <= 1 + 1e-9


@pytest.mark.parametrize(
    "wrong", [{"ratings_per_user": 0}, {"directions": 0}, {"popularity": -1}]
)
def test_bad_guesses_are_refused(wrong):
    with pytest.raises(InputError, match="a guess needs numbers > 0"):
        TasteGuess(**wrong)
