"""Results on stdout: a table for people, or one JSON object for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

_MOST_ATTRIBUTES = 6
_MOST_CODES = 12
_BAR = 24
_PLAIN = str.maketrans({"ε": "eps", "δ": "delta", "±": "+-", "·": ".", "█": "#", "▏": "|"})


def as_json(result: dict[str, Any]) -> None:
    """Exactly one object, ASCII only."""
    click.echo(json.dumps(result, allow_nan=False))


def as_table(result: dict[str, Any]) -> None:
    """The estimates, then what they cost and where they are kept."""
    truths = {}
    if result["evaluation"] is not None:
        truths = {row["name"]: row for row in result["evaluation"]["attributes"]}
    shown = result["attributes"][:_MOST_ATTRIBUTES]
    for item in shown:
        echo("\n".join(_attribute(item, truths.get(item["name"]))))
        echo("")
    hidden = len(result["attributes"]) - len(shown)
    if hidden:
        echo(f"… and {hidden} more attributes in {result['run']}/results/estimates.csv\n")
    for line in facts(result):
        echo(line)


def facts(result: dict[str, Any]) -> Iterator[str]:
    """Who took part, what was spent, how far from the truth, where it is kept."""
    users, privacy = result["users"], result["privacy"]
    away = "".join(f" · {users[key]:,} {key}" for key in ("late", "dropped") if users[key])
    yield f"users   {users['counted']:,} counted{away}"
    yield (
        f"loss    ε={privacy['spent']['epsilon']} of ε={privacy['limit']['epsilon']} spent, "
        f"per {privacy['unit']} ({privacy['neighbors']}) · trusted: nobody"
    )
    if result["evaluation"] is not None:
        rows = [row for row in result["evaluation"]["attributes"] if "rmse" in row]
        if rows:
            worst = max(rows, key=lambda row: row["rmse"])
            yield (
                f"error   at most {100 * worst['rmse']:.2f} points root mean square "
                f"({worst['name']}; theory {100 * worst['expected_rmse']:.2f})"
            )
    for text in result["notes"]:
        yield f"note    {text}"
    if not users["counted"]:
        yield "note    nobody was counted: there is no estimate"
    yield f"kept    {result['run']}"


def _attribute(item: dict[str, Any], truth: dict[str, Any] | None) -> Iterator[str]:
    yield f"{item['name']} · {len(item['labels']):,} codes · ε={item['epsilon']}"
    if item["estimate"] is None:
        return
    labels = [_fit(label, 20) for label in item["labels"]]
    width = max([len("code"), *map(len, labels[:_MOST_CODES])])
    head = f"  {'code':<{width}}  {'share':>7}  {'±95 %':>6}"
    yield head + (f"  {'true':>7}" if truth else "")
    top = max(0.01, *item["estimate"], *(truth["true"] if truth else []))
    for place in range(min(len(labels), _MOST_CODES)):
        share, half = item["estimate"][place], item["half_width_95"][place]
        line = f"  {labels[place]:<{width}}  {100 * share:>6.2f}%  {100 * half:>6.2f}"
        if truth:
            line += f"  {100 * truth['true'][place]:>6.2f}%"
        yield f"{line}  {_bar(share / top)}".rstrip()
    if len(labels) > _MOST_CODES:
        yield f"  … and {len(labels) - _MOST_CODES:,} more codes"


def _bar(part: float) -> str:
    return "█" * max(0, round(part * _BAR))


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def echo(text: str) -> None:
    """To stdout, in ASCII where it cannot show more."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = text.replace("…", "...").translate(_PLAIN)
        text = text.encode("ascii", "replace").decode("ascii")
    click.echo(text)
