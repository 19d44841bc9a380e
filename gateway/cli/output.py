"""What commands print: tables for people, JSON for programs, and never a live control character.

Data goes to stdout, talk to stderr. Whatever a stranger may have written (payloads, headers, names
of jobs) goes through `inert` before a terminal sees it; JSON is exact, because everything outside
printable ASCII is escaped there anyway.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

_CELL_MAX = 60


def inert(text: str) -> str:
    """Return `text` with everything that could steer a terminal or reorder a line escaped.

    Not printable are controls, formats (bidi overrides, zero width), surrogates, private use,
    unassigned characters, and every separator but the space.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 - the range of \x
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - likewise \u


def say(text: str = "") -> None:
    """Print talk: a line on stderr."""
    click.echo(text, err=True)


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return exact JSON in printable ASCII."""
    return json.dumps(value, indent=indent)


def print_json(value: Any, style: str = "json") -> None:
    """Print one JSON document: over several lines, or as `ndjson` on one."""
    click.echo(to_json(value, indent=None if style == "ndjson" else 2))


def print_lines(items: Iterable[Any]) -> None:
    """Print newline-delimited JSON."""
    for item in items:
        click.echo(to_json(item))


Columns = Mapping[str, str]


def print_page(page: Mapping[str, Any], columns: Columns, style: str, more: str) -> None:
    """Print a page `{"items": [...], "next": cursor}` in a format.

    `columns` maps a heading to the field of an item. `more` is the command that shows the next
    page, for people.
    """
    items: list[dict[str, Any]] = page["items"]
    if style == "json":
        print_json(page)
    elif style == "ndjson":
        print_lines(items)
    else:
        print_table(items, columns)
        if page["next"] is not None:
            say(f"more: {more} --before {inert(str(page['next']))}")


def print_table(items: Sequence[Mapping[str, Any]], columns: Columns) -> None:
    """Print rows under headings; an empty table says so on stderr and prints nothing."""
    if not items:
        say("none")
        return
    rows = [list(columns)]
    rows += [[_cell(item.get(field)) for field in columns.values()] for item in items]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print one thing: a name and a value a line; what is unknown is left out."""
    shown = {name: value for name, value in facts.items() if value not in (None, [], "")}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        click.echo(f"{name.ljust(width)}  {text_of(value)}")


def text_of(value: Any) -> str:
    """Return a JSON value as inert text for a person."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(text_of(item) for item in value) or "-"
    return inert(value if isinstance(value, str) else to_json(value))


def _cell(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= _CELL_MAX else text[: _CELL_MAX - 3] + "..."
