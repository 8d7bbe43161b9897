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
