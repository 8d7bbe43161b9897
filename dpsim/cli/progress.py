"""Progress on stderr: a live bar on a terminal, whole lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from dpsim.experiments.run import Listener
from dpsim.runtime.progress import RoundProgress

_QUARTER = 0.25
_SECONDS_BETWEEN_LINES = 5.0


def note(text: str) -> None:
    """A line of its own that changes the meaning of a result, or tells how to go on."""
    click.echo(f"note    {text}", err=True)


@contextmanager
def listening(quiet: bool) -> Iterator[Listener]:
    """A listener for one run: nothing but notes if quiet."""
    if quiet:
        yield Listener(note=note)
    elif sys.stderr.isatty():
        with _bar() as listener:
            yield listener
    else:
        yield Listener(_Lines().watch, note)


@contextmanager
def _bar() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[done]}{task.fields[retries]}  eta", markup=False),
        TimeRemainingColumn(compact=True),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("starting", total=None, done="", retries="")

        def watch(progress: RoundProgress) -> None:
            bars.update(
                task,
                description="asking" if progress.blocks else progress.question,
                total=progress.all,
                completed=progress.done,
                done=f"{progress.done:,} {progress.unit}",
                retries=f", {progress.retries} calls again" if progress.retries else "",
            )

        yield Listener(watch, lambda text: bars.console.print(f"note    {text}", markup=False))


class _Lines:
    """One line per quarter of the work, and at most one every five seconds."""

    def __init__(self) -> None:
        self._started = self._told_at = time.monotonic()
        self._told = 0.0
        self._question = ""

    def watch(self, progress: RoundProgress) -> None:
        share = progress.done / max(1, progress.all)
        now = time.monotonic()
        if progress.question != self._question:
            self._question, self._told, self._started = progress.question, 0.0, now
        if share - self._told < _QUARTER or now - self._told_at < _SECONDS_BETWEEN_LINES:
            return
        self._told, self._told_at = share, now
        left = (now - self._started) * (1 - share) / share
        again = f", {progress.retries} calls again" if progress.retries else ""
        click.echo(
            f"{'asked' if progress.blocks else 'learned':<8}{progress.done:,} of "
            f"{progress.all:,} {progress.unit}{again}, {left:.0f} s left",
            err=True,
        )
