"""An analysis as data: JSON by the schema ``solscope.analysis/1``, and CSV.

Base units throughout: bytes, ns, FLOP, Hz; percentages 0 to 100; shares and speeds of light as
fractions. What was not measured is ``null`` in JSON and an empty cell in CSV.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from solscope.model.controls import controls
from solscope.model.finding import Absence, Finding, Issue
from solscope.model.kernel import FlopTotals, KernelTotals, metric_set
from solscope.model.report import Device, Report, RuleAdvice
from solscope.model.roofline import RooflinePoint, Standing
from solscope.model.verdict import ANALYSIS_SCHEMA, Analysis, KernelVerdict
from solscope.render.view.page import base_name, hidden_issues
from solscope.render.view.rows import merged
from solscope.render.view.speeds import over_reason

_LARGEST_EXACT = 2.0**53


def as_json(analysis: Analysis, *, show_session: bool = False) -> bytes:
    """The analysis as UTF-8 JSON, indented, with a newline at its end.

    Paths are base names and no session is there unless ``show_session``.
    """
    import msgspec

    return msgspec.json.format(
        msgspec.json.encode(document(analysis, show_session=show_session)), indent=2
    ) + (b"\n")


def document(analysis: Analysis, *, show_session: bool = False) -> dict[str, Any]:
    """The same as plain lists and dictionaries."""
    kernels = sorted(analysis.kernels, key=lambda k: -(k.totals.duration_ns or 0.0))
    return {
        "schema": ANALYSIS_SCHEMA,
        "reports": [_report(report, show_session) for report in analysis.reports],
        "kernels": [_kernel(kernel) for kernel in kernels],
        "unknown_time_share": _number(analysis.unknown_time_share),
        "absences": _absences(analysis.absences),
    }


def _number(value: float | None) -> float | None:
    """A finite number; whole ones without a fraction; anything else is absent."""
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_EXACT:
        return int(value)
    return value


def _report(report: Report, show_session: bool) -> dict[str, Any]:
    origin, control = report.provenance, controls(report.session)
    shown: dict[str, Any] = {
        "path": origin.path if show_session else base_name(origin.path),
        "sha256": origin.sha256,
        "format": origin.format,
        "tool": {"name": origin.tool_name, "version": origin.tool_version},
        "device": _device(report.devices[0]) if report.devices else None,
        "devices": [_device(device) for device in report.devices],
        "launches": len(report.launches),
        "complete": report.complete,
        "issues": [_issue(issue) for issue in hidden_issues(report, show_session)],
        "clock_control": control.clock,
        "cache_control": control.cache,
        "replay_mode": control.replay,
        "absences": _absences(report.absences),
    }
    if show_session:
        shown["session"] = _session(report)
    return shown


def _device(device: Device) -> dict[str, Any]:
    capability = device.compute_capability
    return {
        "name": device.name,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "sm_count": device.sm_count,
        "ordinal": device.ordinal,
        "max_sm_clock_khz": _number(device.max_sm_clock_khz),
        "max_memory_clock_khz": _number(device.max_memory_clock_khz),
        "memory_bus_width_bits": device.memory_bus_width_bits,
        "max_warps_per_sm": device.max_warps_per_sm,
        "l2_bytes": device.l2_bytes,
        "memory_bytes": device.memory_bytes,
    }


def _session(report: Report) -> dict[str, Any]:
    session = report.session
    return {
        "created_unix_s": session.created_unix_s,
        "host_name": session.host_name,
        "ip_addresses": list(session.ip_addresses),
        "os_name": session.os_name,
        "executable": session.executable,
        "arguments": session.arguments,
        "work_directory": session.work_directory,
        "profiler_command_line": session.profiler_command_line,
        "versions": dict(session.versions),
    }


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "code": issue.code,
        "severity": issue.severity.value,
        "what": issue.what,
        "where": issue.where,
    }


def _absences(absences: Sequence[Absence]) -> list[dict[str, Any]]:
    return [{"field": a.field, "reason": a.reason, "remedy": a.remedy} for a in merged(absences)]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "where": finding.where,
        "fact": finding.fact,
        "remedy": finding.remedy,
        "evidence": list(finding.evidence),
    }


def _rule(rule: RuleAdvice) -> dict[str, Any]:
    return {
        "rule": rule.rule,
        "name": rule.name,
        "section": rule.section,
        "message": rule.message,
        "kind": rule.kind,
        "ncu_estimated_speedup_kind": rule.speedup_kind,
        "ncu_estimated_speedup_pct": _number(rule.speedup_pct),
    }


def _kernel(row: KernelVerdict) -> dict[str, Any]:
    return {**_identity(row), **_measured(row), **_judged(row)}


def _identity(row: KernelVerdict) -> dict[str, Any]:
    totals, key = row.totals, row.totals.key
    return {
        "name": totals.name,
        "name_full": key.name_full,
        "category": row.identity.category,
        "family": row.identity.family,
        "role": row.identity.role,
        "dtype": row.identity.dtype,
        "device": totals.device.name,
        "device_ordinal": totals.device.ordinal,
        "chip": None if row.chip is None else row.chip.key,
        "report": key.report,
        "kind": totals.kind.value,
        "grid": None if key.grid is None else list(key.grid),
        "block": None if key.block is None else list(key.block),
        "metric_set": _metric_set(totals),
    }


def _metric_set(totals: KernelTotals) -> dict[str, Any] | None:
    """The names that were collected, as a count and a digest: equal sets have equal digests."""
    found = totals.metric_set or metric_set(totals.members)
    return None if found is None else {"count": found.count, "sha256": found.sha256}


def _measured(row: KernelVerdict) -> dict[str, Any]:
    totals, point = row.totals, row.point
    return {
        "launches": totals.launches,
        "duration_ns": _number(totals.duration_ns),
        "duration_min_ns": _number(totals.duration_min_ns),
        "duration_max_ns": _number(totals.duration_max_ns),
        "time_share": _number(row.time_share),
        "flop": _flop(totals.flop),
        "flop_count": _number(totals.flop.total),
        "dram_read_bytes": _number(totals.dram_read_bytes),
        "dram_write_bytes": _number(totals.dram_write_bytes),
        "dram_bytes": _number(totals.dram_bytes),
        "l2_bytes": _number(totals.l2_bytes),
        "l1_bytes": _number(totals.l1_bytes),
        "arithmetic_intensity": _number(point.intensity),
        "flop_per_s": _number(point.flop_per_s),
        "dram_bytes_per_s": _number(point.dram_bytes_per_s),
        "dram_bytes_per_s_estimate": _number(totals.dram_bytes_per_s_estimate),
        "sm_clock_hz": _number(totals.peaks.sm_clock_hz),
        "dram_clock_hz": _number(totals.peaks.dram_clock_hz),
        "sm_busy_pct": _number(totals.sm_busy_pct),
        "sm_busy_member": totals.sm_busy_member,
        "dram_pct": _number(totals.dram_pct),
        "l2_pct": _number(totals.l2_pct),
        "l1_pct": _number(totals.l1_pct),
        "tensor_pipe_pct": _number(totals.tensor_pipe_pct),
        "achieved_occupancy_pct": _number(totals.achieved_occupancy_pct),
        "theoretical_occupancy_pct": _number(totals.theoretical_occupancy_pct),
        "registers_per_thread": totals.registers_per_thread,
        "smem_per_block_bytes": _number(totals.smem_per_block_bytes),
        "blocks_per_sm": _number(totals.blocks_per_sm),
        "waves_per_sm": _number(totals.waves_per_sm),
        "occupancy_limiter": ", ".join(totals.occupancy_limiter) or None,
        "stalls": [{"reason": s.reason, "share": _number(s.share)} for s in totals.stalls],
        "stalls_are_sampled": totals.stalls_are_sampled,
        "tensor_engagement": totals.tensor_engagement,
        "is_l2_resident": point.is_l2_resident,
    }


def _judged(row: KernelVerdict) -> dict[str, Any]:
    totals, point = row.totals, row.point
    return {
        "speed_of_light": _speed_of_light(row, point),
        "bound": row.verdict.bound,
        "is_at_roof": row.verdict.is_at_roof,
        "grounds": list(row.verdict.grounds),
        "absences": _absences([*row.absences, *totals.absences, *point.absences]),
        "findings": [_finding(finding) for finding in row.findings],
        "rules": [_rule(rule) for rule in totals.rules],
    }


def _flop(flop: FlopTotals) -> dict[str, Any]:
    return {
        "fp64": _number(flop.fp64),
        "fp32": _number(flop.fp32),
        "fp16": _number(flop.fp16),
        "tensor": _by_type(flop.tensor),
        "tensor_sparse": _by_type(flop.tensor_sparse),
    }


def _by_type(work: Mapping[str, float] | None) -> dict[str, Any] | None:
    return None if work is None else {kind: _number(n) for kind, n in sorted(work.items())}


def _speed_of_light(row: KernelVerdict, point: RooflinePoint) -> dict[str, Any]:
    profiled, sheet = point.profiled_binding, point.datasheet_binding
    return {
        "profiled": {
            "value": None if profiled is None else _number(profiled.value),
            "ceiling": None if profiled is None else profiled.ceiling,
            "clock_hz": None if profiled is None else _number(profiled.clock_hz),
            **_standing(row, profiled),
        },
        "datasheet": {
            "value": None if sheet is None else _number(sheet.value),
            "ceiling_key": None if sheet is None else sheet.ceiling,
            "clock_hz": None if sheet is None else _number(sheet.clock_hz),
            **_standing(row, sheet),
        },
    }


def _standing(row: KernelVerdict, standing: Standing | None) -> dict[str, Any]:
    if standing is None:
        return {"resource": None, "achieved": None, "peak": None, "above_one_because": None}
    totals = row.totals
    return {
        "resource": standing.resource,
        "achieved": _number(standing.achieved),
        "peak": _number(standing.peak),
        "above_one_because": (
            over_reason(standing, totals.device, totals.peaks.sm_clock_hz)
            if standing.value > 1
            else None
        ),
    }


_CSV_COLUMNS = (
    "report",
    "name",
    "name_full",
    "category",
    "family",
    "dtype",
    "device",
    "chip",
    "grid",
    "block",
    "launches",
    "duration_ns",
    "time_share",
    "bound",
    "flop_count",
    "flop_fp64",
    "flop_fp32",
    "flop_fp16",
    "flop_tensor",
    "dram_read_bytes",
    "dram_write_bytes",
    "dram_bytes",
    "arithmetic_intensity",
    "flop_per_s",
    "dram_bytes_per_s",
    "dram_bytes_per_s_estimate",
    "sol_profiled",
    "sol_profiled_ceiling",
    "sol_profiled_clock_hz",
    "sol_datasheet",
    "sol_datasheet_ceiling_key",
    "sol_datasheet_clock_hz",
    "sm_busy_pct",
    "dram_pct",
    "achieved_occupancy_pct",
    "registers_per_thread",
    "smem_per_block_bytes",
    "occupancy_limiter",
    "tensor_engagement",
    "report_complete",
    "absent_because",
)


def as_csv(analysis: Analysis) -> str:
    """One line per kernel, as JSON has them; empty where unmeasured, with ``absent_because``."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    shown = document(analysis)
    for kernel in shown["kernels"]:
        writer.writerow(_flat(kernel, shown["reports"][kernel["report"]]))
    return out.getvalue()


def _flat(kernel: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    profiled = kernel["speed_of_light"]["profiled"]
    sheet = kernel["speed_of_light"]["datasheet"]
    flop = kernel["flop"]
    tensor = flop["tensor"]
    return {
        **kernel,
        "report": report["path"],
        "report_complete": "yes" if report["complete"] else "no",
        "grid": _dimensions(kernel["grid"]),
        "block": _dimensions(kernel["block"]),
        "flop_fp64": flop["fp64"],
        "flop_fp32": flop["fp32"],
        "flop_fp16": flop["fp16"],
        "flop_tensor": None if tensor is None else sum(tensor.values()),
        "sol_profiled": profiled["value"],
        "sol_profiled_ceiling": profiled["ceiling"],
        "sol_profiled_clock_hz": profiled["clock_hz"],
        "sol_datasheet": sheet["value"],
        "sol_datasheet_ceiling_key": sheet["ceiling_key"],
        "sol_datasheet_clock_hz": sheet["clock_hz"],
        "absent_because": "; ".join(f"{a['field']}: {a['reason']}" for a in kernel["absences"]),
    }


def _dimensions(size: list[int] | None) -> str | None:
    return None if size is None else "x".join(str(n) for n in size)
