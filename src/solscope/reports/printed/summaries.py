"""Rows of a summary table to one kernel's summary, in base units."""

from __future__ import annotations

from collections.abc import Iterable

from solscope.model.kernel_name import short_name
from solscope.model.report import MetricValue
from solscope.model.summary import LaunchSummary, MetricSummary
from solscope.model.units import printed_unit
from solscope.reports.printed.labels import Era, meanings, metric_of
from solscope.reports.printed.launches import Identity, device_of, dim3, whole
from solscope.reports.printed.notes import Notes
from solscope.reports.printed.number_format import NumberFormat
from solscope.reports.printed.values import needs_unit, value_of

ALL_KERNELS = "(all kernels)"
"""Name of a summary that says of no kernel that it is its own."""

SummaryRow = tuple[str, str, str | None, tuple[str, ...]]
"""Section, label, unit (``None`` where the page has no column of units), and the cells of minimum,
maximum and mean."""


def summarise(
    identity: Identity,
    invocations: str,
    rows: Iterable[SummaryRow],
    numbers: NumberFormat,
    notes: Notes,
    *,
    era: Era,
    around: str = "",
) -> LaunchSummary:
    """What a page says of one kernel, or of all kernels of a range (``around``), a process, a GPU.

    Raises UnknownUnit.
    """
    device = device_of(identity, {})
    kernel = identity.kernel_name
    full = " in ".join(filter(None, (kernel, around))) or ALL_KERNELS
    chip = device.compute_capability
    return LaunchSummary(
        name=short_name(kernel) if kernel and not around else full,
        name_full=full,
        invocations=whole(invocations),
        device=device,
        process_id=whole(identity.process_id),
        grid=dim3(identity.grid),
        block=dim3(identity.block),
        metrics=tuple(_metric(row, numbers, notes, era=era, chip=chip) for row in rows),
    )


def _metric(
    row: SummaryRow,
    numbers: NumberFormat,
    notes: Notes,
    *,
    era: Era,
    chip: tuple[int, int] | None,
) -> MetricSummary:
    section, label, unit, cells = row
    name = metric_of(section, "", label, unit or "", era=era, capability=chip)
    if name is None:
        name = f"{section}: {label}" if section else label
        several = meanings(section, "", label) > 1
        (notes.ambiguous_labels if several else notes.unknown_labels)[name] = None
    base = printed_unit(unit or "")
    low, high, mean = (_number(cell, base.exponent, numbers) for cell in cells)
    if unit is None and needs_unit(name):
        notes.without_unit[name] = None
        low = high = mean = None
    return MetricSummary(
        metric=name, section=section, minimum=low, maximum=high, average=mean, unit=base.base
    )


def _number(cell: str, exponent: int, numbers: NumberFormat) -> MetricValue | None:
    value = value_of(cell, exponent, numbers)
    return value if isinstance(value, int | float) else None
