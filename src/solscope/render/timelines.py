"""Timelines and samples in, an overview of what they hold out."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence

from solscope.model import units
from solscope.model.trace import KernelTime, SampleReport, TimelineReport
from solscope.render import readings, wording
from solscope.render.view.numbers import clean, shorten

SHOWN = 20


def table(reports: Sequence[TimelineReport | SampleReport], *, width: int) -> str:
    """What each file holds and its longest or most frequent kernels, for people."""
    return "\n\n".join("\n".join(_lines(report, width)) for report in reports)


def _lines(report: TimelineReport | SampleReport, width: int) -> Iterator[str]:
    source = report.provenance
    state = "" if report.complete else "  INCOMPLETE"
    yield f"{_name(source.path)}{state}"
    yield f"  {source.format}, {units.scaled(source.size_bytes, 'B')}"
    if source.tool_version:
        yield f"  written by {source.tool_name} {source.tool_version}"
    if isinstance(report, TimelineReport):
        yield from _timeline(report, width)
    else:
        yield from _samples(report, width)
    for issue in report.issues:
        yield from wording.hanging(f"{issue.severity}: {issue.what}", width)
    for absence in report.absences:
        yield from wording.hanging(readings.absence(absence), width)


def _name(path: str) -> str:
    return path if "://" in path else os.path.basename(path)


def _timeline(report: TimelineReport, width: int) -> Iterator[str]:
    if report.vendor:
        yield f"  GPU vendor {report.vendor}"
    for device in wording.repeated(d.name or "(unnamed)" for d in report.devices):
        yield f"  device {device}"
    if report.sums is not None:
        yield f"  sums of {wording.counted(len(report.sums), 'kernel')}"
    else:
        held = (
            (report.kernels.num_rows, "kernel launch"),
            (report.graphs.num_rows, "graph replay"),
            (report.copies.num_rows, "copy"),
            (report.annotations.num_rows, "annotation"),
        )
        yield f"  {', '.join(wording.counted(count, noun) for count, noun in held)}"
    if report.graph_launches:
        yield f"  {wording.counted(report.graph_launches, 'graph launch')} by the API calls"
    if report.rank is not None:
        yield f"  rank {report.rank}" + (f" of {report.world_size}" if report.world_size else "")
    yield from _kernels(report.kernel_times(), width)


def _kernels(times: Sequence[KernelTime], width: int) -> Iterator[str]:
    """The longest kernels, one line per kernel, process and device; the last two only where there
    are several."""
    if not times:
        return
    places = (
        ("GPU", [time.device for time in times]),
        ("process", [time.process for time in times]),
    )
    where = [(title, values) for title, values in places if len(set(values)) > 1]
    heads = "".join(f"{title:>9}" for title, _ in where)
    yield f"  {'total':>10} {'share':>7} {'launches':>9}{heads}  kernel"
    room = max(20, width - 33 - len(heads))
    names = wording.told_apart([(clean(t.name), clean(t.name_full)) for t in times[:SHOWN]], room)
    for row, (time, name) in enumerate(zip(times, names, strict=False)):
        total = "–" if time.total_ns is None else units.duration_text(time.total_ns)
        share = "–" if time.time_share is None else f"{100 * time.time_share:.1f} %"
        launches = "–" if time.launches is None else f"{time.launches:,}"
        cells = "".join(f"{'–' if v[row] is None else v[row]:>9}" for _, v in where)
        yield f"  {total:>10} {share:>7} {launches:>9}{cells}  {name}"
    if len(times) > SHOWN:
        yield f"  and {len(times) - SHOWN} more"


def _samples(report: SampleReport, width: int) -> Iterator[str]:
    if report.population:
        yield f"  {report.population}"
    kernels = report.kernels()
    yield f"  {'share':>7} {'samples':>10}  kernel"
    for kernel in kernels[:SHOWN]:
        share = "–" if kernel.share is None else f"{100 * kernel.share:.1f} %"
        samples = "–" if kernel.samples is None else f"{kernel.samples:.0f}"
        yield f"  {share:>7} {samples:>10}  {shorten(clean(kernel.name), max(20, width - 24))}"
    if len(kernels) > SHOWN:
        yield f"  and {len(kernels) - SHOWN} more"


def as_rows(reports: Sequence[TimelineReport | SampleReport]) -> list[dict[str, object]]:
    """The same for JSON: per file its kernels. Times in ns, shares 0 to 1."""
    return [_json(report) for report in reports]


def _json(report: TimelineReport | SampleReport) -> dict[str, object]:
    source = report.provenance
    document: dict[str, object] = {
        "path": _name(source.path),
        "sha256": source.sha256,
        "format": source.format,
        "tool": {"name": source.tool_name, "version": source.tool_version},
        "complete": report.complete,
        "issues": [{"code": i.code, "severity": i.severity, "what": i.what} for i in report.issues],
        "absences": readings.absences(report.absences),
    }
    if isinstance(report, SampleReport):
        document["samples"] = report.kernels()
    else:
        holds_events = report.sums is None  # a table of sums counts none of these
        document |= {
            "vendor": report.vendor,
            "rank": report.rank,
            "world_size": report.world_size,
            "kernel_launches": report.kernels.num_rows if holds_events else None,
            "graph_replays": report.graphs.num_rows if holds_events else None,
            "copies": report.copies.num_rows if holds_events else None,
            "kernels": report.kernel_times(),
        }
    return document


KERNEL_COLUMNS = (
    "report",
    "kernel",
    "launches_or_samples",
    "total_ns",
    "share",
    "process",
    "device",
)


def kernel_rows(
    reports: Sequence[TimelineReport | SampleReport],
) -> Iterator[tuple[str | float | None, ...]]:
    """One row per file, kernel, process and device, by :data:`KERNEL_COLUMNS`: launches (or a
    sampler's samples), total in ns, share 0 to 1."""
    for report in reports:
        name = _name(report.provenance.path)
        if isinstance(report, SampleReport):
            for k in report.kernels():
                yield name, k.name, k.samples, None, k.share, None, None
        else:
            for t in report.kernel_times():
                place = (t.process, t.device)
                yield name, t.name_full, t.launches, t.total_ns, t.time_share, *place


def csv_lines(reports: Sequence[TimelineReport | SampleReport]) -> Iterator[str]:
    """The rows of :func:`kernel_rows` as one text."""
    if not reports:
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(KERNEL_COLUMNS)
    writer.writerows(kernel_rows(reports))
    yield buffer.getvalue().rstrip("\n")
