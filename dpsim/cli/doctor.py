"""``dpsim doctor``."""

from __future__ import annotations

import click


@click.command()
@click.option("--address", default=None, metavar="HOST:PORT", help="Check this cluster, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(ctx: click.Context, address: str | None, as_json: bool) -> None:
    """Check this machine: one line each, with the remedy; exit 4 if something fails."""
    from dataclasses import asdict

    from dpsim.cli import render
    from dpsim.runtime.doctor import examine

    checks = []
    for check in examine(address):
        checks.append(check)
        if not as_json:
            render.echo(f"{check.verdict:<5} {check.what:<12} {check.detail}")
    if as_json:
        render.as_json(
            {"format": 1, "command": "doctor", "checks": [asdict(c) for c in checks]}
        )
    ctx.exit(4 if any(check.verdict == "fail" for check in checks) else 0)
