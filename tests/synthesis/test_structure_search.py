"""Structure search: the same network as plain loops find, however the work is cut."""

import time
from itertools import combinations
from math import comb, inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import OneProcess
from dpsim.synthesis import candidates
from dpsim.synthesis.candidates import Level, Universe, pieces
from dpsim.synthesis.contingency import subset_entropies
from dpsim.synthesis.growth import Growth, on_grid
from dpsim.synthesis.scores import SCORES, Information
from dpsim.synthesis.structure_search import (
    SearchSettings,
    estimate,
    search,
    search_as_notes,
)
from dpsim.synthesis.table import CodeTable
from tests.synthesis.real_tables import real_table
from tests.synthesis.test_contingency import all_subsets, made_table

NOISE = CentralNoise(1, "plan")


class ManyWorkers(OneProcess):
    """Claims to have so many workers, and notes what it was given."""

    def __init__(self, workers):
        self.workers = workers
        self.tasks = 0

    def map(self, function, shared, items):
        self.tasks += len(items)
        return super().map(function, shared, items)


def score_twin(table, name, child, parents):
    """From entropies, by the formula; 0 for no parents."""
    if not parents:
        return 0.0
    row = tuple(sorted((child, *parents)))
    if name == "distance":
        found = SCORES[name].measure(table, np.array([row], np.int16))
        return found[0, row.index(child)]
    h = [
        subset_entropies(table, np.array([each], np.int16))[0]
        for each in ((child,), tuple(sorted(parents)), row)
    ]
    value = h[0] + h[1] - h[2]
    if name == "corrected":
        others = prod(table.sizes[a] for a in parents)
        value -= (table.sizes[child] - 1) * (others - 1) / (2 * table.n)
    return value


def plain_search(table, k, root, limit=inf, name="information"):
    """Every step looks at every candidate again."""
    joined, chosen = [root], {root: ()}
    while len(joined) < len(table.sizes):
        found = []
        for child in set(range(len(table.sizes))) - set(joined):
            for size in range(min(len(joined), k), -1, -1):
                sets = [
                    parents
                    for parents in combinations(sorted(joined), size)
                    if not parents or prod(table.sizes[a] for a in (child, *parents)) <= limit
                ]
                for parents in sets:
                    score = round(score_twin(table, name, child, parents) * 2**40)
                    found.append((-score, child, size, parents))
                if sets and name != "corrected":
                    break
        _, child, _, parents = min(found)
        joined.append(child)
        chosen[child] = parents
    return joined, chosen


def plain_notes(table, k, root):
    """The notes' loops, word for word."""
    joined, chosen = [root], {root: tuple[int, ...]()}
    rest = [a for a in range(len(table.sizes)) if a != root]
    while rest:
        best: tuple[float, int, tuple[int, ...]] = (-inf, -1, ())
        m = min(len(joined), k)
        for child in rest:
            for split in range(len(joined) - m + 1):
                for others in combinations(joined[split + 1 :], m - 1):
                    parents = (*others, joined[split])
                    score = score_twin(table, "information", child, parents)
                    if score > best[0]:
                        best = (score, child, parents)
        _, child, parents = best
        joined.append(child)
        rest.remove(child)
        chosen[child] = tuple(sorted(parents))
    return joined, chosen


def assert_same(found, expected):
    joined, chosen = expected
    assert list(found.net.order) == joined
    assert dict(enumerate(found.net.parents)) == chosen


small = st.builds(
    made_table,
    st.lists(st.integers(2, 5), min_size=2, max_size=5),
    st.sampled_from([2, 12, 150]),
    st.integers(0, 99),
)


@given(small, st.integers(0, 4), st.sampled_from(sorted(SCORES)), st.sampled_from([4, 12, 99]))
def test_the_network_is_that_of_plain_loops(table, k, name, limit):
    settings = SearchSettings(k, name, cell_limit=limit, root=1)
    found = search(table, settings)
    assert_same(found, plain_search(table, k, 1, limit, name))
    for child, parents in enumerate(found.net.parents):
        expected = score_twin(table, name, child, parents)
        assert found.scores[child] == pytest.approx(expected, abs=1e-14)
    assert found.total == pytest.approx(sum(found.scores))


@given(small, st.integers(1, 3), st.integers(0, 9))
def test_the_network_of_the_notes_is_that_of_their_loops(table, k, seed):
    found = search_as_notes(table, k, CentralNoise(seed, "plan"))
    assert_same(found, plain_notes(table, k, found.net.order[0]))
    assert found.is_complete


def test_parents_that_tie_are_the_first_to_join_in_the_notes_and_the_lowest_elsewhere():
    """Column 0 copies 2: both tell 1 the same. From root 2, the notes prefer it."""
    rng = np.random.default_rng(5)
    base = rng.integers(0, 3, 300)
    noisy = np.where(rng.random(300) < 0.4, base, rng.integers(0, 3, 300))
    table = CodeTable((3, 3, 3), np.array([base, noisy, base]).astype(np.uint8))
    seeds = (CentralNoise(seed, "plan") for seed in range(99))
    noise = next(each for each in seeds if search_as_notes(table, 1, each).net.order[0] == 2)
    assert search_as_notes(table, 1, noise).net.to_lists() == [[2, []], [0, [2]], [1, [2]]]
    found = search(table, SearchSettings(1, root=2))
    assert found.net.to_lists() == [[2, []], [0, [2]], [1, [0]]]


@pytest.mark.parametrize(("name", "sums"), [
    ("nltcs", (2.518844, 2.993325, 3.159621)), ("adult", (4.128727, 4.628105, 5.274647)),
])  # fmt: skip
def test_sums_of_information_on_real_tables_are_those_of_the_reference(name, sums):
    table = real_table(name)
    for k, expected in enumerate(sums, 1):
        found = search(table, SearchSettings(k, cell_limit=10**9, root=0))
        assert found.total == pytest.approx(expected, abs=1e-6)
        assert found.dropped == 0
        assert found.reduced == ()


@pytest.mark.parametrize(("name", "steps"), [
    ("nltcs", [(2, (0,), 0.112048), (6, (0, 2), 0.153399), (8, (0, 6), 0.235027)]),
    ("adult", [(5, (0,), 0.224235), (7, (0, 5), 0.776332), (9, (5, 7), 0.279394)]),
])  # fmt: skip
def test_first_steps_on_real_tables_are_those_of_the_reference(name, steps):
    found = search(real_table(name), SearchSettings(2, cell_limit=10**9, root=0))
    for place, (child, parents, score) in enumerate(steps, 1):
        assert found.net.order[place] == child
        assert found.net.parents[child] == parents
        assert found.scores[child] == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(("name", "mean", "pairs"), [
    ("nltcs", 0.090545, {(13, 14): 0.2300, (6, 8): 0.2293, (13, 15): 0.2197}),
    ("adult", 0.061454, {(3, 4): 2.0212, (5, 7): 0.7249, (7, 9): 0.2724}),
])  # fmt: skip
def test_pairwise_information_on_real_tables_is_that_of_the_reference(name, mean, pairs):
    information = pairwise(real_table(name))
    assert np.mean(list(information.values())) == pytest.approx(mean, abs=1e-6)
    best = sorted(information, key=information.__getitem__)[:-4:-1]
    assert best == list(pairs)
    for pair, value in pairs.items():
        assert information[pair] == pytest.approx(value, abs=6e-5)


def pairwise(table):
    d = len(table.sizes)
    h = subset_entropies(table, all_subsets(d, 1))
    rows = all_subsets(d, 2)
    values = h[rows].sum(axis=1) - subset_entropies(table, rows)
    return dict(zip(map(tuple, rows.tolist()), values.tolist(), strict=True))


@pytest.mark.parametrize("name", ["nltcs", "adult"])
def test_one_parent_is_the_best_spanning_tree_whatever_the_root(name):
    table = real_table(name)
    d, information = len(table.sizes), pairwise(table)
    label, tree = list(range(d)), 0.0
    for (a, b), value in sorted(information.items(), key=lambda item: -item[1]):
        if label[a] != label[b]:
            tree += value
            label = [label[a] if each == label[b] else each for each in label]
    for root in range(d):
        found = search(table, SearchSettings(1, cell_limit=10**9, root=root))
        assert found.total == pytest.approx(tree, abs=1e-9)


def test_copies_tie_exactly_and_the_lowest_wins():
    """Adult 3 and 4 hold the same information: every score with one equals the other's."""
    table = real_table("adult")
    found = search(table, SearchSettings(1, root=14))
    assert found.net.order.index(3) < found.net.order.index(4)
    assert found.net.parents[4] == (3,)
    swapped = table.codes.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    again = search(CodeTable(table.sizes, swapped), SearchSettings(1, root=14))
    assert again.net == found.net
    assert again.scores == found.scores


def test_scores_that_differ_by_rounding_only_are_equal():
    scores = np.array([[0.1, 0.1 + 3e-15], [0.1 + 2e-12, np.nan]])
    keys = on_grid(scores)
    assert keys[0, 0] == keys[0, 1] < keys[1, 0]
    assert np.isnan(keys[1, 1])
    rows = np.array([[0, 1], [0, 2]], np.int16)
    nearly = Level(rows, np.array([[0.3, 0.1], [0.3, 0.1 + 3e-15]]), 3)
    growth = Growth([nearly], 0, (0, 1, 2))
    growth.grow(is_largest=True)
    assert growth.order == [0, 1, 2]
    assert growth.scores == {0: 0.0, 1: 0.1, 2: 0.1 + 3e-15}
    as_floats = Growth([nearly], 0, (0, 1, 2), is_by_entry=True)
    as_floats.grow(is_largest=True)
    assert as_floats.order == [0, 2, 1]


@pytest.mark.parametrize("workers", range(1, 8))
def test_neither_workers_nor_pieces_change_a_bit(workers, monkeypatch):
    table = made_table((2, 3, 2, 5, 4, 2, 7), 400)
    whole = search(table, SearchSettings(3, root=2))
    monkeypatch.setattr(candidates, "SHORTEST_TASK", 1e-9)
    monkeypatch.setattr(candidates, "TASKS_PER_WORKER", 1)
    pool = ManyWorkers(workers)
    assert search(table, SearchSettings(3, root=2), pool) == whole
    assert pool.tasks == 4 * workers
    notes = search_as_notes(table, 3, NOISE, pool)
    assert notes == search_as_notes(table, 3, NOISE)


@given(st.integers(0, 5000), st.integers(1, 10**7), st.integers(1, 64))
def test_pieces_cover_every_subset_once_in_order(rows, n, workers):
    subsets = np.arange(2 * rows, dtype=np.int16).reshape(-1, 2)
    found = pieces(subsets, n, workers)
    assert all(len(piece) for piece in found)
    if rows:
        np.testing.assert_array_equal(np.concatenate(found), subsets)
        seconds = candidates.seconds_for(rows, n)
        least = min(len(piece) for piece in found) / rows * seconds
        assert len(found) == 1 or least >= 0.02 or rows < 2 * len(found)
        longest = max(len(piece) for piece in found) / rows * seconds
        assert longest <= 1 + seconds / rows
    else:
        assert found == []


def test_work_is_cut_into_some_tasks_per_worker():
    subsets = np.zeros((4000, 3), np.int16)
    assert len(pieces(subsets, 10, 2)) == 1
    assert len(pieces(subsets, 10**6, 2)) == 8
    assert len(pieces(subsets, 10**8, 2)) == 240


def test_progress_is_told_and_ends_complete(monkeypatch):
    monkeypatch.setattr(candidates, "SHORTEST_TASK", 1e-9)
    told = []
    found = search(
        made_table((2,) * 6, 50),
        SearchSettings(2, root=0),
        ManyWorkers(2),
        tell=lambda *numbers: told.append(numbers),
    )
    assert told[-1] == (found.tables, found.tables) == (41, 41)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 5


def test_dropped_subsets_and_reduced_attributes_are_reported():
    table = made_table((2, 2, 2, 30), 1000)
    found = search(table, SearchSettings(2, cell_limit=16, root=0))
    assert found.dropped == 6  # all pairs and triples with the wide one
    assert found.reduced == (3,)
    assert found.net.parents[3] == ()
    assert found.tables == 4 + 3 + 1


def test_the_default_limit_is_a_fifth_of_the_users_or_32768_cells():
    for n, limit in ((1000, 200), (10**6, 32_768)):
        universe = SearchSettings().universe(CodeTable((2,), np.zeros((1, n), np.uint8)))
        assert universe.limit == limit


def test_a_score_that_falls_compares_parent_sets_of_all_sizes():
    """Independent attributes: the correction leaves most without parents."""
    rng = np.random.default_rng(0)
    table = CodeTable((4,) * 5, rng.integers(0, 4, (5, 500)).astype(np.uint8))
    found = search(table, SearchSettings(3, "corrected", root=0))
    assert_same(found, plain_search(table, 3, 0, 100, "corrected"))
    assert len(found.reduced) >= 2
    assert search(table, SearchSettings(3, cell_limit=10**6, root=0)).reduced == ()


def test_pruning_by_everybody_is_no_pruning():
    table = made_table((2, 3, 2, 5, 4, 2), 300)
    whole = search(table, SearchSettings(3, root=0, cell_limit=999))
    pruned = search(table, SearchSettings(3, root=0, cell_limit=999, prune=5))
    assert pruned.net == whole.net
    assert pruned.tables == whole.tables


def test_pruning_tries_a_childs_best_parents_only():
    table = real_table("nltcs")
    whole = search(table, SearchSettings(3, root=0))
    pruned = search(table, SearchSettings(3, root=0, prune=8))
    assert pruned.tables < 0.5 * whole.tables
    assert pruned.tables <= estimate(table, SearchSettings(3, root=0, prune=8)).tables
    assert 0.99 * whole.total < pruned.total < whole.total


def test_time_that_is_over_gives_the_best_network_of_what_was_counted(monkeypatch):
    table = made_table((2, 3, 2, 5, 4, 2, 7), 400)
    seconds = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    whole = search(table, SearchSettings(3, root=2, cell_limit=999))
    late = search(table, SearchSettings(3, root=2, cell_limit=999, time_limit=2.5))
    assert whole.is_complete
    assert not late.is_complete
    assert late.tables == 7 + 21 + 35
    assert late.net == search(table, SearchSettings(2, root=2, cell_limit=999)).net
    later = search(table, SearchSettings(3, root=2, time_limit=0.5))
    assert later.tables == 7
    assert later.net.edges == ()


def test_an_incomplete_level_never_displaces_better_smaller_sets(monkeypatch):
    """Only some triples are counted: a child keeps its pair where it scores more."""
    table = made_table((2, 3, 2, 5, 4, 2, 7), 400)
    monkeypatch.setattr(candidates, "SHORTEST_TASK", 1e-9)
    monkeypatch.setattr(candidates, "TASKS_PER_WORKER", 5)
    seconds = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    late = search(table, SearchSettings(2, root=2, time_limit=10.5))
    tree = search(table, SearchSettings(1, root=2))
    assert 28 < late.tables < 63
    assert late.total >= tree.total


def test_constant_attributes_come_last_alone():
    table = made_table((1, 3, 2, 1, 4), 100)
    found = search(table, SearchSettings(2, root=4, cell_limit=24))
    assert found.net.order[-2:] == (0, 3)
    assert found.net.parents[0] == found.net.parents[3] == ()
    assert not {0, 3} & {parent for parent, _ in found.net.edges}
    assert found.reduced == ()


def test_one_attribute_no_parents_and_too_many_parents_are_fine():
    one = made_table((3,), 10)
    assert search(one, SearchSettings(2), noise=NOISE).net.to_lists() == [[0, []]]
    assert search_as_notes(one, 3, NOISE).net.to_lists() == [[0, []]]
    table = made_table((3, 2, 4), 50)
    assert search(table, SearchSettings(0, root=1)).net.edges == ()
    many = search(table, SearchSettings(9, root=1, cell_limit=99))
    assert many == search(table, SearchSettings(2, root=1, cell_limit=99))


def test_the_root_is_drawn_uniformly_by_its_address():
    table = made_table((2, 2, 2, 1), 20)
    roots = [
        search(table, SearchSettings(1), noise=CentralNoise(seed, "plan")).net.order[0]
        for seed in range(300)
    ]
    counts = np.bincount(roots, minlength=4)
    assert counts[3] == 0
    assert (np.abs(counts[:3] - 100) < 5 * (300 * 2 / 9) ** 0.5).all()
    assert search(table, SearchSettings(1), noise=NOISE) == search(
        table, SearchSettings(1), noise=NOISE
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parents": -1}, "parents must be"), ({"parents": 2.0}, "parents must be"),
        ({"score": "mi"}, "score must be one of"), ({"cell_limit": 0}, "cell_limit must be"),
        ({"parents": 3, "prune": 2}, "prune must be"), ({"time_limit": 0}, "time_limit must"),
        ({"time_limit": float("nan")}, "time_limit must"), ({"root": 5}, "root must be"),
        ({"root": 2}, "root must be"), ({}, "give the noise, or a root"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(InputError, match=message):
        search(made_table((2, 2, 1), 10), SearchSettings(**settings))


def test_tables_without_users_or_values_are_refused():
    with pytest.raises(InputError, match="n must be"):
        search(made_table((2, 2), 0), SearchSettings(root=0))
    with pytest.raises(InputError, match="n must be"):
        search_as_notes(made_table((2, 2), 0), 1, NOISE)
    with pytest.raises(InputError, match="two values or more"):
        search(made_table((1, 1), 9), SearchSettings(root=0))


@pytest.mark.parametrize("limit", [1, 4, 11, 60, inf])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_subsets_are_all_within_the_limit_in_order(width, limit):
    sizes = (3, 2, 1, 5, 2, 4)
    active = [a for a in range(6) if sizes[a] > 1]
    expected = [
        row
        for row in combinations(active, width)
        if width == 1 or prod(sizes[a] for a in row) <= limit
    ]
    rows = Universe(sizes, limit).subsets(width)
    assert rows.dtype == np.int16
    assert [tuple(row) for row in rows.tolist()] == expected
    assert Universe(sizes, limit).count(width) == len(expected)


def test_too_many_tables_are_refused_before_any_is_counted(monkeypatch):
    monkeypatch.setattr(candidates, "MAX_TABLES", 30_000)
    table = CodeTable((2,) * 50, np.zeros((50, 1000), np.uint8))
    with pytest.raises(InputError, match="asks for 251,175 tables, and 30,000 is the most"):
        search(table, SearchSettings(3, root=0, cell_limit=99))
    with pytest.raises(InputError, match="30,000 is the most"):
        search_as_notes(table, 3, NOISE)
    with pytest.raises(InputError, match="asks for 230,300 tables"):
        Universe(table.sizes, 99).subsets(4)
    few = SearchSettings(3, root=0, cell_limit=8)
    assert estimate(table, few).tables == 50 + comb(50, 2) + comb(50, 3)


def test_the_estimate_counts_what_the_search_counts():
    table = made_table((2, 3, 2, 5, 4, 2, 7), 400)
    for k in (0, 1, 2, 3):
        guess = estimate(table, SearchSettings(k, root=0))
        assert guess.tables == search(table, SearchSettings(k, root=0)).tables
        assert guess.bytes >= 7 * 400
        assert guess.largest_cells == min(80, prod((7, 5, 4, 3)[: k + 1]))
    slow = estimate(table, SearchSettings(2, root=0), workers=2, rate=0.5)
    assert slow.seconds == slow.tables / 4


def test_a_hundred_attributes_need_as_many_tables_as_there_are_triples():
    table = made_table((3,) * 30, 200)
    found = search(table, SearchSettings(2, root=0))
    assert found.tables == 30 + comb(30, 2) + comb(30, 3)
    assert isinstance(SCORES["information"], Information)
