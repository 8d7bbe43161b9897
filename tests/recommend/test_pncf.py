"""PNCF: step by step as described, the same for every way to ask, and without a guarantee."""

from dataclasses import replace
from itertools import permutations
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import CentralNoise, key_of
from dpsim.data.generated_ratings import GeneratedRatings
from dpsim.data.ratings import RatingScale
from dpsim.recommend._item_kernels import kth_best
from dpsim.recommend._query_kernels import choose, set_logits
from dpsim.recommend.knn import ItemKNN
from dpsim.recommend.neighbors import Predictions
from dpsim.recommend.pncf import PNCF
from dpsim.recommend.ratings_matrix import RatingMatrix
from dpsim.recommend.relevance_sensitivity import relevance_sensitivity
from dpsim.recommend.similarity import similarity_matrix
from tests.recommend import plain
from tests.recommend.plain import T, codes_tables, matrix_of

NOISE = CentralNoise(5, "plan")
METHODS = st.builds(
    PNCF,
    st.sampled_from([None, "0.1", 1, 20, 1000]),
    k=st.sampled_from([1, 2, 3, "half"]),
    similarity=st.sampled_from(["cosine", "pearson"]),
    beta=st.sampled_from([0.0, 1.0]),
    rho=st.sampled_from([0.1, 0.5]),
    candidates=st.sampled_from([None, 1, 2, 3]),
    min_candidates=st.sampled_from([0, 1, 2]),
    neighbors=st.sampled_from(["rated", "catalog"]),
    denominator=st.sampled_from(["signed", "absolute"]),
    v=st.sampled_from(["ratings", "candidates"]),
)


def all_queries(codes):
    users, items = np.indices(codes.shape)
    return users.ravel(), items.ravel()


@given(codes_tables(users=(2, 7), items=(3, 6)), METHODS)
def test_every_prediction_is_the_plain_one(codes, method):
    made = method.fit(matrix_of(codes)).predict(*all_queries(codes), NOISE)
    for place, query in enumerate(zip(*all_queries(codes), strict=True)):
        rating, used, candidates, active = plain.predict(codes, query, method, NOISE)
        assert made.ratings[place] == pytest.approx(rating, rel=1e-6, abs=1e-6)
        found = (made.used[place], made.candidates[place], made.omega_active[place])
        assert found == (used, candidates, active)


@given(codes_tables(), METHODS)
def test_half_stars_are_predicted_as_twice_as_many_stars(codes, method):
    halves = RatingScale("0.5", "2.5", "0.5")
    made = method.fit(matrix_of(codes, halves)).predict(*all_queries(codes), NOISE)
    whole = method.fit(matrix_of(codes)).predict(*all_queries(codes), NOISE)
    np.testing.assert_allclose(2 * made.ratings, whole.ratings, rtol=1e-9)


@given(codes_tables(users=(2, 7), items=(3, 6)), METHODS, st.randoms(use_true_random=False))
def test_an_answer_does_not_depend_on_what_else_is_asked(codes, method, random):
    users, items = all_queries(codes)
    model = method.fit(matrix_of(codes))
    whole = model.predict(users, items, NOISE)
    order = list(range(users.size))
    random.shuffle(order)
    some = np.array(order[: max(1, users.size // 2)])
    part = model.predict(users[some], items[some], NOISE)
    assert np.array_equal(part.ratings, whole.ratings[some])
    assert np.array_equal(part.candidates, whole.candidates[some])


def candidates_of(similarities, sensitivities):
    n = len(similarities)
    floats = [np.array(similarities, float), np.array(sensitivities, float), np.zeros(n)]
    items, heap = np.arange(n, dtype=np.int32), np.empty(n, np.int32)
    return (items, *floats, heap, np.zeros(n), np.arange(n, dtype=np.int32))


def settings_of(epsilon, k, shrink=1.0, v=0.0):
    return (float(epsilon), shrink, 0.5, float(v), k, 1, 99, 3, False)


def test_the_printed_logits_of_the_small_table():
    """User 5 and item 2: B, ω, log-weights and Laplace scales."""
    matrix = matrix_of(T)
    s = similarity_matrix(matrix)[1, [0, 2]]
    b = exp(-1) * relevance_sensitivity(matrix)[1, [0, 2]]
    assert b == pytest.approx([0.230375, 0.083916], abs=1e-6)
    assert 2 * b == pytest.approx([0.460750, 0.167831], abs=1e-6)
    found = candidates_of(s, b)
    assert not set_logits(2, 2, settings_of(1, 2, v=4), found)
    assert found[3] == pytest.approx([0.395267, 0.425623], abs=1e-6)
    omega = 4 * 2 * b.max() * log(2 * (4 - 2) / 0.5)
    assert omega == pytest.approx(3.832411, abs=1e-5)


def test_truncation_lifts_what_lies_below_s_k_minus_omega():
    found = candidates_of([0.9, 0.5, 0.1, 0.01], [1e-4] * 4)
    assert set_logits(4, 2, settings_of(1, 2), found)
    omega = 8e-4 * log(8)
    lifted = np.maximum([0.9, 0.5, 0.1, 0.01], 0.5 - omega)
    assert found[3] == pytest.approx(lifted / 8e-4)


def sequential_law(logits, k):
    """The chance of each set of k, drawn one after the other without replacement."""
    law: dict[frozenset[int], float] = {}
    for draw in permutations(range(len(logits)), k):
        left, chance = set(range(len(logits))), 1.0
        for chosen in draw:
            chance *= exp(logits[chosen]) / sum(exp(logits[j]) for j in left)
            left.remove(chosen)
        law[frozenset(draw)] = law.get(frozenset(draw), 0.0) + chance
    return law


def test_the_printed_law_of_drawing_two_of_four():
    law = sequential_law([0, 0.5, 1.2, -0.3], 2)
    wanted = {(0, 1): 0.09159, (0, 2): 0.23265, (0, 3): 0.03784, (1, 2): 0.40189,
              (1, 3): 0.06647, (2, 3): 0.16956}  # fmt: skip
    for pair, chance in wanted.items():
        assert law[frozenset(pair)] == pytest.approx(chance, abs=1e-5)


def worst_score(law, n=20_000):
    """How many standard deviations the most deviating set's count is away from its law."""
    keys = tuple(tuple(key_of((1, purpose, "", ""))) for purpose in ("select", "measure"))
    # Scaled by 1/8, the similarities are log-weights; ω = s_k leaves them as they are.
    found = candidates_of([0.3, 0.8, 1.5, 0.0], [0.125] * 4)
    counts = dict.fromkeys(law, 0)
    for place in range(n):
        choose(4, place, settings_of(1, 2), keys, found)
        counts[frozenset(np.flatnonzero(~np.isnan(found[5])).tolist())] += 1
    return max(abs(counts[pair] - n * p) / (n * p * (1 - p)) ** 0.5 for pair, p in law.items())


@pytest.mark.statistical
def test_noisy_choice_follows_the_law_of_sequential_draws():
    assert worst_score(sequential_law([0, 0.5, 1.2, -0.3], 2)) < 5


@pytest.mark.statistical
def test_the_law_of_the_choice_has_power():
    assert worst_score(sequential_law([0, 0.5, 1.0, -0.3], 2)) > 5


def test_infinite_epsilon_is_the_method_without_noise():
    assert PNCF(inf) == PNCF(None)
    codes = np.array([[0, 1, 4, -1], [3, -1, 2, 1], [1, 2, -1, 4]])
    users, items = all_queries(codes)
    for similarity in ("cosine", "pearson"):
        made = PNCF(inf, 2, similarity).fit(matrix_of(codes)).predict(users, items)
        wanted = ItemKNN(2, similarity).fit(matrix_of(codes)).predict(users, items)
        assert np.array_equal(made.ratings, wanted)
        assert not made.sensitivities.any()


def test_other_seeds_plans_and_users_get_other_noise():
    codes = np.tile(T, (2, 1))
    model = PNCF(1, 2, "cosine", denominator="absolute").fit(matrix_of(codes))
    users, items = np.array([4]), np.array([1])
    ratings = {
        model.predict(users, items, CentralNoise(seed, plan)).ratings[0]
        for seed, plan in [(5, "plan"), (6, "plan"), (5, "other")]
    }
    ratings.add(model.predict(users + 5, items, NOISE).ratings[0])
    assert len(ratings) == 4


def test_users_with_a_history_of_their_own_are_served():
    matrix = matrix_of(T)
    model = PNCF(1, 2).fit(matrix)
    again = model.predict([4], [1], NOISE, history=matrix.piece)
    assert again.ratings == model.predict([4], [1], NOISE).ratings
    new = plain.piece_of_codes([[4, -1, 0, -1]], start=9)
    assert model.predict([9], [1], NOISE, history=new).used == [1]
    with pytest.raises(InputError, match=r"users must lie in 9\.\.9"):
        model.predict([4], [1], NOISE, history=new)


def test_truncation_acts_more_often_as_epsilon_grows():
    source = GeneratedRatings(300, 60, 20)
    piece = source.read(Block(0, 300)).open()
    matrix = RatingMatrix(60, source.scale, piece)
    shares = [
        PNCF(epsilon, 5, "cosine").fit(matrix).predict(piece.users, piece.items, NOISE)
        for epsilon in (1, 10, 1_000)
    ]
    active = [made.omega_active.mean() for made in shares]
    assert active[0] < active[1] < active[2]
    assert len({int(made.sensitivities.sum()) for made in shares}) == 1
    assert shares[0].sensitivities.sum() == shares[0].candidates.sum()
    np.testing.assert_array_equal(shares[0].is_covered, shares[0].used > 0)


def predictions(n, candidates=5):
    zeros = np.zeros(n, np.int64)
    return Predictions(np.zeros(n), zeros, zeros + candidates, zeros > 0, zeros[:20])


def test_the_composed_nominal_loss_is_stated():
    assert PNCF(1).nominal_epsilon(predictions(1), 1682) == 10.5
    assert PNCF(1).nominal_epsilon(predictions(20_000), 1682) == 210_000
    assert PNCF(1, neighbors="catalog").nominal_epsilon(predictions(3), 1682) == 17_661
    assert PNCF("0.1", "half").nominal_epsilon(predictions(4, 5), 10) == pytest.approx(0.6)
    assert PNCF(inf).nominal_epsilon(predictions(1), 10) == inf
    assert PNCF(1).guarantee == "none"


def laplace_delta(laws, epsilon):
    """The true δ at a claimed ε of two Laplace laws (center, scale), by fine summation."""
    x = np.linspace(-20, 22, 4_200_001)
    p, q = (np.exp(-np.abs(x - c) / b) / (2 * b) for c, b in laws)
    return float(np.maximum(p - exp(epsilon) * q, 0).sum() * (x[1] - x[0]))


def test_the_toy_shows_that_no_small_epsilon_holds():
    """Users 1 to 3 rate (1, 5); user 4, who rates one item, changes s and its noise scale."""
    codes = np.array([[1, 5], [1, 5], [1, 5], [5, 0]]) - 1
    laws = []
    for part in (codes, codes[:3]):
        matrix = matrix_of(part)
        s = float(similarity_matrix(matrix)[0, 1])
        laws.append((s, 2 * exp(-1) * float(relevance_sensitivity(matrix)[0, 1])))
    assert [scale for _, scale in laws] == pytest.approx([0.1001, 0.3679], abs=1e-4)
    deltas = [laplace_delta(pair, eps) for eps in (0.5, 1) for pair in (laws, laws[::-1])]
    assert sorted(deltas) == pytest.approx(sorted([0.7403, 0.7929, 0.6336, 0.7652]), abs=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number"),
        ({"k": 0}, "k must be a whole number >= 1"),
        ({"k": "all"}, "k must be"),
        ({"candidates": 0}, "candidates must be"),
        ({"min_candidates": -1}, "min_candidates must be"),
        ({"similarity": "jaccard"}, "similarity must be one of"),
        ({"neighbors": "all"}, "neighbors must be one of"),
        ({"denominator": "none"}, "denominator must be one of"),
        ({"v": 3}, "v must be one of"),
        ({"beta": -1}, "beta must be >= 0"),
        ({"rho": 0}, "rho must be > 0"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(change, message):
    with pytest.raises(InputError, match=message):
        replace(PNCF(1), **change)


def test_bad_queries_and_missing_noise_are_refused():
    model = PNCF(1).fit(matrix_of(T))
    with pytest.raises(InputError, match="needs noise"):
        model.predict([0], [0])
    with pytest.raises(InputError, match=r"items must lie in 0\.\.3"):
        model.predict([0], [4], NOISE)
    with pytest.raises(InputError, match=r"users must lie in 0\.\.4"):
        model.predict([5], [0], NOISE)
    with pytest.raises(InputError, match="same length"):
        model.predict([0, 1], [0], NOISE)
    with pytest.raises(InputError, match="RS needs"):
        PNCF(1).fit(matrix_of(T, RatingScale(-2, 2)))
    assert model.predict([], [], NOISE).ratings.size == 0


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
def test_the_kth_best_breaks_ties_by_the_lower_place(keys, data):
    k = data.draw(st.integers(1, len(keys)))
    order = sorted(range(len(keys)), key=lambda place: (-keys[place], place))
    heap = np.empty(len(keys), np.int32)
    assert kth_best(np.array(keys, float), len(keys), k, heap) == order[k - 1]
