"""Reports in, verdicts and pages out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from solscope.analysis import chips, devices, identity, roofline, verdicts, work
from solscope.errors import ReportError, UsageError
from solscope.flows import pages, twins
from solscope.flows.read import read_all
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.kernel import DtypePattern, FamilyPattern
from solscope.model.report import Device, Report
from solscope.model.roofline import CeilingSet, Chip
from solscope.model.verdict import Analysis, KernelVerdict
from solscope.reports import tables

Sort = Literal["time", "name", "sol", "intensity", "launches"]
Format = Literal["table", "json", "csv", "markdown"]


@dataclass(frozen=True, slots=True)
class AnalyzeRequest:
    """Say what binds each kernel and how far it stands from the speed of light.

    Reads .ncu-rep, .ncu-repz and .nsight-cuprof-report files, and ncu's CSV and text (also
    gzipped); needs no NVIDIA software and no GPU. Two percentages are always kept apart: against
    the ceiling at the clock of the profile, and against the data sheet.
    """

    paths: tuple[str, ...] = option("Report files or folders.", positional=True)
    chip: str | None = option(
        "Take this chip's ceilings, such as h100_sxm, instead of deciding by name.", default=None
    )
    ceilings: str | None = option("Lay this YAML file over the packaged ceilings.", default=None)
    kernel: str | None = option("Only kernels whose name matches this regex.", default=None)
    sort: Sort = option("Order of the rows; JSON keeps the order by time.", default="time")
    top: int | None = option("Show only the first N rows of the table.", default=None)
    format: Format = option("What to print.", default="table")
    html: str | None = option("Write one offline HTML page here.", default=None)
    pdf: str | None = option("Write a PDF here.", default=None)
    figure: str | None = option("Write the roofline here (.svg or .png).", default=None)
    locale: str | None = option(
        "Locale of the machine that printed a CSV or text, where its own numbers do not tell.",
        default=None,
    )
    show_session: bool = option(
        "Show host names, addresses, users and command lines that the reports hold.",
        default=False,
    )


def run(request: AnalyzeRequest, world: World) -> Outcome:
    """The verb. Files are written to a temporary name and renamed."""
    _check(request)
    reports = read_all(request.paths, world, locale=request.locale)
    twins.refuse(reports)
    analysis = analyze(
        reports, chip=request.chip, ceilings_path=request.ceilings, kernel=request.kernel
    )
    files = pages.write(
        analysis,
        html=request.html,
        pdf=request.pdf,
        figure=request.figure,
        show_session=request.show_session,
    )
    text = pages.text(
        analysis,
        request.format,
        width=world.width,
        color=world.color,
        top=request.top,
        sort=request.sort,
        show_session=request.show_session,
    )
    return Outcome(value=analysis, text=text, files=files)


def _check(request: AnalyzeRequest) -> None:
    if not request.paths:
        raise UsageError("no report given", hint="solscope analyze YOUR.ncu-rep")
    if request.top is not None and request.top < 1:
        raise UsageError(f"--top {request.top} shows nothing", hint="give a number above zero")
    if request.kernel is not None:
        _regex(request.kernel)


def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"--kernel is not a regular expression: {error}",
            where=pattern,
            hint="quote brackets and stars, for example --kernel 'fmha.*Paged'",
        ) from error


def analyze(
    reports: Sequence[Report],
    *,
    chip: str | None = None,
    ceilings_path: str | None = None,
    kernel: str | None = None,
) -> Analysis:
    """The analysis of reports, kernels sorted by total duration (longest first).

    Raises UsageError for an unknown chip or a bad pattern, ReportError where the reports hold
    no launch at all.
    """
    ceiling_set = tables.ceilings(ceilings_path)
    patterns, dtypes = tables.family_patterns(), tables.dtype_patterns()
    wanted = None if kernel is None else _regex(kernel)
    if reports and not any(report.launches for report in reports):
        raise _nothing(reports)
    identify = _Identifier(ceiling_set, chip)
    rows = [
        row
        for index, report in enumerate(reports)
        for row in _kernels(report, index, identify, patterns, dtypes)
    ]
    if wanted is not None:
        rows = [row for row in rows if wanted.search(row.totals.key.name_full)]
        if not rows:
            raise UsageError(
                f"no kernel matches {kernel!r}",
                where=", ".join(report.provenance.path for report in reports),
                hint="`solscope read FILE` lists the names",
            )
    return _sorted(tuple(reports), devices.compare(rows))


def _nothing(reports: Sequence[Report]) -> ReportError:
    """The error for reports without a launch: the page's own reason where it has one."""
    where = ", ".join(report.provenance.path for report in reports)
    for absence in (a for report in reports for a in report.absences if a.field == "launches"):
        return ReportError(
            f"no launch to analyse: {absence.reason}", where=where, hint=absence.remedy or ""
        )
    return ReportError(
        "the report holds no result: the profiler recorded nothing",
        where=where,
        hint="look at the capture's log: `solscope diagnose LOG`",
    )


class _Identifier:
    """Device to chip, decided once per device."""

    def __init__(self, ceiling_set: CeilingSet, wanted: str | None) -> None:
        self._ceilings = ceiling_set
        self._wanted = wanted
        self._known: dict[Device, chips.Match] = {}

    def __call__(self, device: Device) -> chips.Match:
        if device not in self._known:
            self._known[device] = self._match(device)
        return self._known[device]

    def _match(self, device: Device) -> chips.Match:
        try:
            return chips.identify(device, self._ceilings, wanted=self._wanted)
        except KeyError as error:
            raise UsageError(
                f"{self._wanted!r} names no single chip",
                hint=f"one of {error.args[0]}; or add your own with --ceilings",
            ) from None


def _kernels(
    report: Report,
    index: int,
    identify: _Identifier,
    patterns: Sequence[FamilyPattern],
    dtypes: Sequence[DtypePattern],
) -> Iterator[KernelVerdict]:
    for totals in work.total(report.launches, report=index):
        match = identify(totals.device)
        who = identity.classify(totals.name, totals.key.name_full, patterns, dtypes)
        point = roofline.place(totals, match.chip)
        unknown_chip = () if match.absence is None else (match.absence,)
        yield KernelVerdict(
            identity=who,
            totals=totals,
            point=point,
            chip=match.chip,
            verdict=verdicts.judge(who, totals, point),
            time_share=None,
            absences=(*unknown_chip, *point.absences, *totals.absences),
            findings=tuple(verdicts.findings(totals, point, match.mismatch)),
        )


def _sorted(reports: tuple[Report, ...], rows: list[KernelVerdict]) -> Analysis:
    """Longest first; shares are of the time of all kernels that have one."""
    total = sum(row.totals.duration_ns or 0.0 for row in rows)
    shared = [
        replace(
            row,
            time_share=row.totals.duration_ns / total
            if row.totals.duration_ns is not None and total
            else None,
        )
        for row in rows
    ]
    shared.sort(key=lambda row: -(row.totals.duration_ns or 0.0))
    unknown = sum(r.time_share or 0.0 for r in shared if r.identity.pattern is None)
    return Analysis(
        reports=reports,
        kernels=tuple(shared),
        chips=tuple(_chip_of(index, shared) for index in range(len(reports))),
        unknown_time_share=unknown if total else None,
    )


def _chip_of(index: int, rows: Sequence[KernelVerdict]) -> Chip | None:
    return next((row.chip for row in rows if row.totals.key.report == index), None)
