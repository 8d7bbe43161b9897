"""``dpsim reproduce``."""

from __future__ import annotations

import json

import click

from dpsim.cli.names import suggestion


@click.command()
@click.argument("table", required=False)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Fixes all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def reproduce(
    ctx: click.Context, *, table: str | None, seed: int, as_json: bool, quiet: bool
) -> None:
    """Compute a published TABLE anew, beside its printed figures.

    Exits with 1 if a figure is outside the tolerance. Without TABLE, lists all.
    """
    from dpsim.cli import render
    from dpsim.cli.progress import note
    from dpsim.experiments.reproduce import TABLES
    from dpsim.experiments.reproduce import reproduce as compute

    if table is None:
        for name, (_, about) in TABLES.items():
            render.echo(f"  {name:<16} {about}")
        return
    if table not in TABLES:
        raise click.UsageError(f"no table {table!r}.{suggestion(table, tuple(TABLES))}")
    found = compute(table, seed, (lambda _text: None) if quiet or as_json else note)
    if as_json:
        click.echo(json.dumps(found.as_dict(), allow_nan=False))
    else:
        for line in found.lines():
            render.echo(line)
    ctx.exit(0 if found.holds else 1)
