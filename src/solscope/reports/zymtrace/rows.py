"""Exports of samplers as plain rows: CSV, TSV, JSON in the shapes that databases print."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from solscope.errors import ReportError

HINT = "export kernel names with their samples or shares as CSV, TSV or JSON"


@dataclass(frozen=True, slots=True)
class Rows:
    """Column titles and rows of cells, text or numbers."""

    titles: tuple[str, ...]
    cells: list[Sequence[Any]]
    ragged: int = 0


def parse(data: bytes) -> Rows | None:
    """The table in these bytes, ``None`` where there is none."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return _json(text)
    try:
        return _separated(text.decode("utf-8"))
    except UnicodeDecodeError:
        return _separated(text.decode("utf-8", "replace"))


def _separated(text: str) -> Rows | None:
    lines = text.splitlines()
    if not lines:
        return None
    delimiter = max("\t,;", key=lines[0].count)
    if not lines[0].count(delimiter):
        return None
    try:
        table = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return None
    titles = tuple(title.strip().lstrip("#").strip() for title in table[0])
    good = [row for row in table[1:] if len(row) == len(titles)]
    if good and _is_types(good[0]):  # ClickHouse's ...WithNamesAndTypes
        good = good[1:]
    return Rows(titles, list(good), len(table) - 1 - len(good))


def _is_types(row: Sequence[str]) -> bool:
    words = ("String", "UInt", "Int", "Float", "LowCardinality", "Nullable", "Decimal")
    return all(cell.startswith(words) for cell in row)


def _json(text: bytes) -> Rows | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _json_lines(text)
    listed = found if isinstance(found, list) else _listed(found)
    meta = found.get("meta") if isinstance(found, dict) else None
    if meta is not None and listed and isinstance(listed[0], list):  # JSONCompact
        titles = tuple(str(column.get("name")) for column in meta if isinstance(column, dict))
        return Rows(titles, [row for row in listed if len(row) == len(titles)])
    return _records(listed)


def _listed(found: Mapping[str, Any]) -> list[Any]:
    """The list of rows in an object: ``data`` first, else the only list of objects."""
    lists = [v for v in found.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
    data = found.get("data")
    if isinstance(data, list):
        return data
    return lists[0] if len(lists) == 1 else []


def _json_lines(text: bytes) -> Rows | None:
    rows = []
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    return _records(rows)


def _records(rows: Sequence[Any]) -> Rows | None:
    objects = [row for row in rows if isinstance(row, dict)]
    if not objects:
        return None
    titles = tuple(str(key) for key in objects[0])
    return Rows(titles, list(_cells(objects, titles)), len(rows) - len(objects))


def _cells(objects: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Iterator[list[Any]]:
    for row in objects:
        yield [row.get(title) for title in titles]


def number(cell: Any, column: str) -> tuple[float | None, bool]:
    """A cell as a number, and whether a percent sign stood behind it.

    Raises ReportError for other text. Empty cells are ``None``.
    """
    if cell is None:
        return None, False
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell), False
    text = str(cell).strip()
    is_percent = text.endswith("%")
    plain = text.removesuffix("%").strip()
    if plain == "":
        return None, is_percent
    try:
        value = float(plain)
    except ValueError:
        raise ReportError(f"{text[:40]!r} in column {column} is no number", hint=HINT) from None
    return value, is_percent
