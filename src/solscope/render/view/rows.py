"""A kernel in words: each of its numbers formatted once, with the sort key beside it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solscope.model.finding import Absence, Finding
from solscope.model.kernel import KernelTotals
from solscope.model.report import Device, Dim3, RuleAdvice
from solscope.model.roofline import Chip, Standing
from solscope.model.verdict import KernelVerdict
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import ABSENT, clean

# ncu writes @section:Identifier:Name@, @source:Address:Text@ and @url:Name:Address@.
_RULE_LINK = re.compile(r"@(?:section|source):[^:@]*:([^@]*)@")
_RULE_URL = re.compile(r"@url:([^:@]*):[^@]*@")
_OVER = 1.0005  # what is shown as more than 100.0 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A shown number and the raw number to sort by (``None`` sorts last).

    ``note`` says what it is of; ``over`` why it passes 100 %.
    """

    text: str
    raw: float | None = None
    note: str = ""
    over: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """A speed of light: the percentage, what it is a percentage of, and at which clock."""

    cell: Cell
    resource: str = ""
    achieved: str = ""
    peak: str = ""
    ceiling: str = ""
    clock: str = ""
    at: str = ""

    @property
    def over(self) -> str:
        """Why it passes 100 %; empty where it does not."""
        return self.cell.over

    @property
    def basis(self) -> str:
        """One line that names the ceiling and its clock."""
        if not self.ceiling:
            return ""
        if not self.peak:
            return f"{self.achieved}; the percentage is {self.ceiling}, not counted work"
        clock = f"at {self.clock}" if self.clock else "clock not stated"
        return f"{self.achieved} of {self.peak}: {self.ceiling}, {clock}"


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


def row(verdict: KernelVerdict, rank: int, file: str) -> Row:
    """Word one kernel of a file. ``rank`` is its place by total duration, from 1."""
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
        at_roof=_at_roof(verdict.verdict.is_at_roof),
        profiled=_binding(point.profiled_binding, device, sm_clock, stated),
        sheet=_binding(point.datasheet_binding, device, sm_clock, stated),
        intensity=_intensity(verdict),
        flop_rate=Cell(
            text=numbers.amount(point.flop_per_s, "FLOP/s"),
            raw=point.flop_per_s,
        ),
        dram_rate=_dram_rate(verdict),
        sm_busy=_percentage(totals.sm_busy_pct),
        dram_busy=_percentage(totals.dram_pct),
        tensor_pipe=_percentage(totals.tensor_pipe_pct),
        occupancy=_percentage(totals.achieved_occupancy_pct),
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
        findings=verdict.findings,
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
        )
        for a in absences
    )
    return tuple(seen)


def _by_value(standings: Sequence[Standing]) -> list[Standing]:
    return sorted(standings, key=lambda s: -s.value)


def clock_bases(chip: Chip | None) -> Mapping[str, str]:
    """By ceiling key, what its table says of a clock that it gives no number for."""
    if chip is None:
        return {}
    return {c.key: clean(c.clock_basis) for c in chip.ceilings.values() if c.clock_basis}


def _binding(
    standing: Standing | None, device: Device, clock: float | None, stated: Mapping[str, str]
) -> Speed:
    if standing is None:
        return Speed(cell=Cell(text=ABSENT))
    return speed(standing, device, clock, stated)


def _at_roof(value: bool | None) -> str:
    if value is None:
        return "not claimed: neither FLOP nor bytes were counted"
    return "yes" if value else "no"


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


def _percentage(value: float | None) -> Cell:
    return Cell(text=numbers.percent(value), raw=value)


def _intensity(verdict: KernelVerdict) -> Cell:
    point = verdict.point
    if point.is_l2_resident:
        return Cell(text="L2-resident", note="DRAM traffic near zero: no DRAM intensity")
    return Cell(text=numbers.intensity(point.intensity), raw=point.intensity)


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


def speed(
    standing: Standing,
    device: Device,
    sm_clock_hz: float | None,
    stated: Mapping[str, str],
    *,
    at: str = "",
) -> Speed:
    """Word one standing, with the reason where it passes 100 %."""
    unit = f"{bounds.unit(standing.resource)}/s"
    over = over_reason(standing, device, sm_clock_hz) if standing.value > _OVER else ""
    worded = Speed(
        cell=Cell(text=numbers.fraction(standing.value), raw=standing.value, over=over),
        resource=bounds.label(standing.resource),
        achieved=numbers.amount(standing.achieved, unit),
        # L2 has no single peak for both directions: its standing is a busy percentage of ncu's.
        peak="" if standing.resource == "l2" else numbers.amount(standing.peak, unit),
        ceiling=clean(standing.ceiling),
        clock=clock_text(standing, stated),
        at=at,
    )
    return dataclasses.replace(worded, cell=dataclasses.replace(worded.cell, note=worded.basis))


def clock_text(standing: Standing, stated: Mapping[str, str]) -> str:
    """The clock of a standing's ceiling: its rate, else how its table words it, else empty."""
    if standing.clock_hz is not None:
        return numbers.clock(standing.clock_hz)
    return stated.get(standing.ceiling, "")


def over_reason(standing: Standing, device: Device, sm_clock_hz: float | None) -> str:
    """Why a share above 100 % is possible, with the clocks and the ceiling."""
    is_memory = standing.resource in {"dram", "l2"}
    clock = standing.clock_hz
    if not is_memory and clock is not None and sm_clock_hz is not None and sm_clock_hz > clock:
        return (
            f"{standing.ceiling} is quoted at {numbers.clock(clock)}; the profile ran at "
            f"{numbers.clock(sm_clock_hz)}"
        )
    attributes = device.dram_bytes_per_s
    if (
        standing.resource == "dram"
        and attributes is not None
        and attributes > 1.005 * standing.peak
    ):
        return (
            f"the device's memory clock and bus width give {numbers.amount(attributes, 'B/s')}, "
            f"more than {standing.ceiling} ({numbers.amount(standing.peak, 'B/s')})"
        )
    at = f" at {numbers.clock(clock)}" if clock is not None else " (clock not stated)"
    return (
        f"work and time come from different replay passes, whose clocks differ from that of "
        f"{standing.ceiling}{at}"
    )


def facts(totals: KernelTotals, chip: Chip | None) -> tuple[tuple[str, str], ...]:
    """The numbers of a kernel's detail, with their units, in reading order."""
    return (
        *_work_facts(totals),
        *_percent_facts(totals),
        *_launch_facts(totals),
        ("clocks of the profile", _clocks(totals)),
        ("data sheet used", ABSENT if chip is None else f"{chip.name} ({chip.key})"),
    )


def _work_facts(totals: KernelTotals) -> list[tuple[str, str]]:
    flop = totals.flop
    shown = [
        ("FP64", numbers.amount(flop.fp64, "FLOP")),
        ("FP32", numbers.amount(flop.fp32, "FLOP")),
        ("FP16", numbers.amount(flop.fp16, "FLOP")),
    ]
    if flop.tensor is None:
        shown.append(("tensor work", ABSENT))
    elif not flop.tensor:
        shown.append(("tensor work", "none"))
    else:
        shown += [
            (f"tensor {kind}", numbers.amount(n, bounds.unit(f"tensor:{kind}")))
            for kind, n in sorted(flop.tensor.items())
        ]
    shown += [
        (f"tensor {kind}, 2:4-sparse", numbers.amount(n, bounds.unit(f"tensor:{kind}")))
        for kind, n in sorted(flop.tensor_sparse.items())
        if n
    ]
    read, write = totals.dram_read_bytes, totals.dram_write_bytes
    return [
        *shown,
        ("DRAM read + write", f"{numbers.amount(read, 'B')} + {numbers.amount(write, 'B')}"),
        ("L2 traffic", numbers.amount(totals.l2_bytes, "B")),
        ("L1 traffic", numbers.amount(totals.l1_bytes, "B")),
    ]


def _percent_facts(totals: KernelTotals) -> list[tuple[str, str]]:
    member = f" ({totals.sm_busy_member})" if totals.sm_busy_member else ""
    return [
        ("SM busy", numbers.percent(totals.sm_busy_pct) + member),
        ("DRAM busy", numbers.percent(totals.dram_pct)),
        ("L2 busy", numbers.percent(totals.l2_pct)),
        ("L1 busy", numbers.percent(totals.l1_pct)),
        ("tensor pipe busy", numbers.percent(totals.tensor_pipe_pct)),
        ("tensor engagement", totals.tensor_engagement or ABSENT),
    ]


def _launch_facts(totals: KernelTotals) -> list[tuple[str, str]]:
    achieved = numbers.percent(totals.achieved_occupancy_pct)
    if totals.theoretical_occupancy_pct is not None:
        achieved += f" of {numbers.percent(totals.theoretical_occupancy_pct)}"
    per_sm, waves = totals.blocks_per_sm, totals.waves_per_sm
    return [
        ("occupancy, achieved of theoretical", achieved),
        ("occupancy limited by", ", ".join(totals.occupancy_limiter) or ABSENT),
        ("registers per thread", numbers.count(totals.registers_per_thread)),
        ("shared memory per block", numbers.amount(totals.smem_per_block_bytes, "B")),
        ("blocks per SM", ABSENT if per_sm is None else f"{per_sm:g}"),
        ("waves", ABSENT if waves is None else numbers.plain(waves)),
    ]


def _clocks(totals: KernelTotals) -> str:
    peaks = totals.peaks
    return f"SM {numbers.clock(peaks.sm_clock_hz)}, DRAM {numbers.clock(peaks.dram_clock_hz)}"


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
