"""The keys a schema file may have, and the rule of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import isfinite
from typing import Any

_SHOWN = 60  # characters of a wrong value


@dataclass(frozen=True, slots=True)
class Rule:
    """What a key's value must be, in words and as a test."""

    text: str
    holds: Callable[[Any], bool]
    is_required: bool = True
    options: tuple[str, ...] = ()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return isfinite(value)
    except OverflowError:
        return False


def _are_values(value: object) -> bool:
    return (
        isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)
    )


def _are_bounds(value: object) -> bool:
    two = 2
    return (
        isinstance(value, list)
        and len(value) == two
        and all(map(_is_number, value))
        and float(value[0]) < float(value[1])
    )


def _one_of(*options: str, is_required: bool = True) -> Rule:
    text = " or ".join(f'"{option}"' for option in options)
    return Rule(text, lambda value: value in options, is_required, options)


_KIND = _one_of("category", "number", "code")
_MISSING = _one_of("refuse", "category", is_required=False)

KINDS: Mapping[str, Mapping[str, Rule]] = {
    "category": {
        "kind": _KIND,
        "values": Rule("a list of distinct texts", _are_values),
        "other": Rule("true or false", _is_flag, False),
        "missing": _MISSING,
    },
    "number": {
        "kind": _KIND,
        "bounds": Rule("two finite numbers [low, high] with low < high", _are_bounds),
        "bins": Rule("a whole number >= 1", _is_count),
        "missing": _MISSING,
    },
    "code": {
        "kind": _KIND,
        "size": Rule("a whole number >= 1", _is_count),
        "missing": _MISSING,
    },
}
"""The keys of an attribute, by its kind."""

UNDECIDED: Mapping[str, Rule] = {
    key: replace(rule, is_required=key == "kind")
    for rules in KINDS.values()
    for key, rule in rules.items()
}
"""The keys of an attribute whose kind is missing or wrong."""

TOP: Mapping[str, Rule] = {
    "reviewed": Rule("true or false", _is_flag, False),
    "origin": Rule("a text", _is_text, False),
    "attribute": Rule(
        "a table with a line for each attribute",
        lambda value: isinstance(value, dict) and bool(value),
    ),
}
"""The keys of the file."""


def mistakes_in(
    table: Mapping[str, Any], rules: Mapping[str, Rule], place: str
) -> Iterator[str]:
    """One line per key that is unknown, missing or against its rule."""
    prefix = f"{place}." if place else ""
    for key, value in table.items():
        if key not in rules:
            yield f"{prefix}{key} is not a known key; {_nearest(key, rules)}{_dot(value)}"
    for key, rule in rules.items():
        if table.get(key) is None:
            if rule.is_required:
                yield f"{prefix}{key} is missing; it must be {rule.text}"
        elif not rule.holds(table[key]):
            yield f"{prefix}{key} must be {rule.text}, {_got(table[key], rule)}"


def _got(value: object, rule: Rule) -> str:
    near = get_close_matches(value, rule.options, n=1) if isinstance(value, str) else []
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return f"got {shown}" + (f"; did you mean {near[0]!r}?" if near else "")


def _nearest(key: str, rules: Mapping[str, Rule]) -> str:
    near = get_close_matches(key, rules, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(rules)}"


def _dot(value: object) -> str:
    return " (a name with a dot needs quotes)" if isinstance(value, dict) else ""
