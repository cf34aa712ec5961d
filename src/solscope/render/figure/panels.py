"""What stands together in one roofline: kernels of one device, taken in one way, at one clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from solscope.model.roofline import Chip, Standing
from solscope.model.verdict import Analysis, KernelVerdict
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import clean
from solscope.render.view.page import Page, context
from solscope.render.view.rows import Row

SAME_CLOCK = 0.95
"""SM clocks within 5 % of the fastest share a chart; slower ones get their own."""

PROFILE, SHEET = "clock of the profile", "data sheet"
IN_USE = 0.001  # share of a compute roof from which its precision counts as in use
MOST_ROOFS = 6  # of each clock; beyond that labels no longer help


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One ceiling as drawn. ``peak`` in bytes/s where ``is_memory``, else FLOP/s or OP/s."""

    resource: str
    kind: str
    peak: float
    name: str
    clock: str

    @property
    def is_memory(self) -> bool:
        """Whether the roof is a diagonal."""
        return self.resource == "dram"

    @property
    def title(self) -> str:
        """Its resource and peak, such as ``tensor bf16 989 TFLOP/s``."""
        unit = f"{bounds.unit(self.resource)}/s"
        return f"{bounds.label(self.resource)} {numbers.amount(self.peak, unit)}"

    @property
    def source(self) -> str:
        """Its key or metric, and its clock."""
        return f"{self.name}, {self.clock or 'clock not stated'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart: its kernels by rank, its roofs and what is the same for all of it."""

    title: str
    subtitle: tuple[str, ...]
    members: tuple[tuple[Row, KernelVerdict], ...]
    roofs: tuple[Roof, ...]
    has_integer_work: bool
    elsewhere: tuple[Row, ...] = ()  # rows that no chart shows
    is_last_of_more: bool = False  # whether charts were left out
    strip: str = "intensity unmeasured"  # what stands along the strip of hollow markers

    @property
    def has_points(self) -> bool:
        """Whether any of its kernels can be placed."""
        return any(kernel.point.flop_per_s for _row, kernel in self.members)

    def roof_of(self, kind: str) -> Roof | None:
        """The DRAM roof of one clock."""
        return next((r for r in self.roofs if r.is_memory and r.kind == kind), None)


_Member = tuple[Row, KernelVerdict]
_Key = tuple[str, str, str, str]


def panels(analysis: Analysis, page: Page) -> tuple[Panel, ...]:
    """The charts of an analysis, the one with the most time first.

    Kernels that cannot be placed make no chart of their own: they are listed below the last
    one. Where none can be placed, one chart shows the roofs alone and says so. Without a roof
    there is nothing to draw.
    """
    groups: dict[_Key, list[_Member]] = {}
    for member in zip(page.rows, analysis.kernels, strict=True):
        groups.setdefault(_key(analysis, page, member), []).append(member)
    found = [
        _panel(key, cluster, page)
        for key, members in groups.items()
        for cluster in _by_clock(members)
    ]
    found.sort(key=lambda p: -sum(row.time.raw or 0.0 for row, _ in p.members))
    drawn = [p for p in found if p.has_points] or [p for p in found if p.roofs][:1]
    shown = {row.rank for p in drawn for row, _ in p.members}
    elsewhere = tuple(row for row in page.rows if row.rank not in shown)
    if elsewhere and drawn:
        drawn[-1] = dataclasses.replace(drawn[-1], elsewhere=elsewhere)
    return tuple(drawn)


def _key(analysis: Analysis, page: Page, member: _Member) -> _Key:
    row, kernel = member
    report = page.reports[row.report]
    chip = kernel.chip.key if kernel.chip else ""
    return row.device, chip, report.tool, context(analysis.reports[row.report])


def _by_clock(members: Sequence[_Member]) -> Iterator[list[_Member]]:
    """Members split so that in each part all SM clocks are within 5 % of the fastest."""
    unknown = [m for m in members if m[1].totals.peaks.sm_clock_hz is None]
    known = [m for m in members if m[1].totals.peaks.sm_clock_hz is not None]
    known.sort(key=lambda m: -_clock(m))
    while known:
        fastest = _clock(known[0])
        yield [m for m in known if _clock(m) >= SAME_CLOCK * fastest]
        known = [m for m in known if _clock(m) < SAME_CLOCK * fastest]
    if unknown:
        yield unknown


def _clock(member: _Member) -> float:
    return member[1].totals.peaks.sm_clock_hz or 0.0


def _panel(key: _Key, members: Sequence[_Member], page: Page) -> Panel:
    device, _chip, tool, how = key
    ordered = sorted(members, key=lambda m: m[0].rank)
    chip = ordered[0][1].chip
    files = list(dict.fromkeys(page.reports[row.report].file for row, _ in ordered))
    sheet = "in no ceilings table" if chip is None else f"data sheet {chip.key}"
    clocks = span([c for m in members if (c := m[1].totals.peaks.sm_clock_hz) is not None])
    lines = [
        f"SM clock of the profile {clocks or 'not stated'} · {sheet}",
        " · ".join(part for part in (_files(files), tool, how) if part),
    ]
    cut = [page.reports[i].file for i in _cut(ordered, page)]
    if cut:
        lines.append(f"INCOMPLETE: {_files(cut)} was cut; only the results before the cut are here")
    roofs = (*_roofs(ordered, PROFILE, chip), *_roofs(ordered, SHEET, chip))
    return Panel(
        title=device,
        subtitle=tuple(lines),
        members=tuple(ordered),
        roofs=roofs,
        has_integer_work=any(not r.is_memory and bounds.unit(r.resource) == "OP" for r in roofs),
    )


def _cut(members: Iterable[_Member], page: Page) -> list[int]:
    indices = dict.fromkeys(row.report for row, _ in members)
    return [index for index in indices if not page.reports[index].complete]


def _files(names: Sequence[str]) -> str:
    shown = ", ".join(numbers.shorten(name, 60) for name in names[:2])
    return shown if len(names) <= 2 else f"{shown} and {len(names) - 2} more"


def span(clocks: Sequence[float]) -> str:
    """One clock, or the range where they differ by more than the rounding.

    >>> span([1.755e9, 1.74e9])
    '1.740 to 1.755 GHz'
    """
    if not clocks:
        return ""
    return numbers.between(numbers.clock(min(clocks)), numbers.clock(max(clocks)))


def _roofs(members: Sequence[_Member], kind: str, chip: Chip | None) -> Iterator[Roof]:
    standings: dict[str, list[Standing]] = {}
    for _row, kernel in members:
        point = kernel.point
        for standing in point.profiled if kind == PROFILE else point.datasheet:
            if standing.resource != "l2" and _in_use(standing):
                standings.setdefault(standing.resource, []).append(standing)
    bases = {c.key: c.clock_basis or "" for c in chip.ceilings.values()} if chip else {}
    found = [_highest(resource, kind, group, bases) for resource, group in standings.items()]
    has_memory = any(r.is_memory for r in found)
    has_compute = any(not r.is_memory for r in found)
    for roof in _known(members, kind, chip):
        if not (has_memory if roof.is_memory else has_compute):
            found.append(roof)
    memory = [r for r in found if r.is_memory]
    compute = sorted((r for r in found if not r.is_memory), key=lambda r: -r.peak)
    yield from (*memory, *compute[:MOST_ROOFS])


def _in_use(standing: Standing) -> bool:
    return standing.resource == "dram" or standing.value >= IN_USE


def _highest(resource: str, kind: str, group: Sequence[Standing], bases: Mapping[str, str]) -> Roof:
    top = max(group, key=lambda s: s.peak)
    clocks = [s.clock_hz for s in group if s.clock_hz is not None]
    return Roof(
        resource=resource,
        kind=kind,
        peak=top.peak,
        name=clean(top.ceiling),
        clock=span(clocks) or bases.get(top.ceiling, ""),
    )


def _known(members: Sequence[_Member], kind: str, chip: Chip | None) -> Iterator[Roof]:
    """Roofs that are known although no kernel was measured against them."""
    if kind == SHEET:
        if chip is not None:
            yield from _sheet_roofs(members, chip)
        return
    totals = max((k.totals for _r, k in members), key=lambda t: t.peaks.sm_clock_hz or 0.0)
    peaks, device = totals.peaks, totals.device
    if peaks.dram_bytes_per_s is not None:
        yield Roof(
            resource="dram",
            kind=kind,
            peak=peaks.dram_bytes_per_s,
            name="dram__bytes.sum.peak_sustained",
            clock="" if peaks.dram_clock_hz is None else numbers.clock(peaks.dram_clock_hz),
        )
    elif device.dram_bytes_per_s is not None:
        yield Roof(
            resource="dram",
            kind=kind,
            peak=device.dram_bytes_per_s,
            name="device attributes: 2 x memory clock x bus width",
            clock=numbers.clock((device.max_memory_clock_khz or 0.0) * 1e3),
        )
    if peaks.fp32_flop_per_s is not None:
        yield Roof(
            resource="fp32",
            kind=kind,
            peak=peaks.fp32_flop_per_s,
            name="sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
            clock=numbers.clock(peaks.sm_clock_hz) if peaks.sm_clock_hz else "",
        )


def _sheet_roofs(members: Sequence[_Member], chip: Chip) -> Iterator[Roof]:
    names = [(name, "dram") for name in chip.ceilings if name.endswith("_tbps")][:1]
    for name, resource in (*names, _tensor_roof(members, chip), ("fp32_tflops", "fp32")):
        ceiling = chip.ceilings.get(name)
        if ceiling is not None:
            yield Roof(
                resource=resource,
                kind=SHEET,
                peak=ceiling.peak,
                name=ceiling.key,
                clock=(
                    numbers.clock(ceiling.clock_hz)
                    if ceiling.clock_hz
                    else ceiling.clock_basis or ""
                ),
            )


def _tensor_roof(members: Sequence[_Member], chip: Chip) -> tuple[str, str]:
    """The tensor ceiling of the type that the longest of the kernels bears in its name, else
    FP16's: (its name, its resource)."""
    longest = sorted(members, key=lambda member: -(member[1].totals.duration_ns or 0.0))
    for _row, kernel in longest:
        for unit in ("pflops", "pops"):
            name = f"{kernel.identity.dtype}_dense_{unit}"
            if name in chip.ceilings:
                return name, f"tensor:{kernel.identity.dtype}"
    return "fp16_dense_pflops", "tensor:fp16"
