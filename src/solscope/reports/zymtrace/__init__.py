"""Kernel shares of zymtrace and other samplers in, a sample report out.

Files (TSV, CSV, JSON), and a live query of the sampler's ClickHouse (``clickhouse://``; see
``live.py``). A sampler says how often a kernel was seen on the GPU, never how long it ran.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.errors import ReportError
from solscope.model.finding import Absence, Issue, Severity
from solscope.model.reading import ColumnReading, FileReading
from solscope.model.report import Provenance
from solscope.model.trace import UNNAMED, SampleReport
from solscope.reports.printed.encoding import decode, decode_head
from solscope.reports.printed.number_format import NumberFormat
from solscope.reports.unfold import plain_bytes
from solscope.reports.zymtrace import columns as _layouts
from solscope.reports.zymtrace import rows
from solscope.reports.zymtrace.live import SCHEMES, query
from solscope.reports.zymtrace.table import Row, sample_table, without_totals

NAME = "kernel-samples"

MAX_BYTES = 256 << 20
"""A table of shares is small; a larger file is something else."""

_SUM_SLACK = 0.02  # of rounded percentages


_OTHERS = ('"traceEvents"', "speedscope.app/", '"flamebearer"')
"""What stands in JSON of other kinds that holds names and samples, too."""


def recognises(head: bytes, path: str) -> bool:
    """A live address, or a table with kernel names beside samples or shares."""
    if path.startswith(SCHEMES):
        return True
    text = decode_head(head)
    if "\0" in text[:1024] or any(word in text for word in _OTHERS):
        return False
    found = rows.parse(_whole_lines(text.encode()))
    try:
        return found is not None and _layouts.layout(found.titles, {}) is not None
    except ReportError:
        return True  # two columns fit one role: reading says so


def _whole_lines(head: bytes) -> bytes:
    """Of a head that may end inside a row or a JSON list, what is whole."""
    text = head.lstrip()
    if text.startswith(b"[") and not text.rstrip().endswith(b"]"):
        return text[: text.rfind(b"}") + 1] + b"]"
    return text[: text.rfind(b"\n") + 1] if len(head) > 60000 else text


def read(path: str, sha256: str, **options: Any) -> SampleReport:
    """The shares in a file, or those that a live query gives.

    ``columns`` maps columns (``name=...,samples=...``), ``locale`` is that of a spreadsheet that
    saved the file. Raises ReportError where columns are not recognised, where a number is none or
    can be read two ways, and where a share may be a fraction or a percentage.
    """
    mapping = _layouts.parse(options.get("columns"))
    if path.startswith(SCHEMES):
        return query(path, mapping, environ=options.get("environ", os.environ))
    size = os.path.getsize(path)
    if size > MAX_BYTES:
        raise ReportError(f"{size} bytes are no table of kernel shares", where=path)
    found = rows.parse(plain_bytes(path))
    try:
        return _report(found, mapping, path, sha256, size, options.get("locale"))
    except ReportError as error:
        error.where = error.where or path
        raise


def _report(
    found: rows.Rows | None,
    mapping: dict[str, str],
    path: str,
    sha256: str,
    size: int,
    locale: str | None,
) -> SampleReport:
    if found is None:
        raise ReportError("no table in this file", hint=rows.HINT)
    layout = _layouts.layout(found.titles, mapping)
    if layout is None:
        raise ReportError(
            f"no column for kernel names and samples among {', '.join(found.titles[:20])}",
            hint=_layouts.HINT,
        )
    numbers = found.number_format(list(filter(None, (layout.samples, layout.share))), locale)
    listed = list(
        zip(
            [_name(cell) for cell in found.column(layout.name)],
            _samples(found, layout.samples, numbers),
            _shares(found, layout, numbers),
            strict=True,
        )
    )
    kept = without_totals(listed)
    return SampleReport(
        provenance=Provenance(
            path=path,
            sha256=sha256,
            size_bytes=size,
            format=NAME,
            tool_name=None,
            tool_version=None,
        ),
        samples=sample_table(
            [name for name, _, _ in kept],
            [samples for _, samples, _ in kept],
            [share for _, _, share in kept],
        ),
        issues=tuple(_issues(found, listed, kept)),
        absences=_absences(layout, bool(kept)),
    )


def explain(
    path: str, data: bytes, *, locale: str | None = None, columns: str | None = None
) -> FileReading:
    """How the columns were understood. Raises ReportError where they are not recognised."""
    found = rows.parse(data)
    layout = None if found is None else _layouts.layout(found.titles, _layouts.parse(columns))
    if found is None or layout is None:
        raise ReportError("no table of kernel shares", where=path, hint=_layouts.HINT)
    numbers = found.number_format(list(filter(None, (layout.samples, layout.share))), locale)
    return FileReading(
        path=path,
        kind=NAME,
        encoding=decode(data).encoding,
        delimiter=found.delimiter,
        lines_before_table=0,
        has_units_row=False,
        number_format="decimal point"
        if numbers is None
        else f"decimal {numbers.decimal!r}, {numbers.proof}",
        columns=tuple(_column_reading(found, layout, title, numbers) for title in found.titles),
    )


def _column_reading(
    found: rows.Rows, layout: _layouts.Layout, title: str, numbers: NumberFormat | None
) -> ColumnReading:
    roles = {layout.share: "share", layout.samples: "samples", layout.name: "name"}
    role = roles.get(title)
    cell = next((c for c in found.column(title) if c not in (None, "")), "")
    value: float | str | None = None
    factor, unit = 1.0, ""
    if role == "name":
        value = str(cell)
    elif role is not None and cell != "":
        number, sign = rows.number(cell, title, numbers, is_count=role == "samples")
        if role == "share" and (sign or layout.is_percent):
            factor, unit = 0.01, "%"
        value = None if number is None else number * factor
    return ColumnReading(
        column=title,
        metric=role,
        unit=unit,
        base_unit="",
        factor=factor,
        example=str(cell)[:60].removesuffix(unit).rstrip() if unit else str(cell)[:60],
        value=value,
        note=None if role else "not used",
    )


def _name(cell: Any) -> str:
    return str(cell) if cell is not None and str(cell).strip() else UNNAMED


def _issues(found: rows.Rows, listed: Sequence[Row], kept: Sequence[Row]) -> Iterator[Issue]:
    if found.ragged:
        count = _counted(found.ragged, "row is", "rows are")
        yield _warning("ragged-rows", f"{count} not as long as the header; left out")
    if len(kept) < len(listed):
        yield _info("total-row", "a row that sums up the others was left out")
    total = sum(share for _, _, share in kept if share is not None)
    if total > 1 + _SUM_SLACK:
        what = f"shares add up to {total:.0%}: inclusive shares count callees as well"
        yield _warning("shares-over-one", what)
    empty = sum(samples is None and share is None for _, samples, share in kept)
    if empty:
        count = _counted(empty, "row has", "rows have")
        yield _warning(
            "rows-without-number",
            f"{count} neither samples nor a share; the shares of the others are of what is known",
        )
    added = len(kept) - len({name for name, _, _ in kept})
    if added:
        yield _info(
            "rows-added",
            "rows of one kernel (of several pods, GPUs, stacks or times) were added up: "
            f"{len(kept)} rows became {len(kept) - added}",
        )


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _absences(layout: _layouts.Layout, has_rows: bool) -> tuple[Absence, ...]:
    found = [Absence(field="duration_ns", reason="a sampler counts samples and measures no time")]
    if layout.samples is None:
        found.append(Absence(field="samples", reason="the table holds shares only"))
    if not has_rows:
        found.append(Absence(field="kernels", reason="the table has a header and no row"))
    return tuple(found)


def _info(code: str, what: str) -> Issue:
    return Issue(code=code, severity=Severity.INFO, what=what)


def _warning(code: str, what: str) -> Issue:
    return Issue(code=code, severity=Severity.WARNING, what=what)


def _samples(
    found: rows.Rows, title: str | None, numbers: NumberFormat | None
) -> list[float | None]:
    if title is None:
        return [None] * len(found.cells)
    values = [rows.number(c, title, numbers, is_count=True)[0] for c in found.column(title)]
    _refuse_negative(values, title)
    return values


def _shares(
    found: rows.Rows, layout: _layouts.Layout, numbers: NumberFormat | None
) -> list[float | None]:
    """Shares as fractions. Percent by title, by a sign, or as mapped; never by a guess."""
    if layout.share is None:
        return [None] * len(found.cells)
    read_cells = [rows.number(cell, layout.share, numbers) for cell in found.column(layout.share)]
    values = [value for value, _ in read_cells]
    _refuse_negative(values, layout.share)
    largest = max((value for value in values if value is not None), default=0.0)
    signs = {sign for value, sign in read_cells if value}  # 0 is 0 with and without
    is_percent = layout.is_percent
    if is_percent is None and len(signs) == 2:
        raise ReportError(
            f"some cells of column {layout.share} have a percent sign and some have none",
            hint=f"if all are percent: --columns share%={layout.share}",
        )
    if is_percent is None and True in signs:
        is_percent = True
    if is_percent is None and largest > 1:
        raise ReportError(
            f"column {layout.share} holds {largest:g}, and nothing says that it is percent",
            hint=f"if it is: --columns share%={layout.share}",
        )
    limit = 100.0 if is_percent else 1.0
    if largest > limit * (1 + _SUM_SLACK):
        raise ReportError(f"a share of {largest:g} in column {layout.share} is over {limit:g}")
    return [None if value is None else value / limit for value in values]


def _refuse_negative(values: Sequence[float | None], title: str) -> None:
    bad = [v for v in values if v is not None and (v < 0 or not math.isfinite(v))]
    if bad:
        raise ReportError(f"column {title} holds {bad[0]:g}, which is no count and no share")
