"""A record source from its description: a generator's name and numbers, or a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.data import child_health
from dpsim.data.generated import GeneratedTable, Node
from dpsim.data.generators import (
    chain_nodes,
    pair_nodes,
    planted_nodes,
    uniform_nodes,
    zipf_nodes,
)
from dpsim.data.histogram_table import HistogramTable

_CELLS_PER_BLOCK = 18_000_000
_BLOCK_SIZES = (1 << 13, 1 << 22)


@dataclass(frozen=True)
class _Recipe:
    make: Callable[[dict[str, str], int], tuple[Node, ...]]
    defaults: dict[str, str] = field(default_factory=dict)


def _whole(values: dict[str, str], key: str) -> int:
    text = values[key].replace("_", "")
    try:
        number = float(text) if "e" in text else int(text)
    except ValueError:
        number = -1
    if number < 0 or number % 1 != 0:  # which refuses infinity too
        raise InputError(f"{key} must be a whole number >= 0, got {values[key]!r}")
    return int(number)


def _range(values: dict[str, str]) -> tuple[int, int]:
    low, _, high = values["k"].partition("-")
    return _whole({"k": low}, "k"), _whole({"k": high or low}, "k")


def _number(values: dict[str, str], key: str) -> float:
    try:
        return float(values[key])
    except ValueError:
        raise InputError(f"{key} must be a number, got {values[key]!r}") from None


_RECIPES = {
    "uniform": _Recipe(
        lambda v, seed: uniform_nodes(_whole(v, "d"), _range(v), seed),
        {"n": "10000", "d": "1", "k": "8", "seed": "0"},
    ),
    "zipf": _Recipe(
        lambda v, seed: zipf_nodes(_whole(v, "d"), _range(v), _number(v, "s"), seed),
        {"n": "10000", "d": "1", "k": "8", "s": "1", "seed": "0"},
    ),
    "pairs": _Recipe(
        lambda v, seed: pair_nodes(_whole(v, "d"), _range(v), _number(v, "f"), seed),
        {"n": "10000", "d": "1", "k": "9", "f": "0.5", "seed": "0"},
    ),
    "chain": _Recipe(
        lambda v, seed: chain_nodes(_whole(v, "d"), _range(v), _number(v, "copy"), seed),
        {"n": "10000", "d": "10", "k": "8", "copy": "0.35", "seed": "0"},
    ),
    "planted": _Recipe(
        lambda v, seed: planted_nodes(_whole(v, "d"), _range(v), _whole(v, "parents"), seed),
        {"n": "10000", "d": "10", "k": "2-5", "parents": "2", "seed": "0"},
    ),
}
GENERATORS = tuple(_RECIPES)


def is_generated(text: str) -> bool:
    """Whether a description names a generator or a table of dpsim, rather than a file."""
    return text.partition(":")[0] in {*GENERATORS, child_health.NAME}


def parse_table(text: str, block_size: int | None = None) -> GeneratedTable | HistogramTable:
    """The table that a description names: generated, or one that comes with dpsim."""
    kind, _, rest = text.partition(":")
    if kind != child_health.NAME:
        return parse_generated(text, block_size)
    if rest:
        raise InputError(f"{kind} takes no numbers: write {kind} alone")
    return child_health.child_health(block_size or block_size_for(2))


def parse_generated(text: str, block_size: int | None = None) -> GeneratedTable:
    """The table that ``uniform:n=1e6,d=50,k=2-16`` describes."""
    kind, _, rest = text.partition(":")
    if kind not in _RECIPES:
        raise InputError(f"no generator {kind!r}; there are: {', '.join(GENERATORS)}")
    recipe = _RECIPES[kind]
    values = dict(recipe.defaults)
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in values:
            near = get_close_matches(key, values, 1)
            hint = f"did you mean {near[0]!r}? " if near and near[0] != key else ""
            raise InputError(
                f"{kind}: {item!r} is not understood; {hint}write key=value with "
                f"{', '.join(values)}"
            )
        values[key] = value
    seed = _whole(values, "seed")
    nodes = recipe.make(values, seed)
    n = _whole(values, "n")
    description = (
        kind + ":" + ",".join(f"{key}={value}" for key, value in sorted(values.items()))
    )
    size = block_size or block_size_for(len(nodes))
    return GeneratedTable(nodes, n, seed, description, require_at_least(1, block_size=size))


def block_size_for(attributes: int) -> int:
    """Users per block: enough for about 50 ms of work, and few enough to be spread."""
    size = _BLOCK_SIZES[0]
    while size < min(_BLOCK_SIZES[1], _CELLS_PER_BLOCK / max(1, attributes)):
        size *= 2
    return size
