"""How files were understood, and summaries of launches, as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solscope.model.finding import Absence
from solscope.model.reading import ColumnReading, FileReading
from solscope.model.report import MetricValue
from solscope.model.summary import LaunchSummary, SummaryReport
from solscope.render import wording

_WIDEST = 40


def explanation(reading: FileReading) -> str:
    """What ``solscope read --explain`` prints: the file, then a line for each column.

    A line shows the metric, the cell as printed with its unit, and the value in base units.
    """
    lines = [f"{reading.path}: {reading.kind}", *_file_lines(reading), ""]
    rows = [_column_row(column) for column in reading.columns]
    titles = ("column", "metric", "as printed", "read as", "note")
    return "\n".join([*lines, *_table(titles, rows)]) + "\n"


def _file_lines(reading: FileReading) -> Iterable[str]:
    yield f"  encoding    {reading.encoding}"
    if reading.delimiter is not None:
        yield f"  delimiter   {reading.delimiter!r}"
    if reading.lines_before_table:
        lines = wording.counted(reading.lines_before_table, "other line")
        yield f"  table       begins after {lines}"
    if reading.number_format:
        yield f"  numbers     {reading.number_format}"
    if reading.has_units_row:
        yield "  units       from the row under the column names"


def _column_row(column: ColumnReading) -> tuple[str, ...]:
    metric = "=" if column.metric == column.column else column.metric or "unknown"
    printed = f"{_cut(column.example)} {column.unit}".strip()
    value = ""
    if column.value is not None:
        value = f"{_cut(_value(column.value))} {column.base_unit}".strip()
    return column.column, metric, printed, value, column.note or ""


def _value(value: MetricValue | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def summaries(report: SummaryReport) -> str:
    """The summaries of a report: a heading for each kernel, then its metrics in base units."""
    return "\n".join(text for one in report.summaries for text in _summary(one)) + "\n"


def absence(one: Absence) -> str:
    """What a file cannot give and why, for people."""
    remedy = f" → {one.remedy}" if one.remedy else ""
    return f"not there: {one.field}: {one.reason}{remedy}"


def absences(listed: Sequence[Absence]) -> list[dict[str, object]]:
    """What a file cannot give and why, for JSON."""
    return [{"field": one.field, "reason": one.reason, "remedy": one.remedy} for one in listed]


def _summary(summary: LaunchSummary) -> Iterable[str]:
    times = "launches" if summary.invocations is None else _launches(summary.invocations)
    ordinal = summary.device.ordinal
    place = summary.device.name or ("a GPU" if ordinal is None else f"device {ordinal}")
    yield f"{summary.name}: {times} on {place}"
    rows = [
        (metric.metric, *(_value(value) for _, value in metric.rollups()), metric.unit)
        for metric in summary.metrics
    ]
    yield from _table(("metric", "minimum", "maximum", "average", "unit"), rows)
    yield ""


def _launches(count: int) -> str:
    return wording.counted(count, "launch")


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (titles, *rows)
    ]


def _cut(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _WIDEST else one_line[: _WIDEST - 1] + "…"
