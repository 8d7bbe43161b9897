"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _stack(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


where = _stack(
    click.option("--fleet", type=click.Choice(["local", "ray"]), default=None,
                 help="One process, or Ray actors. [default: by the size of the data]"),
    click.option("--shards", type=int, default=None,
                 help="Shard processes. [default: one per processor]"),
    click.option("--address", default=None, metavar="HOST:PORT",
                 help="An existing Ray cluster, or 'auto'."),
)  # fmt: skip

output = _stack(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    click.option("-q", "--quiet", is_flag=True, help="No progress."),
)


GROUPS = {
    "What is asked": (
        "schema_file", "attributes", "epsilon", "limit", "seed", "collect", "fidelity",
        "postprocess", "strict", "truth",
    ),
    "Repeated questions, keys and heavy hitters": ("rounds", "first_share", "pad", "top"),
    "Tables (dp2pub, privbayes, mwem)": (
        "preset", "model", "parents", "rows", "network", "time_limit", "target",
    ),
    "mwem": (
        "workload", "queries", "iterations", "replays", "fit", "selection", "noise", "output",
        "measure_share", "trials", "delta",
    ),
    "Users who do not answer": ("dropout", "latency_ms", "spread", "deadline_ms"),
}  # fmt: skip


class Grouped(click.Command):
    """A command whose help shows its options in groups; the rest says where it runs."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section per group."""
        params = self.get_params(ctx)
        left = {param.name: param for param in params if isinstance(param, click.Option)}
        for title, names in (*GROUPS.items(), ("Where it runs, what is shown", None)):
            chosen = (
                [left.pop(name) for name in names if name in left]
                if names
                else [*left.values()]
            )
            records = [record for param in chosen if (record := param.get_help_record(ctx))]
            with formatter.section(title):
                formatter.write_dl(records)
