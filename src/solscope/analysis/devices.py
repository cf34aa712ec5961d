"""One kernel on several devices of a capture: which device takes longer for the same work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from solscope.model.finding import Finding, Severity
from solscope.model.report import Dim3
from solscope.model.verdict import KernelVerdict

SLOWER_BY = 0.05
"""Launches of one kernel differ by a few percent on one device, too."""

_Same = tuple[int, str, Dim3 | None, Dim3 | None]


def compare(rows: Sequence[KernelVerdict]) -> list[KernelVerdict]:
    """The rows, those of a device that is slower at the same kernel with a finding that says so.

    Compared is the mean time of a launch, of the same name and shape in the same report. Ranks
    that share work unevenly look the same, so the finding claims no cause.
    """
    groups: dict[_Same, list[KernelVerdict]] = {}
    for row in rows:
        key = row.totals.key
        groups.setdefault((key.report, key.name_full, key.grid, key.block), []).append(row)
    found: dict[int, Finding] = {}
    for members in groups.values():
        found.update(_slower(members))
    return [
        replace(row, findings=(*row.findings, found[id(row)])) if id(row) in found else row
        for row in rows
    ]


def _slower(members: Sequence[KernelVerdict]) -> Iterator[tuple[int, Finding]]:
    """(id of the row, finding) of the rows of one kernel that another device beats."""
    timed = [(time, row) for row in members if (time := _mean_ns(row)) is not None]
    if len({row.totals.device.ordinal for _, row in timed} - {None}) < 2:
        return
    best, fastest = min(timed, key=lambda pair: pair[0])
    for time, row in timed:
        ordinal = row.totals.device.ordinal
        if ordinal == fastest.totals.device.ordinal or time < best * (1 + SLOWER_BY):
            continue
        yield (
            id(row),
            Finding(
                code="device-slower",
                severity=Severity.INFO if row.identity.is_collective else Severity.WARNING,
                where=row.totals.name,
                fact=f"device {ordinal} slower than device {fastest.totals.device.ordinal}: "
                f"{time / 1e3:.4g} µs a launch against {best / 1e3:.4g} µs",
                remedy="compare clocks, power limits and the work of the ranks; the devices run "
                "side by side, so their times do not add up to a duration",
            ),
        )


def _mean_ns(row: KernelVerdict) -> float | None:
    time = row.totals.duration_ns
    return None if time is None else time / row.totals.launches
