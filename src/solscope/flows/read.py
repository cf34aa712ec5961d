"""Files in, what they are and what they hold out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from solscope.errors import ReportError, SolscopeError, UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.report import Report
from solscope.model.trace import SampleReport, TimelineReport
from solscope.reports import formats
from solscope.reports.formats import AnyReport

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Say what each file is and what it holds.

    Reads ncu reports, ncu's CSV and text of all years, nsys SQLite exports and statistics, torch
    traces, and kernel shares of samplers. Content decides what a file is, never its name.
    Compressed files are unfolded.
    """

    paths: tuple[str, ...] = option(
        "Files or folders, - for standard input, or clickhouse://HOST/DATABASE.TABLE?pod=...&event=...&from=...&to=...",
        positional=True,
    )
    format: Literal["table", "json", "csv", "parquet"] = option(
        "table: an overview; json, csv and parquet: every metric of every launch.", default="table"
    )
    output: Path | None = option(
        "Write into this file instead of printing. Parquet needs it.", default=None, alias="-o"
    )
    metric: str | None = option("Only metrics whose name matches this regex.", default=None)
    as_: Literal["ncu-raw-csv", "ncu-details-csv"] | None = option(
        "Print what ncu itself would print of this report.", default=None, name="--as"
    )
    print_units: Literal["base", "auto"] = option(
        "Units of --as: base, or scaled as ncu does.", default="auto"
    )
    print_metric_instances: Literal["none", "values", "details"] = option(
        "With --as ncu-raw-csv: what a metric counts by opcode or unit, after its value; details "
        "names the opcode or unit too. With details and base units, analyze finds in the CSV what "
        "it finds in the report.",
        default="none",
    )
    explain: bool = option("Print how each column and unit was understood.", default=False)
    locale: str | None = option(
        "Locale of the machine that printed a CSV or text, such as de_DE, where its own numbers "
        "do not tell.",
        default=None,
    )
    columns: str | None = option(
        "Which column of a sampler's table is what: name=COLUMN,samples=COLUMN.", default=None
    )
    show_session: bool = option(
        "Show host names, addresses, users and command lines that the reports hold.",
        default=False,
    )


def run(request: ReadRequest, world: World) -> Outcome:
    """The verb. Exit code 1 where several files were given and some are no reports."""
    if not request.paths:
        raise UsageError("no file given", hint="solscope read YOUR.ncu-rep")
    _refuse_unused(request)
    wanted = _pattern(request.metric)
    pages: list[str] = []
    files = formats.find(request.paths, left_out=pages)
    if request.explain:
        return _given(request, _explained(files, request, world))
    found, refused = _try_all(
        files,
        lambda path: formats.read(path, locale=request.locale, columns=request.columns),
        world,
    )
    # One bad file is an error; among several, each is named and the rest is shown.
    is_for_people = request.as_ is None and request.format == "table"
    said = "\n".join([*map(str, refused), *_beside(pages)])
    code = 1 if refused else 0
    if request.format == "parquet":
        content = _parquet(found, wanted)
        if said:
            world.say(said)
        return Outcome(value=tuple(found), text="", exit_code=code, files=_kept(request, content))
    if request.as_ is not None:
        text = _as_ncu(found, request)
    else:
        text = _text(found, refused, request, wanted, world)
    if said and is_for_people:
        text = "\n\n".join(part for part in (text, said) if part)
    elif said:
        world.say(said)  # beside what a program reads, never within
    return _given(request, Outcome(value=tuple(found), text=text, exit_code=code))


def _given(request: ReadRequest, outcome: Outcome) -> Outcome:
    """The outcome, its text in the file that was asked for."""
    if request.output is None:
        return outcome
    return replace(outcome, text="", files=_kept(request, f"{outcome.text}\n".encode()))


def _kept(request: ReadRequest, content: bytes) -> tuple[str, ...]:
    from solscope.flows import pages

    return (pages.whole(str(request.output), content),)


def _parquet(found: Sequence[AnyReport], wanted: re.Pattern[str] | None) -> bytes:
    from solscope.render import parquet

    reports = [report for report in found if isinstance(report, Report)]
    others = [report for report in found if not isinstance(report, Report)]
    if reports and others:
        raise UsageError(
            "counters and timelines are two tables, and a Parquet file holds one",
            where=others[0].provenance.path,
            hint="write each into a file of its own",
        )
    return parquet.kernels(others) if others else parquet.metrics(reports, wanted)


def _beside(pages: Sequence[str]) -> Iterator[str]:
    if pages:
        shown = ", ".join(pages[:3]) + (f" and {len(pages) - 3} more" if len(pages) > 3 else "")
        yield (
            f"not read: {shown}: ncu printed this, and a folder that holds reports of ncu mostly "
            "holds their own print; name the file to read it"
        )


def _refuse_unused(request: ReadRequest) -> None:
    """Raises UsageError for an option that would change nothing, or lacks its other half."""
    if request.format == "parquet" and request.output is None:
        raise UsageError("a Parquet file cannot be printed", hint="name it: -o metrics.parquet")
    if request.print_metric_instances != "none" and request.as_ != "ncu-raw-csv":
        raise UsageError(
            "--print-metric-instances is for the raw page", hint="add --as ncu-raw-csv"
        )
    if request.print_units != "auto" and request.as_ is None:
        raise UsageError(
            "--print-units is for ncu's pages; all else is in base units", hint="add --as"
        )
    if request.as_ is not None:
        for option_name, is_given in (
            ("--metric", request.metric is not None),
            ("--format", request.format != "table"),
            ("--explain", request.explain),
        ):
            if is_given:
                raise UsageError(
                    f"{option_name} has no part in a page of ncu", hint=f"leave out {option_name}"
                )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"--metric is not a regular expression: {error}") from error


def _try_all(
    files: Sequence[str], reader: Callable[[str], T], world: World
) -> tuple[list[T], list[SolscopeError]]:
    found: list[T] = []
    refused: list[SolscopeError] = []
    for path in world.progress(files, "reading"):
        try:
            found.append(reader(path))
        except SolscopeError as error:
            if len(files) == 1:
                raise
            refused.append(error)
    return found, refused


def _explained(files: Sequence[str], request: ReadRequest, world: World) -> Outcome:
    from solscope.render import readings

    found, refused = _try_all(
        files,
        lambda path: formats.explain(path, locale=request.locale, columns=request.columns),
        world,
    )
    text = "\n".join([*map(readings.explanation, found), *map(str, refused)]).rstrip()
    return Outcome(value=tuple(found), text=text, exit_code=1 if refused else 0)


def _as_ncu(found: Sequence[AnyReport], request: ReadRequest) -> str:
    from solscope.render import ncu_pages

    units = ncu_pages.Units(request.print_units)
    instances = ncu_pages.Instances(request.print_metric_instances)

    def page(report: Report) -> Iterator[str]:
        _refuse_unprintable(report, request)
        if request.as_ == "ncu-details-csv":
            return ncu_pages.details_csv(report, units=units)
        return ncu_pages.raw_csv(report, units=units, instances=instances)

    return "".join(line for report in found for line in page(counters(report))).rstrip("\n")


def _refuse_unprintable(report: Report, request: ReadRequest) -> None:
    """A page without rows would look as if nothing had been measured."""
    path = report.provenance.path
    if not report.launches:
        reasons = [absence.reason for absence in report.absences if absence.field == "launches"]
        raise ReportError(
            f"no launch to print: {reasons[0]}" if reasons else "the report holds no result",
            where=path,
            hint="`solscope read` shows what it holds",
        )
    has_sections = any(launch.details.sections() for launch in report.launches)
    if request.as_ == "ncu-details-csv" and not has_sections:
        raise ReportError(
            f"this is {report.provenance.format}, which does not say which sections its metrics "
            "are of: the details page is made of sections",
            where=path,
            hint="--as ncu-raw-csv prints all of its metrics",
        )


def _text(
    found: Sequence[AnyReport],
    refused: Sequence[SolscopeError],
    request: ReadRequest,
    wanted: re.Pattern[str] | None,
    world: World,
) -> str:
    from solscope.render import overview, timelines

    reports = [report for report in found if isinstance(report, Report)]
    others = [report for report in found if not isinstance(report, Report)]
    show = request.show_session
    if request.format == "json":
        return overview.as_json(
            reports, wanted, timelines.as_rows(others), refused, show_session=show
        )
    if request.format == "csv":
        return "\n".join([*overview.csv_lines(reports, wanted), *timelines.csv_lines(others)])
    parts = [
        overview.table(reports, width=world.width, color=world.color, show_session=show)
        if reports
        else "",
        timelines.table(others, width=world.width) if others else "",
    ]
    return "\n\n".join(part for part in parts if part)


def counters(report: AnyReport) -> Report:
    """The report, where it holds counters. Raises ReportError for timelines and samples."""
    if isinstance(report, Report):
        return report
    what = {TimelineReport: "a timeline", SampleReport: "kernel shares of a sampler"}[type(report)]
    raise ReportError(
        f"this is {what} ({report.provenance.format}): it holds no counters",
        where=report.provenance.path,
        hint="analyze needs a report of ncu; `solscope read` shows what this holds",
    )


def read_all(paths: Sequence[str], world: World, *, locale: str | None = None) -> list[Report]:
    """Every report with counters that the paths name or hold, each file once."""
    files = formats.find(paths, formats.COUNTERS)
    return [
        counters(formats.read(path, locale=locale)) for path in world.progress(files, "reading")
    ]
