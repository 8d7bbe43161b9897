"""How far models of partitioned local reports are from the truth; real perturbed reports.

python scripts/bench/_local_accuracy.py nltcs=nltcs.csv:2x16 --epsilon 1 --repeats 10
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from dpsim.core.rng import CentralNoise, Purpose, UserNoise, words_at
from dpsim.evaluation.distances import tvd
from dpsim.synthesis.choose_model import ModelChoice, fit_model
from dpsim.synthesis.contingency import cells_of
from dpsim.synthesis.designs import Design
from dpsim.synthesis.group_choice import (
    attribute_design,
    auto_design,
    cover_design,
    pair_design,
)
from dpsim.synthesis.group_reports import GroupReports
from dpsim.synthesis.table import CodeTable

DESIGNS = {
    "auto": auto_design,
    "attribute": attribute_design,
    "pair": pair_design,
    "cover": cover_design,
}


def collect(table: CodeTable, design: Design, seed: int) -> list[GroupReports]:
    """One perturbed report per user, about the group that the user draws."""
    plan = "local accuracy"
    chosen = design.choose(words_at((seed, Purpose.SAMPLE.value, plan, "group"), 0, table.n))
    reports = []
    for place, group in enumerate(design.groups):
        users = np.flatnonzero(chosen == place)
        cells = cells_of(table, group.attributes)[users].astype(np.uint32)
        noise = UserNoise(seed, plan, str(group.attributes), users)
        sent = group.mechanism.perturb(cells, noise)
        tally = group.mechanism.tally(sent)
        reports.append(GroupReports(group.attributes, group.mechanism, users.size, tally))
    return reports


def measure(
    table: CodeTable, epsilon: str, design: str, model: ModelChoice, repeats: int, first: int
) -> str:
    """Mean 1-, 2- and 3-way total variation of a sample of n rows, with standard errors."""
    plan = DESIGNS[design](table.sizes, epsilon)
    found, spent = [], 0.0
    for seed in range(first, first + repeats):
        reports = collect(table, plan, seed)
        begun = time.perf_counter()
        fitted = fit_model(reports, table.sizes, CentralNoise(seed, "fit"), model)
        spent += time.perf_counter() - begun
        rows = CodeTable(table.sizes, fitted.sample(table.n, CentralNoise(seed, "rows")))
        found.append([tvd(table, rows, alpha).mean for alpha in (1, 2, 3)])
    means = " ".join(f"{value:.4f}" for value in np.mean(found, axis=0))
    errors = np.std(found, axis=0, ddof=1) / repeats**0.5 if repeats > 1 else np.zeros(3)
    spread = " ".join(f"{value:.4f}" for value in errors)
    return f"ε={epsilon:<4} {design:<9} {model:<9} {means} ± {spread}  {spent / repeats:.2f} s"


def read(text: str) -> tuple[str, CodeTable]:
    """``NAME=FILE:SIZES`` with sizes like 2x16 (sixteen times 2) or 16,7,2."""
    name, rest = text.split("=")
    path, sizes = rest.rsplit(":", 1)
    size, times, count = sizes.partition("x")
    parsed = (int(size),) * int(count) if times else tuple(map(int, sizes.split(",")))
    codes = np.loadtxt(Path(path), np.uint8, delimiter=",", skiprows=1).T
    return name, CodeTable(parsed, np.ascontiguousarray(codes))


def main() -> None:
    """Print one line per table, ε, design and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    parser.add_argument("--design", nargs="+", default=["auto"], choices=DESIGNS)
    parser.add_argument("--model", nargs="+", default=["auto"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    wish = parser.parse_args()
    for text in wish.tables:
        name, table = read(text)
        for epsilon in wish.epsilon:
            for design in wish.design:
                for model in wish.model:
                    line = measure(table, epsilon, design, model, wish.repeats, wish.seed)
                    print(f"{name:<8} {line}", flush=True)


if __name__ == "__main__":
    main()
