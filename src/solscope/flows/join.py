"""Samples, timelines and reports of counters in, one row a kernel out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solscope.analysis import identity, join
from solscope.errors import UsageError
from solscope.flows.analyze import analyze
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.kernel import KernelIdentity
from solscope.model.report import Report
from solscope.model.trace import SampleReport, TimelineReport
from solscope.reports import formats, tables


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """Join what is known of the same kernels: shares of samples, wall-clock times, counters.

    Takes at least two kinds of: a sampler's export, a timeline (nsys, torch trace), a report of
    ncu. Each column keeps its source; times are the timeline's alone.
    """

    paths: tuple[str, ...] = option("Files, of any format that `read` knows.", positional=True)
    chip: str | None = option(
        "Take this chip's ceilings, such as h100_sxm, instead of deciding by name.", default=None
    )
    columns: str | None = option(
        "Which column of a sampler's table is what: name=COLUMN,samples=COLUMN.", default=None
    )
    locale: str | None = option(
        "Locale of what wrote the printed tables, where their own numbers do not tell.",
        default=None,
    )
    top: int | None = option("Show only the first N rows of the table.", default=None)
    format: Literal["table", "json"] = option("What to print.", default="table")


def run(request: JoinRequest, world: World) -> Outcome:
    """The verb. Exit code 1 where no kernel is known to two sources."""
    from solscope.render import join as page

    if request.top is not None and request.top < 1:
        raise UsageError(f"--top {request.top} shows nothing", hint="give a number above zero")
    found = [
        formats.read(path, locale=request.locale, columns=request.columns)
        for path in world.progress(formats.find(request.paths), "reading")
    ]
    samples = [report for report in found if isinstance(report, SampleReport)]
    timelines = [report for report in found if isinstance(report, TimelineReport)]
    counters = [report for report in found if isinstance(report, Report)]
    kinds = [k for k, r in _KINDS.items() if any(isinstance(report, r) for report in found)]
    if len(kinds) < 2:
        raise UsageError(
            f"a join needs two kinds of source; given: {', '.join(kinds) or 'none'}",
            hint="solscope join SHARES.csv TIMELINE.sqlite REPORT.ncu-rep",
        )
    analysis = analyze(counters, chip=request.chip) if counters else None
    joined = join.join(samples, timelines, analysis, _identify)
    return Outcome(
        value=joined,
        text=page.as_json(joined)
        if request.format == "json"
        else page.table(joined, width=world.width, top=request.top),
        exit_code=0 if any(row.sources > 1 for row in joined.kernels) else 1,
    )


_KINDS = {"samples": SampleReport, "a timeline": TimelineReport, "counters": Report}


def _identify(name: str, name_full: str) -> KernelIdentity:
    return identity.classify(name, name_full, tables.family_patterns(), tables.dtype_patterns())
