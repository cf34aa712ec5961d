"""``cells/<cell-id>/ncu_kernels.json``: version 1 keys as others read them, and ours beside.

Ours stand under the key ``solscope`` (schema ``solscope.cell/1``) and hold the analysis without
launches and without session, so that a cell can be judged and drawn when its bundle is gone.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import PurePath, PureWindowsPath
from typing import Any

import msgspec

from solscope.errors import ReportError
from solscope.model.campaign import CELL_SCHEMA, KERNELS_SCHEMA_VERSION, CaptureCheck, Cell
from solscope.model.conditions import Conditions
from solscope.model.context import MeasurementContext
from solscope.model.controls import controls
from solscope.model.kernel import metric_set
from solscope.model.report import Report, Session
from solscope.model.roofline import Chip
from solscope.model.verdict import Analysis, KernelVerdict, conditions_of

KEYS = (
    "name",
    "name_full",
    "category",
    "kernel_time_ns",
    "dram_bytes_total",
    "sm_flops_total",
    "tensor_flops_total",
    "arithmetic_intensity_flops_per_byte",
    "achieved_dram_pct_peak",
    "achieved_sm_pct_peak",
    "achieved_occupancy_pct",
    "block_limit_factor",
    "achieved_tflops",
)
"""The keys of a kernel in version 1, in their order."""


class _Ours(msgspec.Struct):
    schema: str
    cell_id: str
    run_id: str
    added_at: str
    capture: CaptureCheck
    analysis: Analysis


class _File(msgspec.Struct):
    schema_version: int
    captured_sources: list[str]
    kernels: list[dict[str, Any]]
    hw_key: str | None = None
    solscope: _Ours | None = None


def encode(cell: Cell) -> bytes:
    """The file of a cell. What was not measured is ``null``."""
    ours = _Ours(
        schema=CELL_SCHEMA,
        cell_id=cell.id,
        run_id=cell.run_id,
        added_at=cell.added_at,
        capture=cell.capture,
        analysis=bare(cell.analysis),
    )
    document = {
        "schema_version": KERNELS_SCHEMA_VERSION,
        "captured_sources": list(cell.captured_sources),
        "hw_key": cell.hw_key,
        "kernels": [_kernel(row, cell.analysis) for row in cell.analysis.kernels],
        "solscope": ours,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode(raw: bytes, *, cell_id: str, context: MeasurementContext, where: str) -> Cell:
    """The cell in a file's bytes. Raises ReportError where it is not one, or is another tool's."""
    try:
        wire = msgspec.json.decode(raw, type=_File)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ReportError(f"not a cell: {error}", where=where, hint=_HINT) from error
    if wire.schema_version != KERNELS_SCHEMA_VERSION:
        raise ReportError(
            f"schema_version {wire.schema_version}; this version reads {KERNELS_SCHEMA_VERSION}",
            where=where,
            hint="use the version of solscope that wrote it",
        )
    ours = wire.solscope
    if ours is None:
        raise ReportError(
            "only the version 1 keys are here, and they cannot be judged: no ceilings, no "
            "tensor engagement, no provenance",
            where=where,
            hint=_HINT,
        )
    if ours.schema != CELL_SCHEMA:
        raise ReportError(f"schema {ours.schema}, not {CELL_SCHEMA}", where=where, hint=_HINT)
    analysis = ours.analysis
    reports = range(len(analysis.reports))
    strays = [row for row in analysis.kernels if row.totals.key.report not in reports]
    if strays or len(analysis.chips) != len(reports):
        raise ReportError(
            "kernels, chips and reports do not belong together", where=where, hint=_HINT
        )
    if len(wire.kernels) != len(analysis.kernels):
        raise ReportError(
            f"{len(wire.kernels)} kernels by the version 1 keys and "
            f"{len(ours.analysis.kernels)} by ours: the file was changed by hand",
            where=where,
            hint=_HINT,
        )
    _refuse_edited(wire.kernels, analysis, where)
    return Cell(
        id=cell_id,
        analysis=analysis,
        hw_key=wire.hw_key,
        captured_sources=tuple(wire.captured_sources),
        context=context,
        capture=ours.capture,
        run_id=ours.run_id,
        added_at=ours.added_at,
    )


_JUDGED = (
    *KEYS,
    "launches",
    "time_share",
    "bound",
    "is_at_roof",
    "tensor_engagement",
    "speed_of_light_profiled",
    "speed_of_light_datasheet",
    *(field.name for field in dataclasses.fields(Conditions) if field.name != "chip"),
)


def _refuse_edited(kernels: list[dict[str, Any]], analysis: Analysis, where: str) -> None:
    """Gates read our part and the lake the version 1 keys: they must say the same."""
    for index, (said, row) in enumerate(zip(kernels, analysis.kernels, strict=True)):
        ours = _kernel(row, analysis)
        for key in _JUDGED:
            expected = list(ours[key]) if isinstance(ours[key], tuple) else ours[key]
            if key in said and said[key] != expected:
                raise ReportError(
                    f"kernels[{index}].{key} is {said[key]!r} and was measured as {ours[key]!r}: "
                    "the file was changed by hand",
                    where=where,
                    hint=_HINT,
                )


_HINT = "import the bundle again: solscope campaign add SLUG --cell CELL BUNDLE"


def bare(analysis: Analysis) -> Analysis:
    """The analysis without launches, and without names of machines, users and folders."""
    return Analysis(
        reports=tuple(_report(report) for report in analysis.reports),
        kernels=tuple(
            dataclasses.replace(
                row,
                chip=_chip(row.chip),
                totals=dataclasses.replace(
                    row.totals,
                    members=(),
                    metric_set=row.totals.metric_set or metric_set(row.totals.members),
                ),
            )
            for row in analysis.kernels
        ),
        chips=tuple(_chip(chip) for chip in analysis.chips),
        unknown_time_share=analysis.unknown_time_share,
        absences=analysis.absences,
    )


def _report(report: Report) -> Report:
    control = controls(report.session)
    path = report.provenance.path
    name = PureWindowsPath(PurePath(path).name).name
    return Report(
        provenance=dataclasses.replace(report.provenance, path=name),
        launches=(),
        devices=report.devices,
        session=Session(
            clock_control=control.clock,
            cache_control=control.cache,
            replay_mode=control.replay,
        ),
        complete=report.complete,
        issues=tuple(
            dataclasses.replace(
                issue,
                what=issue.what.replace(path, name),
                where=None if issue.where is None else issue.where.replace(path, name),
            )
            for issue in report.issues
        ),
        absences=report.absences,
    )


def _chip(chip: Chip | None) -> Chip | None:
    return None if chip is None else dataclasses.replace(chip, match=None)


def _kernel(row: KernelVerdict, analysis: Analysis) -> dict[str, Any]:
    totals, point = row.totals, row.point
    scalar = totals.flop.fp32
    if scalar is not None:
        scalar += (totals.flop.fp64 or 0.0) + (totals.flop.fp16 or 0.0)
    tensor = totals.flop.tensor
    rate = point.flop_per_s
    values = (
        totals.name,
        totals.key.name_full,
        row.identity.category,
        _number(totals.duration_ns),
        _number(totals.dram_bytes),
        _number(scalar),
        _number(None if tensor is None else sum(tensor.values())),
        _number(point.intensity),
        _number(totals.dram_pct),
        _number(totals.sm_busy_pct),
        _number(totals.achieved_occupancy_pct),
        totals.occupancy_limiter[0] if totals.occupancy_limiter else None,
        _number(None if rate is None else rate / 1e12),
    )
    report = analysis.reports[row.totals.key.report]
    measured = conditions_of(row, report)
    return {**dict(zip(KEYS, values, strict=True)), **_added(row), **_how(measured)}


def _how(measured: Conditions) -> dict[str, Any]:
    """How the kernel was measured: keys of ours, so that its history can be like with like."""
    return {
        field.name: getattr(measured, field.name)
        for field in dataclasses.fields(measured)
        if field.name != "chip"
    }


def _added(row: KernelVerdict) -> dict[str, Any]:
    """Keys of ours beside each kernel of version 1."""
    profiled, sheet = row.point.profiled_binding, row.point.datasheet_binding
    return {
        "launches": row.totals.launches,
        "time_share": _number(row.time_share),
        "bound": row.verdict.bound,
        "is_at_roof": row.verdict.is_at_roof,
        "tensor_engagement": row.totals.tensor_engagement,
        "speed_of_light_profiled": None if profiled is None else _number(profiled.value),
        "speed_of_light_profiled_ceiling": None if profiled is None else profiled.ceiling,
        "speed_of_light_datasheet": None if sheet is None else _number(sheet.value),
        "speed_of_light_datasheet_ceiling_key": None if sheet is None else sheet.ceiling,
        "registers_per_thread": row.totals.registers_per_thread,
        "smem_per_block_bytes": _number(row.totals.smem_per_block_bytes),
        "block_limit_factors": list(row.totals.occupancy_limiter),
        "absent_because": {a.field: a.reason for a in row.absences},
    }


def _number(value: float | None) -> float | int | None:
    """A finite number, whole ones without a fraction."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() and abs(value) < 2.0**53 else value
