"""A profiler's report as nouns: what was profiled, where, by what, and every metric of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from solscope.model.finding import Absence, Issue

MetricValue = int | float | str
"""A stored metric value, in base units: bytes, ns, Hz, cycles, percent."""


class WorkloadKind(StrEnum):
    """What one result of a report stands for."""

    KERNEL = "kernel"
    RANGE = "range"
    CMDLIST = "cmdlist"
    GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class Instance:
    """One element of an instanced metric; ``correlation_id`` is an opcode, a PC, a unit index,
    or ``None`` where the position is the key."""

    correlation_id: MetricValue | None
    value: MetricValue | None


class Metrics(Protocol):
    """The metrics of one launch, by full name.

    A name that is stored without a value is not ``in`` the mapping (absent is never zero); it
    is listed by :meth:`valueless`.
    """

    def __getitem__(self, name: str) -> MetricValue: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def get(self, name: str) -> MetricValue | None:
        """The aggregate value, or ``None`` where it is absent."""
        ...

    def items(self) -> Iterable[tuple[str, MetricValue]]:
        """Every name with its aggregate value; the fastest way to read them all."""
        ...

    def starting(self, prefix: str) -> tuple[str, ...]:
        """Names with an aggregate value that start so."""
        ...

    def instances(self, name: str) -> tuple[Instance, ...]:
        """The instances of the metric, empty where it has none."""
        ...

    def valueless(self) -> tuple[str, ...]:
        """Names that are stored with neither an aggregate value nor a number."""
        ...

    def half_digit(self, name: str) -> float:
        """Half of the last digit that a rate per cycle was printed with; 0 where it is exact."""
        ...


@dataclass(frozen=True, slots=True)
class PlainMetrics:
    """Metrics held in dictionaries, for readers of text and for tests."""

    values: Mapping[str, MetricValue]
    instance_lists: Mapping[str, tuple[Instance, ...]] = field(default_factory=dict)
    without_value: tuple[str, ...] = ()
    half_digits: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> MetricValue:
        return self.values[name]

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def get(self, name: str) -> MetricValue | None:
        """The aggregate value, or ``None`` where it is absent."""
        return self.values.get(name)

    def items(self) -> Iterable[tuple[str, MetricValue]]:
        """Every name with its aggregate value."""
        return self.values.items()

    def starting(self, prefix: str) -> tuple[str, ...]:
        """Names with an aggregate value that start so."""
        return tuple(name for name in self.values if name.startswith(prefix))

    def instances(self, name: str) -> tuple[Instance, ...]:
        """The instances of the metric, empty where it has none."""
        return self.instance_lists.get(name, ())

    def valueless(self) -> tuple[str, ...]:
        """Names stored without a value."""
        return self.without_value

    def half_digit(self, name: str) -> float:
        """Half of the last digit printed; 0 where the value is exact."""
        return self.half_digits.get(name, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The GPU of a launch, by its own attributes (base units: Hz would be kHz as CUDA names it)."""

    name: str | None
    compute_capability: tuple[int, int] | None
    sm_count: int | None = None
    ordinal: int | None = None
    max_sm_clock_khz: float | None = None
    max_memory_clock_khz: float | None = None
    memory_bus_width_bits: int | None = None
    max_warps_per_sm: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None

    @property
    def dram_bytes_per_s(self) -> float | None:
        """Peak DRAM bandwidth by the device's attributes: 2 x memory clock x bus width / 8.

        The factor 2 holds for HBM and for GDDR as these attributes report them.
        """
        if self.max_memory_clock_khz is None or self.memory_bus_width_bits is None:
            return None
        return 2.0 * self.max_memory_clock_khz * 1e3 * self.memory_bus_width_bits / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAdvice:
    """One message of ncu's own rules, with ncu's own estimated speed-up in percent."""

    rule: str
    name: str
    section: str | None
    message: str
    kind: str  # none, ok, warning, error, optimization
    speedup_kind: str | None = None  # local, global
    speedup_pct: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionMetric:
    """A metric of a section's header: the label that ncu prints, and the metric behind it."""

    label: str
    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section as it was collected: identifier, display name, header metrics, all metrics."""

    identifier: str
    display_name: str
    order: int | None = None
    header: tuple[SectionMetric, ...] = ()
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NvtxRange:
    """An NVTX range that was open at the launch; push/pop ranges come outermost first."""

    domain: str
    name: str
    thread_id: int | None = None
    is_push_pop: bool = True


class Details(Protocol):
    """What a launch carries beside metrics, decoded when asked for."""

    def sections(self) -> tuple[Section, ...]: ...
    def rules(self) -> tuple[RuleAdvice, ...]: ...
    def nvtx(self) -> tuple[NvtxRange, ...]: ...


@dataclass(frozen=True, slots=True)
class PlainDetails:
    """Details held as they are."""

    section_list: tuple[Section, ...] = ()
    rule_list: tuple[RuleAdvice, ...] = ()
    nvtx_list: tuple[NvtxRange, ...] = ()

    def sections(self) -> tuple[Section, ...]:
        """The sections, in the order stored."""
        return self.section_list

    def rules(self) -> tuple[RuleAdvice, ...]:
        """The rule messages, in the order stored."""
        return self.rule_list

    def nvtx(self) -> tuple[NvtxRange, ...]:
        """The open NVTX ranges."""
        return self.nvtx_list


Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """One execution of a kernel (or a range, graph, command list), as profiled.

    ``name`` is the short function name, ``name_full`` the demangled one with templates and
    arguments. ``grid`` and ``block`` are ``None`` for results that have none.
    """

    index: int
    kind: WorkloadKind
    name: str
    name_full: str
    metrics: Metrics
    device: Device
    details: Details = PlainDetails()
    mangled: str | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None
    context_id: int | None = None
    stream_id: int | None = None
    process_id: int | None = None
    process_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report's bytes come from. ``sha256`` is that of the file as it lies on disk."""

    path: str
    sha256: str
    size_bytes: int
    format: str
    tool_name: str | None
    tool_version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The profiling session. Holds names of people's machines: shown only on request."""

    created_unix_s: int | None = None
    host_name: str | None = None
    ip_addresses: tuple[str, ...] = ()
    os_name: str | None = None
    executable: str | None = None
    arguments: str | None = None
    work_directory: str | None = None
    profiler_command_line: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    clock_control: str | None = None
    cache_control: str | None = None
    replay_mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A profiler's output file. ``complete`` is ``False`` where the file was cut."""

    provenance: Provenance
    launches: Sequence[KernelLaunch]
    devices: tuple[Device, ...] = ()
    session: Session = Session()
    complete: bool = True
    issues: tuple[Issue, ...] = ()
    absences: tuple[Absence, ...] = ()
