"""Exports of samplers as plain rows: CSV, TSV, JSON in the shapes that databases print."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from solscope.errors import ReportError
from solscope.reports.printed.carried import without_borders
from solscope.reports.printed.encoding import decode
from solscope.reports.printed.number_format import NumberFormat, detect, of_locale

_GROUPED = re.compile(r"\d{1,3}(,\d{3})+")
HINT = "export kernel names with their samples or shares as CSV, TSV or JSON"


@dataclass(frozen=True, slots=True)
class Rows:
    """Column titles and rows of cells, text or numbers; ``delimiter`` is ``None`` for JSON."""

    titles: tuple[str, ...]
    cells: list[Sequence[Any]]
    ragged: int = 0
    delimiter: str | None = None

    def column(self, title: str) -> list[Any]:
        """The cells of a column."""
        at = self.titles.index(title)
        return [row[at] for row in self.cells]

    def number_format(self, columns: Sequence[str], locale: str | None) -> NumberFormat | None:
        """How the numbers of these columns are written: by the named locale, else, where a
        spreadsheet of another country may have saved the table, by what the numbers prove.
        ``None`` for a plain decimal point.

        Raises ReportError where a number can be read two ways.
        """
        if locale is not None:
            return of_locale(locale)
        texts = [str(c).rstrip("% ") for t in columns for c in self.column(t) if c is not None]
        is_foreign = self.delimiter == ";" or (
            self.delimiter == "\t" and any("," in text for text in texts)
        )
        return detect(texts, where="") if is_foreign else None


def parse(data: bytes) -> Rows | None:
    """The table in these bytes, ``None`` where there is none."""
    text = decode(data).text.lstrip()
    if text.startswith(("{", "[")):
        return _json(text.encode())
    return _separated(without_borders(text))


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
    body = table[1:]
    if body and _is_types(body[0]):  # ClickHouse's ...WithNamesAndTypes
        body = body[1:]
    good = [row for row in body if len(row) == len(titles)]
    return Rows(titles, list(good), len(body) - len(good), delimiter)


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
    # A row may lack what it has nothing of.
    titles = tuple(dict.fromkeys(str(key) for row in objects for key in row))
    return Rows(titles, list(_cells(objects, titles)), len(rows) - len(objects))


def _cells(objects: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Iterator[list[Any]]:
    for row in objects:
        yield [row.get(title) for title in titles]


def number(
    cell: Any, column: str, numbers: NumberFormat | None = None, *, is_count: bool = False
) -> tuple[float | None, bool]:
    """A cell as a number, and whether a percent sign stood behind it. A count may have commas
    between its thousands.

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
    if numbers is not None:
        plain = numbers.plain(plain)
    elif is_count and _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        raise ReportError(f"{text[:40]!r} in column {column} is no number", hint=HINT) from None
    return value, is_percent
