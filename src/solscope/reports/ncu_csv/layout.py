"""Where the table of a file begins and which of ncu's tables it is. By column names alone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from solscope.errors import ReportError
from solscope.reports.printed.collected import without_marks
from solscope.reports.printed.session import TITLES

FIXED_COLUMNS = frozenset(
    (
        "ID",
        "Process ID",
        "Process Name",
        "Host Name",
        "Kernel Name",
        "Kernel Time",
        "Context",
        "Stream",
        "Block Size",
        "Grid Size",
        "Device",
        "CC",
    )
)
_DELIMITERS = ",;\t"
_HEADER_WORDS = ("Kernel Name", "Invocations", "Address")
_METRIC = re.compile(r"(?:\w+:)?[a-z0-9]+__[a-z0-9_]+(?:\.[a-z0-9_]+)*(?: \(.*\))?")
_LINE_END = re.compile(r"\r\n|\n|\r")
# Aggregates with instances of large kernels exceed Python's default of 128 KiB a cell.
_LARGEST_CELL = 1 << 28


class Page(StrEnum):
    """Which of ncu's pages a table is."""

    RAW = "ncu CSV, raw page"
    DETAILS = "ncu CSV, details page"
    SUMMARY = "ncu CSV, summary"
    SESSION = "ncu CSV, session page"
    SOURCE = "ncu CSV, source page"


@dataclass(frozen=True, slots=True)
class Table:
    """A table within a file: its page, header, delimiter, and the text from the header on, up to
    the next table. ``line`` is the header's, from 1; ``before`` what stands above the first."""

    page: Page
    header: tuple[str, ...]
    delimiter: str
    text: str
    before: tuple[str, ...] = ()
    line: int = 1

    def rows(self) -> Iterator[list[str]]:
        """Rows after the header, as they are: ragged, with repeated headers and stray lines.

        Raises ReportError where the text is no CSV.
        """
        csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
        rows = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter)
        try:
            next(rows)
            yield from rows
        except csv.Error as error:
            raise ReportError("the table cannot be parsed as CSV", where=str(error)) from error

    @property
    def is_cut_in_a_cell(self) -> bool:
        """Whether the text ends inside a quoted cell."""
        return self.text.count('"') % 2 == 1

    @property
    def ends_in_a_line(self) -> bool:
        """Whether the last line has its line end."""
        return self.text.endswith(("\n", "\r"))


# ncu quotes every cell of its header; a log's collector puts its mark before the first.
_PREFIXED = re.compile(r'^([^"\r\n]*[^",;\t\r\n])"(?:ID|Process ID)"[,;\t]"', re.MULTILINE)


def without_prefix(text: str) -> tuple[str, str]:
    """The text without what a collector of logs put before each of its lines (a time, a rank, a
    stream), and that mark as it stands before the header; empty where there is none."""
    marks = [] if text.startswith('"') else _PREFIXED.findall(text)
    return (without_marks(text, marks), marks[0]) if marks else (text, "")


def is_nvtx(column: str) -> bool:
    """Whether a column holds NVTX ranges. Their titles vary by version in the fields named."""
    return "_Range:" in column


def find_table(text: str) -> Table | None:
    """The first table of ncu in the text, ``None`` where there is none."""
    begin = 0
    before: list[str] = []
    for line in _lines(text):
        table = _table_at(line, text[begin:])
        if table is not None:
            return replace(table, before=tuple(before), line=len(before) + 1)
        if line.strip() in TITLES and '"' in text[begin : begin + 200]:
            return Table(Page.SESSION, (), ",", text[begin:], tuple(before), len(before) + 1)
        before.append(line.rstrip("\r\n"))
        begin += len(line)
    return None


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, without a copy of a text that may be large."""
    begin = 0
    for end in _LINE_END.finditer(text):
        yield text[begin : end.end()]
        begin = end.end()
    yield text[begin:]


def find_tables(text: str) -> tuple[Table, ...]:
    """All tables of ncu in the text, in order.

    Runs append to one file, and people paste pages after each other: every header begins a
    table of its own, with its own columns and units.
    """
    first = find_table(text)
    if first is None:
        return ()
    heads = [(0, first)]
    for begin, line in _lines_with_a_header_word(first.text):
        following = _table_at(line, line) if begin else None
        if following is not None:
            heads.append((begin, following))
    ends = [begin for begin, _ in heads[1:]] + [len(first.text)]
    found, number = [], first.line
    for (begin, table), end in zip(heads, ends, strict=True):
        text = first.text[begin:end]
        found.append(replace(table, text=text, line=number))
        number += len(_LINE_END.findall(text)) if len(heads) > 1 else 0
    return tuple(found)


def _lines_with_a_header_word(text: str) -> list[tuple[int, str]]:
    """Beginning and text of every line that holds one of the words, in order."""
    found: dict[int, str] = {}
    for word in _HEADER_WORDS:
        past = 0  # what is behind was looked at: each search stays within what is new
        at = text.find(word)
        while at >= 0:
            begin = text.rfind("\n", past, at) + 1 or past
            begin = text.rfind("\r", begin, at) + 1 or begin
            end = _LINE_END.search(text, at)
            stop = len(text) if end is None else end.end()
            found[begin] = text[begin:stop]
            past = stop
            at = text.find(word, stop)
    return sorted(found.items())


def _table_at(line: str, text: str) -> Table | None:
    """The table whose header this line is, ``None`` where it is none."""
    found = _header(line)
    page = None if found is None else _page(found[0])
    return None if found is None or page is None else Table(page, *found, text)


def _header(line: str) -> tuple[tuple[str, ...], str] | None:
    if not any(word in line for word in _HEADER_WORDS):
        return None
    if "Kernel Name" not in line and "Metric Name" not in line and "Source" not in line:
        return None  # the other words stand in names and messages, too
    for delimiter in _DELIMITERS:
        if delimiter in line:
            cells = _split(line.strip("\r\n\ufeff"), delimiter)
            if len(set(cells)) > 2:
                return tuple(cells), delimiter
    return None


def _split(line: str, delimiter: str) -> Sequence[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _page(header: tuple[str, ...]) -> Page | None:
    names = set(header)
    if {"Address", "Source"} <= names:
        return Page.SOURCE
    if "Invocations" in names and {"Minimum", "Maximum", "Average"} & names:
        return Page.SUMMARY
    if "Kernel Name" not in names:
        return None
    if {"Metric Name", "Metric Value"} <= names:
        return Page.DETAILS
    metrics = names - FIXED_COLUMNS
    # Turned on its side, a page has the names of kernels there, in which "__" may stand, too.
    if "ID" in names or any(_METRIC.fullmatch(name) for name in metrics):
        return Page.RAW
    return None
