"""A campaign in, its levers out: what to change, the most it can win, what it costs.

The most that a kernel can win is its share of the time times what it lacks to the speed of
light; of a collective, which waits for peers and for no roof, it is its whole share. Levers are
ranked by that over the relative cost of the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from solscope.model.campaign import (
    COSTS,
    Campaign,
    Cell,
    FindingStatus,
    Frontier,
    Lever,
    ValueFinding,
)
from solscope.model.kernel import KernelTotals
from solscope.model.units import duration_text
from solscope.model.verdict import KernelVerdict

_COUNT = (
    "count its FLOP and DRAM bytes; its speed of light is not known",
    "setting",
    "a capture with `solscope plan --level roofline`",
)
LEAST_WIN = 0.01
"""Below 1 % of the time a kernel is no lever."""

_OPEN = (FindingStatus.IN_PROGRESS, FindingStatus.NOT_DONE)


def rank(campaign: Campaign) -> Frontier:
    """Open levers, best first, joined with what people found.

    A finding whose id is that of a lever takes its place: done and closed ones leave the list.
    """
    found = {finding.id: finding for finding in campaign.findings}
    derived = [lever for lever in _levers(campaign) if lever.id not in found]
    stated = [
        _stated(finding, campaign) for finding in campaign.findings if finding.status in _OPEN
    ]
    known = {lever.id: lever for lever in _levers(campaign)}
    joined = [_joined(lever, known.get(lever.id)) for lever in stated]
    return Frontier(
        open=tuple(sorted((*derived, *joined), key=_order)),
        refuted=_of(campaign.findings, FindingStatus.CLOSED_NEGATIVE),
        done=_of(campaign.findings, FindingStatus.DONE),
    )


def _of(findings: Iterable[ValueFinding], status: FindingStatus) -> tuple[ValueFinding, ...]:
    return tuple(finding for finding in findings if finding.status is status)


def _order(lever: Lever) -> tuple[bool, float, float, str]:
    """Scored ones first, best first; then by their share of the time."""
    return (lever.score is None, -(lever.score or 0.0), -(lever.share or 0.0), lever.id)


def score(max_win: float | None, cost: str | None) -> float | None:
    """What a lever may win per unit of cost.

    >>> score(0.12, "library")
    0.06
    """
    if max_win is None or cost is None:
        return None
    return max_win / COSTS[cost]


def _stated(finding: ValueFinding, campaign: Campaign) -> Lever:
    return Lever(
        id=finding.id,
        what=finding.next_lever,
        max_win=finding.max_win,
        basis="end-to-end time",
        confidence="stated",
        cost=finding.cost or "",
        gate=finding.gate or "",
        rests_on=finding.title,
        status=finding.status,
        score=score(finding.max_win, finding.cost),
    )


def _joined(stated: Lever, derived: Lever | None) -> Lever:
    """What people said, with the numbers of the counters where they gave none."""
    if derived is None:
        return stated
    cost = stated.cost or derived.cost
    own = stated.max_win is not None
    win = stated.max_win if own else derived.max_win
    return replace(
        derived,
        what=stated.what,
        max_win=win,
        basis=stated.basis if own else derived.basis,
        confidence=stated.confidence if own else derived.confidence,
        cost=cost,
        gate=stated.gate or derived.gate,
        rests_on=f"{stated.rests_on}; {derived.rests_on}",
        status=stated.status,
        score=score(win, cost),
    )


def _levers(campaign: Campaign) -> Iterator[Lever]:
    for cell in campaign.cells:
        alike: dict[str, list[KernelVerdict]] = {}
        uncounted: list[KernelVerdict] = []
        for row in cell.analysis.kernels:
            if _is_to_be_counted(row):
                uncounted.append(row)
            else:
                alike.setdefault(_id(row, cell), []).append(row)
        small: list[KernelVerdict] = []
        for rows in alike.values():
            lever = _lever(rows, cell, campaign)
            if _is_worth(lever, rows):
                yield lever
            elif _share(rows) < LEAST_WIN or not rows[0].verdict.is_at_roof:
                small += rows
        if _share(uncounted) >= LEAST_WIN:
            yield _counting(uncounted, cell, campaign)
        untimed = [row for row in cell.analysis.kernels if row.time_share is None]
        if untimed:
            yield _timing(untimed, cell, campaign)
        if len(small) > 1:
            rest = _rest(small, cell, campaign)
            if _is_worth(rest, small):
                yield rest


def _is_worth(lever: Lever, rows: Sequence[KernelVerdict]) -> bool:
    enough = lever.max_win is None or lever.max_win >= LEAST_WIN
    return enough and _share(rows) >= LEAST_WIN


def _share(rows: Iterable[KernelVerdict]) -> float:
    return sum(row.time_share or 0.0 for row in rows)


def _id(row: KernelVerdict, cell: Cell) -> str:
    """Launches of other shapes of the same kernel, bound alike, are one lever."""
    name = f"{cell.id}:{row.totals.name}:{row.verdict.bound}"
    return re.sub(r"[^A-Za-z0-9._:-]+", "-", name)


def _is_to_be_counted(row: KernelVerdict) -> bool:
    """Whether only a measurement says what to change. Launches that are too small, that wait, or
    that talk to peers show it without their work being counted."""
    is_known = row.verdict.bound in ("peers", "too-small", "latency")
    return row.point.profiled_binding is None and not is_known


def _counting(rows: Sequence[KernelVerdict], cell: Cell, campaign: Campaign) -> Lever:
    """One capture counts the work of all of them: one lever."""
    share = _share(rows)
    return Lever(
        id=f"{cell.id}:uncounted",
        what=f"count FLOP and DRAM bytes of {_named(rows)}: their speed of light is not known",
        max_win=None,
        basis=_basis(campaign),
        confidence="percentages",
        cost="setting",
        gate="a capture with `solscope plan --level roofline`",
        rests_on=f"{share:.1%} of {cell.id}'s kernel time, whose work was not counted",
        share=share * (campaign.config.end_to_end_share or 1.0),
        cell=cell.id,
    )


def _named(rows: Sequence[KernelVerdict]) -> str:
    names = list(dict.fromkeys(row.totals.name for row in rows))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _timing(rows: Sequence[KernelVerdict], cell: Cell, campaign: Campaign) -> Lever:
    """Without a time nothing is known of what a kernel can win: no reason to think it is little."""
    return Lever(
        id=f"{cell.id}:untimed",
        what=f"time {_named(rows)}: no duration was measured",
        max_win=None,
        basis=_basis(campaign),
        confidence="percentages",
        cost="setting",
        gate="a capture with gpu__time_duration.sum",
        rests_on=f"{len(rows)} of {len(cell.analysis.kernels)} kernels of {cell.id} have no time",
        cell=cell.id,
    )


def _rest(rows: Sequence[KernelVerdict], cell: Cell, campaign: Campaign) -> Lever:
    """What each of many kernels wins is no lever; together they may be the largest."""
    share, scale = _share(rows), campaign.config.end_to_end_share or 1.0
    win = _win(rows)
    win = None if win is None else win * scale
    longest = sorted(rows, key=lambda row: -(row.time_share or 0.0))
    names = ", ".join(list(dict.fromkeys(row.totals.name for row in longest))[:3])
    return Lever(
        id=f"{cell.id}:rest",
        what=f"{len(rows)} kernels that win less than 1 % each ({names} first): fuse them with "
        "their neighbours, or launch fewer of them",
        max_win=win,
        basis=_basis(campaign),
        confidence=_confidence(rows, win),
        cost="fusion",
        gate=_smaller_share("they take", share, [row.totals for row in rows]),
        rests_on=f"{share:.1%} of {cell.id}'s kernel time in {len(rows)} kernels",
        score=score(win, "fusion"),
        share=share * scale,
        cell=cell.id,
    )


def _basis(campaign: Campaign) -> str:
    stated = campaign.config.end_to_end_share is not None
    return "end-to-end time" if stated else "the profiled kernel time"


def _lever(rows: Sequence[KernelVerdict], cell: Cell, campaign: Campaign) -> Lever:
    """The lever of one kernel; its longest shape gives the words."""
    first = max(rows, key=lambda row: row.time_share or 0.0)
    scale = campaign.config.end_to_end_share or 1.0
    win = _win(rows)
    win = None if win is None else win * scale
    share = _share(rows)
    what, cost, target = _change(first, share)
    grounds = first.verdict.grounds[0] if first.verdict.grounds else first.verdict.bound
    kernels = len({row.totals.key.name_full for row in rows})
    shapes = f" in {len(rows)} shapes" if len(rows) > 1 else ""
    shapes += f" of {kernels} kernels of that name" if kernels > 1 else ""
    return Lever(
        id=_id(first, cell),
        what=f"{first.totals.name}: {what}",
        max_win=win,
        basis=_basis(campaign),
        confidence=_confidence(rows, win),
        cost=cost,
        gate=target,
        rests_on=f"{share:.1%} of {cell.id}'s kernel time{shapes}; {grounds}",
        score=score(win, cost),
        share=share * scale,
        cell=cell.id,
        kernel=first.totals.key.name_full,
    )


def _win(rows: Sequence[KernelVerdict]) -> float | None:
    """What all shapes lack to their roofs, as a share; ``None`` where one's roof is not known."""
    lacks = [_lacks(row) if row.time_share is not None else 0.0 for row in rows]
    return None if None in lacks else sum(lack or 0.0 for lack in lacks)


def _confidence(rows: Sequence[KernelVerdict], win: float | None) -> str:
    if win is None:
        return "percentages"
    return "times" if all(row.verdict.bound == "peers" for row in rows) else "counted"


_ALONE = 0.995


def _smaller_share(they_take: str, share: float | None, totals: Sequence[KernelTotals]) -> str:
    """A share cannot fall where there is nothing else: then the work's whole time must."""
    if share is None:
        return f"capture the step again: {they_take} less of the kernel time"
    if share < _ALONE:
        return f"capture the step again: {they_take} less than {share:.1%} of the kernel time"
    time = duration_text(sum(one.duration_ns or 0.0 for one in totals))
    return f"capture the same work again: {they_take} less than {time} in all"


def _less_time(totals: KernelTotals) -> str:
    if totals.duration_ns is None:
        return "less time a launch"
    return f"below {totals.duration_ns / totals.launches / 1e3:.3g} µs a launch"


def _change(row: KernelVerdict, share: float | None) -> tuple[str, str, str]:
    """(what to change, its cost class, the measurement that proves or refutes it)."""
    bound, totals = row.verdict.bound, row.totals
    best = row.point.profiled_binding
    again = "capture it again in the same context"
    above = (
        f"{again}: {_less_time(totals)}"
        if best is None
        else f"{again}: above {best.value:.1%} of {best.ceiling}"
    )
    if bound == "peers":
        return (
            "overlap it with compute, or fuse the collective into its neighbour",
            "library",
            "the timeline: less exposed communication in a decode step",
        )
    if bound == "too-small":
        return (
            "give it more work a launch: larger batch, or fuse it with its neighbours",
            "setting",
            # A larger batch is another context: times a launch would not be like with like.
            _smaller_share("it takes", share, [totals]),
        )
    if bound == "latency":
        stall = f" ({totals.stalls[0].reason} first)" if totals.stalls else ""
        return (f"hide latency{stall}: more independent work in flight", "kernel", above)
    if bound == "dram" and row.verdict.is_at_roof:
        return (
            "move fewer bytes: fuse it with its neighbour, or store a smaller type",
            "fusion",
            f"{again}: fewer DRAM bytes for the same work",
        )
    if bound.startswith("tensor"):
        if totals.tensor_engagement == "legacy-mma" and (
            totals.device.compute_capability or (0, 0)
        ) >= (9, 0):
            return ("use a library on this chip's warpgroup tensor path", "library", above)
        return ("another tile shape or schedule of its library", "library", above)
    if bound in ("fp32", "fp64", "fp16"):
        return ("move the work to tensor cores, or do less of it", "kernel", above)
    return ("keep more bytes in flight: wider loads, deeper pipelining", "kernel", above)


def next_of(kernels: Sequence[KernelVerdict]) -> Lever | None:
    """The lever of one analysis: the kernel whose share of the time times what it lacks is largest.

    Where no kernel's speed of light is known, the longest one; ``None`` without kernels.
    """
    ranked = sorted(((_lacks(row), row) for row in kernels), key=lambda pair: -(pair[0] or 0.0))
    if not ranked:
        return None
    win, row = ranked[0]
    what, cost, gate = _COUNT if _is_to_be_counted(row) else _change(row, row.time_share)
    return Lever(
        id=row.totals.name,
        what=f"{row.totals.name}: {what}",
        max_win=win,
        basis="the profiled kernel time",
        confidence=_confidence([row], win),
        cost=cost,
        gate=gate,
        rests_on=row.verdict.grounds[0] if row.verdict.grounds else row.verdict.bound,
        score=score(win, cost),
        share=row.time_share,
        kernel=row.totals.key.name_full,
    )


def _lacks(row: KernelVerdict) -> float | None:
    best = row.point.profiled_binding
    if row.time_share is None:
        return None
    if row.verdict.bound == "peers":
        return row.time_share  # all of it can hide behind compute: it stands at no roof
    if best is None:
        return None
    return row.time_share * max(1.0 - best.value, 0.0)
