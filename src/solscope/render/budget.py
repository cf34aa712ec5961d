"""Budgets as text and as JSON (``solscope.budget/1``): nanoseconds per step, shares 0 to 1."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from solscope.model.budget import BUDGET_SCHEMA, Budget, DeviceBudget, QualityGate, StepTime
from solscope.model.finding import Severity
from solscope.model.trace import TimelineReport
from solscope.render.view import numbers
from solscope.render.view.page import base_name

_BAR = 30
_TIMES = (
    *("wall", "busy", "kernel", "graph", "copy", "compute", "exposed_copy", "host_gap"),
    *("communication", "exposed_communication"),
)


def table(budget: Budget, *, width: int) -> str:
    """Every device's budget with its verdict, grounds and failed gates."""
    blocks = ["\n".join(_device(budget, found, width)) for found in budget.devices]
    blocks += ["\n".join(_nothing(report, width)) for report in without_budget(budget)]
    blocks += filter(None, ["\n".join(_warnings(budget, width))])
    return "\n\n".join(blocks)


def _warnings(budget: Budget, width: int) -> Iterator[str]:
    """What the readers said of files whose budget stands above, as of rows that were left out."""
    bare = without_budget(budget)
    for report in budget.reports:
        for issue in report.issues:
            is_judged = issue.code == "graphs-hide-kernels"  # a gate says it
            if issue.severity is not Severity.WARNING or is_judged:
                continue
            if not any(report is one for one in bare):
                name = base_name(report.provenance.path)
                yield from _wrapped("warning: ", f"{name}: {issue.what}", width)


def without_budget(budget: Budget) -> list[TimelineReport]:
    """Timelines in which no device has a step."""
    seen = {device.report for device in budget.devices}
    return [report for index, report in enumerate(budget.reports) if index not in seen]


def _device(budget: Budget, found: DeviceBudget, width: int) -> Iterator[str]:
    time = found.time
    firm = "" if found.is_firm or found.verdict == "undetermined" else "  (not firm)"
    yield f"{_title(budget, found)}: {found.verdict}{firm}"
    whole = found.source.kind == "window"
    count = f"{found.steps} step" + ("" if found.steps == 1 else "s")
    steps = "the whole capture" if whole else f"{count} by {found.source.label}"
    each = "" if whole else " a step"
    yield (
        f"  {steps}; {numbers.duration(time.wall_ns)}{each}, "
        f"{_count(found.kernels_per_step)} kernels{each}"
    )
    for label, part in _parts(time):
        share = None if part is None or not time.wall_ns else part / time.wall_ns
        bar = "" if share is None else "█" * round(share * _BAR)
        yield (
            f"  {label:<22} {numbers.fraction(share):>8}  {numbers.duration(part):>9}  {bar}"
        ).rstrip()
    if found.best_case_speedup is not None:
        what = "the whole" if whole else "a step"
        yield f"  without it {what} would be at most {found.best_case_speedup:.2f}x faster"
    failed = tuple(f"{gate.name}: " for gate in found.gates if not gate.passed)
    for ground in found.grounds[1:]:
        if ground.startswith(failed):
            continue  # the gate itself stands below
        yield from _wrapped("  why: ", ground, width)
    for gate in found.gates:
        if not gate.passed:
            yield from _wrapped("  gate failed: ", _gate_text(gate), width)
    for absence in found.absences:
        yield from _wrapped("  not there: ", f"{absence.field}: {absence.reason}", width)


def _count(mean: float) -> str:
    return f"{mean:,.1f}".removesuffix(".0")


def _title(budget: Budget, found: DeviceBudget) -> str:
    path = base_name(budget.reports[found.report].provenance.path)
    name = f" ({found.device.name})" if found.device is not None and found.device.name else ""
    rank = "" if found.rank is None else f", rank {found.rank}"
    ordinal = "device" if found.ordinal is None else f"device {found.ordinal}"
    return numbers.clean(f"{path}, {ordinal}{name}{rank}")


def _parts(time: StepTime) -> tuple[tuple[str, float | None], ...]:
    return (
        ("kernels and graphs", time.compute_ns),
        ("exposed communication", time.exposed_communication_ns),
        ("exposed copies", time.exposed_copy_ns),
        ("host gap", time.host_gap_ns),
    )


def _gate_text(gate: QualityGate) -> str:
    remedy = f"; next: {gate.remedy}" if gate.remedy else ""
    return f"{gate.name}: {gate.fact}{remedy}"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        label + numbers.clean(text), width=max(width, 60), subsequent_indent="      "
    )


def _nothing(report: TimelineReport, width: int) -> Iterator[str]:
    yield f"{numbers.clean(base_name(report.provenance.path))}: no budget"
    if report.sums is not None:
        yield from _wrapped("  ", "it holds sums only: a budget needs begins and ends", width)
    for absence in report.absences:
        remedy = f"; next: {absence.remedy}" if absence.remedy else ""
        yield from _wrapped("  ", f"{absence.reason}{remedy}", width)


def as_json(budget: Budget) -> str:
    """The budget as JSON by the schema ``solscope.budget/1``."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document(budget)), indent=2).decode()


def document(budget: Budget) -> dict[str, Any]:
    """The same as plain lists and dictionaries. What is not known is ``null``."""
    return {
        "schema": BUDGET_SCHEMA,
        "reports": [
            {
                "path": base_name(report.provenance.path),
                "sha256": report.provenance.sha256,
                "format": report.provenance.format,
                "tool_version": report.provenance.tool_version,
                "vendor": report.vendor,
                "issues": [
                    {"code": i.code, "severity": i.severity, "what": i.what} for i in report.issues
                ],
                "absences": [
                    {"field": a.field, "reason": a.reason, "remedy": a.remedy}
                    for a in report.absences
                ],
            }
            for report in budget.reports
        ],
        "devices": [_document(found) for found in budget.devices],
    }


def _document(found: DeviceBudget) -> dict[str, Any]:
    time = found.time
    per_step = {f"{name}_ns": getattr(time, f"{name}_ns") for name in _TIMES}
    return {
        "report": found.report,
        "device": found.ordinal,
        "device_name": None if found.device is None else found.device.name,
        "rank": found.rank,
        "verdict": found.verdict,
        "is_firm": found.is_firm,
        "best_case_speedup": found.best_case_speedup,
        "steps": {
            "source": found.source.kind,
            "label": found.source.label,
            "used": found.steps,
            "left_out": found.left_out,
        },
        "per_step": per_step | {"kernels": found.kernels_per_step},
        "shares_of_wall": {
            key.removesuffix("_ns"): None
            if value is None or not time.wall_ns
            else value / time.wall_ns
            for key, value in per_step.items()
            if key != "wall_ns"
        },
        "grounds": list(found.grounds),
        "gates": [
            {
                "name": g.name,
                "passed": g.passed,
                "fact": g.fact,
                "remedy": None if g.passed else g.remedy,
            }
            for g in found.gates
        ],
        "absences": [
            {"field": a.field, "reason": a.reason, "remedy": a.remedy} for a in found.absences
        ],
    }
