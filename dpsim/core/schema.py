"""Public knowledge about the data: attributes, domains, labels. Never derived in silence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from math import isfinite, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError

MAX_DOMAIN_SIZE = 1_000_000
OTHER, MISSING = "(other)", "(missing)"
READ_FROM_DATA = "read from the data"


@dataclass(frozen=True, slots=True)
class Category:
    """A declared list of values; with ``other``, one more code for all the rest."""

    values: tuple[str, ...]
    other: bool = False

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values):
            raise InputError("values must be distinct")

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code."""
        return (*self.values, OTHER) if self.other else self.values


@dataclass(frozen=True, slots=True)
class Bins:
    """Numbers within public bounds, cut into equal bins; outside they are clipped."""

    low: float
    high: float
    bins: int

    def __post_init__(self) -> None:
        require_at_least(1, bins=self.bins)
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise InputError(
                f"bounds must be finite and low < high, got {self.low}, {self.high}"
            )

    @property
    def edges(self) -> NDArray[np.float64]:
        """The ``bins + 1`` borders; a value on a border belongs to the bin above it."""
        return np.linspace(self.low, self.high, self.bins + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per bin: its borders."""
        borders = [f"{edge:.6g}" for edge in self.edges]
        return tuple(f"{low}..{high}" for low, high in pairwise(borders))


@dataclass(frozen=True, slots=True)
class CodeRange:
    """Values that are codes already: whole numbers 0..size-1."""

    size: int

    def __post_init__(self) -> None:
        require_at_least(1, size=self.size)

    @property
    def labels(self) -> Sequence[str]:
        """One label per code: the code."""
        return [str(code) for code in range(self.size)]


Domain = Category | Bins | CodeRange


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named column and its domain; ``missing`` says whether absence is a value of it."""

    name: str
    domain: Domain
    missing: Literal["refuse", "category"] = "refuse"

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise InputError(f"an attribute's name must be printable text, got {self.name!r}")
        if not 1 <= self.size <= MAX_DOMAIN_SIZE:
            raise InputError(
                f"attribute {self.name!r}: the domain must have 1 to {MAX_DOMAIN_SIZE:,} "
                f"values, got {self.size:,}; list fewer values, or use fewer bins"
            )

    @property
    def size(self) -> int:
        """The number of codes, those for other and missing values included."""
        domain = self.domain
        if isinstance(domain, Category):
            known = len(domain.values) + domain.other
        else:
            known = domain.bins if isinstance(domain, Bins) else domain.size
        return known + (self.missing == "category")

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code."""
        labels = tuple(self.domain.labels)
        return (*labels, MISSING) if self.missing == "category" else labels

    @property
    def numbers(self) -> NDArray[np.float64]:
        """One number in [-1, 1] per code, nan for a missing one: the bounds are -1 and 1."""
        return _numbers(self)

    @property
    def code_type(self) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds every code."""
        return np.min_scalar_type(self.size - 1)


@lru_cache(maxsize=64)
def _numbers(attribute: Attribute) -> NDArray[np.float64]:
    domain = attribute.domain
    if isinstance(domain, Category):
        raise InputError(
            f'attribute {attribute.name!r} is a category; declare it as kind = "number" with '
            "public bounds to ask for its mean"
        )
    if isinstance(domain, Bins):
        numbers = (2 * np.arange(domain.bins) + 1) / domain.bins - 1
    else:
        numbers = 2 * np.arange(domain.size) / max(1, domain.size - 1) - 1
    if attribute.missing == "category":
        numbers = np.append(numbers, np.nan)
    numbers.setflags(write=False)
    return numbers


@dataclass(frozen=True, slots=True)
class Schema:
    """All attributes, and how they became known."""

    attributes: tuple[Attribute, ...]
    origin: str = "declared"
    reviewed: bool = True

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InputError("a schema needs at least one attribute")
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"attribute names must be distinct, got twice: {', '.join(twice)}")

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise InputError(f"no attribute {name!r}; there are: {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def universe_size(self) -> int:
        """The number of possible records: the product of all domains."""
        return prod(attribute.size for attribute in self.attributes)

    @property
    def is_declared(self) -> bool:
        """Whether a person vouches for it; else it was read from private data."""
        return self.origin != READ_FROM_DATA and self.reviewed

    @property
    def fingerprint(self) -> str:
        """A name for what the codes mean."""
        return blake2b(repr(self.attributes).encode(), digest_size=16).hexdigest()
