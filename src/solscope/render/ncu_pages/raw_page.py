"""The raw page: names, units, a row for each launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from solscope.model.metric_units import unit_of
from solscope.model.report import Instance, KernelLaunch, Report
from solscope.render.ncu_pages.cells import cell, fixed_cells, fixed_columns, line
from solscope.render.ncu_pages.scales import (
    Instances,
    Scale,
    Spelling,
    Units,
    scale_of,
    spelling_of,
)

# Names that stand for requests, not for metrics; ncu prints no column for them.
_REQUESTS = ("breakdown:", "group:", "regex:")


def raw_csv(
    report: Report,
    *,
    units: Units = Units.AUTO,
    spelling: Spelling | None = None,
    instances: Instances = Instances.NONE,
) -> Iterator[str]:
    """Lines of ``ncu --import REPORT --csv --page raw``: names, units, a row for each launch.

    A metric without a value is ``no data``, one that a launch does not have is empty.
    """
    how = spelling or spelling_of(report)
    launches = report.launches
    names = sorted({name for launch in launches for name in printed_names(launch)})
    has_nvtx = any(launch.details.nvtx() for launch in launches)
    columns = [_raw_column(name, launches, units, how, instances) for name in names]
    yield line((*fixed_columns(has_nvtx), *names))
    blank = ("",) * len(fixed_columns(has_nvtx))
    yield line((*blank, *(unit for unit, _ in columns)))
    for row, launch in enumerate(launches):
        yield line((*fixed_cells(launch, has_nvtx), *(cells[row] for _, cells in columns)))


def printed_names(launch: KernelLaunch) -> Iterator[str]:
    """Metrics of a launch that ncu shows, with and without a value."""
    for names in (launch.metrics, launch.metrics.valueless()):
        yield from (name for name in names if not name.startswith(_REQUESTS))


def _raw_column(
    name: str,
    launches: Sequence[KernelLaunch],
    units: Units,
    spelling: Spelling,
    instances: Instances,
) -> tuple[str, list[str]]:
    values = [launch.metrics.get(name) for launch in launches]
    numbers = [abs(v) for v in values if isinstance(v, int | float) and isfinite(v)]
    base = unit_of(name) or ""
    scale = scale_of(base, max(numbers, default=0.0), units, spelling)
    is_fixed = units is Units.AUTO and scale.unit != ""
    cells = [
        _absent(name, launch) if value is None else cell(value, scale, is_fixed=is_fixed)
        for value, launch in zip(values, launches, strict=True)
    ]
    if instances is Instances.NONE:
        return scale.unit, cells
    # ncu 2024.1.1 leaves the instances of a scaled value out; "details" is newer and ours.
    leaves_out = is_fixed and instances is Instances.VALUES
    return scale.unit, [
        text
        if text and leaves_out
        else f"{text} {_instances(launch.metrics.instances(name), scale, instances)}".strip()
        for text, launch in zip(cells, launches, strict=True)
    ]


def _instances(found: Sequence[Instance], scale: Scale, how: Instances) -> str:
    parts = []
    for one in found:
        value = "n/a" if one.value is None else cell(one.value, scale, is_fixed=False)
        key = one.correlation_id if how is Instances.DETAILS else None
        parts.append(value if key is None else f"{key}: {value}")
    return f"({'; '.join(parts)})" if parts else ""


def _absent(name: str, launch: KernelLaunch) -> str:
    if name not in launch.metrics.valueless() or launch.metrics.instances(name):
        return ""
    return "no data"
