"""Split reports of a real table, where there is one: what the gate saves, and PRAM restores."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dpsim.core.rng import CentralNoise, UserNoise
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.attribute_clustering import AttributeClustering
from dpsim.synthesis.channel_em import cluster_law
from dpsim.synthesis.cluster_budget import budgets_evenly
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.gate import examine_pairs
from dpsim.synthesis.law_entropy import entropy_of_law, information_of_law
from dpsim.synthesis.pram import redraw_table
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable

FOLDER = Path(os.environ.get("DPSIM_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def nltcs():
    path = FOLDER / "nltcs" / "nltcs.csv"
    if not path.exists():
        pytest.skip(f"no {path.name}: set DPSIM_DATA to the folder of real tables")
    rows = np.loadtxt(path, np.uint8, delimiter=",", skiprows=1)
    return CodeTable((2,) * 16, rows.T.copy())


def reports_of(table, epsilon, seed=1):
    budgets = budgets_evenly(table.sizes, epsilon)
    channels = tuple(GRR(size, each) for size, each in zip(table.sizes, budgets, strict=True))
    users = np.arange(table.n)
    codes = [
        channel.perturb(row, UserNoise(seed, "reports", str(attribute), users))
        for attribute, (channel, row) in enumerate(zip(channels, table.codes, strict=True))
    ]
    return SplitReports(CodeTable(table.sizes, np.stack(codes)), channels)


def distance(truth, made, ways):
    subsets = list(combinations(range(len(truth.sizes)), ways))
    gaps = [
        np.abs(joint_counts(truth, each) - joint_counts(made, each)).sum() for each in subsets
    ]
    return float(np.mean(gaps)) / (2 * truth.n)


def test_entropies_and_information_of_the_table(nltcs):
    entropies = [entropy_of_law(joint_counts(nltcs, (a,)) / nltcs.n) for a in range(4)]
    assert entropies == pytest.approx([0.4152, 0.5153, 0.5385, 0.6931], abs=5e-5)
    pairs = {
        pair: information_of_law(joint_counts(nltcs, pair) / nltcs.n)
        for pair in combinations(range(16), 2)
    }
    assert np.mean(list(pairs.values())) == pytest.approx(0.090545, abs=1e-6)
    strongest = sorted(pairs, key=lambda pair: -pairs[pair])[:3]
    assert strongest == [(13, 14), (6, 8), (13, 15)]
    assert [pairs[each] for each in strongest] == pytest.approx(
        [0.23, 0.2293, 0.2197], abs=5e-5
    )


def test_the_signal_is_below_noise_at_epsilon_one_and_clear_without_noise(nltcs):
    assert len(examine_pairs(nltcs).passed) == 120
    signal = examine_pairs(reports_of(nltcs, 1).table).signal
    assert signal.is_below_noise
    assert (signal.pairs, signal.tested, signal.n) == (120, 120, 21_574)
    loud = examine_pairs(reports_of(nltcs, 16).table)
    assert not loud.signal.is_below_noise
    assert loud.signal.users_needed is not None
    assert loud.signal.users_needed < nltcs.n


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "two", "three"), [(2, 0.163, 0.256), (8, 0.159, 0.251)])
def test_pram_per_attribute_is_as_near_as_the_prototype(nltcs, epsilon, two, three):
    reports = reports_of(nltcs, epsilon)
    alone = AttributeClustering.singletons(16)
    fits = [cluster_law(reports, cluster).law for cluster in alone.clusters]
    made = redraw_table(reports, alone, fits, CentralNoise(1, "pram"))
    assert distance(nltcs, made, 2) == pytest.approx(two, abs=0.02)
    assert distance(nltcs, made, 3) == pytest.approx(three, abs=0.025)
    assert distance(nltcs, reports.table, 3) > three + 0.05
