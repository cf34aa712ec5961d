"""Where the table of a file begins and which of ncu's tables it is. By column names alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from solscope.errors import ReportError
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
    """A table within a file: its page, header, delimiter, and the text from the header on."""

    page: Page
    header: tuple[str, ...]
    delimiter: str
    text: str
    before: tuple[str, ...]

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


def is_nvtx(column: str) -> bool:
    """Whether a column holds NVTX ranges. Their titles vary by version in the fields named."""
    return "_Range:" in column


def find_table(text: str) -> Table | None:
    """The first table of ncu in the text, ``None`` where there is none."""
    begin = 0
    before: list[str] = []
    for line in io.StringIO(text, newline=""):
        found = _header(line)
        if found is not None:
            header, delimiter = found
            page = _page(header)
            if page is not None:
                return Table(page, header, delimiter, text[begin:], tuple(before))
        if line.strip() in TITLES and '"' in text[begin : begin + 200]:
            return Table(Page.SESSION, (), ",", text[begin:], tuple(before))
        before.append(line.rstrip("\r\n"))
        begin += len(line)
    return None


def _header(line: str) -> tuple[tuple[str, ...], str] | None:
    if "Kernel Name" not in line and "Invocations" not in line and "Address" not in line:
        return None
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
    if "ID" in names or any("__" in name for name in metrics):
        return Page.RAW
    return None
