"""Timelines in, the budget of a decode step out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from solscope.analysis import budget, identity
from solscope.errors import ReportError, UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.kernel_name import short_name
from solscope.model.trace import TimelineReport
from solscope.reports import formats, tables


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """Say where the time of a decode step goes, and what binds it.

    Reads nsys SQLite exports, GPU traces of nsys stats and torch traces. Kernels, graph replays
    and copies are united, so that overlap counts once; what is left of a step is the host's.
    Exit code 1 where nothing firm can be said of some device.
    """

    paths: tuple[str, ...] = option("Timeline files.", positional=True)
    step: str | None = option(
        "Steps are the annotations (NVTX ranges) whose name matches this regex; a step lasts "
        "until the next begins.",
        default=None,
    )
    locale: str | None = option(
        "Locale of what wrote a printed trace, where its own numbers do not tell.", default=None
    )
    format: Literal["table", "json"] = option("What to print.", default="table")


def run(request: BudgetRequest, world: World) -> Outcome:
    """The verb."""
    from solscope.render import budget as page

    if not request.paths:
        raise UsageError("no timeline given", hint="solscope budget YOUR.sqlite")
    pattern = _regex(request.step)
    reports = [
        _timeline(p, request.locale)
        for p in world.progress(formats.find(request.paths, formats.TIMELINES), "reading")
    ]
    if pattern is not None:
        _refuse_unmatched(pattern, reports)
    found = budget.judge(reports, _is_collective, step_pattern=pattern)
    decided = bool(found.devices) and not page.without_budget(found)
    decided = decided and all(device.verdict != "undetermined" for device in found.devices)
    return Outcome(
        value=found,
        text=page.as_json(found)
        if request.format == "json"
        else page.table(found, width=world.width),
        exit_code=0 if decided else 1,
    )


def _is_collective(name: str) -> bool:
    patterns = tables.family_patterns()
    return identity.classify(short_name(name), name, patterns, ()).is_collective


def _regex(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"--step is not a regular expression: {error}") from error


def _timeline(path: str, locale: str | None) -> TimelineReport:
    report = formats.read(path, locale=locale)
    if isinstance(report, TimelineReport):
        return report
    raise ReportError(
        f"this is {report.provenance.format}, which holds no timeline",
        where=path,
        hint="give an nsys export (`nsys export -t sqlite`) or a torch trace",
    )


def _refuse_unmatched(pattern: re.Pattern[str], reports: list[TimelineReport]) -> None:
    for report in reports:
        names = budget.annotation_names(report)
        if not any(pattern.search(name) for name in names):
            shown = ", ".join(repr(name[:60]) for name in names[:8]) or "none"
            raise UsageError(
                f"no annotation matches --step {pattern.pattern!r}",
                where=report.provenance.path,
                hint=f"the most frequent annotations are: {shown}",
            )
