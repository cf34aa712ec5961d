"""CSV that ncu printed (raw, details, summary and session pages) to a report. Computes nothing.

Layouts of 2019 to 2026, told by column names; whatever stands before the table is passed over.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from solscope.errors import ReportError
from solscope.model.finding import Absence
from solscope.model.reading import ColumnReading, FileReading
from solscope.model.report import Device, KernelLaunch, Provenance, Report
from solscope.model.summary import SummaryReport
from solscope.reports.ncu_csv import details_page, raw_page, session_page, summary_page
from solscope.reports.ncu_csv.layout import Page, Table, find_table
from solscope.reports.printed.encoding import DecodedText, decode, decode_head, unfold
from solscope.reports.printed.launches import renamed
from solscope.reports.printed.notes import Notes, not_printed
from solscope.reports.printed.number_format import NumberFormat, detect, of_locale

NAME = "ncu-csv"

_NEXT = "export it again: ncu --import REPORT --csv --page raw --print-units base"


def recognises(head: bytes, path: str) -> bool:
    """Whether the text holds the header of one of ncu's tables, wherever it begins."""
    return find_table(decode_head(head)) is not None


def page_of(head: bytes) -> Page | None:
    """Which of ncu's pages the text holds, ``None`` where it holds none."""
    table = find_table(decode_head(head))
    return None if table is None else table.page


def read(
    path: str,
    data: bytes,
    sha256: str,
    *,
    locale: str | None = None,
    requested: Iterable[str] = (),
) -> Report:
    """The report of a file, values in base units; a SummaryReport for a page of summaries.

    ``locale`` is that of the machine that printed the file, needed only where the file's own
    numbers do not show it. ``requested`` are metrics that should be there; what is not becomes
    an absence.

    Raises ReportError where there is no table, where a number stays ambiguous, and UnknownUnit
    for a unit that ncu is not known to print.
    """
    decoded = decode(unfold(data, where=path))
    table = _table(path, decoded)
    notes = Notes(said=list(table.before))
    provenance = Provenance(
        path=path,
        sha256=sha256,
        size_bytes=len(data),
        format=table.page.value,
        tool_name="ncu",
        tool_version=None,
    )
    try:
        report = _PAGES[table.page](table, provenance, notes, _Numbers(path, locale))
    except csv.Error as error:
        raise ReportError("the table cannot be parsed as CSV", where=path, hint=_NEXT) from error
    except ReportError as error:
        error.where = error.where or path
        raise
    wanted = tuple(requested)
    if not wanted:
        return report
    held = {name for launch in report.launches for name in launch.metrics}
    return _with_absences(report, not_printed(wanted, held))


def explain(path: str, data: bytes, *, locale: str | None = None) -> FileReading:
    """How the file's columns and units are understood. Raises as ``read`` does."""
    decoded = decode(unfold(data, where=path))
    table = _table(path, decoded)
    notes, choose = Notes(), _Numbers(path, locale)
    columns: Iterable[ColumnReading] = ()
    has_units, numbers = False, None
    if table.page is Page.RAW:
        raw = raw_page.gather(table, notes)
        numbers = choose(raw.number_texts(), raw.known())
        has_units = raw.units is not None
        columns = raw_page.explain(raw, numbers)
    elif table.page is Page.DETAILS:
        rows = details_page.gather(table, notes)
        numbers = choose(rows.number_texts(), rows.known())
        columns = details_page.explain(rows, numbers)
    elif table.page is Page.SUMMARY:
        numbers = choose(summary_page.gather(table, notes).number_texts(), ())
    return FileReading(
        path=path,
        kind=table.page.value,
        encoding=decoded.encoding,
        delimiter=table.delimiter,
        lines_before_table=len(table.before),
        has_units_row=has_units,
        number_format="" if numbers is None else f"decimal {numbers.decimal!r}, {numbers.proof}",
        columns=tuple(columns),
    )


def _table(path: str, decoded: DecodedText) -> Table:
    table = find_table(decoded.text)
    if table is None:
        raise ReportError("no table of ncu is in this file", where=path, hint=_NEXT)
    return table


class _Numbers:
    """Chooses the number format: the named locale's, or what the file's numbers prove."""

    def __init__(self, path: str, locale: str | None) -> None:
        self.path = path
        self.given = None if locale is None else of_locale(locale)

    def __call__(self, texts: Iterable[str], known: Iterable[tuple[str, int]]) -> NumberFormat:
        if self.given is not None:
            return self.given
        return detect(texts, where=self.path, known=known)


_Reader = Callable[[Table, Provenance, Notes, _Numbers], Report]


def _raw(table: Table, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    raw = raw_page.gather(table, notes)
    launches = raw_page.launches(raw, choose(raw.number_texts(), raw.known()))
    return _report(provenance, notes, launches)


def _details(table: Table, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    rows = details_page.gather(table, notes)
    numbers = choose(rows.number_texts(), rows.known())
    launches = details_page.launches(rows, numbers, notes)
    return _report(provenance, notes, launches)


def _report(provenance: Provenance, notes: Notes, launches: Sequence[KernelLaunch]) -> Report:
    return Report(
        provenance=provenance,
        launches=launches,
        devices=_devices(launches),
        complete=not notes.cut,
        issues=(*renamed(launches), *notes.issues()),
    )


def _devices(launches: Sequence[KernelLaunch]) -> tuple[Device, ...]:
    return tuple(dict.fromkeys(launch.device for launch in launches))


def _summary(table: Table, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    rows = summary_page.gather(table, notes)
    found = summary_page.summaries(rows, choose(rows.number_texts(), ()), notes)
    return SummaryReport(
        provenance=provenance,
        launches=(),
        devices=tuple(dict.fromkeys(summary.device for summary in found)),
        complete=not notes.cut,
        issues=notes.issues(),
        absences=(
            Absence(
                field="launches",
                reason="ncu printed minimum, maximum and mean over launches, not the launches",
                remedy="export without --print-summary",
            ),
        ),
        summaries=found,
    )


def _session(table: Table, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    session, devices, version = session_page.read_session(table.text)
    return Report(
        provenance=replace(provenance, tool_version=version),
        launches=(),
        devices=devices,
        session=session,
        issues=notes.issues(),
        absences=(
            Absence(
                field="launches",
                reason="the session page describes the session and holds no launch",
                remedy="export the raw page: ncu --import REPORT --csv --page raw",
            ),
        ),
    )


def _source(table: Table, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    raise ReportError(
        "this is ncu's source page: a row for each instruction of one kernel, no launch metrics",
        where=provenance.path,
        hint="export the raw page: ncu --import REPORT --csv --page raw",
    )


_PAGES: dict[Page, _Reader] = {
    Page.RAW: _raw,
    Page.DETAILS: _details,
    Page.SUMMARY: _summary,
    Page.SESSION: _session,
    Page.SOURCE: _source,
}


def _with_absences(report: Report, absences: tuple[Absence, ...]) -> Report:
    return replace(report, absences=(*report.absences, *absences))
