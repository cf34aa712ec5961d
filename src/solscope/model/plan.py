"""What will be captured, how, and what it will cost. The nouns that a plan file is made of.

A plan file is the JSON of one :class:`CapturePlan`, schema ``solscope.plan/1``; field names here
are its keys. Quantities carry their unit in the name. ``None`` means not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from solscope.model.finding import Finding

SCHEMA = "solscope.plan/1"
PER_CONFIGURATION = "per-launch-config"
"""ncu's filter mode that counts the launches of each kernel and grid for themselves."""


class Strategy(StrEnum):
    """The way that ncu gets into the process that launches the kernels."""

    LAUNCH = "launch"
    """The sister runs the server under ncu; the window opens after warm-up."""
    ATTACH = "attach"
    """``ncu --mode launch`` wraps the server, a second ncu attaches from a sidecar."""
    PRELOAD = "preload"
    """An injection variable and a port. Unverified: needs an endpoint that answers first."""
    HARNESS = "harness"
    """One operation replayed alone, because the engine cannot be replayed."""
    NONE = "none"
    """No capture: refused, or not needed."""


class Level(StrEnum):
    """The question that a capture must answer, cheapest first."""

    TIME = "time"
    ROOFLINE = "roofline"
    WHY = "why"
    FULL = "full"


class PassMethod(StrEnum):
    """Where a number of passes comes from."""

    LIBRARY = "library"
    """NVIDIA's host library scheduled these very metrics."""
    TABLE = "table"
    """The shipped table holds this very list on this chip."""
    ESTIMATE = "table-estimate"
    """Estimated from how many counters of each hardware domain fit into a pass."""
    REPORTS = "reports"
    """Real reports of this very section set on this chip family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassEstimate:
    """How often ncu will replay each kernel: about ``predicted`` times, seldom beyond
    ``low`` to ``high``.

    ``counter_passes`` is what scheduling the hardware counters takes, ``other_passes`` what
    ncu adds for timing, instrumented instructions, PM sampling and source counters; ``basis``
    says why. ``source`` names the library and its version.
    """

    predicted: int
    method: PassMethod
    counter_passes: int
    other_passes: int
    low: int
    high: int
    source: str
    basis: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownMetric:
    """A name that the chip does not have, and the names that are nearest to it there."""

    name: str
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricList:
    """What ncu is asked for on one chip: metrics by full name, sections, or a section set.

    ``answers`` names the questions that the list settles, ``unknown`` names that the chip has
    not, ``left_out`` work that the chip could count and the list does not.
    """

    name: str
    chip: str
    metrics: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    section_set: str | None = None
    dtype: str | None = None
    answers: tuple[str, ...] = ()
    unknown: tuple[UnknownMetric, ...] = ()
    left_out: tuple[str, ...] = ()


class NameBase(StrEnum):
    """The form of a kernel's name that a filter is compared with."""

    FUNCTION = "function"
    DEMANGLED = "demangled"
    MANGLED = "mangled"


class Window(StrEnum):
    """What opens the stretch of time in which kernels are profiled."""

    ENGINE_PROFILER = "engine-profiler"
    """The server's endpoint calls ``cudaProfilerStart``."""
    NVTX = "nvtx"
    LAUNCH_SKIP = "launch-skip"
    """Warm-up launches are counted and skipped."""
    WHOLE_RUN = "whole-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFilter:
    """Which kernel launches are profiled.

    ``kernel`` is the value of ncu's ``--kernel-name``: an exact name, or ``regex:`` and an
    unanchored expression. ``skip`` counts matching launches, ``count`` profiled ones: of all
    together, or of each kernel and grid where ``filter_mode`` is ``per-launch-config``.
    """

    kernel: str | None = None
    name_base: NameBase = NameBase.FUNCTION
    patterns: tuple[str, ...] = ()
    skip: int = 0
    count: int = 1
    filter_mode: str = "global"
    nvtx_include: tuple[str, ...] = ()
    window: Window = Window.WHOLE_RUN

    @property
    def counts_each(self) -> bool:
        """Whether launches of each kernel and grid are counted for themselves."""
        return self.filter_mode == PER_CONFIGURATION

    @property
    def wanted(self) -> int:
        """Launches that answer the question: ``count`` of each pattern, or in all."""
        return self.count * max(1, len(self.patterns)) if self.counts_each else self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRun:
    """One start of the server under ncu, where a plan needs several: what is its own."""

    launches: LaunchFilter
    arguments: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInput:
    """One number that an estimate rests on, with its unit and where it is from."""

    name: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """What the capture takes, about. ``None`` where an input is not known.

    ``pause_s`` is the longest stretch in which the server answers nobody (one launch, all its
    passes); ``total_s`` all launches; ``backup_bytes`` the device memory that kernel replay
    saves and restores; ``report_bytes`` the size of the report file.
    """

    pause_s: float | None
    total_s: float | None
    backup_bytes: float | None
    report_bytes: float | None
    inputs: tuple[CostInput, ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prize:
    """What the work could win, by Amdahl. ``share`` and ``max_win`` are fractions of
    end-to-end time; ``max_speedup`` is the whole's if the kernels took no time at all.
    """

    share: float
    max_win: float
    max_speedup: float
    min_win: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlan:
    """A capture, decided: what, how, at what cost. Refused when a finding blocks.

    ``arguments`` follow ``ncu`` and precede the target; they hold no ``-o`` (see ``output``).
    For :attr:`Strategy.ATTACH` they belong to the second ncu and ``wrapper_arguments`` to the
    one that starts the server. ``command_line`` is the whole first command, quoted for a shell.
    ``full_passes`` is what ncu's full set would take there, for comparison.
    ``environment`` is to be set on the ncu process, ``unset`` removed from it. Where there are
    ``runs``, the server is started once for each, and ``arguments`` and ``output`` are the first's.
    """

    schema: str = SCHEMA
    level: Level
    chip: str
    compute_capability: str | None = None
    dtype: str | None = None
    target: str | None = None
    strategy: Strategy
    strategy_reason: str
    metrics: MetricList
    launches: LaunchFilter
    passes: PassEstimate
    full_passes: PassEstimate | None = None
    cost: CostEstimate
    prize: Prize | None = None
    replay_mode: str = "kernel"
    cache_control: str = "all"
    clock_control: str = "base"
    graph_profiling: str = "node"
    ncu_version: str | None = None
    arguments: tuple[str, ...] = ()
    wrapper_arguments: tuple[str, ...] = ()
    output: str = "report_%p.ncu-rep"
    command_line: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    gpu_memory_utilization: float | None = None
    findings: tuple[Finding, ...] = ()
    runs: tuple[CaptureRun, ...] = ()

    def each(self) -> tuple[CapturePlan, ...]:
        """A plan for each start of the server; this one itself where that is all."""
        return tuple(
            replace(
                self,
                launches=run.launches,
                arguments=run.arguments,
                output=run.output,
                runs=(),
            )
            for run in self.runs
        ) or (self,)

    @property
    def is_refused(self) -> bool:
        """Whether a finding forbids the capture."""
        return any(finding.blocks for finding in self.findings)

    def argv(self, *, ncu: str = "ncu", directory: str = "") -> tuple[str, ...]:
        """The ncu command up to the target, writing its report into ``directory``."""
        output = f"{directory.rstrip('/')}/{self.output}" if directory else self.output
        return (ncu, *self.arguments, "--export", output)
