"""What is claimed of a kernel, on which grounds, and the whole analysis."""

from __future__ import annotations

from dataclasses import dataclass

from solscope.model.conditions import Conditions
from solscope.model.controls import controls
from solscope.model.finding import Absence, Finding
from solscope.model.kernel import KernelIdentity, KernelTotals, metric_set
from solscope.model.report import Report
from solscope.model.roofline import Chip, RooflinePoint

ANALYSIS_SCHEMA = "solscope.analysis/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What binds a kernel. ``bound`` is ``dram``, ``l2``, ``tensor:<type>``, ``tensor`` (its type
    not counted), ``fp32``, ``fp64``, ``fp16``, ``latency``, ``too-small``, ``peers`` or
    ``unmeasured``; ``grounds`` are sentences with their numbers. ``is_at_roof`` is
    ``None`` unless FLOP or bytes were counted."""

    bound: str
    grounds: tuple[str, ...]
    is_at_roof: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelVerdict:
    """One row of an analysis: a kernel with its totals, its point and what is said of it."""

    identity: KernelIdentity
    totals: KernelTotals
    point: RooflinePoint
    verdict: Verdict
    time_share: float | None
    chip: Chip | None = None
    absences: tuple[Absence, ...] = ()
    findings: tuple[Finding, ...] = ()


def conditions_of(row: KernelVerdict, report: Report) -> Conditions:
    """How a kernel was measured: what must match before it is compared with another."""
    totals, control = row.totals, controls(report.session)
    metrics = totals.metric_set or metric_set(totals.members)
    return Conditions(
        chip=totals.device.name if row.chip is None else row.chip.key,
        device_ordinal=totals.device.ordinal,
        tool=report.provenance.tool_name,
        tool_version=report.provenance.tool_version,
        clock_control=control.clock,
        sm_clock_hz=totals.peaks.sm_clock_hz,
        dram_clock_hz=totals.peaks.dram_clock_hz,
        cache_control=control.cache,
        replay_mode=control.replay,
        metric_count=None if metrics is None else metrics.count,
        metric_set=None if metrics is None else metrics.sha256,
        kind=totals.kind.value,
        grid=totals.key.grid,
        block=totals.key.block,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The verdict on reports. ``kernels`` are sorted by total duration, longest first.

    ``chips`` holds, per report and in its order, the chip that the ceilings came from, or
    ``None`` where the device is in no table.
    """

    reports: tuple[Report, ...]
    kernels: tuple[KernelVerdict, ...]
    chips: tuple[Chip | None, ...]
    unknown_time_share: float | None = None
    absences: tuple[Absence, ...] = ()
