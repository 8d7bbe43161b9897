"""``dpsim run``."""

from __future__ import annotations

from pathlib import Path

import click

from dpsim.cli import options
from dpsim.cli.names import suggestion
from dpsim.experiments.methods import METHODS


@click.command(cls=options.Grouped)
@click.argument("method")
@click.argument("data")
@click.option(
    "--schema",
    "schema_file",
    type=click.Path(),
    default=None,
    help="The declared domain (TOML). [default: DATA.schema.toml, else proposed]",
)
@click.option(
    "--attributes",
    multiple=True,
    metavar="A,B",
    help="Ask for these attributes only; repeatable. [default: all]",
)
@click.option("--epsilon", default="1", show_default=True, help="Loss per user: 1, 0.1, 1/14.")
@click.option("--delta", default="0", show_default=True, help="With preset marginals.")
@click.option(
    "--collect",
    type=click.Choice(["split", "sample"]),
    default="split",
    show_default=True,
    help="Each user answers all attributes, or samples one.",
)
@click.option(
    "--fidelity",
    type=click.Choice(["record", "aggregate"]),
    default="record",
    show_default=True,
    help="Perturb every user, or draw the counts from their law.",
)
@click.option(
    "--postprocess",
    default=None,
    help="norm-sub, norm, norm-mul, norm-cut, base-pos or base-cut, on shares.",
)
@click.option("--rounds", type=int, default=None, help="Rounds of l-*, rappor, privkvm, pem.")
@click.option(
    "--first-share",
    default="0.5",
    show_default=True,
    help="Loss of a memoized user's first report, as a share of ε.",
)
@click.option("--pad", type=int, default=1, show_default=True, help="Keys per user in pckv-*.")
@click.option("--top", type=int, default=10, show_default=True, help="Heavy hitters of pem.")
@click.option("--preset", default=None, help="See dpsim explain METHOD.")
@click.option("--model", default=None, help="Of partition: product, tree, network, classes.")
@click.option("--parents", type=int, default=None, help="Most parents in a network.")
@click.option("--rows", type=int, default=None, help="Records to publish. [default: users]")
@click.option(
    "--network",
    type=click.Path(path_type=Path),
    default=None,
    help='A network not to be searched: JSON, [["child", ["parent", ...]], ...].',
)
@click.option("--time-limit", type=float, default=None, help="Seconds for the search.")
@click.option("--target", default=None, help="Test how well records predict this attribute.")
@click.option("--workload", default=None, help="boxes, marginals-1, -2 or -3.")
@click.option("--queries", type=int, default=None, help="How many random boxes.")
@click.option("--iterations", type=int, default=None, help="How many are measured.")
@click.option("--replays", type=int, default=20, show_default=True, help="Of the updates.")
@click.option(
    "--fit", type=click.Choice(["replays", "newton"]), default="replays", show_default=True,
    help="Multiplicative updates, or a projection.",
)  # fmt: skip
@click.option(
    "--selection", type=click.Choice(["exponential", "permute-and-flip"]),
    default="exponential", show_default=True, help="Of queries.",
)  # fmt: skip
@click.option(
    "--noise", type=click.Choice(["discrete", "laplace"]), default="discrete",
    show_default=True, help="Of measurements.",
)  # fmt: skip
@click.option(
    "--output", type=click.Choice(["last", "average"]), default="last", show_default=True,
    help="The last guess, or the average.",
)  # fmt: skip
@click.option("--measure-share", default="0.5", show_default=True, help="Of ε, for measuring.")
@click.option(
    "--trials", type=int, default=1, show_default=True, help="Try it so often: evaluation."
)
@click.option("--limit", default=None, help="The most the ledger allows. [default: epsilon]")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes the noise.")
@click.option(
    "--dropout", default="0", show_default=True, help="Share of users that do not answer."
)
@click.option(
    "--latency-ms", type=int, default=0, help="Median time to answer, in virtual time."
)
@click.option(
    "--spread", default="1", show_default=True, help="Shape of the log-normal latency."
)
@click.option("--deadline-ms", type=int, default=None, help="Who is later is not counted.")
@click.option("--strict", is_flag=True, help="Accept declared or reviewed schemas only.")
@click.option(
    "--truth/--no-truth",
    default=None,
    help="Show true values beside the estimates. [default: unless --strict or huge]",
)
@click.option("--name", default=None, help="Name of the run. [default: METHOD-DATA-NUMBER]")
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    envvar="DPSIM_RUNS",
    show_default=True,
    help="Folder of the run directories.",
)
@click.option(
    "--resume",
    "may_resume",
    is_flag=True,
    help="Continue the run --name if it exists: one command for first try and retry.",
)
@click.option("--block-size", type=int, default=None, help="Users per block of work.")
@click.option("--actor-per-user", is_flag=True, help="A demonstration, for at most 64 users.")
@options.where
@options.output
def run(  # noqa: PLR0913 - one parameter per option
    *,
    method: str,
    name: str | None,
    runs: Path,
    may_resume: bool,
    network: Path | None,
    truth: bool | None,
    fleet: str | None,
    shards: int | None,
    address: str | None,
    block_size: int | None,
    actor_per_user: bool,
    as_json: bool,
    quiet: bool,
    **asked: object,
) -> None:
    """Run METHOD on DATA, once, with one budget.

    METHOD: see dpsim explain. DATA: a CSV or Parquet file, or a generated table.

    \b
    uniform:n=1e6,d=50,k=2-16      independent attributes
    zipf:k=8,s=1                   the same, unevenly filled
    chain:d=10,k=8,copy=0.35       each copies the one before, at times
    planted:d=10,k=2-5,parents=2   drawn from a Bayes network
    pairs:d=4,f=0.3                keys that 30 % of the users hold
    """  # noqa: D301 - click reads the backspace: lines stay as they are
    if method not in METHODS:
        near = suggestion(method, tuple(METHODS))
        raise click.UsageError(f"no method {method!r}.{near} (dpsim explain lists all)")
    from dpsim.cli import render
    from dpsim.cli.progress import listening
    from dpsim.experiments.network_file import read_network
    from dpsim.experiments.run import Job, resume, start
    from dpsim.experiments.run_directory import RunDirectory
    from dpsim.experiments.spec import RunSpec, RuntimeProfile

    given = read_network(network) if network else None
    spec = RunSpec.model_validate({"method": method, "network": given, **asked})
    profile = RuntimeProfile.model_validate(
        {"fleet": fleet, "shards": shards, "address": address, "block_size": block_size,
         "actor_per_user": actor_per_user}
    )  # fmt: skip
    stem = f"{method}-{Path(spec.data.partition(':')[0]).stem}"
    directory = RunDirectory.named(runs, name) if name else RunDirectory.unused(runs, stem)
    job = Job(spec, profile, directory, truth)
    with listening(quiet or as_json) as listener:
        result = (resume if may_resume and directory.is_started else start)(job, listener)
    (render.as_json if as_json else render.as_table)(result)
