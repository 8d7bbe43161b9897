"""Ready-made laws for generated tables: uniform, Zipf, chains, planted networks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.rng import Purpose, draws_at
from dpsim.core.schema import MAX_DOMAIN_SIZE
from dpsim.data.generated import Node, thresholds_of, uniform_thresholds

_MAX_LAW_CELLS = 1 << 22


def uniform_nodes(d: int, sizes: tuple[int, int], seed: int) -> tuple[Node, ...]:
    """Independent uniform attributes; domain sizes drawn from a range, both ends included."""
    return tuple(
        Node(name, size, (), uniform_thresholds(size))
        for name, size in zip(_names(d), _sizes(d, sizes, seed), strict=True)
    )


def zipf_nodes(d: int, sizes: tuple[int, int], exponent: float, seed: int) -> tuple[Node, ...]:
    """Independent attributes; code c has weight (c + 1)^-exponent."""
    if not 0 <= exponent <= 10:  # noqa: PLR2004 - beyond it one code holds everybody
        raise InputError(f"s must be >= 0 and <= 10, got {exponent}")
    return tuple(
        Node(name, size, (), thresholds_of(np.arange(1.0, size + 1)[None] ** -exponent))
        for name, size in zip(_names(d), _sizes(d, sizes, seed), strict=True)
    )


def pair_nodes(d: int, sizes: tuple[int, int], held: float, seed: int) -> tuple[Node, ...]:
    """Keys that a share ``held`` of the users holds, with Zipf values; the rest is missing."""
    if not 0 <= held <= 1:
        raise InputError(f"f must be >= 0 and <= 1, got {held}")
    nodes = []
    for name, size in zip(_names(d), _sizes(d, sizes, seed), strict=True):
        weights = 1 / np.arange(1.0, size + 1)
        law = np.append(held * weights / weights.sum(), 1 - held)
        nodes.append(Node(name, size + 1, (), thresholds_of(law[None]), may_be_missing=True))
    return tuple(nodes)


def chain_nodes(d: int, sizes: tuple[int, int], copied: float, seed: int) -> tuple[Node, ...]:
    """Each attribute copies the one before with probability ``copied``, else is uniform.

    A code that the smaller domain lacks is copied modulo its size.
    """
    if not 0 <= copied <= 1:
        raise InputError(f"copy must be >= 0 and <= 1, got {copied}")
    names, domain = _names(d), _sizes(d, sizes, seed)
    nodes = [Node(names[0], domain[0], (), uniform_thresholds(domain[0]))]
    for place in range(1, d):
        size, before = domain[place], domain[place - 1]
        law = np.full((before, size), (1 - copied) / size)
        law[np.arange(before), np.arange(before) % size] += copied
        nodes.append(Node(names[place], size, (names[place - 1],), thresholds_of(law)))
    return tuple(nodes)


def planted_nodes(d: int, sizes: tuple[int, int], parents: int, seed: int) -> tuple[Node, ...]:
    """A random network: each attribute depends on up to ``parents`` earlier ones.

    Each row of a conditional law favors a few codes: its weights are u^-1 for uniform u, so
    that dependencies are strong enough to be found again.
    """
    require_at_least(0, parents=parents)
    names, domain = _names(d), _sizes(d, sizes, seed)
    nodes: list[Node] = []
    for place, name in enumerate(names):
        chosen = _choose(place, min(parents, place), seed)
        rows = int(np.prod([domain[parent] for parent in chosen], dtype=object))
        if rows * domain[place] > _MAX_LAW_CELLS:
            raise InputError(
                f"the law of {name} would have {rows * domain[place]:,} cells; "
                "use fewer parents or smaller domains"
            )
        draws = _draws(seed, f"law {name}", rows * domain[place])
        weights = 1 / ((draws + 0.5) / 2**32)
        law = thresholds_of(weights.reshape(rows, domain[place]))
        nodes.append(Node(name, domain[place], tuple(names[parent] for parent in chosen), law))
    return tuple(nodes)


def _choose(place: int, how_many: int, seed: int) -> list[int]:
    """Distinct earlier places, in order: those with the smallest draws."""
    return sorted(np.argsort(_draws(seed, f"parents {place}", place))[:how_many].tolist())


def _names(d: int) -> list[str]:
    require_at_least(1, d=d)
    width = len(str(d - 1))
    return [f"a{place:0{width}d}" for place in range(d)]


def _sizes(d: int, sizes: tuple[int, int], seed: int) -> list[int]:
    low, high = sizes
    if not 1 <= low <= high <= MAX_DOMAIN_SIZE:
        raise InputError(
            f"k must be a size or a range LOW-HIGH of sizes >= 1, got {low}-{high}"
        )
    spread = (_draws(seed, "sizes", d).astype(np.uint64) * np.uint64(high - low + 1)) >> 32
    return [low + int(extra) for extra in spread]


def _draws(seed: int, subject: str, n: int) -> NDArray[np.uint32]:
    return draws_at((seed, Purpose.STRUCTURE.value, "", subject), 0, n)
