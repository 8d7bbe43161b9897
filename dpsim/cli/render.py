"""Results on stdout: a table for people, or one JSON object for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from textwrap import wrap
from typing import Any

import click

_MOST_ATTRIBUTES = 6
_MOST_CODES = 12
_BAR = 24
_MOST_DIGITS = 12
_PLAIN = str.maketrans({"ε": "eps", "δ": "delta", "±": "+-", "·": ".", "█": "#", "▏": "|"})


def as_json(result: dict[str, Any]) -> None:
    """Exactly one object, ASCII only."""
    click.echo(json.dumps(result, allow_nan=False))


def as_table(result: dict[str, Any]) -> None:
    """The estimates or the published table, what it cost, and where it is kept."""
    if "table" in result:
        from dpsim.cli.render_table import table_lines

        for line in (*table_lines(result), *facts(result)):
            echo(line)
        return
    truths = {}
    if result["evaluation"] is not None:
        rows = result["evaluation"]["true"]
        truths = {(row["attribute"], row["label"], row["unit"]): row["value"] for row in rows}
    shown = result["attributes"][:_MOST_ATTRIBUTES]
    for item in shown:
        echo("\n".join(_attribute(item, truths)))
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
        f"loss    ε={_short(privacy['spent'])} of ε={_short(privacy['limit'])} spent, "
        f"per {privacy['unit']} ({privacy['neighbors']}) · trusted: {privacy['trusted']}"
    )
    if result["evaluation"] is not None and "table" not in result:
        yield from _error(result)
    for text in result["notes"]:
        yield from wrap(f"note    {text}", 80, subsequent_indent=" " * 8)
    if not users["counted"]:
        yield "note    nobody was counted: there is no estimate"
    yield f"kept    {result['run']}"


def _error(result: dict[str, Any]) -> Iterator[str]:
    found = result["evaluation"]["accuracy"]
    if not found:
        return
    worst = max(found, key=lambda row: row["rmse"] / (row["expected_rmse"] or 1))
    units = {row["unit"] for item in result["attributes"] for row in item["rows"]}
    scale, unit = (100, " points") if "share" in units else (1, "")
    expected = worst["expected_rmse"]
    theory = "" if expected is None else f" (theory {scale * expected:.4g})"
    size = f"{scale * worst['rmse']:.4g}{unit}"
    yield f"error   {size} root mean square, {worst['attribute']}{theory}"


def _attribute(
    item: dict[str, Any], truths: dict[tuple[str, str, str], float | None]
) -> Iterator[str]:
    codes = f"{item['codes']:,} codes"
    yield f"{item['name']} · {item['mechanism']} · {codes} · ε={item['epsilon']}"
    rows = item["rows"][:_MOST_CODES]
    width = max([len("code"), *(len(_fit(row["label"], 20)) for row in rows)])
    head = f"  {'':<{width}}  {'estimate':>10}  {'±95 %':>8}"
    yield head + (f"  {'true':>10}" if truths else "")
    known = [row["estimate"] for row in rows if row["unit"] == "share"]
    known += [truths.get((item["name"], row["label"], "share")) for row in rows]
    top = max([0.01, *(value for value in known if value is not None)])
    for row in rows:
        line = f"  {_fit(row['label'], 20):<{width}}  {_number(row['estimate'], row):>10}"
        half = row["half_width_95"]
        line += f"  {'' if half is None else _number(half, row).removesuffix('%'):>8}"
        if truths:
            truth = truths.get((item["name"], row["label"], row["unit"]))
            line += f"  {_number(truth, row):>10}"
        yield f"{line}  {_bar(row, top)}".rstrip()
    if len(item["rows"]) > _MOST_CODES:
        yield f"  … and {len(item['rows']) - _MOST_CODES:,} more"


def _number(value: float | None, row: dict[str, Any]) -> str:
    if value is None:
        return "unknown"
    return f"{100 * value:.2f}%" if row["unit"] == "share" else f"{value:.5g}"


def _bar(row: dict[str, Any], top: float) -> str:
    if row["unit"] != "share" or row["estimate"] is None:
        return ""
    length: int = round(row["estimate"] / top * _BAR)
    return "█" * min(_BAR, max(0, length))


def _short(loss: dict[str, str]) -> str:
    """ε as it is, or rounded where an exact fraction would be unreadable."""
    text, delta = loss["epsilon"], Fraction(loss["delta"])
    text = text if len(text) <= _MOST_DIGITS else f"{float(Fraction(text)):.6f}…"
    return f"{text}, δ={float(delta):.3g}" if delta else text


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
