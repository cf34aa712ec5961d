"""One capture, given twice: a file and its copy, or a report and a page that ncu printed of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from solscope.analysis.work.counters import duration_ns
from solscope.errors import UsageError
from solscope.model.report import Report

_SAME_DURATION = 0.01  # a details page prints two decimals


def refuse(reports: Sequence[Report]) -> None:
    """Raises UsageError for a capture given twice: it would count double in times and shares.

    Two files of one format are captures of their own unless every number of theirs is the same.
    """
    files: dict[str, str] = {}
    for report in reports:
        path, digest = report.provenance.path, report.provenance.sha256
        if digest in files:
            raise UsageError(
                f"{files[digest]} and {path} are the same file, byte for byte: together they "
                "would count double",
                hint="give one of them: trials are runs of their own",
            )
        files[digest] = path
    known: dict[tuple[int, ...], list[Report]] = {}
    for report in reports:
        key = tuple(one.process_id or 0 for one in report.launches)
        others = known.setdefault(key, []) if any(key) else []
        for other in filter(partial(_are_alike, report), others):
            formats = {report.provenance.format, other.provenance.format}
            if _are_equal(report, other) if len(formats) == 1 else _are_as_long(report, other):
                raise UsageError(
                    f"{report.provenance.path} and {other.provenance.path} show the same "
                    f"{len(key)} launches in two {'formats' if len(formats) > 1 else 'files'}: "
                    "together they would count double",
                    hint="give one of them: the report rather than a page, the raw page rather "
                    "than the details page",
                )
        others.append(report)


def _are_alike(one: Report, other: Report) -> bool:
    """Whether launches agree in name or, since formats name some kernels otherwise, in shape."""
    return all(
        a.name == b.name or (a.grid is not None and (a.grid, a.block) == (b.grid, b.block))
        for a, b in zip(one.launches, other.launches, strict=True)
    )


def _are_as_long(one: Report, other: Report) -> bool:
    pairs = [
        (duration_ns(a.metrics), duration_ns(b.metrics))
        for a, b in zip(one.launches, other.launches, strict=True)
    ]
    return all(
        a is not None and b is not None and abs(a - b) <= _SAME_DURATION * max(a, b)
        for a, b in pairs
    )


def _are_equal(one: Report, other: Report) -> bool:
    """Whether the launches are the same kernels with the same numbers to the last digit.

    No two runs take the same time; counts alone may well be equal, and processes of containers
    often have the same number.
    """
    pairs = list(zip(one.launches, other.launches, strict=True))
    return any(duration_ns(a.metrics) is not None for a, _ in pairs) and all(
        a.name == b.name
        and bool(a.metrics)
        and all(a.metrics[name] == b.metrics.get(name) for name in a.metrics)
        for a, b in pairs
    )
