"""What ``nsys stats`` printed, split into its tables: log lines dropped, kinds decided.

Kinds are decided by columns, because the report's name is often not in the file; where it is
(``Processing [x] with [cuda_gpu_kern_sum.py]``), it says which of several tables this is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_LOG = re.compile(
    r"^\s*(Processing \[|SKIPPED:|Generating |Exporting |Using |NOTICE|WARNING|ERROR|FATAL|"
    r"Processing events|Saving |Warning:|Writing |\[\d+/\d+\]|\*\* |`{3})",
)
_REPORT_NAME = re.compile(
    r"with \[(?:[^\]]*[/\\])?([A-Za-z0-9_]+)\.py|\(([A-Za-z0-9_]+)(?::[^)]*)?\):\s*$|"
    r"Executing '([A-Za-z0-9_]+)' stats report"
)
_SOURCE = re.compile(r"Processing \[(?:[^\]]*[/\\])?([^\]/\\]+)\] with ")
_SKIPPED = re.compile(r"SKIPPED:.* does not contain ([^.]+?)\.?\s*$")
_UNIT = re.compile(r"^(.*?)\s*\(([^()]+)\)\s*$")
_WIDE_GAP = re.compile(r"\s{2,}")
_LINE_END = re.compile(r"\r\n|\n|\r")
_TIGHT_TITLE = re.compile(
    r"(?:Total )?Time ?\((?:%|\w+)\)|Instances|Num Calls|Calls|Name"
    r"|(?:Avg|Average|Med|Min|Minimum|Max|Maximum|StdDev)(?: \(\w+\))?"
)
_TIGHT = re.compile(rf"(?:(?:{_TIGHT_TITLE.pattern})\s)+Name")
_DIGITS = frozenset("0123456789")
DELIMITERS = (",", "\t", ";")
_RULE = re.compile(r"^\s*-{2,}(\s+-{2,})*\s*$")

ROLES = {
    "time": "share",
    "total time": "total",
    "total_ns": "total:ns",
    "total_us": "total:us",
    "total_ms": "total:ms",
    "instances": "count",
    "num calls": "count",
    "calls": "count",
    "launches": "count",
    "count": "count",
    "operations": "count",
    "avg": "mean",
    "average": "mean",
    "med": "median",
    "median": "median",
    "min": "min",
    "minimum": "min",
    "max": "max",
    "maximum": "max",
    "name": "name",
    "kernel name": "name",
    "kernel": "name",
    "operation": "name",
    "category": "category",
    "gridxyz": "grid",
    "blockxyz": "block",
    "start": "start",
    "start_ns": "start:ns",
    "duration": "duration",
    "duration_ns": "duration:ns",
    "corrid": "correlation",
    "corr_id": "correlation",
    "grdx": "grid_x",
    "grdy": "grid_y",
    "grdz": "grid_z",
    "blkx": "block_x",
    "blky": "block_y",
    "blkz": "block_z",
    "grid": "grid",
    "block": "block",
    "bytes": "bytes",
    "device": "device",
    "strm": "stream",
    "stream": "stream",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: what it holds, and the unit that the header states."""

    role: str
    unit: str | None


@dataclass(slots=True)
class StatsTable:
    """A table as printed: kind, columns (``None`` where unknown), rows of text."""

    kind: str  # kernels, trace, calls, gpu, other
    report: str | None
    header: tuple[str, ...]
    columns: tuple[Column | None, ...]
    line: int
    delimiter: str | None = None  # None: text columns
    is_tight: bool = False  # text whose blanks were run together
    source: str | None = None  # the file that nsys read, where it says so
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def where(self, role: str) -> int | None:
        """The position of a column, ``None`` where the table has none."""
        for index, column in enumerate(self.columns):
            if column is not None and column.role == role:
                return index
        return None


@dataclass(slots=True)
class Output:
    """All that was printed: tables, and what nsys said it skipped."""

    tables: list[StatsTable] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def split(text: str) -> Output:
    """The tables in the text, CSV or text columns, several in any order."""
    output = Output()
    report = source = None
    current: StatsTable | None = None
    spans: list[tuple[int, int]] | None = None
    for number, line in _records(text):
        if _LOG.match(line):
            report, source = _named(line, report, source)
            skipped = _SKIPPED.search(line)
            if skipped:
                output.skipped.append(skipped[1])
            current = spans = None
            continue
        if not line.strip():
            if current is not None and current.rows:
                current = spans = None
            continue
        header = _header(line, report, number) if _may_be_a_header(line) else None
        if header is not None:
            header.source = source
            current, spans, report = header, None, None
            output.tables.append(header)
        elif current is not None and _RULE.match(line):
            spans = [match.span() for match in re.finditer(r"-+", line)]
        elif current is not None:
            _add(line, current, spans)
    return output


def _named(line: str, report: str | None, source: str | None) -> tuple[str | None, str | None]:
    """The report and the file that a line of the log names, else those before it."""
    named, read = _REPORT_NAME.search(line), _SOURCE.search(line)
    found = next((g for g in named.groups() if g), None) if named else report
    return found, read[1] if read else source


def _records(text: str) -> Iterator[tuple[int, str]]:
    """Each line; a quoted cell may run over several."""
    held = ""
    begun = 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        whole = f"{held}\n{line}" if held else line
        is_open = whole.count('"') % 2 and len(whole) < 1 << 16
        if is_open and any(mark in whole for mark in DELIMITERS):
            held, begun = whole, begun or number
            continue
        yield begun or number, whole
        held, begun = "", 0
    if held:
        yield begun, held


def _cells(text: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(next(csv.reader([text], delimiter=delimiter), ()))
    except csv.Error:
        return tuple(text.split(delimiter))


def _may_be_a_header(line: str) -> bool:
    """Rows begin with a number, of which a table may have a million."""
    return line.lstrip(' "\ufeff')[:1] not in _DIGITS


def _header(line: str, report: str | None, number: int) -> StatsTable | None:
    """The line as a table's header, ``None`` where it is none."""
    for delimiter in (*DELIMITERS, None):
        if delimiter is None:
            tight = _tight_titles(line)
            names = tight or tuple(_WIDE_GAP.split(line.strip()))
        elif delimiter in line:
            names = _cells(line, delimiter)
        else:
            continue
        columns = tuple(_column(name) for name in names)
        roles = [column.role for column in columns if column is not None]
        kind = _kind(roles, names, report) if len(roles) * 2 >= len(names) else None
        if kind is not None:
            is_tight = delimiter is None and bool(tight)
            return StatsTable(kind, report, names, columns, number, delimiter, is_tight)
    return None


def _tight_titles(line: str) -> tuple[str, ...]:
    """The titles of a table whose blanks were run together, as mails and web pages do: none but
    those of numbers, and the name last, so that each row can be parted in one way."""
    if "(%)" not in line or _WIDE_GAP.search(line.strip()):
        return ()
    found = _TIGHT.fullmatch(line.strip())
    return () if found is None else tuple(_TIGHT_TITLE.findall(line.strip()))


def _column(name: str) -> Column | None:
    plain = " ".join(name.strip("\ufeff").split())
    match = _UNIT.match(plain)
    unit = match[2].strip() if match else None
    role = ROLES.get((match[1] if match else plain).strip().lower())
    if role is None:
        return None
    if ":" in role:
        role, _, unit = role.partition(":")
    return Column(role, unit)


def _kind(roles: Sequence[str], names: Sequence[str], report: str | None) -> str | None:
    """What a header with these columns heads; ``None`` for what is no table of nsys."""
    if "name" not in roles or len(set(roles)) != len(roles):
        return None
    lowered = {name.strip().lower() for name in names}
    told = _told(report)
    if {"start", "duration"} <= set(roles):
        is_gpu = bool({"stream", "device", "grid_x", "grid"} & set(roles))
        return "trace" if is_gpu else "other"
    if "count" not in roles:
        return told if "total" in roles else None
    if lowered & {"calls", "launches"} and "total" not in roles:
        return None  # words of everybody's tables
    if lowered & {"num calls", "calls"} and not lowered & {"kernel", "kernel name"}:
        return told or "calls"
    if "category" in roles:
        return told or "gpu"
    if "operation" in lowered or "count" in lowered or "operations" in lowered:
        return told or ("other" if "total" in roles else None)
    return told or "kernels"


_REPORTS = (
    (re.compile(r"(cuda_?)?gpu_?kern(_?gb)?_?sum"), "kernels"),
    (re.compile(r"(cuda_?)?gpu_?trace"), "trace"),
    (re.compile(r"cuda_?api_?sum"), "calls"),
    (re.compile(r"(cuda_?)?gpu_?sum"), "gpu"),
)


def _told(report: str | None) -> str | None:
    if report is None:
        return None
    return next((kind for pattern, kind in _REPORTS if pattern.fullmatch(report)), "other")


def _add(line: str, table: StatsTable, spans: list[tuple[int, int]] | None) -> None:
    """The line as a row of the table: by its delimiter, by the rule under the header, by gaps."""
    count = len(table.header)
    if table.is_tight:
        table.rows.append(tuple(line.split(None, count - 1)))
    elif table.delimiter is not None:
        table.rows.append(_cells(line, table.delimiter))
    elif spans is not None and len(spans) == count:
        ends = [begin for begin, _ in spans[1:]] + [len(line)]
        starts = [0, *ends[:-1]]
        cells = tuple(line[a:b].strip() for a, b in zip(starts, ends, strict=True))
        if table.rows and not any(cells[:-1]):  # a long name goes on in the next line
            *before, name = table.rows.pop()
            cells = (*before, f"{name} {cells[-1]}")
        table.rows.append(cells)
    else:
        parts = tuple(_WIDE_GAP.split(line.strip(), maxsplit=count - 1))
        table.rows.append(parts if len(parts) == count else (line.strip(),))
