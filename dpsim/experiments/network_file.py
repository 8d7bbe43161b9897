"""A network that a person wrote down: JSON, read once, checked where it is used."""

from __future__ import annotations

import json
from pathlib import Path

from dpsim.core.errors import InputError

_FORM = 'write [["child", ["parent", ...]], ...]'


def read_network(path: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(child, parents) by name, in the order of the file."""
    try:
        rows = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InputError(f"cannot read the network file {path}") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON ({error}); {_FORM}") from None
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        raise InputError(f"{path} is no network; {_FORM}")
    return tuple((child, tuple(parents)) for child, parents in rows)


def _is_row(row: object) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 2  # noqa: PLR2004
        and isinstance(row[0], str)
        and isinstance(row[1], list)
        and all(isinstance(parent, str) for parent in row[1])
    )
