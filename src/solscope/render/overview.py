"""Reports in, an overview of what they hold out: the faces of `solscope read`."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from re import Pattern
from typing import TYPE_CHECKING

from solscope.errors import SolscopeError
from solscope.model import units
from solscope.model.metric_units import unit_of
from solscope.model.report import Device, KernelLaunch, MetricValue, Report
from solscope.model.summary import LaunchSummary, SummaryReport
from solscope.render import readings, wording

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

READ_SCHEMA = "solscope.report/1"


def table(reports: Sequence[Report], *, width: int, color: bool, show_session: bool) -> str:
    """What each report is and which kernels it holds, for people."""
    from rich.console import Console

    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=color, no_color=not color)
    for position, report in enumerate(reports):
        if position:
            console.print()
        _one(console, report, show_session)
    return "\n".join(map(str.rstrip, buffer.getvalue().rstrip().split("\n")))


def _one(console: Console, report: Report, show_session: bool) -> None:
    from rich.markup import escape

    source = report.provenance
    state = "" if report.complete else "  [bold red]INCOMPLETE[/]"
    console.print(f"[bold]{escape(os.path.basename(source.path))}[/]{state}", highlight=False)
    lines = [
        f"{source.format}, {units.scaled(source.size_bytes, 'B')}, sha256 {source.sha256[:16]}",
        f"written by {source.tool_name} {source.tool_version or '(version not stored)'}",
        *(f"device {device}" for device in wording.repeated(map(_device, report.devices))),
        *_results(report),
    ]
    created = report.session.created_unix_s
    if created is not None:
        lines.append(f"captured {_time(created)}")
    lines.extend(f"{i.severity}: {i.what}" for i in report.issues)
    if not isinstance(report, SummaryReport) or not report.summaries:  # they say it themselves
        lines.extend(readings.absence(one) for one in report.absences)
    if show_session:
        lines.extend(_session_lines(report))
    for line in lines:
        for part in wording.hanging(line, console.width):
            console.print(escape(part), highlight=False)
    if isinstance(report, SummaryReport) and report.summaries:
        console.print(escape(readings.summaries(report)), highlight=False, soft_wrap=True)
    _kernels(console, report)


def _time(unix_s: int) -> str:
    try:
        return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return "at a time that cannot be read"


def _device(device: Device) -> str:
    parts = [device.name or "(not named in the file)"]
    if device.compute_capability is not None:
        parts.append("CC {}.{}".format(*device.compute_capability))
    if device.sm_count is not None:
        parts.append(f"{device.sm_count} SMs")
    if device.dram_bytes_per_s is not None:
        parts.append(f"{units.scaled(device.dram_bytes_per_s, 'B/s')} by its attributes")
    return ", ".join(parts)


def _results(report: Report) -> Iterator[str]:
    summaries = report.summaries if isinstance(report, SummaryReport) else ()
    if report.launches or not summaries:
        yield f"{wording.counted(len(report.launches), 'result')}, {_metric_counts(report)}"
    if summaries:
        kernels = wording.counted(len(summaries), "summary")
        yield f"{kernels} of launches, which are not in the file"
    processes = Counter(launch.process_id for launch in report.launches)
    if len(processes) > 1:
        yield "processes " + ", ".join(
            f"{process} ({wording.counted(count, 'result')})"
            for process, count in processes.items()
        )


def _metric_counts(report: Report) -> str:
    counts = [len(launch.metrics) for launch in report.launches]
    if not counts:
        return "no metrics"
    low, high = min(counts), max(counts)
    metrics = wording.counted(high, "metric") if low == high else f"{low} to {high} metrics"
    return metrics if len(counts) == 1 else f"{metrics} each"


def _session_lines(report: Report) -> list[str]:
    session = report.session
    pairs = {
        "host": session.host_name,
        "addresses": ", ".join(session.ip_addresses) or None,
        "system": session.os_name,
        "executable": session.executable,
        "arguments": session.arguments,
        "folder": session.work_directory,
        "ncu": session.profiler_command_line,
    }
    return [f"{name}: {value}" for name, value in pairs.items() if value]


def _kernels(console: Console, report: Report) -> None:
    from rich.table import Table

    counts = Counter((launch.name, launch.kind.value) for launch in report.launches)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    grid.add_column("results", justify="right", no_wrap=True, min_width=7)
    grid.add_column("kind", no_wrap=True, min_width=7)
    grid.add_column("name", overflow="ellipsis", no_wrap=True)
    for (name, kind), count in counts.most_common():
        grid.add_row(str(count), kind, _plain(name))
    if counts:
        console.print(grid)


def _plain(text: str) -> Text:
    from rich.text import Text

    return Text("".join(c if c.isprintable() else "?" for c in text))


def as_json(
    reports: Sequence[Report],
    wanted: Pattern[str] | None,
    timelines: Sequence[object] = (),
    refused: Sequence[SolscopeError] = (),
    *,
    show_session: bool,
) -> str:
    """Every metric of every launch, as `solscope.report/1`. Absent values are left out; what is
    absent of a whole file is listed with its reason, and so is each file that was refused."""
    import msgspec

    document = {
        "schema": READ_SCHEMA,
        "reports": [_json_report(r, wanted, show_session) for r in reports],
        "timelines": list(timelines),
        "refused": [
            {"path": _base(error.where), "what": error.what, "next": error.hint}
            for error in refused
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _base(where: str | None) -> str | None:
    return None if where is None else os.path.basename(where)


def _json_report(report: Report, wanted: Pattern[str] | None, show_session: bool) -> object:
    source = report.provenance
    document: dict[str, object] = {
        "path": os.path.basename(source.path),
        "sha256": source.sha256,
        "format": source.format,
        "tool": {"name": source.tool_name, "version": source.tool_version},
        "complete": report.complete,
        "issues": [{"code": i.code, "severity": i.severity, "what": i.what} for i in report.issues],
        "absences": readings.absences(report.absences),
        "launches": [_json_launch(launch, wanted) for launch in report.launches],
    }
    if isinstance(report, SummaryReport) and report.summaries:
        document["summaries"] = [_json_summary(one, wanted) for one in report.summaries]
    if show_session:
        document["session"] = report.session
    return document


def _json_launch(launch: KernelLaunch, wanted: Pattern[str] | None) -> object:
    return {
        "index": launch.index,
        "kind": launch.kind,
        "name": launch.name,
        "name_full": launch.name_full,
        "grid": launch.grid,
        "block": launch.block,
        "context": launch.context_id,
        "stream": launch.stream_id,
        "process": launch.process_id,
        **_json_device(launch.device),
        "metrics": dict(_selected(launch, wanted)),
        "valueless": [n for n in launch.metrics.valueless() if not wanted or wanted.search(n)],
        "nvtx": [{"domain": r.domain, "name": r.name} for r in launch.details.nvtx()],
    }


def _json_device(device: Device) -> dict[str, object]:
    """The GPU by name, and which of several it is: CUDA's ordinal within the process."""
    capability = device.compute_capability
    return {
        "device": device.name,
        "device_ordinal": device.ordinal,
        "compute_capability": None if capability is None else "{}.{}".format(*capability),
    }


def _json_summary(summary: LaunchSummary, wanted: Pattern[str] | None) -> object:
    return {
        "name": summary.name,
        "name_full": summary.name_full,
        "launches": summary.invocations,
        "process": summary.process_id,
        **_json_device(summary.device),
        "metrics": {
            metric.metric: {"unit": metric.unit, **dict(metric.rollups())}
            for metric in summary.metrics
            if wanted is None or wanted.search(metric.metric)
        },
    }


def _selected(
    launch: KernelLaunch, wanted: Pattern[str] | None
) -> list[tuple[str, MetricValue | None]]:
    """Metrics by name, in order. JSON has no nan or inf: they are written as text."""
    result: list[tuple[str, MetricValue | None]] = []
    for name in sorted(launch.metrics):
        if wanted is None or wanted.search(name):
            value = launch.metrics.get(name)
            is_finite = not isinstance(value, float) or value - value == 0
            result.append((name, value if is_finite else str(value)))
    return result


METRIC_COLUMNS = ("report", "launch", "kernel", "metric", "value", "unit")


def metric_rows(
    reports: Sequence[Report], wanted: Pattern[str] | None
) -> Iterator[tuple[str, int | None, str, str, MetricValue | None, str | None]]:
    """One row per launch and metric, by :data:`METRIC_COLUMNS`.

    The unit is the base unit: empty for pure numbers, ``None`` where it is not known. A summary
    has a row for each rollup, and no launch.
    """
    for report in reports:
        name = os.path.basename(report.provenance.path)
        for launch in report.launches:
            for metric, value in _selected(launch, wanted):
                yield name, launch.index, launch.name, metric, value, unit_of(metric)
        if isinstance(report, SummaryReport):
            yield from _summary_rows(name, report, wanted)


def _summary_rows(
    name: str, report: SummaryReport, wanted: Pattern[str] | None
) -> Iterator[tuple[str, None, str, str, MetricValue | None, str | None]]:
    for one in report.summaries:
        for metric in one.metrics:
            if wanted is None or wanted.search(metric.metric):
                for how, value in metric.rollups():
                    yield name, None, one.name, f"{metric.metric} ({how})", value, metric.unit


def csv_lines(reports: Sequence[Report], wanted: Pattern[str] | None) -> Iterator[str]:
    """The rows of :func:`metric_rows` as one text."""
    if not reports:
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(METRIC_COLUMNS)
    writer.writerows(metric_rows(reports, wanted))
    yield buffer.getvalue().rstrip("\n")
