"""``dpsim demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dpsim.experiments.demo import Demo
    from dpsim.runtime.ray_fleet import RayFleet


@click.command()
@click.option("--quick", is_flag=True, help="Fewer users.")
@click.option(
    "--shards",
    type=click.IntRange(2, 16),
    default=4,
    show_default=True,
    help="Shard processes.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    envvar="DPSIM_RUNS",
    help="Folder of the run directories.",
)
def demo(*, quick: bool, shards: int, runs: Path) -> None:
    """The main job on generated data: many users, separate processes, one budget.

    Shows a private round from shard processes to a release, what a budget costs, and that a
    killed process changes nothing.
    """  # fmt: skip
    from dpsim.cli import render
    from dpsim.experiments.demo import Demo
    from dpsim.experiments.run import Listener
    from dpsim.experiments.run_directory import RunDirectory

    n = 200_000 if quick else 2_000_000
    show = Demo(n, shards, RunDirectory.unused(runs, "demo"))
    names = len(show.source.schema)
    render.echo(f"dpsim demo   {n:,} users · {names} attributes · {shards} shards · seed 0\n")
    with show.processes() as fleet:
        _who(show, fleet)
        result = show.run(Listener())
        render.echo(
            "1  One round. Each user sends one perturbed code per attribute, for ε=1 in all;\n"
            "   it was charged before anybody was asked. The true shares: for study only.\n"
        )
        first = result | {"attributes": result["attributes"][:1]}
        render.as_table(first | {"notes": [], "run": result["run"]})
        _costs(show, fleet)
        _survival(show, fleet)
    render.echo(
        f"open    {result['run']}/results/estimates.csv   your own: dpsim run grr my.csv"
    )


def _who(show: Demo, fleet: RayFleet) -> None:
    from dpsim.cli import render

    for number, (info, users) in enumerate(zip(fleet.infos, show.users_of(), strict=True)):
        render.echo(
            f"   shard {number}   process {info.pid:>7}   holds users "
            f"{users[0]:>9,} to {users[1]:>9,}"
        )
    render.echo("   the aggregator, one more process, sees perturbed reports only\n")


def _costs(show: Demo, fleet: RayFleet) -> None:
    from dpsim.cli import render

    costs = list(show.costs(fleet))
    cells = [f"{100 * cost.rmse:>8.3f}" for cost in costs]
    expected = [f"{100 * cost.expected_rmse:>8.3f}" for cost in costs]
    render.echo("\n2  What a budget costs: root mean square error of a share, in points\n")
    render.echo("   ε       " + "".join(f"{cost.epsilon:>8}" for cost in costs))
    render.echo("   error   " + "".join(cells))
    render.echo("   theory  " + "".join(expected))
    render.echo(
        f"\n   five questions to the same users: the ledger adds up {show.ledger.spent}\n"
    )


def _survival(show: Demo, fleet: RayFleet) -> None:
    from dpsim.cli import render

    charges = len(show.ledger.charges)
    survival = show.survive(fleet)
    verdict = "the same bits" if survival.is_same else "OTHER BITS: please report this"
    charged = "nothing" if len(show.ledger.charges) == charges else "something"
    render.echo("3  A fault. The round at ε=1 is asked again, in new processes\n")
    render.echo(
        f"   killed  shard {survival.shard} (process {survival.pid}) in mid-round: "
        f"{survival.calls_repeated} calls repeated\n"
        f"   result  {verdict} ({survival.digest}), charged again: {charged}\n"
    )
