"""A drawn network: its candidates by enumeration, its law by integration and by frequency."""

from collections import Counter
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import combinations
from math import exp, inf, log, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.privacy import PrivacyLoss
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.synthesis import candidates, exponential_search
from dpsim.synthesis.candidates import Level, Universe
from dpsim.synthesis.exponential_search import (
    DrawnNetwork,
    DrawSettings,
    Waiting,
    draw_network,
    gumbels,
    select,
    useful_cells,
)
from dpsim.synthesis.scores import Information
from tests.synthesis.real_tables import real_table
from tests.synthesis.test_contingency import made_table
from tests.synthesis.test_structure_search import ManyWorkers, score_twin

NOISE = CentralNoise(1, "plan")


class NotedNoise(CentralNoise):
    """Notes what was asked for, and passes it on."""

    asked: list[tuple[str, str, int, int]]

    def __init__(self):
        super().__init__(1, "plan")
        object.__setattr__(self, "asked", [])

    def words(self, purpose, subject, n, start=0):
        self.asked.append((purpose, subject, start, n))
        return NOISE.words(purpose, subject, n, start)


class GivenNoise(CentralNoise):
    """Returns the words it was made of."""

    given: np.ndarray

    def __init__(self, words):
        super().__init__(1, "plan")
        object.__setattr__(self, "given", words)

    def words(self, purpose, subject, n, start=0):
        return self.given[start : start + n]


def candidates_twin(sizes, joined, k, limit):
    """Every (child, parents) whose parents joined, fit, and leave no room for one more."""
    found = set()
    for child in set(range(len(sizes))) - set(joined):
        sets = [
            set(parents)
            for size in range(k + 1)
            for parents in combinations(joined, size)
            if not parents or prod(sizes[a] for a in (child, *parents)) <= limit
        ]
        found |= {
            (child, tuple(sorted(parents)))
            for parents in sets
            if not any(parents < other for other in sets)
        }
    return found


def levels_for(sizes, k, limit):
    universe = Universe(sizes, limit)
    rows = [universe.subsets(width) for width in range(1, k + 2)]
    return [Level(each, np.zeros(each.shape), len(sizes)) for each in rows if len(each)]


@given(
    st.lists(st.integers(2, 6), min_size=2, max_size=6),
    st.integers(0, 4),
    st.sampled_from([1.5, 5, 8, 12, 30, 100, inf]),
    st.randoms(use_true_random=False),
)
def test_the_candidates_of_each_step_are_the_largest_sets_that_fit(sizes, k, limit, random):
    k = min(k, len(sizes) - 1)
    waiting = Waiting(levels_for(tuple(sizes), k, limit), sizes, limit, k)
    order = list(range(len(sizes)))
    random.shuffle(order)
    for step in range(1, len(sizes)):
        waiting.join(order[step - 1])
        found = [waiting.candidate(rank) for rank in range(waiting.n)]
        expected = candidates_twin(sizes, order[:step], k, limit)
        assert len(found) == len(set(found))
        assert set(found) == expected
        narrow = [
            min(sizes[child], prod(sizes[a] for a in parents)) <= 2
            for child, parents in expected
        ]
        assert waiting.is_narrow == all(narrow)


def test_scores_stand_at_their_candidates_ranks(monkeypatch):
    monkeypatch.setattr(exponential_search, "_CHUNK", 3)
    sizes, k = (2, 3, 2, 4, 2), 2
    levels = []
    for level in levels_for(sizes, k, 16):
        rows = level.subsets
        scores = np.array([[100 * sum(row) + child for child in row] for row in rows.tolist()])
        levels.append(Level(rows, scores.astype(float), 5))
    waiting = Waiting(levels, sizes, 16, k)
    for newest in (3, 0, 4):
        waiting.join(newest)
        scores = np.concatenate(list(waiting.scores()))
        assert scores.size == waiting.n
        for rank, score in enumerate(scores):
            child, parents = waiting.candidate(rank)
            assert score == 100 * (child + sum(parents)) + child


def test_gumbel_draws_invert_their_law_in_both_tails():
    words = np.array([0, 1, 2**32, 2**62, 2**63, 3 * 2**62, 2**64 - 1], np.uint64)
    found = gumbels(words)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
    for word, value in zip(words.tolist()[:-1], found.tolist(), strict=False):
        # Pr[g > x] = 1 - exp(-exp(-x)) is u, and tiny where it decides
        assert -np.expm1(-exp(-value)) == pytest.approx((word + 0.5) / 2**64, rel=1e-13)
    assert found[0] == pytest.approx(65 * log(2), rel=1e-12)
    assert gumbels(words[:0]).size == 0


def chance_of_first(factor, scores, grid=128):
    """How often the first of two wins, over a grid of both draws: no sampling."""
    places = ((np.arange(grid) + 0.5) / grid * 2.0**64).astype(np.uint64)
    wins = 0
    for one in places:
        for other in places:
            noise = GivenNoise(np.array([one, other]))
            wins += select(iter([np.array(scores)]), factor, noise, "x") == 0
    return wins / grid**2


def test_two_candidates_win_as_the_exponential_mechanism_says():
    factor, scores = 1 / (2 * 0.2), (0.5, 0.1)
    law = 1 / (1 + exp(-(0.5 - 0.1) * factor))
    assert abs(chance_of_first(factor, scores) - law) < 0.002
    assert abs(chance_of_first(factor * 1.05, scores) - law) > 0.005


def oracle_counts(epsilon, n=20_000):
    """The reference's vector: scores .1 .2 .35 .5, ε 1, Δ .2."""
    scores = [0.1, 0.2, 0.35, 0.5]
    wins = [
        select(iter([np.array(scores[:3]), np.array(scores[3:])]), epsilon / 0.4, NOISE, str(i))
        for i in range(n)
    ]
    return np.bincount(wins, minlength=4) / n


@pytest.mark.statistical
def test_frequencies_are_those_of_the_reference():
    law = np.array([0.1455, 0.1869, 0.2719, 0.3956])
    error = np.sqrt(law * (1 - law) / 20_000)
    assert (np.abs(oracle_counts(1.0) - law) < 5 * error).all()
    assert (np.abs(oracle_counts(1.2) - law) > 5 * error).any()


def network_law(table, name, epsilon, delta):
    """Every network of one parent each from root 0, and its chance, by enumeration."""
    law = {}

    def grow(joined, chosen, chance):
        rest = [a for a in range(len(table.sizes)) if a not in joined]
        if not rest:
            law[tuple(joined), tuple(chosen)] = chance
            return
        options = [(child, parent) for child in rest for parent in joined]
        weights = np.array(
            [
                exp(epsilon / 2 * score_twin(table, name, child, (parent,)) / (2 * delta))
                for child, parent in options
            ]
        )
        for (child, parent), weight in zip(options, weights / weights.sum(), strict=True):
            grow([*joined, child], [*chosen, parent], chance * weight)

    grow([0], [], 1.0)
    return law


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["information", "distance"])
def test_drawn_networks_follow_the_law_of_composed_exponential_mechanisms(name):
    table, n = made_table((3, 4, 3), 60, seed=3), 3000
    settings = DrawSettings(1, 100, name, root=0)
    delta = {"information": 2 / 60 * log(61 / 2) + 59 / 60 * log(61 / 59)}.get(
        name, 3 / 60 - 2 / 3600
    )
    drawn: Counter[object] = Counter()
    for seed in range(n):
        net = draw_network(table, settings, 8, CentralNoise(seed, "plan")).net
        drawn[net.order, tuple(net.parents[a][0] for a in net.order[1:])] += 1

    def worst(epsilon):
        law = network_law(table, name, epsilon, delta)
        assert sum(law.values()) == pytest.approx(1)
        assert set(drawn) <= set(law)
        return max(abs(drawn[key] / n - p) / (p * (1 - p) / n) ** 0.5 for key, p in law.items())

    assert worst(8) < 5
    assert worst(16) > 5
    assert worst(4) > 5


def test_every_candidate_of_every_step_has_a_draw_of_its_own():
    table, noise = made_table((2, 3, 2, 5, 4), 200), NotedNoise()
    found = draw_network(table, DrawSettings(2, 24, root=1), 1, noise)
    joined, total = [1], 0
    for step, (purpose, subject, start, n) in enumerate(merged(noise.asked), 1):
        expected = candidates_twin(table.sizes, joined, 2, 24)
        assert (purpose, subject, start) == (Purpose.SELECT, f"structure {step}", 0)
        assert n == len(expected)
        child = found.net.order[step]
        assert (child, found.net.parents[child]) in expected
        joined.append(child)
        total += n
    assert found.draws == total
    assert len(joined) == 5


def merged(asked):
    """Parts of one step joined; they must follow each other without gap or overlap."""
    steps: list[tuple[str, str, int, int]] = []
    for purpose, subject, start, n in asked:
        if steps and steps[-1][1] == subject:
            assert start == steps[-1][3]
            steps[-1] = (purpose, subject, 0, start + n)
        else:
            assert start == 0
            steps.append((purpose, subject, 0, n))
    return steps


@pytest.mark.parametrize("workers", range(1, 8))
def test_neither_workers_nor_pieces_nor_chunks_change_a_bit(workers, monkeypatch):
    table = made_table((2, 3, 2, 5, 4, 2), 300)
    settings = DrawSettings(3, 60)
    whole = draw_network(table, settings, 3, NOISE)
    monkeypatch.setattr(candidates, "SHORTEST_TASK", 1e-9)
    monkeypatch.setattr(candidates, "TASKS_PER_WORKER", 1)
    monkeypatch.setattr(exponential_search, "_CHUNK", workers)
    pool = ManyWorkers(workers)
    assert draw_network(table, settings, 3, NOISE, pool) == whole
    assert pool.tasks > workers


@pytest.mark.parametrize("name", ["information", "corrected", "distance"])
def test_a_huge_epsilon_takes_the_best_candidate_in_every_step(name):
    table = made_table((2, 3, 2, 5, 4), 400)
    net = draw_network(table, DrawSettings(2, 24, name, root=3), 10**9, NOISE).net
    joined = [3]
    for child in net.order[1:]:
        best = max(
            candidates_twin(table.sizes, joined, 2, 24),
            key=lambda each: score_twin(table, name, *each),
        )
        assert (child, net.parents[child]) == best
        joined.append(child)


def test_where_nothing_fits_there_are_no_parents():
    table = made_table((3, 4, 5), 100)
    assert draw_network(table, DrawSettings(2, 8), 1, NOISE).net.edges == ()
    assert draw_network(table, DrawSettings(0, 8), 1, NOISE).net.edges == ()


@dataclass(frozen=True)
class Telling(Information):
    """Notes how narrow it was asked to be."""

    asked: tuple[list[bool], ...] = ([],)

    def sensitivity(self, n, *, is_narrow):
        self.asked[0].append(is_narrow)
        return Information.sensitivity(self, n, is_narrow=is_narrow)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((2, 2, 2, 2), [True] * 3), ((3, 3, 3), [False] * 2), ((3, 2, 2), [True] * 2)],
)
def test_the_sensitivity_is_that_of_the_widest_candidate(sizes, expected):
    score = Telling(([],))
    draw_network(made_table(sizes, 50), DrawSettings(2, 99, score, root=0), 1, NOISE)
    assert score.asked[0] == expected


def test_epsilon_matters_and_so_does_the_seed():
    """A budget that changes nothing would be a budget that is not used."""
    table = real_table("nltcs")
    settings = DrawSettings(2, 100, root=0)
    nets = {draw_network(table, settings, e, NOISE).net for e in ("0.0001", "0.1", 1, 10)}
    assert len(nets) == 4
    other = draw_network(table, settings, "0.1", CentralNoise(2, "plan")).net
    assert other not in nets


def test_a_release_holds_its_loss_and_no_scores():
    table = made_table((2, 3, 4), 100)
    drawn = draw_network(table, DrawSettings(2, 24), "0.3", NOISE)
    assert drawn.loss == PrivacyLoss.of("0.3")
    assert drawn.loss.neighbors == "replace"
    assert {field.name for field in fields(DrawnNetwork)} == {"net", "loss", "tables", "draws"}
    told = []
    draw_network(table, DrawSettings(2, 24), 1, NOISE, tell=lambda *n: told.append(n))
    assert told[-1] == (drawn.tables, drawn.tables) == (7, 7)


def test_one_attribute_costs_nothing_and_constants_come_last():
    one = draw_network(made_table((1, 3, 1), 10), DrawSettings(2, 9), 1, NOISE)
    assert one.net.to_lists() == [[1, []], [0, []], [2, []]]
    assert one.loss.epsilon == 0
    assert one.draws == 0
    two = draw_network(made_table((1, 3, 2), 10), DrawSettings(2, 9, root=1), 1, NOISE)
    assert two.net.to_lists() == [[1, []], [2, [1]], [0, []]]
    assert two.loss.epsilon == 1


def test_the_budget_is_divided_among_the_steps_exactly():
    """Four steps at ε/4 each: a step of 4 attributes' network uses a third of it."""
    scales = []

    @dataclass(frozen=True)
    class Unit(Information):
        def sensitivity(self, n, *, is_narrow):
            return 0.5

    def noted(scores, factor, noise, subject):
        scales.append(factor)
        return select(scores, factor, noise, subject)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential_search, "select", noted)
        draw_network(made_table((2,) * 4, 20), DrawSettings(1, 9, Unit()), "0.9", NOISE)
    assert scales == [float(Fraction(3, 10))] * 3


def test_useful_cells_are_those_of_the_reference():
    assert useful_cells(21_574, 16, "0.7") == pytest.approx(117.983, abs=1e-3)
    assert useful_cells(1000, 10, 1, theta=2) == 25


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: draw_network(t, DrawSettings(1, 9), 0, NOISE), "epsilon must be"),
        (lambda t: draw_network(t, DrawSettings(1, 9), -1, NOISE), "epsilon must be"),
        (lambda t: draw_network(t, DrawSettings(1, 9), "nan", NOISE), "epsilon must be"),
        (lambda t: draw_network(t, DrawSettings(1, 9, root=7), 1, NOISE), "root must be"),
        (lambda t: draw_network(made_table((2, 2), 1), DrawSettings(1, 9), 1, NOISE), "n must"),
        (lambda t: DrawSettings(-1, 9), "parents must be"),
        (lambda t: DrawSettings(1, 0), "cell_limit must be"),
        (lambda t: DrawSettings(1, float("nan")), "cell_limit must be"),
        (lambda t: DrawSettings(1, 9, "mi"), "score must be one of"),
        (lambda t: useful_cells(10, 2, 0), "epsilon and theta must be > 0"),
        (lambda t: useful_cells(10, 2, 1, -1), "epsilon and theta must be > 0"),
        (lambda t: useful_cells(0, 2, 1), "n must be"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(InputError, match=message):
        call(made_table((2, 3), 20))
