"""``launches.json`` of a cell: every launch behind its kernels, for the lake."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePath, PureWindowsPath
from typing import Any

from solscope.analysis.work import totals as work
from solscope.model.report import KernelLaunch
from solscope.model.verdict import Analysis, KernelVerdict

NAME = "launches.json"
SCHEMA = "solscope.launches/1"


def encode(analysis: Analysis) -> bytes:
    """The file's bytes. What was not measured is ``null``; launches stand as they were profiled.

    The analysis must still hold its launches (``totals.members``).
    """
    import msgspec

    found = sorted(
        ((row, launch) for row in analysis.kernels for launch in row.totals.members),
        key=lambda pair: (pair[0].totals.key.report, pair[1].index),
    )
    document = {
        "schema": SCHEMA,
        "captured_at": _captured_at(analysis),
        "launches": list(_launches(analysis, found)),
    }
    return msgspec.json.encode(document) + b"\n"


def _captured_at(analysis: Analysis) -> str | None:
    """When the first of the reports was begun, UTC, as the reports say it."""
    begun = [report.session.created_unix_s for report in analysis.reports]
    known = [instant for instant in begun if instant is not None]
    return datetime.fromtimestamp(min(known), UTC).isoformat() if known else None


def _launches(
    analysis: Analysis, found: list[tuple[KernelVerdict, KernelLaunch]]
) -> Iterator[dict[str, Any]]:
    for row, launch in found:
        number = row.totals.key.report
        (alone,) = work.total([launch], report=number)
        tensor = alone.flop.tensor
        yield {
            "name": alone.name,
            "name_full": launch.name_full,
            "category": row.identity.category,
            "report": _file_name(analysis.reports[number].provenance.path),
            "device": launch.device.ordinal,
            "stream": launch.stream_id,
            "grid": launch.grid,
            "block": launch.block,
            "duration_ns": alone.duration_ns,
            "dram_bytes": alone.dram_bytes,
            "flop_count": _sum(alone.flop.fp32, alone.flop.fp64, alone.flop.fp16),
            "tensor_flop_count": None if tensor is None else sum(tensor.values()),
            "achieved_dram_pct_peak": alone.dram_pct,
            "achieved_sm_pct_peak": alone.sm_busy_pct,
            "achieved_occupancy_pct": alone.achieved_occupancy_pct,
            "registers_per_thread": alone.registers_per_thread,
            "smem_per_block_bytes": alone.smem_per_block_bytes,
            "block_limit_factor": alone.occupancy_limiter[0] if alone.occupancy_limiter else None,
        }


def _sum(fp32: float | None, *others: float | None) -> float | None:
    # As in ncu_kernels.json: nothing is said of the scalar pipes where FP32 was not counted.
    return None if fp32 is None else fp32 + sum(other or 0.0 for other in others)


def _file_name(path: str) -> str:
    # The folder is the machine's own affair, on Windows too.
    return PureWindowsPath(PurePath(path).name).name
