"""``dpsim resume``."""

from __future__ import annotations

from pathlib import Path

import click

from dpsim.cli import options


@click.command()
@click.argument("run_path", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--truth/--no-truth", default=None, help="Show true shares beside the estimates.")
@options.where
@options.output
def resume(  # noqa: PLR0913 - one parameter per option
    *,
    run_path: Path,
    truth: bool | None,
    fleet: str | None,
    shards: int | None,
    address: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Finish the run in the directory RUN.

    Blocks that were merged are not asked again, nothing is charged twice, and the result has
    the same bits, with any fleet and any number of shards.
    """
    from dpsim.cli import render
    from dpsim.cli.progress import listening
    from dpsim.experiments.run import Job, spec_of
    from dpsim.experiments.run import resume as resume_run
    from dpsim.experiments.run_directory import RunDirectory
    from dpsim.experiments.spec import RuntimeProfile

    directory = RunDirectory(run_path)
    profile = RuntimeProfile.model_validate(
        {"fleet": fleet, "shards": shards, "address": address}
    )
    with listening(quiet or as_json) as listener:
        result = resume_run(Job(spec_of(directory), profile, directory, truth), listener)
    (render.as_json if as_json else render.as_table)(result)
