"""Tables in the wrappings in which people carry them: borders, Markdown, JSON, a log driver.

Each becomes the CSV that the tool would have printed; all other text stays as it is.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from solscope.reports.printed import collected
from solscope.reports.printed.encoding import DecodedText, decode, decode_head

_BARS = "|\u2502\u2503"
_BORDERED = re.compile(rf"^[ \t>]*([{_BARS}])[^\r\n]*\1[ \t]*$", re.MULTILINE)
# Lines of a border: +----+, |:---|---:|, and those of box-drawing characters.
_RULE = re.compile(
    r"[ \t>]*[+|\u2500-\u257f](?=[^\r\n]*[-=\u2500\u2501\u2550])[-+=:| \t\u2500-\u257f]*"
)
_MARKED_HEADER = re.compile(
    r"^((?:\[[^\]\r\n]{1,80}\]|[^\s\[|,;\"\u2502])(?:\[[^\]\r\n]{1,80}\]|[^\r\n\[|,;\"\u2502]){0,200}?"
    r"(?<=[\])>:Z\d]))[ \t]*[|\u2502]?[ \t]*\"?(?:Time \(%\)|Start \(ns\))",
    re.MULTILINE,
)
_LISTED = re.compile(r"^[ \t\ufeff]*\[(?=\s*\{)", re.MULTILINE)
_JSON_LINE = re.compile(r'\s*\{"')
_LOG_KEYS = ("log", "line", "message", "MESSAGE", "msg", "textPayload")
"""Keys of a log's records: Docker's, Loki's, journald's, those of clouds."""

_EMPHASIS = re.compile(r"(\*\*|`)(.*)\1", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!<>|])")
_BREAK = re.compile(r"<br\s*/?>")


def table_text(data: bytes) -> DecodedText:
    """The text of a file, its wrapped tables as CSV; ``encoding`` says what was unwrapped."""
    decoded = decode(data)
    text, wrapping = unwrap(decoded.text)
    return DecodedText(text, f"{decoded.encoding}, {wrapping}") if wrapping else decoded


def table_head(head: bytes) -> str:
    """The same of a file's first bytes, which may end within a row."""
    return unwrap(decode_head(head))[0]


def unwrap(text: str) -> tuple[str, str]:
    """The text with its wrapped tables as CSV, and the wrapping; empty where there is none."""
    unmarked = _without_marks(text)
    found, wrapping = _unwrap(unmarked)
    if unmarked is not text:
        wrapping = ", ".join(filter(None, ("marks of a log cut off", wrapping)))
    return found, wrapping


def _unwrap(text: str) -> tuple[str, str]:
    if _JSON_LINE.match(text):
        logged = _logged(_whole_json_lines(f"{text}\n-"))
        if logged is not None:
            return without_borders(logged), "JSON lines of a log"
    begin = text[: 1 << 12].lstrip("\ufeff \t\r\n")[:1]
    if begin in ("[", "{") or "\n[" in text:
        found = _from_json(text)
        if found is not None:
            return found, "JSON"
    bare = without_borders(text)
    return (bare, "a bordered table") if bare is not text else (text, "")


def _without_marks(text: str) -> str:
    """The text without what a log's collector put before the lines of nsys' tables. Those of ncu
    have marks of their own for it, by which their readers know them."""
    if "Time (%)" not in text and "Start (ns)" not in text:
        return text
    marks = [found[1].rstrip() for found in _MARKED_HEADER.finditer(text)]
    return collected.without_marks(text, marks) if marks else text


def without_borders(text: str) -> str:
    """The text with each row of a bordered or Markdown table as a line of CSV; the very text
    where there is none."""
    if not any(bar in text for bar in _BARS) or _BORDERED.search(text) is None:
        return text
    lines = []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if _RULE.fullmatch(bare):
            continue
        row = _BORDERED.fullmatch(bare)
        lines.append(line if row is None else _csv_line(_bordered_cells(bare, row[1])))
    return "".join(lines)


def _bordered_cells(line: str, bar: str) -> list[str]:
    inner = line.strip(" \t>").strip().removeprefix(bar).removesuffix(bar)
    return [_plain(cell) for cell in re.split(rf"(?<!\\)[{bar}]", inner)]


def _plain(cell: str) -> str:
    """A cell without the marks of Markdown around and in it."""
    bare = _ESCAPED.sub(r"\1", _BREAK.sub(" ", cell.strip()))
    while (found := _EMPHASIS.fullmatch(bare)) is not None:
        bare = found[2].strip()
    return html.unescape(bare) if "&" in bare else bare


def _logged(rows: Sequence[Any]) -> str | None:
    """What a collector of logs holds in the lines of its records; ``None`` for other rows."""
    for key in _LOG_KEYS:
        found = [row.get(key) if isinstance(row, dict) else None for row in rows]
        lines = [line for line in found if isinstance(line, str)]
        if lines and len(lines) == len(found):
            return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return None


def _whole_json_lines(text: str) -> list[Any]:
    """All lines but a last one that is cut; none where another is no JSON."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [msgspec.json.decode(line) for line in lines[:-1]]
    except (msgspec.DecodeError, RecursionError):
        return []


def _from_json(text: str) -> str | None:
    """Lists of rows as CSV, whatever stands around them; ``None`` where there is none."""
    if _JSON_LINE.match(text):
        rows = _whole_json_lines(f"{text}\n-")
        return _csv(rows) if len(rows) > 1 else None
    decoder, parts, at = json.JSONDecoder(), [], 0
    while (begin := _LISTED.search(text, at)) is not None:
        start = begin.end() - 1
        try:
            rows, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            rows, end = _whole_objects(text, start), len(text)
        table = _csv(rows)
        if table is None:
            return None
        parts += [text[at : begin.start()], table]
        at = end
    return "".join((*parts, text[at:])) if parts else None


def _whole_objects(text: str, start: int) -> list[Any]:
    """The rows of a list that is cut."""
    try:
        found = json.loads(f"{text[start : text.rfind('}') + 1]}]")
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _csv(rows: Sequence[Any]) -> str | None:
    """Rows of flat cells as CSV under their keys; ``None`` for anything else."""
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    titles = list(dict.fromkeys(key for row in rows for key in row))
    if any(isinstance(cell, dict | list) for row in rows for cell in row.values()):
        return None
    body = ([_cell(row.get(title)) for title in titles] for row in rows)
    return "".join(map(_csv_line, (titles, *body)))


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    return line.getvalue()
