"""A method in words and numbers: its docstring, and what it costs at some ε."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np

from dpsim.core.exact import text_of
from dpsim.experiments.ask import maker_of
from dpsim.experiments.methods import Method
from dpsim.experiments.spec import RunSpec

_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_SIZE = 16
_WIDTH = 80


def explain_method(method: Method) -> Iterator[str]:
    """Name, docstring and a table of real losses and errors, within 80 columns."""
    yield f"{method.name} · {method.family} · {method.about}"
    yield ""
    yield from _fold(inspect.getdoc(method.load()) or "")
    yield ""
    if method.family != "table":
        yield from _costs(method)
        yield ""
    yield f"run it: dpsim run {method.name} DATA --epsilon 1"


def _fold(text: str) -> Iterator[str]:
    """Paragraphs wrapped anew; formulas, which follow a double colon, line by line."""
    is_formula = False
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        lines = paragraph.splitlines()
        groups = groupby(lines, key=lambda line: len(line) - len(line.lstrip()))
        for indent, group in groups:
            margin = " " * indent
            for text_part in _parts(list(group), is_formula):
                yield from textwrap.wrap(
                    text_part, _WIDTH, initial_indent=margin, subsequent_indent=margin
                )
        is_formula = paragraph.rstrip().endswith("::")


def _parts(lines: list[str], is_formula: bool) -> list[str]:
    """What is wrapped as one: a paragraph, or each formula of a line that is too long."""
    if not is_formula:
        return [" ".join(line.strip() for line in lines)]
    wide = [line for line in lines if len(line) > _WIDTH]
    return [
        part
        for line in lines
        for part in (re.split(r"\s{3,}", line.strip()) if line in wide else [line.strip()])
    ]


def _costs(method: Method) -> Iterator[str]:
    """What one report costs and how exact ten thousand of them are."""
    make = maker_of(RunSpec(method=method.name, data=""), method)
    yield f"at {_SIZE} codes, 10,000 users:" if method.family != "mean" else "at 10,000 users:"
    yield f"  {'ε':>6}  {'charged':>9}  {'real':>9}  {'bytes':>6}  standard error"
    for epsilon in _EPSILONS:
        mechanism = _make(make, method, epsilon)
        loss = text_of(mechanism.loss.epsilon)
        charged = loss if len(loss) <= 9 else f"{float(mechanism.loss.epsilon):.6f}"  # noqa: PLR2004
        yield (
            f"  {text_of(epsilon):>6}  {charged:>9}  {mechanism.real_epsilon:>9.6f}  "
            f"{mechanism.report_bytes:>6.3g}  {_error(method, mechanism)}"
        )


def _make(make: Any, method: Method, epsilon: Fraction) -> Any:  # noqa: ANN401 - any mechanism
    if method.family in {"frequency", "longitudinal", "heavy-hitters"}:
        return make((_SIZE, _SIZE) if method.is_joint else _SIZE, epsilon)
    return make(4, epsilon) if method.is_joint else make(epsilon)


def _error(method: Method, mechanism: Any) -> str:  # noqa: ANN401 - any mechanism
    """The standard error of a rare share, or of a mean of 0, from ten thousand users."""
    if method.family == "key-value":
        return " and ".join(f"{v**0.5:.4f}" for v in mechanism.variance(10_000, 0.5, 0.0))
    if method.is_joint:
        variance = mechanism.variance(10_000, 0)
        return f"{float(np.ravel(variance)[0]) ** 0.5:.4f}"
    return f"{mechanism.variance(10_000) ** 0.5:.4f}"
