"""Facts of a report that was written: empty, cut, other kernels, trials, clocks, caches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from solscope.capture.diagnosis.scanning import Facts
from solscope.model.report import KernelLaunch, Report, WorkloadKind
from solscope.model.trace import TimelineReport

# A clock under this share of the device's maximum was held down (base clocks are 55 to 80%).
HELD_DOWN = 0.8
BUSY_DRAM_PCT = 60.0
FEWEST_TRIALS = 3
_FLOP_COUNTER = re.compile(
    r"sass_thread_inst_executed_op_|ops_path_tensor|inst_executed_pipe_tensor|_pipe_tensor_op"
)
_CLOCKS = (
    "sm__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.avg.per_second",
    "smsp__cycles_elapsed.avg.per_second",
)
_DRAM_PCT = (
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)


def state(report: Report, wanted: str | None, facts: Facts) -> None:
    """Add the facts of a report. ``wanted`` is the kernel filter of its command, if known."""
    path = report.provenance.path.rsplit("/", 1)[-1]
    launches = list(report.launches)

    def say(code: str, text: str, **fields: str) -> None:
        facts.add(code, path, text, fields)

    if not report.complete:
        say("report-cut", "the file ends inside a block", path=path)
    if not launches:
        say("report-empty", "no results", path=path)
        return
    say("report-well", f"{len(launches)} results", path=path, count=str(len(launches)))
    kinds = {launch.kind for launch in launches}
    if WorkloadKind.KERNEL not in kinds:
        kind = sorted(k.value for k in kinds)[0]
        say("report-only-ranges", f"{len(launches)} {kind} results", path=path, kind=kind)
    _state_trials(launches, facts, path)
    _state_clock(report, launches, facts, path)
    _state_cache(report, launches, facts, path)
    _state_metrics(launches, facts, path)
    _state_names(launches, wanted, facts, path)
    devices = {launch.device.ordinal for launch in launches} - {None}
    if devices:
        shown = ", ".join(sorted(map(str, devices)))
        say("report-ordinals", f"results of device {shown}", path=path, ordinals=shown)
    if len(devices) > 1:
        say(
            "report-devices",
            f"devices {sorted(map(str, devices))}",
            path=path,
            devices=str(len(devices)),
        )


def _number(launch: KernelLaunch, names: Sequence[str]) -> float | None:
    for name in names:
        value = launch.metrics.get(name)
        if isinstance(value, int | float):
            return float(value)
    return None


def _stated(facts: Facts, code: str, name: str) -> float:
    """A number that a file of facts gives, 0 where none does."""
    value = facts.value(code, name)
    return float(value.replace(",", "")) if value else 0.0


def _state_trials(launches: list[KernelLaunch], facts: Facts, path: str) -> None:
    shapes: dict[str, Counter[object]] = {}
    for launch in launches:
        shapes.setdefault(launch.name, Counter())[(launch.grid, launch.block)] += 1
    for name, seen in shapes.items():
        blocks = {shape[1] for shape in seen if isinstance(shape, tuple)}
        if len(seen) >= FEWEST_TRIALS and len(blocks) > 1 and max(seen.values()) == 1:
            facts.add(
                "report-one-launch-each",
                path,
                f"{name}: {len(seen)} shapes, once each",
                {"kernel": name, "configurations": str(len(seen))},
            )


def _state_clock(report: Report, launches: list[KernelLaunch], facts: Facts, path: str) -> None:
    clocks = [c for c in (_number(launch, _CLOCKS) for launch in launches) if c]
    limits = [d.max_sm_clock_khz for d in report.devices if d.max_sm_clock_khz]
    stated = _stated(facts, "stated-max-clock", "mhz")
    if not clocks or not (limits or stated):
        return
    clock, limit = max(clocks) / 1e9, max(limits) / 1e6 if limits else stated / 1e3
    if clock < HELD_DOWN * limit:
        facts.add(
            "report-clock-base",
            path,
            f"SM clock {clock:.2f} GHz, maximum {limit:.2f} GHz",
            {"path": path, "clock": f"{clock:.2f}", "max": f"{limit:.2f}"},
        )


def _state_cache(report: Report, launches: list[KernelLaunch], facts: Facts, path: str) -> None:
    control = report.session.cache_control or facts.value("stated-cache-control", "value")
    if control == "none":
        return
    stated_l2 = _stated(facts, "stated-l2", "mb") * 1e6
    for launch in launches:
        busy = _number(launch, _DRAM_PCT)
        read = _number(launch, ("dram__bytes_read.sum", "dram__bytes.sum"))
        cache = launch.device.l2_bytes or stated_l2
        if busy and read and cache and busy >= BUSY_DRAM_PCT and read < cache:
            facts.add(
                "report-cold-cache",
                path,
                f"{launch.name}: {read / 1e6:.1f} MB read, L2 {cache / 1e6:.0f} MB",
                {"path": path},
            )
            return


def _state_metrics(launches: list[KernelLaunch], facts: Facts, path: str) -> None:
    absent = Counter(name for launch in launches for name in launch.metrics.valueless())
    if absent:
        example = sorted(absent)[0]
        facts.add(
            "report-metrics-absent",
            path,
            f"{len(absent)} metrics without a value",
            {"path": path, "count": str(len(absent)), "example": example},
        )
    if not any(_FLOP_COUNTER.search(name) for launch in launches for name in launch.metrics):
        facts.add(
            "report-no-flop-counters", path, "no metric counts FLOP or tensor work", {"path": path}
        )


def _state_names(launches: list[KernelLaunch], wanted: str | None, facts: Facts, path: str) -> None:
    selects = _filter(wanted)
    if selects is None:
        return
    names = sorted({launch.name for launch in launches})
    if any(selects(launch.name, launch.name_full, launch.mangled) for launch in launches):
        return
    found = ", ".join(names[:5])
    facts.add("report-other-kernels", path, found, {"wanted": str(wanted), "found": found})


def _filter(wanted: str | None) -> Callable[..., bool] | None:
    """Whether one of a kernel's names passes a ``--kernel-name``; ``None`` without a usable one."""
    if not wanted:
        return None
    if not wanted.startswith("regex:"):
        return lambda *names: wanted in names
    try:
        regex = re.compile(wanted[6:])
    except re.error:
        return None
    return lambda *names: any(name and regex.search(name) for name in names)


def state_window(timeline: TimelineReport, wanted: str | None, facts: Facts) -> None:
    """Add how many launches a timeline of the window holds that pass the filter.

    Nothing is counted where graphs were recorded as a whole: their kernels are not in the file.
    """
    path = timeline.provenance.path.rsplit("/", 1)[-1]
    times = timeline.kernel_times()
    if not times:
        missing = [a for a in timeline.absences if a.field == "kernels"]
        reason = missing[0].reason if missing else "it holds no kernels"
        remedy = missing[0].remedy if missing else None
        fields = {"path": path, "why": reason, "remedy": remedy or "capture again"}
        facts.add("timeline-without-kernels", path, reason, fields)
        return
    if timeline.graphs.num_rows or any(time.launches is None for time in times):
        return
    selects = _filter(wanted)
    chosen = [t for t in times if selects is None or selects(t.name, t.name_full)]
    count = sum(time.launches or 0 for time in chosen)
    what = "launches" if selects is None else f"launches that `{wanted}` selects"
    facts.add("window-launches", path, f"{count} {what}", {"count": str(count), "what": what})
    if not chosen:
        longest = sorted(times, key=lambda time: -(time.total_ns or 0.0))
        found = ", ".join(dict.fromkeys(time.name for time in longest[:5]))
        facts.add("window-without-match", path, found, {"wanted": str(wanted), "found": found})
