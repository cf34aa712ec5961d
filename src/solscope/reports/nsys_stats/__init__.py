"""Output of ``nsys stats`` in, a timeline out: summaries and GPU traces, CSV and text.

Names of all years (``cuda_gpu_kern_sum``, ``gpukernsum``), several tables in one file, log lines
and SKIPPED notices between them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from solscope.errors import ReportError
from solscope.model import trace
from solscope.model.finding import Absence, Issue, Severity
from solscope.model.kernel_name import short_name
from solscope.model.report import Device, Provenance
from solscope.model.trace import CallTotal, KernelTime, TimelineReport
from solscope.reports import missing
from solscope.reports.nsys_stats import rows
from solscope.reports.nsys_stats.explanation import explain
from solscope.reports.nsys_stats.tables import Output, StatsTable, split
from solscope.reports.printed.carried import table_head, table_text
from solscope.reports.unfold import plain_bytes

NAME = "nsys-stats"

_JSON = re.compile(r"\s*(\{|\[\s*[\[{\"])")

HINT = "write it again: `nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep`"


def recognises(head: bytes, path: str) -> bool:
    """A table of nsys by its columns, or its notice that it skipped one."""
    if head.startswith(b"\x1f\x8b"):
        return False
    text = table_head(head)
    if _JSON.match(text):
        return False
    return _holds_a_table(text) or _holds_a_table(text[max(0, text.find("Time (%)") - _NEAR) :])


_LINES = 2000
_NEAR = 4096  # what stands before the header of a table that a server's log precedes


def _holds_a_table(text: str) -> bool:
    output = split("\n".join(text[: _LINES << 10].splitlines()[:_LINES]))
    return bool(output.skipped) or any(table.kind != "other" for table in output.tables)


def read(path: str, sha256: str, *, locale: str | None = None, **options: object) -> TimelineReport:
    """What was printed, as a timeline.

    A GPU trace fills its tables; summaries become ``sums``. ``locale`` is that of a spreadsheet
    that saved the file. Raises ReportError where a number cannot be read or nothing of the file is
    a table of nsys, UnknownUnit for an unknown unit.
    """
    output = split(table_text(plain_bytes(path)).text)
    if not output.tables and not output.skipped:
        raise ReportError("no table of nsys stats in this file", where=path, hint=HINT)
    try:
        return _assemble(output, path, sha256, locale)
    except ReportError as error:
        if error.where is None:
            error.where = path
        raise


def _assemble(output: Output, path: str, sha256: str, locale: str | None) -> TimelineReport:
    by_kind = {kind: [t for t in output.tables if t.kind == kind] for kind in _KINDS}
    kernels, copies, unusable = trace.empty("kernels"), trace.empty("copies"), 0
    devices: tuple[Device, ...] = ()
    used = by_kind["trace"][:1]
    if used:
        cells = rows.Cells(used[0], path, locale)
        kernels, copies, unusable = rows.timeline(cells, short_name)
        devices = tuple(
            Device(name=name, compute_capability=None, ordinal=ordinal)
            for ordinal, name in sorted(rows.device_names(cells).items())
        )
    if not kernels.num_rows:
        used = [*used, *_summary_tables(by_kind)]
    sums = [
        time
        for table in used
        if table.kind != "trace"
        for time in rows.kernel_times(rows.Cells(table, path, locale), short_name)
    ]
    calls = _gpu_calls(by_kind["calls"], path, locale)
    report = TimelineReport(
        provenance=Provenance(
            path=path,
            sha256=sha256,
            size_bytes=os.path.getsize(path),
            format=NAME,
            tool_name="nsys",
            tool_version=None,
        ),
        kernels=kernels,
        graphs=trace.empty("graphs"),
        copies=copies,
        annotations=trace.empty("annotations"),
        calls=tuple(calls),
        sums=None if kernels.num_rows else tuple(sums),
        vendor="NVIDIA",
        devices=devices,
        issues=tuple(_issues(output, used, unusable)),
        absences=tuple(_absences(used, sums)),
    )
    note = missing.graph_note(
        graph_launches=report.graph_launches,
        graph_rows=0,
        graph_kernels=0,
        kernels=kernels.num_rows + len(sums),
    )
    if note is not None:
        report = replace(report, issues=(note, *report.issues))
    return report if kernels.num_rows or sums else _with_missing_kernels(report, output)


_KINDS = ("kernels", "trace", "calls", "gpu", "other")


def _summary_tables(by_kind: dict[str, list[StatsTable]]) -> list[StatsTable]:
    """One summary only: the same kernels stand in each of them."""
    plain = [t for t in by_kind["kernels"] if t.where("grid") is None]
    return (plain or by_kind["kernels"] or by_kind["gpu"])[:1]


def _gpu_calls(tables: Sequence[StatsTable], path: str, locale: str | None) -> list[CallTotal]:
    """Calls of CUDA or HIP. Tables of other libraries' calls have the same columns."""
    for table in tables:
        found = list(rows.calls(rows.Cells(table, path, locale)))
        if any(call.name.startswith(("cu", "hip")) for call in found):
            return found
    return []


def _issues(output: Output, used: Sequence[StatsTable], unusable: int) -> Iterator[Issue]:
    for what in output.skipped:
        yield Issue(code="table-skipped", severity=Severity.INFO, what=f"nsys found no {what}")
    if unusable:
        yield Issue(
            code="rows-without-duration",
            severity=Severity.WARNING,
            what=f"{unusable} rows have no begin or a negative duration; they are left out",
        )
    cut = sum(rows.count_cut_names(table) for table in used if table.kind != "trace")
    if cut:
        yield Issue(
            code="names-cut",
            severity=Severity.WARNING,
            what=f"{cut} names are cut at the width of the table: kernels that begin alike cannot "
            "be told apart; `nsys stats --format csv` writes whole names",
        )
    for table in output.tables:
        ragged = rows.ragged(table) if table.kind != "other" else 0
        if ragged:
            yield Issue(
                code="ragged-rows",
                severity=Severity.WARNING,
                what=f"{_rows(ragged)} of the table at line {table.line} not as long as its "
                "header; left out",
            )
        if table.kind == "trace" and table.where("grid") is not None:
            yield Issue(
                code="derived-table",
                severity=Severity.INFO,
                what="the column names are not those of nsys: a table that someone derived",
            )
        if table.kind in ("kernels", "gpu", "trace") and not any(table is one for one in used):
            yield _not_used(table, used)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _not_used(table: StatsTable, used: Sequence[StatsTable]) -> Issue:
    """A summary of another kind shows the same kernels again; one of the same kind is that of
    another capture, whose times do not add to these."""
    kin = [one for one in used if _sort(one) == _sort(table)]
    if all(one.rows == table.rows for one in kin):
        return Issue(
            code="table-not-used",
            severity=Severity.INFO,
            what=f"the table at line {table.line} holds the same kernels again; not counted",
        )
    source = f" (of {table.source})" if table.source else ""
    return Issue(
        code="table-not-read",
        severity=Severity.WARNING,
        what=f"the table at line {table.line}{source} is of another capture: only the one at line "
        f"{kin[0].line} was read; give each capture a file of its own",
    )


def _sort(table: StatsTable) -> tuple[str, bool]:
    return table.kind, table.where("grid") is None


def _absences(used: Sequence[StatsTable], sums: Sequence[KernelTime]) -> Iterator[Absence]:
    if sums and all(time.total_ns is None for time in sums):
        unitless = any(not rows.Cells(table, "").has_unit for table in used)
        yield Absence(
            field="total_ns",
            reason="the header states no unit of time" if unitless else "the table has no total",
            remedy="run `nsys stats` again with --timeunit nsec",
        )


def _with_missing_kernels(report: TimelineReport, output: Output) -> TimelineReport:
    if "kernels" not in {table.kind for table in output.tables} and not output.skipped:
        return report  # an API summary alone does not claim to hold kernels
    issue, absence = missing.explain(
        launches=report.kernel_launches,
        graph_launches=report.graph_launches,
        graph_rows=0,
        said=(),
        where="nsys skipped the kernel table" if output.skipped else "the kernel table is empty",
    )
    return replace(report, issues=(issue, *report.issues), absences=(*report.absences, absence))


__all__ = ["NAME", "explain", "read", "recognises"]
