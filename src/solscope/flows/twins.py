"""One capture, given twice: a report and a page that ncu printed of it."""

from __future__ import annotations

from collections.abc import Sequence

from solscope.analysis.work.counters import duration_ns
from solscope.errors import UsageError
from solscope.model.report import Report

_SAME_DURATION = 0.01  # a details page prints two decimals


def refuse(reports: Sequence[Report]) -> None:
    """Raises UsageError for a capture given in two formats: it would count double in times and
    shares. Files of one format are captures of their own."""
    known: dict[tuple[tuple[int, str], ...], list[Report]] = {}
    for report in reports:
        key = tuple((one.process_id or 0, one.name) for one in report.launches)
        others = known.setdefault(key, []) if any(process for process, _ in key) else []
        for other in others:
            formats = {report.provenance.format, other.provenance.format}
            if len(formats) > 1 and _are_as_long(report, other):
                raise UsageError(
                    f"{report.provenance.path} and {other.provenance.path} show the same "
                    f"{len(key)} launches in two formats: together they would count double",
                    hint="give one of them: the report rather than a page, the raw page rather "
                    "than the details page",
                )
        others.append(report)


def _are_as_long(one: Report, other: Report) -> bool:
    pairs = [
        (duration_ns(a.metrics), duration_ns(b.metrics))
        for a, b in zip(one.launches, other.launches, strict=True)
    ]
    return all(
        a is not None and b is not None and abs(a - b) <= _SAME_DURATION * max(a, b)
        for a, b in pairs
    )
