"""The released model: serving by hand, rankings, files."""

import json

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.recommend.gram_model import GramModel, model_of
from dpsim.recommend.gram_rounds import fit_gram
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.split_sums import ItemFacts
from tests.recommend.stand_in import SCALE, piece_of

NOISE = CentralNoise(1, "p")


def model(head="ratings", factors=((1.0, 0.0), (1.0, 1.0), (0.0, 2.0)), counts=(9, 7, 8, 3, 5)):
    return GramModel(
        head=head,
        scale=SCALE,
        guarantee="none",
        global_mean=3.0,
        bound=1.0,
        damping=10.0,
        means=np.array([3.0, 3.5, 2.5, 4.0, 4.8]),
        counts=np.array(counts, np.float64),
        popular=np.array([0, 1, 2], np.int32),
        factors=np.array(factors).reshape(3, -1),
    )


HISTORY = piece_of([{0: 5, 2: 1, 3: 4}, {}, {4: 1}])


def test_predictions_are_those_of_the_formula():
    made = model()
    bias = (2.0 - 1.5 + 0.0) / 13
    x = np.clip([2.0 - bias, -1.5 - bias], -1, 1)
    q = made.factors[[0, 2]]
    theta = np.linalg.solve(q.T @ q + 0.7 * np.eye(2), q.T @ x)
    folded = made.fold_in(HISTORY)
    np.testing.assert_allclose(folded.biases, [bias, 0, -2 / 11])
    np.testing.assert_allclose(folded.factors, np.array([theta, [0, 0], [0, 0]]), rtol=1e-12)
    users, items = np.array([0, 0, 1, 2, 2]), np.array([1, 4, 1, 0, 4], np.int32)
    expected = [
        np.clip(3.5 + bias + made.factors[1] @ theta, 1, 5),
        4.8 + bias, 3.5, 3 - 2 / 11, 4.8 - 2 / 11,
    ]  # fmt: skip
    np.testing.assert_allclose(made.predict(HISTORY, users, items), expected, rtol=1e-12)


def test_predictions_stay_within_the_scale():
    high = piece_of([dict.fromkeys(range(5), 5)])
    every = np.arange(5, dtype=np.int32)
    made = model(factors=np.full((3, 2), 50.0)).predict(high, np.zeros(5, np.int64), every)
    assert made.max() <= 5
    assert made.min() >= 1


def test_a_model_without_directions_predicts_means_and_biases():
    bare = model().without_gram()
    assert bare.rank == 0
    users, items = np.array([0, 1]), np.array([1, 1], np.int32)
    np.testing.assert_allclose(bare.predict(HISTORY, users, items), [3.5 + 0.5 / 13, 3.5])


def test_rankings_follow_co_counts_then_popularity_and_leave_out_what_was_seen():
    made = model("top_n", ((1.0, 0.0), (0.9, 0.1), (0.0, 2.0)))
    ranked = made.recommend(piece_of([{0: 1}, {2: 5}, {}, dict.fromkeys(range(5), 3)]), 4)
    assert ranked.tolist() == [[1, 2, 4, 3], [1, 0, 4, 3], [0, 2, 1, 4], [-1, -1, -1, -1]]
    assert ranked.dtype == np.int32


def test_a_ranking_without_directions_is_popularity_and_ties_go_to_the_first():
    bare = model("top_n", counts=(9, 7, 7, 7, 9)).without_gram()
    assert bare.recommend(piece_of([{}, {0: 1}]), 5).tolist() == [
        [0, 4, 1, 2, 3],
        [4, 1, 2, 3, -1],
    ]


def test_ratings_rank_by_prediction():
    assert model().recommend(piece_of([{}]), 3).tolist() == [[4, 3, 1]]


def clubs(n_users, seed, n_items=100, groups=5):
    """Users of five clubs who rate their club's items, and a few of all."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n_users):
        own = np.arange(user % groups, n_items, groups)
        chosen = {*rng.choice(own, 9, replace=False), *rng.choice(n_items, 3, replace=False)}
        rows.append({int(item): int(rng.integers(1, 6)) for item in chosen})
    return piece_of(rows)


@pytest.mark.statistical
@pytest.mark.parametrize("protects", ["rating", "user"])
def test_co_counts_find_the_items_of_a_users_club(protects):
    n = 4_000
    settings = GramSettings.of(n, 100, SCALE, 4, head="top_n", protects=protects)
    made = fit_gram([clubs(n, 0)], settings, NOISE)
    assert made.rank >= 4
    ranked = made.recommend(clubs(200, 1), 5)
    is_own = ranked % 5 == np.arange(200)[:, None] % 5
    assert is_own.mean() > 0.9
    popular = made.without_gram().recommend(clubs(200, 1), 5)
    assert (popular % 5 == np.arange(200)[:, None] % 5).mean() < 0.4


def test_a_file_holds_the_model_to_the_last_bit(tmp_path):
    made = model()
    made.save(tmp_path / "model.npz")
    again = GramModel.load(tmp_path / "model.npz")
    assert again.to_bytes() == made.to_bytes()
    assert again.scale == made.scale
    assert (again.head, again.guarantee, again.global_mean) == ("ratings", "none", 3.0)
    for name in ("means", "counts", "popular", "factors"):
        np.testing.assert_array_equal(getattr(again, name), getattr(made, name))
        assert getattr(again, name).dtype == getattr(made, name).dtype
        assert not getattr(again, name).flags.writeable


def changed(made, **header):
    from io import BytesIO

    with np.load(BytesIO(made.to_bytes())) as stored:
        arrays = {name: stored[name] for name in stored.files}
    words = json.loads(arrays["header"].tobytes()) | header
    arrays["header"] = np.frombuffer(json.dumps(words).encode(), np.uint8)
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def test_other_files_are_refused_and_never_unpickled():
    import pickle

    headers = {"format": "other"}, {"scale": [1]}, {"head": "other"}, {"bound": "x"}
    files = [changed(model(), **header) for header in headers]
    for content in (b"", b"PK", pickle.dumps([1]), *files):
        with pytest.raises(InputError, match="not a model of format dpsim-gram-v1"):
            GramModel.from_bytes(content)


def test_shapes_that_do_not_fit_are_refused():
    facts = ItemFacts(3.0, 5.0, np.ones(4), np.ones(5), np.arange(3, dtype=np.int32), 0.0)
    settings = GramSettings.of(5, 5, SCALE, None, popular=3)
    with pytest.raises(InputError, match="one mean and count per item"):
        model_of(facts, None, 0.0, settings)


@pytest.mark.parametrize(
    ("users", "items", "message"),
    [
        ([0], [0, 1], "users and items must be pairs"),
        ([3], [0], r"users must lie in 0\.\.2"),
        ([-1], [0], r"users must lie in 0\.\.2"),
        ([0], [5], "public catalog"),
        ([0], [-1], "public catalog"),
    ],
)
def test_pairs_outside_are_refused(users, items, message):
    with pytest.raises(InputError, match=message):
        model().predict(HISTORY, np.array(users), np.array(items, np.int32))


def test_questions_that_the_model_cannot_answer_are_refused():
    with pytest.raises(InputError, match="this model ranks items"):
        model("top_n").predict(HISTORY, np.array([0]), np.array([0], np.int32))
    with pytest.raises(InputError, match="n must be"):
        model().recommend(HISTORY, 0)
    with pytest.raises(InputError, match="public catalog"):
        model().fold_in(piece_of([{9: 1}]))
