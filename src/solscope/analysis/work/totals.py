"""Launches of the same kernel summed: sums over sums, never means of ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from solscope.analysis.work import counters, occupancy, tensor
from solscope.analysis.work.counters import number
from solscope.analysis.work.peaks import peaks
from solscope.model.finding import Absence
from solscope.model.kernel import FlopTotals, KernelKey, KernelTotals, LaunchPeaks
from solscope.model.report import KernelLaunch, Metrics

_PERCENT = ".avg.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One launch with everything that its counters give."""

    launch: KernelLaunch
    time_ns: float | None
    scalar: counters.Scalar
    tensor: tensor.TensorWork
    traffic: counters.Traffic
    peaks: LaunchPeaks
    absences: tuple[Absence, ...]

    @property
    def flop(self) -> float | None:
        """All counted work; ``None`` where FP32 or tensor work is unmeasured."""
        if self.scalar.fp32 is None or self.tensor.dense is None:
            return None
        scalar = self.scalar.fp32 + (self.scalar.fp64 or 0.0) + (self.scalar.fp16 or 0.0)
        return scalar + sum(self.tensor.dense.values()) + sum(self.tensor.sparse.values())


def measure(launch: KernelLaunch) -> Measured:
    """What the counters of one launch say."""
    ledger = counters.Ledger()
    time_ns = counters.duration_ns(launch.metrics)
    if time_ns is None:
        ledger.miss(
            "duration_ns",
            "no duration was collected",
            "collect `--metrics gpu__time_duration.sum`",
        )
    return Measured(
        launch=launch,
        time_ns=time_ns,
        scalar=counters.scalar_work(launch, time_ns, ledger),
        tensor=tensor.tensor_work(launch, time_ns, ledger),
        traffic=counters.traffic(launch, time_ns, ledger),
        peaks=peaks(launch),
        absences=tuple(ledger.absences),
    )


def total(launches: Sequence[KernelLaunch], *, report: int) -> tuple[KernelTotals, ...]:
    """Kernels of one report, in the order of their first launch."""
    groups: dict[KernelKey, list[KernelLaunch]] = {}
    for launch in launches:
        groups.setdefault(_key(launch, report), []).append(launch)
    return tuple(_totals(key, [measure(m) for m in members]) for key, members in groups.items())


def _key(launch: KernelLaunch, report: int) -> KernelKey:
    ordinal = "" if launch.device.ordinal is None else f"#{launch.device.ordinal}"
    return KernelKey(
        report=report,
        name_full=launch.name_full,
        grid=launch.grid,
        block=launch.block,
        device=f"{launch.device.name or 'unknown'}{ordinal}",
        process_id=launch.process_id,
    )


@dataclass(slots=True)
class _Sums:
    """Sums over launches that say when some of them did not measure a quantity."""

    rows: Sequence[Measured]
    absences: list[Absence] = field(default_factory=list)

    def all_of(self, name: str, read: Callable[[Measured], float | None]) -> float | None:
        """The sum where every launch measured it; else ``None`` and why."""
        values = [read(row) for row in self.rows]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            return float(sum(known))
        if known:
            self.absences.append(
                Absence(
                    field=name,
                    reason=f"measured in {len(known)} of {len(values)} launches only",
                    remedy="collect the same metrics for every launch",
                )
            )
        return None

    def pair(
        self, top: Callable[[Measured], float | None], bottom: Callable[[Measured], float | None]
    ) -> tuple[float, float] | None:
        """(sum of one, sum of the other) over the launches that measured both."""
        both = [(a, b) for row in self.rows if (a := top(row)) is not None and (b := bottom(row))]
        if not both:
            return None
        return float(sum(a for a, _ in both)), float(sum(b for _, b in both))


def _totals(key: KernelKey, rows: Sequence[Measured]) -> KernelTotals:
    longest = max(rows, key=lambda row: row.time_ns or 0.0)
    sums = _Sums(rows)
    times = [row.time_ns for row in rows if row.time_ns is not None]
    metrics = longest.launch.metrics
    limits, blocks_per_sm = occupancy.limiter(metrics)
    # The longest launch first: where launches cannot be weighted, it speaks for the kernel.
    by_time = [r.launch for r in sorted(rows, key=lambda row: -(row.time_ns or 0.0))]
    stall_shares, sampled = occupancy.stalls(by_time)
    percent = _percentages(rows)
    return KernelTotals(
        key=key,
        name=longest.launch.name,
        kind=longest.launch.kind,
        device=longest.launch.device,
        launches=len(rows),
        duration_ns=sums.all_of("duration_ns", lambda r: r.time_ns),
        duration_min_ns=min(times, default=None),
        duration_max_ns=max(times, default=None),
        flop=_flop(sums),
        dram_read_bytes=sums.all_of("dram_read_bytes", lambda r: r.traffic.read),
        dram_write_bytes=sums.all_of("dram_write_bytes", lambda r: r.traffic.write),
        dram_bytes=sums.all_of("dram_bytes", lambda r: r.traffic.total),
        l2_bytes=sums.all_of("l2_bytes", lambda r: r.traffic.l2),
        l1_bytes=sums.all_of("l1_bytes", lambda r: r.traffic.l1),
        peaks=_mean_peaks(rows),
        sm_busy_member=_winning_member(metrics),
        registers_per_thread=_whole(number(metrics, "launch__registers_per_thread")),
        smem_per_block_bytes=_shared_memory(metrics),
        occupancy_limiter=limits,
        blocks_per_sm=blocks_per_sm,
        waves_per_sm=number(metrics, "launch__waves_per_multiprocessor"),
        theoretical_occupancy_pct=number(metrics, "sm__maximum_warps_per_active_cycle_pct"),
        stalls=stall_shares,
        stalls_are_sampled=sampled,
        tensor_engagement=_engagement(rows),
        hfma2_only=any(row.scalar.hfma2_only for row in rows),
        dram_bytes_per_s_estimate=_weighted(rows, lambda r: r.traffic.estimate_bytes_per_s),
        intensity_pair=sums.pair(lambda r: r.flop, lambda r: r.traffic.total),
        flop_rate_pair=sums.pair(lambda r: r.flop, lambda r: r.time_ns),
        dram_rate_pair=sums.pair(lambda r: r.traffic.total, lambda r: r.time_ns),
        absences=_merged([a for row in rows for a in row.absences], sums.absences),
        rules=longest.launch.details.rules(),
        members=tuple(row.launch for row in rows),
        metric_set=None,
        **percent,
    )


def _flop(sums: _Sums) -> FlopTotals:
    paths = _by_label([row.tensor.dense or {} for row in sums.rows])
    sparse = _by_label([row.tensor.sparse for row in sums.rows])
    has_tensor = all(row.tensor.dense is not None for row in sums.rows)
    return FlopTotals(
        fp64=sums.all_of("flop.fp64", lambda r: r.scalar.fp64),
        fp32=sums.all_of("flop.fp32", lambda r: r.scalar.fp32),
        fp16=sums.all_of("flop.fp16", lambda r: r.scalar.fp16),
        tensor=_by_type(paths) if has_tensor else None,
        tensor_sparse=_by_type(sparse) if has_tensor else {},
        tensor_paths=paths if has_tensor else {},
        total=sums.all_of("flop_count", lambda r: r.flop),
    )


def _by_label(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for row in rows:
        for label, work in row.items():
            total[label] = total.get(label, 0.0) + work
    return total


def _by_type(paths: Mapping[str, float]) -> dict[str, float]:
    """Work by source type, whatever it accumulates in."""
    return _by_label(
        [{label.removesuffix(tensor.FP16_ACCUMULATE): work} for label, work in paths.items()]
    )


def _merged(rows: Sequence[Absence], sums: Sequence[Absence]) -> tuple[Absence, ...]:
    """Each field's absence once, the launches' own reason before the summary's."""
    merged: dict[str, Absence] = {}
    for absence in (*sums, *rows):
        merged.setdefault(absence.field, absence)
    return tuple(merged.values())


_PERCENTAGES: Mapping[str, tuple[str, ...]] = {
    "sm_busy_pct": (f"sm__throughput{_PERCENT}",),
    "memory_pct": (
        f"gpu__compute_memory_throughput{_PERCENT}",
        f"gpu__compute_memory_access_throughput{_PERCENT}",
    ),
    "dram_pct": (f"gpu__dram_throughput{_PERCENT}", f"dram__throughput{_PERCENT}"),
    "l2_pct": (f"lts__throughput{_PERCENT}",),
    "l1_pct": (
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        f"l1tex__throughput{_PERCENT}",
    ),
    "achieved_occupancy_pct": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "smsp__warps_active.avg.pct_of_peak_sustained_active",
    ),
}


def _percentages(rows: Sequence[Measured]) -> dict[str, float | None]:
    found = {name: _weighted(rows, _reader(metrics)) for name, metrics in _PERCENTAGES.items()}
    found["tensor_pipe_pct"] = _weighted(rows, lambda r: tensor.pipe_busy(r.launch.metrics))
    return found


def _reader(names: Sequence[str]) -> Callable[[Measured], float | None]:
    return lambda row: counters.first(row.launch.metrics, names)


def _weighted(rows: Sequence[Measured], read: Callable[[Measured], float | None]) -> float | None:
    """Time-weighted: percent x time summed over time summed, of the launches that have both."""
    if len(rows) == 1:
        return read(rows[0])
    pairs = [(v, r.time_ns) for r in rows if (v := read(r)) is not None and r.time_ns]
    weight = sum(time for _, time in pairs)
    return sum(v * time for v, time in pairs) / weight if pairs else None


def _mean_peaks(rows: Sequence[Measured]) -> LaunchPeaks:
    def of(read: Callable[[LaunchPeaks], float | None]) -> float | None:
        return _weighted(rows, lambda row: read(row.peaks))

    types = {label for row in rows for label in row.peaks.tensor_flop_per_s}
    tensor_peaks = {
        label: value for label in sorted(types) if (value := of(_tensor_peak_of(label))) is not None
    }
    return LaunchPeaks(
        sm_clock_hz=of(lambda p: p.sm_clock_hz),
        dram_clock_hz=of(lambda p: p.dram_clock_hz),
        fp64_flop_per_s=of(lambda p: p.fp64_flop_per_s),
        fp32_flop_per_s=of(lambda p: p.fp32_flop_per_s),
        fp16_flop_per_s=of(lambda p: p.fp16_flop_per_s),
        tensor_flop_per_s=tensor_peaks,
        dram_bytes_per_s=of(lambda p: p.dram_bytes_per_s),
        l2_bytes_per_s=of(lambda p: p.l2_bytes_per_s),
    )


def _tensor_peak_of(label: str) -> Callable[[LaunchPeaks], float | None]:
    return lambda found: found.tensor_flop_per_s.get(label)


def _winning_member(metrics: Metrics) -> str | None:
    """Which sub-unit makes SM Busy what it is: the largest member of ncu's own breakdown."""
    listed = metrics.get(f"breakdown:sm__throughput{_PERCENT}")
    if not isinstance(listed, str):
        return None
    members = {
        name: value
        for part in listed.replace(";", ",").split(",")
        if (name := part.strip()) and (value := number(metrics, name)) is not None
    }
    return max(members, key=lambda name: members[name]).split(".")[0] if members else None


def _engagement(rows: Sequence[Measured]) -> str | None:
    found = {row.tensor.engagement for row in rows}
    for strongest in ("wgmma", "legacy-mma"):
        if strongest in found:
            return strongest
    return "none" if found == {"none"} else None


def _shared_memory(metrics: Metrics) -> float | None:
    """Static + dynamic + driver shared memory per block, in bytes."""
    stored = number(metrics, "launch__shared_mem_per_block")
    if stored is not None:
        return stored
    parts = [
        number(metrics, f"launch__shared_mem_per_block_{part}") for part in ("static", "dynamic")
    ]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return sum(known) + (number(metrics, "launch__shared_mem_per_block_driver") or 0.0)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
