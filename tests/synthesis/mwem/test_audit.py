"""The whole loop on neighbors: by exact enumeration, and by sampling."""

from dataclasses import replace
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import pytest

from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.mwem.dense import Fitting
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.settings import MWEMSettings
from dpsim.synthesis.mwem.truth import Truth
from dpsim.synthesis.mwem.workloads import BoxWorkload
from tests.synthesis.mwem.problems import every_box

TABLES = {
    "replace": (np.array([3, 1, 1]), np.array([2, 2, 1])),
    "add_remove": (np.array([3, 1, 1]), np.array([2, 1, 1])),
}
WORKLOADS = {
    "intervals": every_box((3,)),
    "whole": BoxWorkload.marginals((3,), [(0,), (0,)]),
}
REACH = 4


def run_of(workload, neighbors, **change):
    base: dict[str, Any] = {
        "shape": (3,),
        "neighbors": neighbors,
        "epsilon": 2,
        "iterations": 2,
        "replays": 3,
    }
    return MWEM(MWEMSettings(**base | {"is_shuffled": False} | change), workload)


def paths(mwem, truth, total):
    """Log-probability of every path: total, then query and noisy answer, twice.

    Answers are followed up to REACH around a fixed center, which is the same for both tables:
    the ratio of two laws beyond it is that at its ends.
    """
    found: dict[Any, float] = {}
    groups = mwem.workload.groups
    windows = list(range(-REACH + 2, REACH + 3))

    def step(guess, done, values, logp):
        if len(done) == mwem.settings.iterations:
            found[done, values] = logp
            return
        scores = mwem.scores(mwem.engine.answers(guess), truth)
        left = [query for query in range(scores.size) if query not in done]
        law = mwem.selector.probabilities(scores[left])
        for query, share in zip(left, law, strict=True):
            part = slice(groups[query], groups[query + 1])
            width = part.stop - part.start
            options = product(windows if width == 1 else windows[::4], repeat=width)
            for answer in options:
                noise = np.array(answer) - truth.answers[part]
                chance = log(share) + np.log(mwem.measurer.probabilities(noise)).sum()
                targets = np.clip(np.array([*values, *answer], float), 0, total)
                fitting = Fitting(
                    (*done, query), targets, total, 3, np.zeros(0, np.uint64), 0.0
                )
                after = mwem.engine.fit(guess, fitting)
                step(after, (*done, query), (*values, *answer), logp + chance)

    step(mwem.engine.start(total), (), (), 0.0)
    return found


def worst_ratio(mwem):
    """The largest log-ratio of any path between the two tables, and what n adds to it."""
    neighbors = mwem.settings.neighbors
    truths = [Truth.of(mwem.workload, table) for table in TABLES[neighbors]]
    worst = 0.0
    totals = (5.0,) if neighbors == "replace" else (3.0, 5.0, 9.0)
    for total in totals:
        left, right = (paths(mwem, truth, total) for truth in truths)
        start = 0.0
        if neighbors == "add_remove":
            law = DiscreteLaplace(mwem.settings.total_epsilon, 1)
            chances = [law.probabilities(np.array([total - t.total]))[0] for t in truths]
            start = log(chances[0] / chances[1])
        worst = max(worst, *(abs(start + left[path] - right[path]) for path in left))
    return worst


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("neighbors", TABLES)
@pytest.mark.parametrize("selection", ["exponential", "permute-and-flip"])
def test_no_path_of_the_loop_costs_more_than_its_loss(workload, neighbors, selection):
    mwem = run_of(WORKLOADS[workload], neighbors, selection=selection, measure_share="0.8")
    worst = worst_ratio(mwem)
    assert worst <= float(mwem.settings.loss.epsilon) + 1e-9
    assert worst > 0.4 * float(mwem.settings.loss.epsilon)


@pytest.mark.parametrize("neighbors", TABLES)
def test_a_halved_noise_is_found(neighbors):
    """Its own loss states the price; the audit finds that it exceeds the ε asked for."""
    sound = run_of(WORKLOADS["intervals"], neighbors, measure_share="0.9")
    broken = MWEM(replace(sound.settings, noise_divisor=2), sound.workload)
    asked = float(sound.settings.loss.epsilon)
    assert worst_ratio(sound) <= asked + 1e-9
    assert asked * 1.2 < worst_ratio(broken) <= float(broken.settings.loss.epsilon) + 1e-9


def table_of(mwem, truth, runs):
    """How often each first query comes with a measurement above, at or below a threshold."""
    counts = np.zeros((6, 3))
    for seed in range(runs):
        noise = CentralNoise(seed, "audit")
        state = mwem.advance(mwem.start(truth, noise), truth, noise)
        counts[state.queries[0], int(np.sign(state.measured[0] - 2)) + 1] += 1
    return counts


def sampled_excess(mwem, runs=3000):
    """The largest log-ratio in standard errors above ε, over outcomes seen often enough."""
    left, right = (
        table_of(mwem, Truth.of(mwem.workload, table), runs) for table in TABLES["replace"]
    )
    often = (left > 30) & (right > 30)
    ratios = np.abs(np.log(left[often] / right[often]))
    spread = np.sqrt(1 / left[often] + 1 / right[often])
    return float(((ratios - 1.0) / spread).max())


@pytest.mark.statistical
def test_sampled_first_rounds_stay_within_epsilon_and_half_the_noise_does_not():
    sound = run_of(
        WORKLOADS["intervals"], "replace", iterations=1, measure_share="0.9", epsilon=1
    )
    assert sampled_excess(sound) < 4
    broken = MWEM(replace(sound.settings, noise_divisor=2), sound.workload)
    assert sampled_excess(broken) > 4


def test_the_enumeration_holds_nearly_all_probability():
    """Else the worst path could hide outside the window."""
    mwem = run_of(WORKLOADS["intervals"], "replace", epsilon=12)
    truth = Truth.of(mwem.workload, TABLES["replace"][0])
    assert sum(map(exp, paths(mwem, truth, 5.0).values())) > 0.7
