"""A kernel in words: each of its numbers formatted once, with the sort key beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from solscope.model.finding import Absence, Finding
from solscope.model.kernel import KernelTotals
from solscope.model.report import Dim3, RuleAdvice
from solscope.model.roofline import Standing
from solscope.model.verdict import KernelVerdict
from solscope.render.view import bounds, numbers
from solscope.render.view.facts import facts
from solscope.render.view.numbers import ABSENT, clean
from solscope.render.view.speeds import Cell, Speed, binding, clock_bases, speed

# ncu writes @section:Identifier:Name@, @source:Address:Text@ and @url:Name:Address@.
_RULE_LINK = re.compile(r"@(?:section|source):[^:@]*:([^@]*)@")
_MOST = 100.05  # what is shown as more than 100.0 %
_RULE_URL = re.compile(r"@url:([^:@]*):[^@]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A message of ncu's own rules. ``speedup`` says that the estimate is ncu's."""

    name: str
    message: str
    kind: str
    speedup: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A warp-stall reason with its share, as text and as a fraction."""

    reason: str
    text: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kernel as every page shows it."""

    rank: int
    report: int
    file: str
    name: str
    name_full: str
    shape: str
    kind: str
    device: str
    gpu: str
    process: str
    chip: str
    family: str
    category: str
    role: str
    dtype: str
    launches: Cell
    launches_text: str
    time: Cell
    spread: str
    share: Cell
    bound: str
    bound_label: str
    bound_style: bounds.BoundStyle
    at_roof: str
    profiled: Speed
    sheet: Speed
    intensity: Cell
    flop_rate: Cell
    dram_rate: Cell
    sm_busy: Cell
    dram_busy: Cell
    tensor_pipe: Cell
    occupancy: Cell
    limiter: str
    facts: tuple[tuple[str, str], ...]
    standings: tuple[Speed, ...]
    grounds: tuple[str, ...]
    stalls: tuple[Stall, ...]
    stalls_source: str
    absences: tuple[Absence, ...]
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]
    is_l2_resident: bool


def row(
    verdict: KernelVerdict,
    rank: int,
    file: str,
    *,
    several_gpus: bool = False,
    several_processes: bool = False,
) -> Row:
    """Word one kernel of a file. ``rank`` is its place by total duration, from 1; the GPU is
    said where kernels of the file ran on several."""
    totals, point = verdict.totals, verdict.point
    device = totals.device
    sm_clock = totals.peaks.sm_clock_hz
    stated = clock_bases(verdict.chip)
    profiled = tuple(
        speed(s, device, sm_clock, stated, at="profile") for s in _by_value(point.profiled)
    )
    sheet = tuple(
        speed(s, device, sm_clock, stated, at="data sheet") for s in _by_value(point.datasheet)
    )
    return Row(
        rank=rank,
        report=totals.key.report,
        file=file,
        name=clean(totals.name),
        name_full=clean(totals.key.name_full),
        shape=shape(totals),
        kind=totals.kind.value,
        device=clean(device.name or "unknown GPU"),
        gpu=ABSENT if device.ordinal is None or not several_gpus else str(device.ordinal),
        process=str(totals.key.process_id)
        if several_processes and totals.key.process_id is not None
        else ABSENT,
        chip="" if verdict.chip is None else verdict.chip.key,
        family=verdict.identity.family,
        category=verdict.identity.category,
        role=verdict.identity.role,
        dtype=verdict.identity.dtype or ABSENT,
        launches=Cell(text=numbers.count(totals.launches), raw=totals.launches),
        launches_text=(
            "1 launch" if totals.launches == 1 else f"{numbers.count(totals.launches)} launches"
        ),
        time=Cell(text=numbers.duration(totals.duration_ns), raw=totals.duration_ns),
        spread=_spread(totals),
        share=Cell(text=numbers.fraction(verdict.time_share), raw=verdict.time_share),
        bound=verdict.verdict.bound,
        bound_label=bounds.label(verdict.verdict.bound),
        bound_style=bounds.style(verdict.verdict.bound),
        at_roof=_at_roof(verdict),
        profiled=binding(point.profiled_binding, device, sm_clock, stated),
        sheet=binding(point.datasheet_binding, device, sm_clock, stated),
        intensity=_intensity(verdict),
        flop_rate=Cell(
            text=numbers.amount(point.flop_per_s, f"{_work_unit(verdict)}/s"),
            raw=point.flop_per_s,
        ),
        dram_rate=_dram_rate(verdict),
        sm_busy=_percentage(totals.sm_busy_pct, sm_clock),
        dram_busy=_percentage(totals.dram_pct, sm_clock),
        tensor_pipe=_percentage(totals.tensor_pipe_pct, sm_clock),
        occupancy=_percentage(totals.achieved_occupancy_pct, sm_clock),
        limiter=", ".join(totals.occupancy_limiter) or ABSENT,
        facts=facts(totals, verdict.chip),
        standings=(*profiled, *sheet),
        grounds=tuple(clean(ground) for ground in verdict.verdict.grounds),
        stalls=tuple(
            Stall(reason=clean(s.reason), text=numbers.fraction(s.share), share=s.share)
            for s in totals.stalls
        ),
        stalls_source="warp samples" if totals.stalls_are_sampled else "stalled warp cycles",
        absences=merged([*verdict.absences, *totals.absences, *point.absences]),
        # Above 100 % is said beside the number itself, with its reason.
        findings=tuple(f for f in verdict.findings if f.code != "above-100"),
        advice=tuple(_advice(rule) for rule in totals.rules if _is_shown(rule)),
        is_l2_resident=point.is_l2_resident,
    )


def merged(absences: Sequence[Absence]) -> tuple[Absence, ...]:
    """Each absence once, cleaned for show, in the order given."""
    seen = dict.fromkeys(
        Absence(
            field=clean(a.field),
            reason=clean(a.reason),
            remedy=None if a.remedy is None else clean(a.remedy),
            is_derived=a.is_derived,
        )
        for a in absences
    )
    return tuple(seen)


def _by_value(standings: Sequence[Standing]) -> list[Standing]:
    return sorted(standings, key=lambda s: -s.value)


def _at_roof(verdict: KernelVerdict) -> str:
    value = verdict.verdict.is_at_roof
    if value is not None:
        return "yes" if value else "no"
    if verdict.point.intensity is not None:
        return "not claimed: only a busy percentage is near a roof"
    if verdict.totals.dram_bytes is not None:
        flop = verdict.totals.flop
        some = any(one is not None for one in (flop.fp64, flop.fp32, flop.fp16, flop.tensor))
        return f"not claimed: {'not all' if some else 'no'} FLOP were counted"
    if verdict.point.flop_per_s is not None:
        return "not claimed: DRAM bytes were not counted"
    return "not claimed: neither FLOP nor bytes were counted"


def dimensions(size: Dim3) -> str:
    """A launch size without trailing ones.

    >>> dimensions((132, 1, 1)), dimensions((8, 4, 1))
    ('132', '8×4')
    """
    kept = list(size)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(str(n) for n in kept)


def shape(totals: KernelTotals) -> str:
    """Grid and block of a kernel; what it is where it has none."""
    key = totals.key
    if key.grid is None or key.block is None:
        return totals.kind.value
    return f"grid {dimensions(key.grid)} · block {dimensions(key.block)}"


def _spread(totals: KernelTotals) -> str:
    low, high = totals.duration_min_ns, totals.duration_max_ns
    if totals.launches < 2 or low is None or high is None:
        return ""
    return f"{numbers.duration(low)} to {numbers.duration(high)} per launch"


def _percentage(value: float | None, clock_hz: float | None) -> Cell:
    """One of ncu's own percentages; ``clock_hz`` is that of the profile."""
    over = ""
    if value is not None and value > _MOST:
        over = (
            "ncu's own percentage of its peak at the clock of the profile "
            f"({numbers.clock(clock_hz)}); its two counters come from different replay passes"
        )
    return Cell(text=numbers.percent(value), raw=value, over=over)


def _intensity(verdict: KernelVerdict) -> Cell:
    point = verdict.point
    if point.is_l2_resident:
        return Cell(text="L2-resident", note="DRAM traffic near zero: no DRAM intensity")
    text = numbers.intensity(point.intensity).replace("FLOP", _work_unit(verdict))
    return Cell(text=text, raw=point.intensity)


def _work_unit(verdict: KernelVerdict) -> str:
    """``OP`` where most of the counted work is the tensor cores' on integers, else ``FLOP``."""
    flop = verdict.totals.flop
    integers = sum(
        work
        for dtype, work in (flop.tensor or {}).items()
        if bounds.unit(f"tensor:{dtype}") == "OP"
    )
    return "OP" if flop.total is not None and integers > flop.total / 2 else "FLOP"


def _dram_rate(verdict: KernelVerdict) -> Cell:
    measured, estimate = (
        verdict.point.dram_bytes_per_s,
        verdict.totals.dram_bytes_per_s_estimate,
    )
    if measured is not None:
        return Cell(text=numbers.amount(measured, "B/s"), raw=measured)
    if estimate is not None:
        return Cell(
            text=f"≈{numbers.amount(estimate, 'B/s')}",
            raw=estimate,
            note="estimate: percent of peak × peak; the bytes were not counted",
        )
    return Cell(text=ABSENT)


def _is_shown(rule: RuleAdvice) -> bool:
    return rule.kind in {"warning", "error", "optimization"} or rule.speedup_pct is not None


def plain_rule(message: str) -> str:
    """A rule's message without the links that only ncu's own window can follow.

    >>> plain_rule("See @section:LaunchStats:Launch Statistics@ and @url:Guide:https://x.y/#z@.")
    'See Launch Statistics and Guide.'
    """
    message = _RULE_URL.sub(r"\1", message)
    return _RULE_LINK.sub(r"\1", message)


def _advice(rule: RuleAdvice) -> Advice:
    speedup = ""
    if rule.speedup_pct is not None:
        scope = f", {rule.speedup_kind}" if rule.speedup_kind else ""
        speedup = f"ncu's own estimate{scope}: {numbers.percent(rule.speedup_pct)} speed-up"
    return Advice(
        name=clean(rule.name or rule.rule),
        message=clean(plain_rule(rule.message)),
        kind=rule.kind,
        speedup=speedup,
    )
