"""The whole analysis in words: what stands around the kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from solscope.model.finding import Absence, Issue
from solscope.model.report import Device, Report
from solscope.model.roofline import Ceiling, Chip, Standing
from solscope.model.verdict import Analysis, KernelVerdict
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import ABSENT, clean
from solscope.render.view.rows import Row, merged, row
from solscope.render.view.speeds import Cell, clock_bases, clock_text

INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One report file as every page shows it. ``session`` is empty unless asked for."""

    file: str
    digest: str
    tool: str
    device: str
    chip: str
    chip_key: str
    launches: str
    complete: bool
    context: str
    issues: tuple[Issue, ...]
    absences: tuple[Absence, ...]
    session: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundShare:
    """How much of the kernel time one kind of bound holds."""

    style: bounds.BoundStyle
    share: float
    text: str
    kernels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingRow:
    """A ceiling of a device that percentages of the page are percentages of; ranges where its
    clock differed between kernels. ``ranks`` are the kernels it stands over."""

    key: str
    resource: str
    device: str
    ranks: frozenset[int]
    peak: str
    clock: str
    basis: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything that a page says, in the order of the analysis."""

    title: str
    reports: tuple[ReportRow, ...]
    rows: tuple[Row, ...]
    shares: tuple[BoundShare, ...]
    ceilings: tuple[CeilingRow, ...]
    kernel_count: str
    launch_count: str
    total_time: str
    most_gpus: int
    complete: bool
    unknown_share: str
    absences: tuple[Absence, ...]
    over: tuple[str, ...]

    @property
    def has_several_devices(self) -> bool:
        """Whether the device must be said with each ceiling."""
        return len({ceiling.device for ceiling in self.ceilings}) > 1

    @property
    def lead(self) -> str:
        """How much is here, in one line."""
        kernels = "1 kernel" if self.kernel_count == "1" else f"{self.kernel_count} kernels"
        launches = "1 launch" if self.launch_count == "1" else f"{self.launch_count} launches"
        where = f", summed over {self.most_gpus} GPUs" if self.most_gpus > 1 else ""
        return f"{kernels}, {launches}, {self.total_time} in kernels{where}"

    @property
    def unmeasured_text(self) -> str:
        """How much has no measured intensity, and what to collect; empty where all has."""
        missing = [r for r in self.rows if r.intensity.raw is None and not r.is_l2_resident]
        if not missing:
            return ""
        share = numbers.fraction(sum(r.share.raw or 0.0 for r in missing))
        remedies = [
            a.remedy
            for r in missing
            for a in r.absences
            if a.remedy and a.field in {"arithmetic_intensity", "dram_bytes"}
        ]
        remedy = f" → {remedies[0]}" if remedies else ""
        return (
            f"Intensity unmeasured: {len(missing)} of {len(self.rows)} kernels, {share} of the "
            f"time{remedy}"
        )

    @property
    def incomplete_text(self) -> str:
        """The sentence that every face shows where a report was cut; else empty."""
        cut = [r.file for r in self.reports if not r.complete]
        if not cut:
            return ""
        return f"INCOMPLETE: {', '.join(cut)} was cut; only the results before the cut are here."


def page(analysis: Analysis, *, show_session: bool = False) -> Page:
    """Word an analysis. Without ``show_session`` no machine, user, path or command is named."""
    reports = tuple(
        _report(report, chip, show_session)
        for report, chip in zip(analysis.reports, analysis.chips, strict=True)
    )
    gpus, processes = _gpus(analysis), _processes(analysis)
    rows = tuple(
        row(
            kernel,
            rank,
            reports[kernel.totals.key.report].file,
            several_gpus=len(gpus[kernel.totals.key.report]) > 1,
            # Mostly each GPU has a process of its own, and its ordinal says all.
            several_processes=len(processes[kernel.totals.key.report])
            > max(1, len(gpus[kernel.totals.key.report])),
        )
        for rank, kernel in enumerate(analysis.kernels, start=1)
    )
    known = [k.totals.duration_ns for k in analysis.kernels if k.totals.duration_ns is not None]
    return Page(
        title=_title(reports),
        reports=reports,
        rows=rows,
        shares=_shares(analysis.kernels),
        ceilings=_ceilings(analysis),
        kernel_count=numbers.count(len(rows)),
        launch_count=numbers.count(sum(k.totals.launches for k in analysis.kernels)),
        total_time=numbers.duration(sum(known) if known else None),
        most_gpus=max(map(len, gpus.values()), default=1),
        complete=all(r.complete for r in reports),
        unknown_share=(
            numbers.fraction(analysis.unknown_time_share) if analysis.unknown_time_share else ""
        ),
        absences=merged(analysis.absences),
        over=tuple(over_lines(rows)),
    )


def _processes(analysis: Analysis) -> dict[int, set[int]]:
    """By report: the processes that its kernels ran in."""
    found: dict[int, set[int]] = {}
    for kernel in analysis.kernels:
        key = kernel.totals.key
        one = set() if key.process_id is None else {key.process_id}
        found.setdefault(key.report, set()).update(one)
    return found


def _gpus(analysis: Analysis) -> dict[int, set[int | None]]:
    """Ordinals of the devices that ran something, by report."""
    found: dict[int, set[int | None]] = {}
    for kernel in analysis.kernels:
        totals = kernel.totals
        found.setdefault(totals.key.report, set()).add(totals.device.ordinal)
    return found


def base_name(path: str) -> str:
    """The last part of a path of either kind of system.

    >>> base_name("/home/someone/runs/decode.ncu-rep"), base_name(r"C:\\\\runs\\\\a.ncu-rep")
    ('decode.ncu-rep', 'a.ncu-rep')
    """
    posix: PurePath = PurePosixPath(path)
    return PureWindowsPath(posix.name).name or "report"


def _title(reports: tuple[ReportRow, ...]) -> str:
    if len(reports) == 1:
        return reports[0].file
    return f"{len(reports)} reports"


def _report(report: Report, chip: Chip | None, show_session: bool) -> ReportRow:
    origin = report.provenance
    version = (origin.tool_version or "").partition(" (")[0]  # without build and channel
    tool = " ".join(part for part in (origin.tool_name, version) if part)
    return ReportRow(
        file=clean(base_name(origin.path)),
        digest=origin.sha256[:12],
        tool=clean(tool) or "unknown tool",
        device=clean(", ".join(_devices(report))) or "unknown GPU",
        chip="in no table" if chip is None else f"{chip.name} ({chip.key})",
        chip_key="in no table" if chip is None else chip.key,
        launches=numbers.count(len(report.launches)),
        complete=report.complete,
        context=context(report),
        issues=tuple(hidden_issues(report, show_session)),
        absences=merged(report.absences),
        session=_session(report) if show_session else (),
    )


def _devices(report: Report) -> Iterable[str]:
    return dict.fromkeys(device.name or _unnamed(device) for device in report.devices)


def _unnamed(device: Device) -> str:
    capability = device.compute_capability
    return "unknown GPU" if capability is None else "unknown GPU, CC {}.{}".format(*capability)


def context(report: Report) -> str:
    """How the profile was taken, as far as the report says: clocks, caches, replay."""
    session = report.session
    parts = (
        ("clock control", session.clock_control),
        ("cache control", session.cache_control),
        ("replay", session.replay_mode),
    )
    return ", ".join(f"{name} {clean(value)}" for name, value in parts if value)


def hidden_issues(report: Report, show_session: bool) -> Iterable[Issue]:
    """The report's issues, file paths cut to their base names unless the session is shown."""
    path = report.provenance.path
    for issue in report.issues:
        where, what = issue.where, issue.what
        if not show_session:
            what = what.replace(path, base_name(path))
            where = None if where is None else where.replace(path, base_name(path))
        yield Issue(
            code=issue.code,
            severity=issue.severity,
            what=clean(what),
            where=None if where is None else clean(where),
        )


def _session(report: Report) -> tuple[tuple[str, str], ...]:
    session = report.session
    fields = (
        ("file", report.provenance.path),
        ("host", session.host_name),
        ("addresses", ", ".join(session.ip_addresses)),
        ("system", session.os_name),
        ("executable", session.executable),
        ("arguments", session.arguments),
        ("folder", session.work_directory),
        ("profiler", session.profiler_command_line),
    )
    return tuple((name, clean(value)) for name, value in fields if value)


def _shares(kernels: tuple[KernelVerdict, ...]) -> tuple[BoundShare, ...]:
    shares: dict[str, float] = {}
    counts: dict[str, int] = {}
    timed: set[str] = set()
    for kernel in kernels:
        key = bounds.style(kernel.verdict.bound).key
        counts[key] = counts.get(key, 0) + 1
        if kernel.time_share is not None:
            timed.add(key)
        shares[key] = shares.get(key, 0.0) + (kernel.time_share or 0.0)
    return tuple(
        BoundShare(
            style=bounds.STYLES[key],
            share=share,
            text=numbers.fraction(share) if key in timed else "(time not measured)",
            kernels=counts[key],
        )
        for key, share in sorted(shares.items(), key=lambda item: -item[1])
    )


def _ceilings(analysis: Analysis) -> tuple[CeilingRow, ...]:
    """The ceilings that a binding percentage of some kernel refers to, once per device."""
    groups: dict[tuple[str, str, str], list[tuple[int, KernelVerdict, Standing]]] = {}
    for rank, kernel in enumerate(analysis.kernels, start=1):
        device = clean(kernel.totals.device.name or "unknown GPU")
        for standing in (kernel.point.profiled_binding, kernel.point.datasheet_binding):
            if standing is not None:
                key = (device, bounds.label(standing.resource), clean(standing.ceiling))
                groups.setdefault(key, []).append((rank, kernel, standing))
    return tuple(_ceiling(*key, groups[key]) for key in sorted(groups))


def _ceiling(
    device: str, resource: str, key: str, uses: list[tuple[int, KernelVerdict, Standing]]
) -> CeilingRow:
    _rank, kernel, first = uses[0]
    entry = _table(kernel.chip).get(first.ceiling)
    unit = f"{bounds.unit(first.resource)}/s"
    peaks = [standing.peak for _, _, standing in uses]
    clocks = [s.clock_hz for _, _, s in uses if s.clock_hz is not None]
    return CeilingRow(
        key=key,
        resource=resource,
        device=device,
        ranks=frozenset(rank for rank, _, _ in uses),
        peak=numbers.between(numbers.amount(min(peaks), unit), numbers.amount(max(peaks), unit)),
        clock=(
            numbers.between(numbers.clock(min(clocks)), numbers.clock(max(clocks)))
            if clocks
            else clock_text(first, clock_bases(kernel.chip)) or ABSENT
        ),
        basis=first.basis or ABSENT,
        source="the report" if entry is None else clean(entry.source),
    )


def _table(chip: Chip | None) -> dict[str, Ceiling]:
    return {} if chip is None else {c.key: c for c in chip.ceilings.values()}


_PERCENTAGES = (
    ("SM busy", "sm_busy"),
    ("DRAM busy", "dram_busy"),
    ("tensor pipe", "tensor_pipe"),
    ("occupancy", "occupancy"),
)


def over_lines(rows: Iterable[Row]) -> Iterable[str]:
    """Every shown value above 100 %, what it is a percentage of, and how it can be."""
    for shown in rows:
        for speed in (shown.profiled, shown.sheet):
            if speed.over:
                yield f"#{shown.rank} {speed.cell.text} of {speed.ceiling}: {speed.over}"
        for name, field in _PERCENTAGES:
            cell: Cell = getattr(shown, field)
            if cell.over:
                yield f"#{shown.rank} {name} {cell.text}: {cell.over}"
