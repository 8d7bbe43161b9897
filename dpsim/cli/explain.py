"""``dpsim explain``."""

from __future__ import annotations

import click

from dpsim.cli.names import suggestion
from dpsim.experiments.methods import METHODS


@click.command()
@click.argument("method", required=False)
def explain(method: str | None) -> None:
    """What METHOD does, guarantees and costs; without one, all methods.

    The text is the mechanism's own: formula, guarantee, neighbors, reference.
    """
    from dpsim.cli import render

    if method is None:
        for family in dict.fromkeys(item.family for item in METHODS.values()):
            render.echo(f"{family}")
            for item in METHODS.values():
                if item.family == family:
                    render.echo(f"  {item.name:<16} {item.about}")
        return
    if method not in METHODS:
        raise click.UsageError(f"no method {method!r}.{suggestion(method, tuple(METHODS))}")
    from dpsim.experiments.explanation import explain_method

    for line in explain_method(METHODS[method]):
        render.echo(line)
