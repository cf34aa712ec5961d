"""Samples, times and counters of the same kernels in, one row a kernel out.

Three sources are three runs: a share is never multiplied by a duration of ncu, and a total is
never made from one. Time comes from the timeline alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from solscope.analysis.join import matching
from solscope.analysis.join.matching import Match
from solscope.model.finding import Severity
from solscope.model.join import Join, JoinedKernel, TimeSide
from solscope.model.kernel import KernelIdentity
from solscope.model.trace import KernelTime, SampledKernel, SampleReport, TimelineReport
from solscope.model.verdict import Analysis, KernelVerdict

SKEWED = 1.1
"""From this ratio on, GPUs that run the same kernel are said to differ."""

UNLIKE = 1.1
"""From this ratio on, ncu's duration is said to differ from the timeline's."""

Identify = Callable[[str, str], KernelIdentity]
Gpu = tuple[int, int | None, int | None]
"""A GPU as a timeline knows it: report, process, device."""

_HIDDEN = ("kernels-not-recorded", "kernels-inside-graphs")

NO_TOTALS_FROM_NCU = (
    "ncu durations are not used for totals: ncu replays launches, at its own clock and with "
    "cold caches"
)


def join(
    samples: Sequence[SampleReport],
    timelines: Sequence[TimelineReport],
    analysis: Analysis | None,
    identify: Identify,
) -> Join:
    """One row per kernel; what no two sources share stands alone."""
    sampled = _mean_shares(samples)
    timed = [(index, time) for index, t in enumerate(timelines) for time in t.kernel_times()]
    counted = () if analysis is None else analysis.kernels
    names = {
        "samples": [kernel.name for kernel in sampled],
        "time": [time.name_full for _, time in timed],
        "counters": [row.totals.key.name_full for row in counted],
    }
    graph_launches = sum(t.graph_launches or 0 for t in timelines)
    gpu_totals = _gpu_totals(timed, timelines)
    rows = [
        _row(found, sampled, timed, counted, identify, gpu_totals, graph_launches)
        for found in matching.match(names)
    ]
    rows = _told_apart(rows)
    rows.sort(key=_weight)
    return Join(
        samples=tuple(samples),
        timelines=tuple(timelines),
        analysis=analysis,
        kernels=tuple(rows),
        notes=tuple(_notes(samples, timelines, analysis, graph_launches)),
    )


def _mean_shares(samples: Sequence[SampleReport]) -> list[SampledKernel]:
    """The kernels of one sample report, or of several with their shares averaged.

    A report that does not list a kernel saw none of it; a share that a report lists without
    its number is unknown, and so is the mean.
    """
    if len(samples) == 1:
        return list(samples[0].kernels())
    shares: dict[str, float | None] = {}
    for report in samples:
        for kernel in report.kernels():
            before = shares.get(kernel.name, 0.0)
            if before is None or kernel.share is None:
                shares[kernel.name] = None
            else:
                shares[kernel.name] = before + kernel.share
    return [
        SampledKernel(
            name=name, samples=None, share=None if share is None else share / len(samples)
        )
        for name, share in shares.items()
    ]


def _told_apart(rows: Sequence[JoinedKernel]) -> list[JoinedKernel]:
    """Where several rows have one function's name, they get their template arguments."""
    counts = Counter(row.name for row in rows)
    return [
        replace(row, name=matching.qualified(row.name_full)) if counts[row.name] > 1 else row
        for row in rows
    ]


def _weight(row: JoinedKernel) -> tuple[float, float]:
    total = row.time.total_ns if row.time is not None else None
    return (-(total or 0.0), -(row.sample_share or 0.0))


def _total(time: KernelTime) -> float | None:
    """The total, or mean times launches, which is the same before rounding."""
    if time.total_ns is not None:
        return time.total_ns
    if time.mean_ns is not None and time.launches is not None:
        return time.mean_ns * time.launches
    return None


def _gpu_totals(
    timed: Sequence[tuple[int, KernelTime]], timelines: Sequence[TimelineReport]
) -> dict[Gpu, float]:
    """All kernel time of each GPU, graph replays that were recorded as a whole included: without
    them the share of a kernel that was recorded singly would be too large."""
    totals: dict[Gpu, float] = {}
    for index, time in timed:
        gpu = (index, time.process, time.device)
        totals[gpu] = totals.get(gpu, 0.0) + (_total(time) or 0.0)
    for index, report in enumerate(timelines):
        for process, device, spent in _replays(report):
            gpu = (index, process, device)
            totals[gpu] = totals.get(gpu, 0.0) + spent
    return totals


def _replays(report: TimelineReport) -> Iterator[tuple[int | None, int | None, float]]:
    import pyarrow.compute as pc

    if report.graphs.num_rows == 0:
        return
    table = report.graphs.select(["process", "device"]).append_column(
        "ns", pc.subtract(report.graphs["end_ns"], report.graphs["start_ns"])
    )
    for row in table.group_by(["process", "device"]).aggregate([("ns", "sum")]).to_pylist():
        yield row["process"], row["device"], float(row["ns_sum"])


def _row(
    found: Match,
    sampled: Sequence[SampledKernel],
    timed: Sequence[tuple[int, KernelTime]],
    counted: Sequence[KernelVerdict],
    identify: Identify,
    gpu_totals: dict[Gpu, float],
    graph_launches: int,
) -> JoinedKernel:
    hits = [sampled[i] for i in found.members.get("samples", ())]
    times = [timed[i] for i in found.members.get("time", ())]
    counters = tuple(counted[i] for i in found.members.get("counters", ()))
    shares = [hit.share for hit in hits if hit.share is not None]
    share = sum(shares) if shares else None
    full = _full_name(hits, times, counters)
    identity = identify(found.name, full)
    time = _time_side(times, gpu_totals, graph_launches) if times else None
    longest = max(gpu_totals.values(), default=0.0)
    return JoinedKernel(
        name=found.name,
        name_full=full,
        identity=identity,
        confidence=found.confidence,
        sample_share=share,
        time=time,
        counters=counters,
        estimated_ns=share * longest if share is not None and longest else None,
        win_bound=_win_bound(time, counters, identity),
        verdict=_verdict(identity, counters),
        notes=tuple(_row_notes(time, counters, share)),
    )


def _full_name(
    hits: Sequence[SampledKernel],
    times: Sequence[tuple[int, KernelTime]],
    counters: Sequence[KernelVerdict],
) -> str:
    names = [row.totals.key.name_full for row in counters]
    names += [time.name_full for _, time in times] + [hit.name for hit in hits]
    return max(names, key=len)


def _time_side(
    times: Sequence[tuple[int, KernelTime]], gpu_totals: dict[Gpu, float], graph_launches: int
) -> TimeSide:
    per_gpu: dict[Gpu, float] = {}
    launches: dict[Gpu, int] = {}
    for index, time in times:
        gpu = (index, time.process, time.device)
        total = _total(time)
        if total is not None:
            per_gpu[gpu] = per_gpu.get(gpu, 0.0) + total
        if time.launches is not None:
            launches[gpu] = launches.get(gpu, 0) + time.launches
    in_graphs = sum(time.in_graphs or 0 for _, time in times)
    longest = max(per_gpu, key=lambda gpu: per_gpu[gpu], default=None)
    total = None if longest is None else per_gpu[longest]
    count = launches.get(longest) if longest is not None else max(launches.values(), default=None)
    all_of_gpu = 0.0 if longest is None else gpu_totals.get(longest, 0.0)
    return TimeSide(
        total_ns=total,
        mean_ns=total / count if total is not None and count else None,
        launches=count,
        share=total / all_of_gpu if total is not None and all_of_gpu else None,
        gpus=len({(i, t.process, t.device) for i, t in times}),
        skew=_ratio(list(per_gpu.values())),
        variants=len({time.name_full for _, time in times}),
        count_is_exact=graph_launches == 0 or in_graphs > 0,
    )


def _ratio(values: Sequence[float]) -> float | None:
    if len(values) < 2 or min(values) <= 0:
        return None
    return max(values) / min(values)


def _main(counters: Sequence[KernelVerdict]) -> KernelVerdict:
    """The variant that took the longest under ncu."""
    return max(counters, key=lambda row: row.totals.duration_ns or 0.0)


def _win_bound(
    time: TimeSide | None, counters: Sequence[KernelVerdict], identity: KernelIdentity
) -> float | None:
    """What running at its own ceiling would save of all GPU time, at most.

    Not known for collectives, which wait for others, nor without a counted speed of light.
    """
    if time is None or time.share is None or not counters or identity.is_collective:
        return None
    binding = _main(counters).point.profiled_binding
    if binding is None or not 0 < binding.value <= 1:
        return None
    return time.share * (1 - binding.value)


def _verdict(identity: KernelIdentity, counters: Sequence[KernelVerdict]) -> str:
    if counters:
        return _main(counters).verdict.bound
    return "peers" if identity.is_collective else "unmeasured"


def _row_notes(
    time: TimeSide | None, counters: Sequence[KernelVerdict], share: float | None
) -> Iterator[str]:
    if time is not None and not time.count_is_exact:
        yield "launch count not comparable: CUDA graphs replay this without single launch records"
    if time is not None and time.skew is not None and time.skew >= SKEWED:
        yield f"the slowest of {time.gpus} GPUs takes {time.skew:.2f}x as long as the fastest"
    if time is not None and time.variants > 1:
        yield f"{time.variants} variants (template arguments) on the timeline are one row"
    yield from _device_skew(counters)
    yield from _unlike_durations(time, counters)
    if share is not None and time is not None and time.share and time.gpus == 1:
        ratio = max(share, time.share) / max(min(share, time.share), 1e-9)
        if ratio >= 1.5:
            yield (
                f"samples say {share:.1%} of the time, the timeline {time.share:.1%}: "
                "the runs differ"
            )


def _device_skew(counters: Sequence[KernelVerdict]) -> Iterator[str]:
    """Where ncu profiled the kernel on several devices, which one was slower."""
    means: dict[int | None, float] = {}
    for row in counters:
        totals = row.totals
        if totals.duration_ns is not None and totals.launches:
            ordinal = totals.device.ordinal
            means[ordinal] = max(means.get(ordinal, 0.0), totals.duration_ns / totals.launches)
    if len(means) > 1 and min(means.values()) > 0:
        slow, fast = max(means, key=lambda d: means[d]), min(means, key=lambda d: means[d])
        if means[slow] / means[fast] >= SKEWED:
            yield (
                f"device {slow} slower under ncu: {means[slow] / 1e3:,.1f} us against "
                f"{means[fast] / 1e3:,.1f} us on device {fast}"
            )


def _unlike_durations(time: TimeSide | None, counters: Sequence[KernelVerdict]) -> Iterator[str]:
    if time is None or time.mean_ns is None or not counters:
        return
    totals = _main(counters).totals
    if not totals.duration_ns or not totals.launches:
        return
    under_ncu = totals.duration_ns / totals.launches
    ratio = under_ncu / time.mean_ns
    if 1 / UNLIKE <= ratio <= UNLIKE:
        return
    clock = totals.peaks.sm_clock_hz
    at = "" if clock is None else f" at an SM clock of {clock / 1e9:.2f} GHz"
    yield (
        f"durations not comparable: ncu {under_ncu / 1e3:,.1f} us{at}, timeline "
        f"{time.mean_ns / 1e3:,.1f} us; compare bytes and percentages"
    )


def _notes(
    samples: Sequence[SampleReport],
    timelines: Sequence[TimelineReport],
    analysis: Analysis | None,
    graph_launches: int,
) -> Iterator[str]:
    if analysis is not None:
        yield NO_TOTALS_FROM_NCU
    if graph_launches:
        yield (
            f"cudaGraphLaunch {graph_launches} calls: counts of launches are comparable only "
            "where kernels inside graphs were recorded (--cuda-graph-trace=node)"
        )
    reports: list[SampleReport | TimelineReport] = [*samples, *timelines]
    for report in reports:
        name = report.provenance.path.rpartition("/")[2]
        for issue in report.issues:
            if issue.code in _HIDDEN:
                yield issue.what
            elif issue.code == "graphs-hide-kernels" and graph_launches:
                continue  # said above
            elif issue.severity is Severity.WARNING:
                yield f"{name}: {issue.what}"
