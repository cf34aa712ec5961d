"""Timelines and samples in, an overview of what they hold out."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence

from solscope.model import units
from solscope.model.trace import SampleReport, TimelineReport

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
        yield f"  {issue.severity}: {issue.what}"
    for absence in report.absences:
        remedy = f" -> {absence.remedy}" if absence.remedy else ""
        yield f"  not there: {absence.field}: {absence.reason}{remedy}"


def _name(path: str) -> str:
    return path if "://" in path else os.path.basename(path)


def _timeline(report: TimelineReport, width: int) -> Iterator[str]:
    if report.vendor:
        yield f"  GPU vendor {report.vendor}"
    for device in report.devices:
        yield f"  device {device.name or '(unnamed)'}"
    if report.sums is not None:
        noun = "kernel" if len(report.sums) == 1 else "kernels"
        yield f"  sums of {len(report.sums)} {noun}"
    else:
        yield (
            f"  {report.kernels.num_rows} kernels, {report.graphs.num_rows} graph replays, "
            f"{report.copies.num_rows} copies, {report.annotations.num_rows} annotations"
        )
    if report.graph_launches:
        yield f"  {report.graph_launches} graph launches by the API calls"
    if report.rank is not None:
        yield f"  rank {report.rank}" + (f" of {report.world_size}" if report.world_size else "")
    times = report.kernel_times()
    if not times:
        return
    yield f"  {'total':>10} {'share':>7} {'launches':>9}  kernel"
    for time in times[:SHOWN]:
        total = "–" if time.total_ns is None else units.duration_text(time.total_ns)
        share = "–" if time.time_share is None else f"{100 * time.time_share:.1f} %"
        launches = "–" if time.launches is None else str(time.launches)
        yield f"  {total:>10} {share:>7} {launches:>9}  {_fit(time.name, width - 33)}"
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
        yield f"  {share:>7} {samples:>10}  {_fit(kernel.name, width - 24)}"
    if len(kernels) > SHOWN:
        yield f"  and {len(kernels) - SHOWN} more"


def _fit(text: str, width: int) -> str:
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= width else plain[: max(1, width - 1)] + "…"


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
    }
    if isinstance(report, SampleReport):
        document["samples"] = report.kernels()
    else:
        document |= {
            "vendor": report.vendor,
            "rank": report.rank,
            "kernel_launches": report.kernels.num_rows,
            "graph_replays": report.graphs.num_rows,
            "copies": report.copies.num_rows,
            "kernels": report.kernel_times(),
        }
    return document


def csv_lines(reports: Sequence[TimelineReport | SampleReport]) -> Iterator[str]:
    """One row per file and kernel: report, kernel, launches, total in ns, share 0 to 1."""
    if not reports:
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["report", "kernel", "launches_or_samples", "total_ns", "share"])
    for report in reports:
        name = _name(report.provenance.path)
        if isinstance(report, SampleReport):
            for k in report.kernels():
                writer.writerow([name, k.name, k.samples, None, k.share])
        else:
            for t in report.kernel_times():
                writer.writerow([name, t.name_full, t.launches, t.total_ns, t.time_share])
    yield buffer.getvalue().rstrip("\n")
