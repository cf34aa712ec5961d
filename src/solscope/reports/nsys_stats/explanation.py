"""How the columns of printed tables were understood."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.errors import ReportError
from solscope.model.reading import ColumnReading, FileReading
from solscope.reports.nsys_stats.rows import BYTES, TIME_NS, Cells
from solscope.reports.nsys_stats.tables import StatsTable, split
from solscope.reports.printed.carried import table_text

_TIMES = {
    "total": "total_ns",
    "mean": "mean_ns",
    "median": "median_ns",
    "min": "min_ns",
    "max": "max_ns",
    "start": "start_ns",
    "duration": "duration_ns",
}
_TEXTS = frozenset({"name", "category", "device", "grid", "block"})


def explain(path: str, data: bytes, *, locale: str | None = None) -> FileReading:
    """Every column of every table with its first cell. Raises ReportError where there is none."""
    decoded = table_text(data)
    tables = split(decoded.text).tables
    if not tables:
        raise ReportError("no table of nsys stats in this file", where=path)
    first = tables[0]
    numbers = Cells(first, path, locale).numbers
    return FileReading(
        path=path,
        kind="nsys-stats",
        encoding=decoded.encoding,
        delimiter=first.delimiter,
        lines_before_table=first.line - 1,
        has_units_row=False,
        number_format="decimal point, commas group thousands"
        if numbers is None
        else f"decimal {numbers.decimal!r}, {numbers.proof}",
        columns=tuple(
            column
            for table in tables
            for column in _columns(table, Cells(table, path, locale), len(tables) > 1)
        ),
    )


def _columns(table: StatsTable, cells: Cells, several: bool) -> Iterator[ColumnReading]:
    row = next(cells.rows(), None)
    prefix = f"line {table.line}: " if several else ""
    for index, (title, column) in enumerate(zip(table.header, table.columns, strict=True)):
        example = "" if row is None else row[index].strip()
        if column is None or table.kind == "other":
            yield _reading(prefix + title, None, "", "", 1.0, example, None, "not used")
        elif column.role in _TIMES:
            unit = cells.time_unit(column.role)
            value = None if row is None else cells.nanoseconds(row, column.role)
            factor = 1.0 if unit is None else TIME_NS[unit.lower()]
            note = "no unit is stated" if unit is None and value is None else None
            name = _TIMES[column.role]
            yield _reading(prefix + title, name, unit or "", "ns", factor, example, value, note)
        elif column.role == "bytes":
            unit = column.unit or ""
            value = None if row is None else cells.bytes(row)
            factor = BYTES.get(unit.lower(), 1.0)
            yield _reading(prefix + title, "bytes", unit, "byte", factor, example, value, None)
        elif column.role in _TEXTS:
            yield _reading(prefix + title, column.role, "", "", 1.0, example, example, None)
        else:
            number = None if row is None else cells.number(row, column.role)
            share = column.role == "share"
            value = number if number is None or not share else number / 100
            unit, factor = ("%", 0.01) if share else ("", 1.0)
            yield _reading(prefix + title, column.role, unit, "", factor, example, value, None)


def _reading(
    column: str,
    metric: str | None,
    unit: str,
    base_unit: str,
    factor: float,
    example: str,
    value: float | str | None,
    note: str | None,
) -> ColumnReading:
    return ColumnReading(
        column=column,
        metric=metric,
        unit=unit,
        base_unit=base_unit,
        factor=factor,
        example=example[:60],
        value=value,
        note=note,
    )
