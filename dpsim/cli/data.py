"""``dpsim data``: schema, check, sample."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def data() -> None:
    """Propose a schema, check a table against one, make a table."""


@data.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None,
              help="Write it there; an existing file is kept. [default: print it]")  # fmt: skip
def schema(table: Path, output: Path | None) -> None:
    """Propose a schema for TABLE, for a person to check.

    It is derived from private data: rare values and exact bounds are left out, and --strict
    refuses it until a person has set reviewed = true.
    """
    from dpsim.core.errors import InputError
    from dpsim.data.propose import propose
    from dpsim.data.schema_file import dump_schema
    from dpsim.data.tables import open_table

    if output is not None and output.exists():
        raise InputError(f"{output} exists; choose another name, or remove it first")
    text = dump_schema(propose(open_table(table)))
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, "utf-8")
    click.echo(f"wrote {output}: check every line, then set reviewed = true", err=True)


@data.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--schema", "schema_path", type=click.Path(path_type=Path), default=None,
              help="[default: TABLE.schema.toml]")  # fmt: skip
def check(table: Path, schema_path: Path | None) -> None:
    """Check TABLE against its schema: counts of every problem, never a value."""
    from dpsim.core.errors import InputError
    from dpsim.data.importers import check_table
    from dpsim.data.schema_file import load_schema
    from dpsim.data.tables import open_table

    raw = open_table(table)
    findings = check_table(raw, load_schema(schema_path or table.with_suffix(".schema.toml")))
    for line in findings.notes:
        click.echo(f"note    {line}")
    if findings.errors:
        raise InputError("\n".join(findings.errors))
    click.echo(f"ok      {findings.n:,} rows fit the schema")


@data.command()
@click.argument("description")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True,
              help="A .csv or .parquet file; an existing one is kept.")  # fmt: skip
def sample(description: str, output: Path) -> None:
    """Make the table that DESCRIPTION generates, of any size, with its schema beside it.

    uniform:n=1e6,d=50,k=2-16 · zipf:k=8,s=1 · planted:d=10,k=2-5 · pairs:d=4,f=0.3
    """
    from dpsim.data.sources import parse_generated
    from dpsim.experiments.sample import write_sample

    table = parse_generated(description)
    schema_path = write_sample(table, output)
    click.echo(f"wrote {output} ({table.n:,} rows) and {schema_path}", err=True)
