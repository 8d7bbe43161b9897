"""The tables of the DP2-Pub notes: they are the sampling floor, whatever ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsim.data.sources import parse_generated
from dpsim.experiments.ask import first_price, limit_of, names_of
from dpsim.experiments.reproduce import Reproduction, Row, Tell
from dpsim.experiments.spec import RunSpec
from dpsim.experiments.tables import publish
from dpsim.protocols.curator import read_table
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.synthesis.notes import notes_metrics
from dpsim.synthesis.notes_floor import Expected, floor_of_mean, floor_of_report

# As printed in the notes: attributes, users, ε, TVD, MSE of counts.
PRINTED = (
    (50, 10_000, 1, 0.061748, 155.74994),
    (50, 10_000, 5, 0.061768, 155.59988),
    (50, 10_000, 10, 0.061796, 155.93071),
    (50, 1_000, 1, 0.19542, 16.159276),
    (50, 1_000, 5, 0.19574, 16.189204),
    (50, 1_000, 10, 0.19506, 16.137156),
    (100, 1_000, 1, 0.19771, 15.878241),
    (100, 1_000, 5, 0.19794, 15.913671),
    (100, 1_000, 10, 0.19771, 15.928150),
)
_COLUMNS = ("d x n", "ε", "really", "TVD", "printed", "floor", "MSE", "printed", "floor")


@dataclass(frozen=True, slots=True)
class _Case:
    attributes: int
    users: int
    epsilon: int
    tvd: float
    mse: float


def reproduce(seed: int, tell: Tell) -> Reproduction:
    """Run ``faithful-local`` on the notes' nine cases and compare with the exact floor."""
    rows, scores = [], []
    for number, case in enumerate(_Case(*printed) for printed in PRINTED):
        tell(f"{case.attributes} attributes, {case.users:,} users, ε={case.epsilon}")
        row, score = _run(case, seed + number)
        rows.append(row)
        scores.append(score)
    return Reproduction(
        title="DP2-Pub notes, local variant: uniform attributes of 100 to 150 values",
        columns=_COLUMNS,
        rows=tuple(rows),
        meaning=(
            "Every figure is the sampling floor: two independent samples of uniform data "
            "differ as much. Nothing of the data survives at these budgets, so ε changes "
            "nothing; and each user pays what stands under 'really', not ε."
        ),
        largest_z=max(scores),
    )


def _run(case: _Case, seed: int) -> tuple[Row, float]:
    data = f"uniform:n={case.users},d={case.attributes},k=100-150,seed={seed}"
    spec = RunSpec.model_validate(
        {"method": "dp2pub", "data": data, "preset": "faithful-local", "seed": seed}
        | {"epsilon": case.epsilon}
    )
    source = parse_generated(data)
    names = names_of(spec, source.schema)
    book = LedgerBook(limit_of(spec, first_price(spec, source).loss))
    release = publish(spec, LocalFleet(source, seed, book), names)
    found = notes_metrics(read_table(source, names), release.table)
    floor = _floor(release.facts, release.table.sizes, case.users)
    scores = (
        abs(found.tvd - floor.tvd) / floor.tvd_sd,
        abs(found.mse_counts - floor.mse_counts) / floor.mse_counts_sd,
    )
    row = (
        f"{case.attributes} x {case.users}", str(case.epsilon),
        f"{float(release.loss.epsilon):.3f}",
        f"{found.tvd:.5f}", f"{case.tvd:.5f}", f"{floor.tvd:.5f}",
        f"{found.mse_counts:.2f}", f"{case.mse:.2f}", f"{floor.mse_counts:.2f}",
    )  # fmt: skip
    return row, max(scores)


def _floor(facts: dict[str, Any], sizes: tuple[int, ...], n: int) -> Expected:
    """What reports that keep nothing would show, at the sizes that were drawn."""
    keeps = facts["keep_probabilities"]
    return floor_of_mean(
        [floor_of_report(size, n, keep) for size, keep in zip(sizes, keeps, strict=True)]
    )
