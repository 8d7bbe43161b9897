"""Known errors to one clear line and an exit code; a bug keeps its traceback.

0 done · 1 the answer is no · 2 usage or input · 3 budget · 4 environment · 5 gave up,
resumable · 6 integrity · 130 interrupted · 143 terminated
"""

from __future__ import annotations

import errno
import json
import signal
import sys
from types import FrameType

import click

from dpsim.core.errors import (
    BudgetError,
    IncompleteError,
    InputError,
    IntegrityError,
    ResourceError,
)

_CODES = {
    InputError: 2,
    BudgetError: 3,
    ResourceError: 4,
    IncompleteError: 5,
    IntegrityError: 6,
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Terminated(BaseException):
    """SIGTERM, raised where the program stands so that it can tidy up."""


def run_safely(cli: click.Command) -> int:
    """Run a command; known errors become lines on stderr and a code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        hint = (
            error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        )
        return _tell([error.format_message()], 2, f"see {hint} --help" if hint else "")
    except (KeyboardInterrupt, click.Abort):
        return _tell(["stopped; what was merged is kept: dpsim resume RUN goes on"], 130)
    except Terminated:
        return _tell(["terminated; what was merged is kept: dpsim resume RUN goes on"], 143)
    except Exception as error:
        known = describe(error)
        if known is None:
            raise
        return _tell(*known)
    return code if isinstance(code, int) else 0


def describe(error: Exception) -> tuple[list[str], int] | None:
    """The lines and the code of a known error; None for a bug."""
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return str(error).splitlines(), code
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return [_sentence(item) for item in error.errors()], 2
    if isinstance(error, OSError) and error.errno in _FULL:
        return ["the disk is full; free some space and resume the run"], 4
    if isinstance(error, PermissionError):
        return [f"no right to write or read {error.filename}"], 4
    return None


def _sentence(item: dict[str, object]) -> str:
    location = item["loc"]
    key = ".".join(map(str, location)) if isinstance(location, tuple) else str(location)
    text = str(item["msg"]).removeprefix("Value error, ")
    return f"{key}: {text}" if not text.startswith(key) else text


def _tell(lines: list[str], code: int, hint: str = "") -> int:
    if "--json" in sys.argv:
        click.echo(json.dumps({"error": " ".join(lines), "exit": code}))
        return code
    for place, line in enumerate(lines):
        click.echo(f"dpsim: {line}" if place == 0 else f"       {line}", err=True)
    if hint:
        click.echo(f"       {hint}", err=True)
    return code


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
