"""Analyses as files: `solscope.analysis/1` JSON, reports, and timings of a benchmark, as kernels
that can be compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from solscope.analysis import comparison
from solscope.errors import ReportError
from solscope.flows import twins
from solscope.flows.analyze import analyze
from solscope.flows.read import counters
from solscope.flows.world import World
from solscope.model.comparison import ComparedKernel, ComparedReport
from solscope.model.report import Report
from solscope.model.verdict import ANALYSIS_SCHEMA
from solscope.reports import formats


class _Tool(msgspec.Struct):
    name: str | None = None
    version: str | None = None


class _Report(msgspec.Struct):
    path: str
    sha256: str | None = None
    tool: _Tool = msgspec.field(default_factory=_Tool)
    complete: bool = True
    clock_control: str | None = None
    cache_control: str | None = None
    replay_mode: str | None = None


class _Speed(msgspec.Struct):
    value: float | None = None
    ceiling: str | None = None
    ceiling_key: str | None = None


class _Speeds(msgspec.Struct):
    profiled: _Speed
    datasheet: _Speed


class _Stall(msgspec.Struct):
    reason: str
    share: float | None = None


class _Absence(msgspec.Struct):
    field: str
    reason: str


class _MetricSet(msgspec.Struct):
    count: int
    sha256: str


class _Kernel(msgspec.Struct, kw_only=True):
    name: str
    name_full: str
    kind: str
    report: int
    launches: int
    bound: str
    speed_of_light: _Speeds
    device: str | None = None
    device_ordinal: int | None = None
    chip: str | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    metric_set: _MetricSet | None = None
    sm_clock_hz: float | None = None
    dram_clock_hz: float | None = None
    duration_ns: float | None = None
    duration_min_ns: float | None = None
    duration_max_ns: float | None = None
    flop_count: float | None = None
    dram_bytes: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    l2_bytes: float | None = None
    arithmetic_intensity: float | None = None
    flop_per_s: float | None = None
    dram_bytes_per_s: float | None = None
    sm_busy_pct: float | None = None
    dram_pct: float | None = None
    tensor_pipe_pct: float | None = None
    achieved_occupancy_pct: float | None = None
    theoretical_occupancy_pct: float | None = None
    registers_per_thread: float | None = None
    smem_per_block_bytes: float | None = None
    waves_per_sm: float | None = None
    stalls: tuple[_Stall, ...] = ()
    stalls_are_sampled: bool = False
    absences: tuple[_Absence, ...] = ()


class _Analysis(msgspec.Struct):
    reports: tuple[_Report, ...]
    kernels: tuple[_Kernel, ...]


class _Timing(msgspec.Struct, forbid_unknown_fields=True):
    """A time that some benchmark measured, with how it was measured."""

    tool: str
    us: float
    kernel: str = "the measured kernel"
    cache: str | None = None
    clock: str | None = None
    gpu: str | None = None


_PER_LAUNCH = (
    "duration_ns",
    "flop_count",
    "dram_bytes",
    "dram_read_bytes",
    "dram_write_bytes",
    "l2_bytes",
)


def side(path: str, world: World, *, chip: str | None = None) -> tuple[ComparedKernel, ...]:
    """The kernels of one side: a report, a folder of reports, an analysis, or a timing.

    Raises ReportError for a file that is none of these, UsageError for one that is missing, and
    for a folder that holds one capture as two pages.
    """
    found = _from_json(path) if _is_json(path) else None
    if found is None:
        reports = [
            counters(formats.read(file))
            for file in world.progress(formats.find([path], formats.COUNTERS), "reading")
        ]
        twins.refuse(reports)
        found = from_reports(reports, chip=chip)
    if not found:
        raise ReportError("no kernel in it, so nothing to compare", where=path)
    return found


def from_reports(
    reports: Sequence[Report], *, chip: str | None = None
) -> tuple[ComparedKernel, ...]:
    """The kernels of reports, by way of the same document that `analyze --format json` prints."""
    from solscope.render import data

    document = data.document(analyze(reports, chip=chip))
    return _kernels(msgspec.convert(document, _Analysis))


def _is_json(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def _from_json(path: str) -> tuple[ComparedKernel, ...] | None:
    """``None`` where the JSON is neither an analysis nor a timing: some reader may know it."""
    if os.path.getsize(path) > 256 * 2**20:
        return None
    with open(path, "rb") as file:
        raw = file.read()
    try:
        document: Any = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ReportError(f"no valid JSON: {error}", where=path) from error
    try:
        if document.get("schema") == ANALYSIS_SCHEMA:
            return _kernels(msgspec.convert(document, _Analysis))
        if {"tool", "us"} <= set(document):
            return (_timed(msgspec.convert(document, _Timing), path),)
    except (msgspec.ValidationError, IndexError) as error:
        raise ReportError(
            f"not as `solscope analyze --format json` writes it: {error}", where=path
        ) from error
    return None


def _timed(timing: _Timing, path: str) -> ComparedKernel:
    report = ComparedReport(
        path=os.path.basename(path),
        sha256=None,
        tool=timing.tool,
        tool_version=None,
        clock_control=timing.clock,
        cache_control=timing.cache,
        replay_mode=None,
    )
    return ComparedKernel(
        report=report,
        name=timing.kernel,
        name_full=timing.kernel,
        kind="kernel",
        chip=timing.gpu,
        device=timing.gpu,
        device_ordinal=None,
        grid=None,
        block=None,
        launches=1,
        sm_clock_hz=None,
        dram_clock_hz=None,
        metric_count=None,
        metric_set=None,
        bound="unmeasured",
        quantities={"duration_ns": timing.us * 1e3},
    )


def _kernels(analysis: _Analysis) -> tuple[ComparedKernel, ...]:
    reports = [
        ComparedReport(
            path=report.path,
            sha256=report.sha256,
            tool=report.tool.name,
            tool_version=report.tool.version,
            clock_control=report.clock_control,
            cache_control=report.cache_control,
            replay_mode=report.replay_mode,
            complete=report.complete,
        )
        for report in analysis.reports
    ]
    return tuple(_kernel(kernel, reports[kernel.report]) for kernel in analysis.kernels)


def _kernel(wire: _Kernel, report: ComparedReport) -> ComparedKernel:
    low, high = wire.duration_min_ns, wire.duration_max_ns
    speeds = wire.speed_of_light
    return ComparedKernel(
        report=report,
        name=wire.name,
        name_full=wire.name_full,
        kind=wire.kind,
        chip=wire.chip,
        device=wire.device,
        device_ordinal=wire.device_ordinal,
        grid=wire.grid,
        block=wire.block,
        launches=wire.launches,
        sm_clock_hz=wire.sm_clock_hz,
        dram_clock_hz=wire.dram_clock_hz,
        metric_count=None if wire.metric_set is None else wire.metric_set.count,
        metric_set=None if wire.metric_set is None else wire.metric_set.sha256,
        bound=wire.bound,
        duration_range_ns=None if low is None or high is None else (low, high),
        quantities=_quantities(wire),
        ceilings={
            name: key
            for name, key in (
                ("speed_of_light_profiled", speeds.profiled.ceiling),
                ("speed_of_light_datasheet", speeds.datasheet.ceiling_key),
            )
            if key is not None
        },
        absences={absence.field: absence.reason for absence in wire.absences},
        stalls={stall.reason: stall.share for stall in wire.stalls if stall.share is not None},
        stalls_are_sampled=wire.stalls_are_sampled,
    )


def _quantities(wire: _Kernel) -> dict[str, float]:
    """What was measured, totals brought to one launch."""
    found: dict[str, float | None] = {
        name: getattr(wire, name, None) for name in comparison.QUANTITIES
    }
    found["speed_of_light_profiled"] = wire.speed_of_light.profiled.value
    found["speed_of_light_datasheet"] = wire.speed_of_light.datasheet.value
    return {
        name: value / wire.launches if name in _PER_LAUNCH else value
        for name, value in found.items()
        if value is not None
    }
