"""CSV that ncu printed (raw, details, summary and session pages) to a report. Computes nothing.

Layouts of 2019 to 2026, told by column names; whatever stands before the table is passed over.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from solscope.errors import ReportError
from solscope.model.finding import Absence
from solscope.model.reading import ColumnReading, FileReading
from solscope.model.report import Device, KernelLaunch, Provenance, Report
from solscope.model.summary import SummaryReport
from solscope.reports.ncu_csv import (
    details_page,
    mixture,
    raw_page,
    session_page,
    summary_page,
)
from solscope.reports.ncu_csv.layout import (
    Page,
    Table,
    find_table,
    find_tables,
    without_prefix,
)
from solscope.reports.printed.carried import table_head, table_text
from solscope.reports.printed.encoding import DecodedText, unfold
from solscope.reports.printed.launches import renamed
from solscope.reports.printed.notes import Notes, not_printed
from solscope.reports.printed.number_format import NumberFormat, detect, of_locale

NAME = "ncu-csv"

_NEXT = "export it again: ncu --import REPORT --csv --page raw --print-units base"


def recognises(head: bytes, path: str) -> bool:
    """Whether the text holds the header of one of ncu's tables, wherever it begins."""
    return find_table(without_prefix(table_head(head))[0]) is not None


def page_of(head: bytes) -> Page | None:
    """Which of ncu's pages the text holds, ``None`` where it holds none."""
    table = find_table(table_head(head))
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
    decoded = table_text(unfold(data, where=path))
    notes = Notes()
    tables = _tables(path, decoded, notes)
    notes.said.extend(tables[0].before)
    provenance = Provenance(
        path=path,
        sha256=sha256,
        size_bytes=len(data),
        format=tables[0].page.value,
        tool_name="ncu",
        tool_version=None,
    )
    try:
        report = _PAGES[tables[0].page](tables, provenance, notes, _Numbers(path, locale))
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
    decoded = table_text(unfold(data, where=path))
    notes, choose = Notes(), _Numbers(path, locale)
    tables = _tables(path, decoded, notes)
    page = tables[0].page
    columns: Iterable[ColumnReading] = ()
    has_units, numbers = False, None
    if page is Page.RAW:
        raws, numbers = _raw_tables(tables, notes, choose)
        has_units = all(raw.units is not None for raw in raws)
        columns = chain.from_iterable(raw_page.explain(raw, numbers) for raw in raws)
    elif page is Page.DETAILS:
        details, numbers = _details_tables(tables, notes, choose)
        columns = chain.from_iterable(details_page.explain(rows, numbers) for rows in details)
    elif page is Page.SUMMARY:
        numbers = _summary_tables(tables, notes, choose)[1]
    return FileReading(
        path=path,
        kind=page.value if len(tables) == 1 else f"{page.value} ({len(tables)} tables)",
        encoding=decoded.encoding,
        delimiter=tables[0].delimiter,
        lines_before_table=len(tables[0].before),
        has_units_row=has_units,
        number_format="" if numbers is None else f"decimal {numbers.decimal!r}, {numbers.proof}",
        columns=tuple(dict.fromkeys(columns)),
    )


_RICHEST_FIRST = (Page.RAW, Page.DETAILS, Page.SUMMARY, Page.SESSION, Page.SOURCE)


def _tables(path: str, decoded: DecodedText, notes: Notes) -> tuple[Table, ...]:
    """The tables to read: all of the page that says most, since another page of the file may
    show the same launches again."""
    text, notes.prefix = without_prefix(decoded.text)
    found = find_tables(text)
    if not found:
        raise ReportError("no table of ncu is in this file", where=path, hint=_NEXT)
    page = min((table.page for table in found), key=_RICHEST_FIRST.index)
    notes.other_pages.extend(
        f"the table at line {table.line} ({table.page.value})"
        for table in found
        if table.page is not page
    )
    wanted = tuple(table for table in found if table.page is page)
    return (replace(wanted[0], before=found[0].before), *wanted[1:])


class _Numbers:
    """Chooses the number format: the named locale's, or what the file's numbers prove."""

    def __init__(self, path: str, locale: str | None) -> None:
        self.path = path
        self.given = None if locale is None else of_locale(locale)

    def __call__(self, texts: Iterable[str], known: Iterable[tuple[str, int]]) -> NumberFormat:
        if self.given is not None:
            return self.given
        return detect(texts, where=self.path, known=known)


_Tables = Sequence[Table]
_Reader = Callable[[_Tables, Provenance, Notes, _Numbers], Report]


def _raw_tables(
    tables: _Tables, notes: Notes, choose: _Numbers
) -> tuple[list[raw_page.RawRows], NumberFormat]:
    raws = [raw_page.gather(table, notes) for table in tables]
    for before, raw in pairwise(raws):
        # A header that stands again over its own table, with no units of another.
        if raw.units is None and raw.metrics == before.metrics:
            raw.units = before.units
    if any(raw.rows for raw in raws):
        raws = [raw for raw in raws if raw.rows]
    mixture.refuse(raws)
    notes.repeated += raw_page.repeated(raws)
    texts = chain.from_iterable(raw.number_texts() for raw in raws)
    return raws, choose(texts, chain.from_iterable(raw.known() for raw in raws))


def _raw(tables: _Tables, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    raws, numbers = _raw_tables(tables, notes, choose)
    launches: list[KernelLaunch] = []
    for raw in raws:
        launches.extend(raw_page.launches(raw, numbers, first=len(launches)))
    return _report(provenance, notes, launches)


def _details_tables(
    tables: _Tables, notes: Notes, choose: _Numbers
) -> tuple[list[details_page.DetailRows], NumberFormat]:
    details = [details_page.gather(table, notes) for table in tables]
    notes.repeated += details_page.repeated(details)
    texts = chain.from_iterable(rows.number_texts() for rows in details)
    return details, choose(texts, chain.from_iterable(rows.known() for rows in details))


def _details(tables: _Tables, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    details, numbers = _details_tables(tables, notes, choose)
    launches: list[KernelLaunch] = []
    for rows in details:
        launches.extend(details_page.launches(rows, numbers, notes, first=len(launches)))
    return _report(provenance, notes, launches)


def _report(provenance: Provenance, notes: Notes, launches: Sequence[KernelLaunch]) -> Report:
    return Report(
        provenance=provenance,
        launches=tuple(launches),
        devices=_devices(launches),
        complete=not notes.cut,
        issues=(*renamed(launches), *notes.issues()),
        absences=() if launches else (_NO_ROWS,),
    )


_NO_ROWS = Absence(
    field="launches",
    reason="the table has a header and no row of a launch",
    remedy="look at the capture's log for the reason: `solscope diagnose LOG`",
)


def _devices(launches: Sequence[KernelLaunch]) -> tuple[Device, ...]:
    return tuple(dict.fromkeys(launch.device for launch in launches))


def _summary_tables(
    tables: _Tables, notes: Notes, choose: _Numbers
) -> tuple[list[summary_page.SummaryRows], NumberFormat]:
    every = [summary_page.gather(table, notes) for table in tables]
    return every, choose(chain.from_iterable(rows.number_texts() for rows in every), ())


def _summary(tables: _Tables, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    every, numbers = _summary_tables(tables, notes, choose)
    found = tuple(s for rows in every for s in summary_page.summaries(rows, numbers, notes))
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


def _session(tables: _Tables, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
    session, devices, version = session_page.read_session(tables[0].text)
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


def _source(tables: _Tables, provenance: Provenance, notes: Notes, choose: _Numbers) -> Report:
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
