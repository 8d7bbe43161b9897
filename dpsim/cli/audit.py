"""``dpsim audit``."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("mechanisms", nargs=-1)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Simulated users per audit.",
)
@click.option(
    "--alpha", default=1e-8, show_default=True, help="Risk of a false alarm, per audit."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Fixes every trial."
)
@click.option("--mutants", is_flag=True, help="Audit planted bugs, too: each must be flagged.")
@click.option(
    "--through",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Shards of one process, or Ray actors.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def audit(  # noqa: PLR0913 - one parameter per option
    ctx: click.Context,
    mechanisms: tuple[str, ...],
    *,
    samples: int,
    alpha: float,
    seed: int,
    mutants: bool,
    through: str,
    as_json: bool,
) -> None:
    """Try to refute the privacy claims of MECHANISMS; exit 1 if one is refuted.

    Each stated law is checked exactly. Then secret bits are guessed from reports, and the
    hits bound the real loss from below. With no MECHANISM, all are audited.
    """
    from dpsim.cli import render
    from dpsim.cli.names import suggestion
    from dpsim.evaluation.audit_cases import FAMILIES
    from dpsim.evaluation.audit_sampled import AuditSettings
    from dpsim.experiments.audit import AuditJob, run_audit
    from dpsim.runtime.factory import FleetName

    known = tuple(FAMILIES)
    for name in mechanisms:
        if name not in FAMILIES:
            raise click.UsageError(
                f"no mechanism {name!r}.{suggestion(name, known)} There are: {', '.join(known)}"
            )
    where: FleetName = "ray" if through == "ray" else "local"
    chosen = tuple(dict.fromkeys(mechanisms)) or known
    result = run_audit(AuditJob(chosen, AuditSettings(samples, alpha, seed), where, mutants))
    if as_json:
        render.as_json(result)
    else:
        for line in _lines(result):
            render.echo(line)
    ctx.exit(0 if result["passed"] else 1)


def _lines(result: dict[str, Any]) -> list[str]:
    lines = [
        f"dpsim audit   {result['trials']:,} trials each · alpha={result['alpha']:g} · "
        f"seed {result['seed']}",
        "",
        f"{'exact: the stated law':<40}{'claim':>6}{'exact':>7}{'sampler p':>13}",
        *map(_exact_line, result["exact"]),
        "",
        *_table("sampled: bits guessed from reports", result["sampled"]),
        "",
        *_table("fleet: the same through shards", result["fleet"]),
        "",
    ]
    if result["mutants"]:
        lines += [*_table("mutants: each must be a VIOLATION", result["mutants"]), ""]
    return [*lines, *_facts(result)]


def _exact_line(row: dict[str, Any]) -> str:
    found = "VIOLATION" if row["is_violation"] else "sound"
    return (
        f"  {row['name']:<38}{row['claim']:>6.3f}{_number(row['exact'])}"
        f"{row['sampler_p_value']:>13.2g}  {found}"
    )


def _table(title: str, rows: list[dict[str, Any]]) -> list[str]:
    return [f"{title:<40}{'claim':>6}{'exact':>7}{'bound':>7}{'share':>6}  violation",
            *map(_line, rows)]  # fmt: skip


def _line(row: dict[str, Any]) -> str:
    if "z" in row:
        found = "VIOLATION" if row["is_violation"] else f"|z| {abs(row['z']):.1f}"
        return f"  {row['name']:<64}  {found}"
    found = "VIOLATION" if row["is_violation"] else _unseen(row["smallest_excess"])
    return (
        f"  {row['name']:<38}{row['claim']:>6.3f}{_number(row['exact'])}"
        f"{_number(row['guess_epsilon'])}{row['guessed_share']:>6.2f}  {found}"
    )


def _unseen(excess: float | None) -> str:
    return "no power" if excess is None else f"none > {excess:.3f}"


def _number(value: float | None) -> str:
    return f"{'-':>7}" if value is None else f"{value:>7.3f}"


def _facts(result: dict[str, Any]) -> list[str]:
    checks = sum(len(result[key]) for key in ("exact", "sampled", "fleet"))
    facts = [f"checks  {checks} made, {len(result['flagged'])} claims refuted"]
    facts += [f"REFUTED {name}" for name in result["flagged"]]
    if result["mutants"]:
        found = len(result["mutants"]) - len(result["missed"])
        facts.append(f"mutants {found} of {len(result['mutants'])} flagged")
        facts += [f"MISSED  {name}" for name in result["missed"]]
    return [*facts, *(f"note    {text}" for text in result["notes"])]
