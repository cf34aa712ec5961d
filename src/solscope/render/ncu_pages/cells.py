"""Cells and lines that both pages share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from solscope.model.report import KernelLaunch, MetricValue, NvtxRange
from solscope.render.ncu_pages.scales import Scale

_COLUMNS = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
_NVTX_COLUMNS = (
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
)
_LOCAL_HOST = "127.0.0.1"  # what ncu prints for a process of the machine that it ran on


def fixed_columns(has_nvtx: bool) -> tuple[str, ...]:
    """Titles of the columns that both pages begin with."""
    nvtx = _NVTX_COLUMNS if has_nvtx else ()
    return (*_COLUMNS[:4], *nvtx, *_COLUMNS[4:])


def fixed_cells(launch: KernelLaunch, has_nvtx: bool) -> tuple[str, ...]:
    """What says which launch a row is of; empty where it is not known."""
    capability = launch.device.compute_capability
    nvtx = _nvtx_cells(launch.details.nvtx()) if has_nvtx else ()
    return (
        str(launch.index),
        _text(launch.process_id),
        re.split(r"[/\\]", launch.process_name or "")[-1].rstrip("\0"),
        _LOCAL_HOST,
        *nvtx,
        launch.name_full or launch.name,
        _text(launch.context_id),
        _text(launch.stream_id),
        _dimensions(launch.block),
        _dimensions(launch.grid),
        _text(launch.device.ordinal),
        "" if capability is None else f"{capability[0]}.{capability[1]}",
    )


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


def _dimensions(size: tuple[int, int, int] | None) -> str:
    return "" if size is None else f"({size[0]}, {size[1]}, {size[2]})"


def _nvtx_cells(ranges: Iterable[NvtxRange]) -> tuple[str, str]:
    """Thread and ranges. Payload, colour and message are not kept by the readers: ``none``."""
    stacks: dict[int | None, list[str]] = {}
    starts = []
    for one in ranges:
        entry = f'"{one.domain}:{one.name}:none:none:none:none:none:none" '
        if one.is_push_pop:
            stacks.setdefault(one.thread_id, []).append(entry)
        else:
            starts.append(entry)
    pushed = "".join(f"{_text(thread)}  {' '.join(stack)}" for thread, stack in stacks.items())
    return pushed, " ".join(starts)


def cell(value: MetricValue, scale: Scale, *, is_fixed: bool) -> str:
    """A value as printed: six decimals where ``is_fixed``, else two or none."""
    if isinstance(value, str):
        return value
    if not isfinite(value):
        return str(float(value))
    if is_fixed:
        # ncu shows what is below zero (a difference of two passes) as zero in scaled columns.
        # It does so with "nan", too: we do not, for what was not measured is no zero.
        return f"{max(0.0, scale.divide(value)):.6f}"
    return _number(scale.divide(value) if scale.exponent else value)


def _number(value: int | float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def line(cells: Iterable[str]) -> str:
    """A line of the page: every cell quoted, quotes doubled."""
    return ",".join(f'"{text.replace(chr(34), chr(34) * 2)}"' for text in cells) + "\n"
