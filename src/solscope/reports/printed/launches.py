"""Cells to launches: names, shapes, devices, NVTX, as ncu prints them on every page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from solscope.model.finding import Issue, Severity
from solscope.model.kernel_name import short_name
from solscope.model.report import (
    Device,
    Dim3,
    KernelLaunch,
    Metrics,
    MetricValue,
    NvtxRange,
    PlainDetails,
    WorkloadKind,
)

_DIM3 = re.compile(r"\(?\s*(\d{1,10})\s*[,;]\s*(\d{1,10})\s*[,;]\s*(\d{1,10})\s*\)?")
_AS_FLOAT = re.compile(r"\.0{1,2}\Z")
_CAPABILITY = re.compile(r"(\d{1,2})(?:[.,](\d))?")  # spreadsheets write 9 for 9.0
_NVTX_ENTRY = re.compile(r'"([^"]*)"')
_RANGE_NAMES = {"range": WorkloadKind.RANGE, "graph": WorkloadKind.GRAPH}


@dataclass(frozen=True, slots=True)
class Identity:
    """The fixed cells of a launch, as printed; empty where the page has no such column."""

    id: str = ""
    process_id: str = ""
    process_name: str = ""
    host_name: str = ""
    kernel_name: str = ""
    context: str = ""
    stream: str = ""
    block: str = ""
    grid: str = ""
    device: str = ""
    capability: str = ""


def whole(text: str) -> int | None:
    """A printed identifier as a number, ``None`` where it is none.

    Locales group its digits; data frames make it a fraction, because the row of units has none.

    >>> whole("46.976"), whole("46,976"), whole("46976.0")
    (46976, 46976, 46976)
    """
    text = _AS_FLOAT.sub("", text.strip())
    bare = text.strip().replace(",", "").replace(".", "")
    return int(bare) if bare.isascii() and bare.isdigit() and len(bare) < 19 else None


def dim3(text: str) -> Dim3 | None:
    """``(256, 1, 1)`` as numbers, ``None`` where the cell holds no dimensions."""
    found = _DIM3.fullmatch(text.strip())
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def device_of(identity: Identity, metrics: Mapping[str, MetricValue]) -> Device:
    """The GPU, by the cells of the row and by ``device__attribute_*`` where they were printed."""

    def attribute(name: str) -> int | None:
        value = metrics.get(f"device__attribute_{name}")
        return int(value) if isinstance(value, int | float) else None

    capability = _CAPABILITY.fullmatch(identity.capability.strip())
    major, minor = attribute("compute_capability_major"), attribute("compute_capability_minor")
    pair = None if capability is None else (int(capability[1]), int(capability[2] or 0))
    if pair is None and major is not None and minor is not None:
        pair = (major, minor)
    name = metrics.get("device__attribute_display_name")
    return Device(
        name=name if isinstance(name, str) else None,
        compute_capability=pair,
        sm_count=attribute("multiprocessor_count"),
        ordinal=whole(identity.device),
        max_sm_clock_khz=attribute("clock_rate"),
        max_memory_clock_khz=attribute("memory_clock_rate"),
        memory_bus_width_bits=attribute("global_memory_bus_width"),
        max_warps_per_sm=attribute("max_warps_per_multiprocessor"),
        l2_bytes=attribute("l2_cache_size"),
        memory_bytes=attribute("total_memory"),
    )


def nvtx_ranges(column: str, cell: str) -> tuple[NvtxRange, ...]:
    """Ranges of one of the two NVTX columns, outermost first.

    A cell is a thread or range id, then quoted entries ``domain:name:fields``; how many fields
    follow the name is said by the column's own title.
    """
    is_push_pop = "Push/Pop" in column
    fields_after_name = column.partition("_Range:")[2].count(":") + 1
    owner = cell.split(None, 1)[0] if cell.strip() else ""
    ranges = []
    for entry in _NVTX_ENTRY.findall(cell):
        parts = entry.split(":")
        if len(parts) < fields_after_name + 2:
            continue
        ranges.append(
            NvtxRange(
                domain=parts[0],
                name=":".join(parts[1:-fields_after_name]),
                thread_id=whole(owner) if is_push_pop else None,
                is_push_pop=is_push_pop,
            )
        )
    return tuple(ranges)


def renamed(launches: Iterable[KernelLaunch]) -> Iterator[Issue]:
    """An issue where kernels carry the name of the NVTX range around them.

    So ncu prints them with ``--print-nvtx-rename kernel``; what kernel it was is then not known.
    """
    count = 0
    for one in launches:
        around = [r.name for r in one.details.nvtx() if r.is_push_pop]
        count += bool(around) and around[-1] == one.name_full
    if count:
        yield Issue(
            code="kernel-renamed",
            severity=Severity.WARNING,
            what=f"{count} launches bear the name of their NVTX range instead of their kernel's; "
            "export without --print-nvtx-rename",
        )


def launch(
    index: int, identity: Identity, metrics: Metrics, device: Device, details: PlainDetails
) -> KernelLaunch:
    """One launch of a printed page."""
    name = identity.kernel_name
    return KernelLaunch(
        index=index,
        kind=_RANGE_NAMES.get(name.strip().lower(), WorkloadKind.KERNEL),
        name=short_name(name),
        name_full=name,
        mangled=name if name.startswith("_Z") else None,
        metrics=metrics,
        device=device,
        details=details,
        grid=dim3(identity.grid),
        block=dim3(identity.block),
        context_id=whole(identity.context),
        stream_id=whole(identity.stream),
        process_id=whole(identity.process_id),
        process_name=identity.process_name.strip() or None,
    )
