"""One question, complete: what determines the reports besides the records and the seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from hashlib import blake2b
from typing import Any, TypeAlias

from dpsim.core.exact import text_of
from dpsim.core.rng import RNG_VERSION

Scalar: TypeAlias = str | int | None
Parameters: TypeAlias = tuple[tuple[str, Scalar], ...]


def canonical(value: object) -> bytes:
    """One spelling per value: sorted keys, no spaces, UTF-8; floats are refused."""

    def refuse(item: object) -> object:
        raise TypeError(f"{type(item).__name__} has no canonical text")

    def check(item: object) -> None:
        if isinstance(item, float):
            refuse(item)
        if isinstance(item, Mapping):
            item = list(item.values())
        if isinstance(item, (list, tuple)):
            for part in item:
                check(part)

    check(value)
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=refuse
    )
    return text.encode()


def parameters_of(value: Any) -> Parameters:  # noqa: ANN401 - any frozen dataclass
    """The fields of a mechanism as canonical scalars: losses become exact texts."""
    return tuple((item.name, _scalar(getattr(value, item.name))) for item in fields(value))


def _scalar(value: object) -> Scalar:
    if isinstance(value, Fraction):
        return text_of(value)
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    raise TypeError(f"a plan holds texts, whole numbers and fractions, not {type(value)}")


@dataclass(frozen=True, slots=True)
class Use:
    """One mechanism on one attribute or several, with its exact parameters."""

    attributes: tuple[str, ...]
    mechanism: str
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class Plan:
    """All that determines the reports of a round, besides the records and the seed.

    The plan is the unit of accounting, of randomness and of replay. Shards, block size,
    paths, attempts and time are not in it: none of them may change a report.
    """

    experiment: str
    round_id: int
    question: str
    uses: tuple[Use, ...]
    collect: str = "split"
    """Every user answers every use, or each samples one of them."""
    group: Parameters = ()
    """Which of the experiment's disjoint groups of users is asked; empty for all."""
    memo: str = ""
    """A name for answers drawn once and repeated in every round; empty if there are none."""
    participation: Parameters = ()
    fidelity: str = "record"
    rng: str = RNG_VERSION

    @property
    def hash(self) -> str:
        """A name for the plan; it is part of the address of every draw."""
        text = canonical(asdict(self))
        return blake2b(text, digest_size=16, person=b"dpsim-plan-v1").hexdigest()
