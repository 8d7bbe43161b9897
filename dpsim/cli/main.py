"""The group of commands; each is loaded when it is called."""

from __future__ import annotations

import importlib
import sys

import click

from dpsim.cli.errors import run_safely
from dpsim.cli.names import COMMANDS, suggestion


class _Lazy(click.Group):
    """Finds a command ``x`` as ``x`` in ``dpsim.cli.x``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"dpsim.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(
                f"no command {args[0]!r}.{suggestion(args[0], tuple(COMMANDS))}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"dpsim {version('dpsim')}")
        ctx.exit()


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Show the version and exit.")  # fmt: skip
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Simulate differential-privacy protocols on many users, and see what a budget costs.

    Shards of users are separate processes that hold private records and send only perturbed
    reports; an aggregator turns them into a release with its ledger. A simulator: whoever
    knows the seed can undo the noise.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """The console script."""
    sys.exit(run_safely(cli))
