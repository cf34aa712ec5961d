"""Text that ncu printed (details, summary and session pages) to a report. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from solscope.errors import ReportError
from solscope.model.finding import Absence, Issue, Severity
from solscope.model.reading import ColumnReading, FileReading
from solscope.model.report import Device, KernelLaunch, Provenance, Report
from solscope.model.summary import SummaryReport
from solscope.reports.ncu_text.page import (
    UNNAMED,
    PageParser,
    TextPages,
    looks_like_a_page,
    number_texts,
    without_marks,
)
from solscope.reports.printed.carried import table_head, table_text
from solscope.reports.printed.encoding import DecodedText, unfold
from solscope.reports.printed.issue_slots import era_by_arithmetic
from solscope.reports.printed.labels import Era, era_of
from solscope.reports.printed.launches import device_of, dim3, launch
from solscope.reports.printed.notes import Notes, not_printed
from solscope.reports.printed.number_format import NumberFormat, detect, of_locale
from solscope.reports.printed.session import read_blocks
from solscope.reports.printed.summaries import summarise

NAME = "ncu-text"

_NEXT = "export it as CSV: ncu --import REPORT --csv --page raw --print-units base"


def recognises(head: bytes, path: str) -> bool:
    """Whether the text holds a table of one of ncu's text pages."""
    return looks_like_a_page(table_head(head))


def read(
    path: str,
    data: bytes,
    sha256: str,
    *,
    locale: str | None = None,
    requested: Iterable[str] = (),
) -> Report:
    """The report of a text, values in base units; a SummaryReport for a page of summaries.

    Rules have no name in text. Raises ReportError where there is no table or where a number
    stays ambiguous, and UnknownUnit for a unit that ncu is not known to print.
    """
    _, pages, mark = _pages(path, data)
    try:
        return _report(path, data, sha256, pages, mark, locale, requested)
    except ReportError as error:
        error.where = error.where or path
        raise


def _report(
    path: str,
    data: bytes,
    sha256: str,
    pages: TextPages,
    mark: str,
    locale: str | None,
    requested: Iterable[str],
) -> Report:
    notes = Notes(
        said=pages.said,
        cut=pages.is_cut,
        prefix=mark,
        loose_rows=pages.loose_rows,
        unread_rows=pages.unread_rows,
    )
    numbers = _numbers(path, pages, locale)
    era = _era(pages, numbers)
    launches = tuple(_launches(pages, numbers, notes, era))
    summaries = tuple(
        summarise(s.identity, s.invocations, s.rows, numbers, notes, era=era)
        for s in pages.summaries
    )
    session, devices, version = read_blocks(pages.session)
    provenance = Provenance(
        path=path,
        sha256=sha256,
        size_bytes=len(data),
        format=_kind(pages),
        tool_name="ncu",
        tool_version=version,
    )
    held = {name for one in launches for name in one.metrics}
    seen = dict.fromkeys([*(x.device for x in launches), *(s.device for s in summaries)])
    return SummaryReport(
        provenance=provenance,
        launches=launches,
        devices=devices or tuple(seen),
        session=session,
        complete=not notes.cut,
        issues=(*_unnamed(launches), *notes.issues()),
        absences=(*_absences(launches), *not_printed(requested, held)),
        summaries=summaries,
    )


def explain(path: str, data: bytes, *, locale: str | None = None) -> FileReading:
    """How the text's labels and units are understood. Raises as ``read`` does."""
    decoded, pages, _ = _pages(path, data)
    numbers = _numbers(path, pages, locale)
    return FileReading(
        path=path,
        kind=_kind(pages),
        encoding=decoded.encoding,
        delimiter=None,
        lines_before_table=0,
        has_units_row=False,
        number_format=f"decimal {numbers.decimal!r}, {numbers.proof}",
        columns=tuple(_columns(pages, numbers)),
    )


def _pages(path: str, data: bytes) -> tuple[DecodedText, TextPages, str]:
    decoded = table_text(unfold(data, where=path))
    text, mark = without_marks(decoded.text)
    pages = PageParser().parse(text)
    if not (pages.launches or pages.summaries or pages.session):
        raise ReportError("no table of ncu is in this text", where=path, hint=_NEXT)
    return decoded, pages, mark


def _kind(pages: TextPages) -> str:
    if pages.launches:
        return "ncu text, details page"
    return "ncu text, summary" if pages.summaries else "ncu text, session page"


def _numbers(path: str, pages: TextPages, locale: str | None) -> NumberFormat:
    if locale is not None:
        return of_locale(locale)
    return detect(number_texts(pages), where=path, known=_known(pages))


def _known(pages: TextPages) -> Iterator[tuple[str, int]]:
    for printed in pages.launches:
        for metric in printed.metrics:
            for label, cell in (
                ("Grid Size", printed.identity.grid),
                ("Block Size", printed.identity.block),
            ):
                size = dim3(cell)
                if size is not None and metric.label == label:
                    yield metric.text, size[0] * size[1] * size[2]


def _era(pages: TextPages, numbers: NumberFormat) -> Era:
    rows = [(metric.label, metric.unit) for one in pages.launches for metric in one.metrics]
    rows += [(row[1], row[2] or "") for summary in pages.summaries for row in summary.rows]
    era = era_of(rows)
    return era if era is not Era.UNCLEAR else era_by_arithmetic(pages.launches, numbers)


def _launches(
    pages: TextPages, numbers: NumberFormat, notes: Notes, era: Era
) -> Iterator[KernelLaunch]:
    devices: dict[Device, Device] = {}
    for index, printed in enumerate(pages.launches):
        metrics, details = printed.read(numbers, notes, era=era)
        device = device_of(printed.identity, metrics.values)
        device = devices.setdefault(device, device)
        yield launch(index, printed.identity, metrics, device, details)


def _columns(pages: TextPages, numbers: NumberFormat) -> Iterator[ColumnReading]:
    era = _era(pages, numbers)
    seen: set[tuple[str, str, str, str | None]] = set()
    for printed in pages.launches:
        for row, metric in printed.named(numbers, era):
            key = (row.section, row.label, row.unit, metric)
            if key not in seen:
                seen.add(key)
                yield row.explain(numbers, metric)


def _unnamed(launches: tuple[KernelLaunch, ...]) -> Iterator[Issue]:
    if any(one.name_full == UNNAMED for one in launches):
        yield Issue(
            code="no-kernel-name",
            severity=Severity.WARNING,
            what="tables stand in the text without the line that names process and kernel",
        )
    bare = sum(not one.metrics for one in launches)
    if bare:
        yield Issue(
            code="no-rows",
            severity=Severity.WARNING,
            what=f"under {bare} of {len(launches)} launches stands no row of a table that can be "
            "read: ncu printed none, or its tables were changed on the way here",
        )


def _absences(launches: tuple[KernelLaunch, ...]) -> Iterator[Absence]:
    if not launches:
        yield Absence(
            field="launches",
            reason="the page holds summaries or the session, and no single launch",
            remedy=_NEXT,
        )
