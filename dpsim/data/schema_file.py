"""A schema as a TOML file that people write, check and sign."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpsim.core.errors import InputError
from dpsim.core.schema import (
    READ_FROM_DATA,
    Attribute,
    Bins,
    Category,
    CodeRange,
    Domain,
    Schema,
)
from dpsim.data.schema_rules import KINDS, TOP, UNDECIDED, mistakes_in

REVIEWED = f"{READ_FROM_DATA}, reviewed"
"""The origin of a schema that was proposed from the data and that a person vouches for."""

_MARK = """\
# DERIVED FROM PRIVATE DATA: check every line, then set reviewed = true
# It shows values that occur in the data. Until a person has set reviewed = true,
# --strict refuses it and results carry no guarantee.
"""


def load_schema(path: Path) -> Schema:
    """The schema in a TOML file."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the schema {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the schema {path} is not UTF-8; save it as UTF-8") from None
    return parse_schema(text, str(path))


def parse_schema(text: str, source: str) -> Schema:
    """The schema in a TOML text; one error lists all its mistakes under the source's name."""
    try:
        content = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{source} is not TOML: {error}") from None
    attributes: list[Attribute] = []
    mistakes = list(_read(content, attributes))
    if mistakes:
        raise InputError("\n".join(f"{source}: {mistake}" for mistake in mistakes))
    origin = content.get("origin", "declared")
    reviewed = content.get("reviewed", origin != READ_FROM_DATA)
    if origin == READ_FROM_DATA and reviewed:
        origin = REVIEWED
    return Schema(tuple(attributes), origin, reviewed)


def dump_schema(schema: Schema) -> str:
    """The schema as TOML text; `parse_schema` reads it back."""
    # Only a person's edit of the file may turn what was read from the data into a declaration.
    is_reviewed = schema.reviewed and schema.origin != READ_FROM_DATA
    lines = [
        f"reviewed = {_flag(is_reviewed)}",
        f"origin = {_quoted(schema.origin)}",
        "",
        "[attribute]",
        *(f"{_quoted(attribute.name)} = {{{_entry(attribute)}}}" for attribute in schema),
    ]
    mark = _MARK if schema.origin == READ_FROM_DATA else ""
    return mark + "\n".join(lines) + "\n"


def _read(content: Mapping[str, Any], attributes: list[Attribute]) -> Iterator[str]:
    yield from mistakes_in(content, TOP, "")
    tables = content.get("attribute", {})
    if not isinstance(tables, dict):
        return
    for name, table in tables.items():
        place = f"attribute.{name}"
        faults = list(_faults(table, place))
        yield from faults
        if not faults:
            try:
                attributes.append(_attribute(name, table))
            except InputError as error:
                yield f"{place}: {error}"


def _faults(table: object, place: str) -> Iterator[str]:
    if not isinstance(table, dict):
        yield f'{place} must be a table such as {{kind = "code", size = 8}}'
        return
    kind = table.get("kind")
    rules = KINDS.get(kind, UNDECIDED) if isinstance(kind, str) else UNDECIDED
    yield from mistakes_in(table, rules, place)


def _attribute(name: str, table: Mapping[str, Any]) -> Attribute:
    return Attribute(name, _domain(table), table.get("missing", "refuse"))


def _domain(table: Mapping[str, Any]) -> Domain:
    if table["kind"] == "category":
        return Category(tuple(table["values"]), table.get("other", False))
    if table["kind"] == "number":
        low, high = table["bounds"]
        return Bins(float(low), float(high), table["bins"])
    return CodeRange(table["size"])


def _entry(attribute: Attribute) -> str:
    missing = ', missing = "category"' if attribute.missing == "category" else ""
    return _domain_entry(attribute.domain) + missing


def _domain_entry(domain: Domain) -> str:
    if isinstance(domain, Category):
        values = ", ".join(map(_quoted, domain.values))
        return f'kind = "category", values = [{values}], other = {_flag(domain.other)}'
    if isinstance(domain, Bins):
        bounds = f"[{_number(domain.low)}, {_number(domain.high)}]"
        return f'kind = "number", bounds = {bounds}, bins = {domain.bins}'
    return f'kind = "code", size = {domain.size}'


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _quoted(text: str) -> str:
    # TOML forbids the raw U+007F that JSON allows, and reads the rest alike.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    short = f"{value + 0.0:.0f}"  # the sum turns -0.0 into 0.0
    return short if abs(value) < 1e15 and float(short) == value else repr(float(value))  # noqa: PLR2004
