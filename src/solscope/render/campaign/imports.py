"""What came into a campaign, in words."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.model.campaign import Cell
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import clean

MOST_KERNELS = 10


def added(cell: Cell, slug: str, *, is_dry: bool) -> str:
    """The kernels of a new cell, and what its context lacks."""
    return "\n".join(_lines(cell, slug, is_dry))


def skipped(bundle: str, reason: str) -> str:
    """A bundle that was left alone."""
    return f"skipped {clean(bundle)}: {clean(reason)}"


def _lines(cell: Cell, slug: str, is_dry: bool) -> Iterator[str]:
    rows = cell.analysis.kernels
    counted = sum(row.point.intensity is not None for row in rows)
    verb = "would add" if is_dry else "added"
    yield (
        f"{verb} cell {cell.id} to {slug}: {numbers.things(len(rows), 'kernel')} of "
        f"{numbers.things(len(cell.analysis.reports), 'report')}, hardware "
        f"{cell.hw_key or 'unknown'}, intensity measured for {counted}"
    )
    for row in rows[:MOST_KERNELS]:
        share = numbers.fraction(row.time_share) if row.time_share is not None else "–"
        speed = row.point.profiled_binding
        stands = "speed of light not measured"
        if speed is not None:
            stands = f"{numbers.fraction(speed.value)} of {bounds.label(speed.resource)}"
        yield f"  {share:>7}  {clean(row.totals.name)[:48]:<48}  {stands}"
    if len(rows) > MOST_KERNELS:
        yield f"  and {len(rows) - MOST_KERNELS} more"
    for problem in cell.capture.problems:
        yield f"  capture: {clean(problem)}"
    missing = cell.context.missing()
    if missing:
        yield f"context: {numbers.things(len(missing), 'field')} missing, so the numbers are DRAFT"
        yield f"  {', '.join(cell.context.gaps())}"
    for name, why in cell.context.refused.items():
        yield f"  refused {clean(name)}: {clean(why)}"
