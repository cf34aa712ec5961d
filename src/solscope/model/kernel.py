"""Kernels: what they are, and what all launches of one did together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from re import Pattern

from solscope.model.finding import Absence
from solscope.model.report import Device, Dim3, KernelLaunch, RuleAdvice, WorkloadKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPattern:
    """One row of the packaged pattern table: a kernel whose lower-cased name matches is of this
    family."""

    id: str
    family: str
    category: str
    role: str
    match: Pattern[str]
    is_collective: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypePattern:
    """A kernel whose lower-cased name matches works on this data type, as far as it tells."""

    dtype: str
    match: Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelIdentity:
    """What a kernel is, by its name alone. ``family`` is ``unknown`` where no pattern matched."""

    family: str
    category: str
    role: str
    dtype: str | None
    pattern: str | None
    is_collective: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelKey:
    """Launches that agree in all of these are launches of the same kernel."""

    report: int
    name_full: str
    grid: Dim3 | None
    block: Dim3 | None
    device: str
    process_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopTotals:
    """Work by precision, in FLOP (integer tensor work in OP). ``None`` means not measured.

    Scalar precisions come from the SASS opcode counters (adds + multiplies + 2 x FMAs, packed
    forms by their lanes); ``tensor`` from the tensor data path by source type, a multiply-add
    counting 2, padding included. ``tensor_sparse`` holds 2:4-sparse work apart, because how the
    counter counts it is not known. ``tensor_paths`` is the dense work again, with FP16
    accumulation (``fp16_fp16acc``) apart, because it can have another peak.
    """

    fp64: float | None = None
    fp32: float | None = None
    fp16: float | None = None
    tensor: Mapping[str, float] | None = None
    tensor_sparse: Mapping[str, float] = field(default_factory=dict)
    tensor_paths: Mapping[str, float] = field(default_factory=dict)
    total: float | None = None  # None where FP32 or tensor work of a launch is unmeasured


@dataclass(frozen=True, slots=True, kw_only=True)
class StallShare:
    """A warp-stall reason and its share (0 to 1) of all stalled warp cycles or samples."""

    reason: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPeaks:
    """Peaks that the report itself states, at the clock of the profile.

    Rates per second, device-wide: FLOP/s by precision, OP/s by tensor source type (dense),
    bytes/s. Clocks in Hz. ``None`` where the report does not hold them.
    """

    sm_clock_hz: float | None = None
    dram_clock_hz: float | None = None
    fp64_flop_per_s: float | None = None
    fp32_flop_per_s: float | None = None
    fp16_flop_per_s: float | None = None
    tensor_flop_per_s: Mapping[str, float] = field(default_factory=dict)
    dram_bytes_per_s: float | None = None
    l2_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSet:
    """The names of the metrics that were collected: how many, and a digest of them all."""

    count: int
    sha256: str


def metric_set(launches: Sequence[KernelLaunch]) -> MetricSet | None:
    """The metric set of launches that were profiled alike; ``None`` where there are none."""
    if not launches:
        return None
    metrics = launches[0].metrics
    names = sorted({*metrics, *metrics.valueless()})
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
    return MetricSet(count=len(names), sha256=digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTotals:
    """All launches of one kernel, totalled: sums over sums, never means of ratios.

    Durations in ns, traffic in bytes, percentages 0 to 100 and weighted by duration.
    ``rate_*`` pairs hold (sum of the quantity, sum of the duration in ns) over exactly those
    launches that measured the quantity, so that a rate never mixes launches. ``metric_set`` is
    filled where ``members`` were left out.
    """

    key: KernelKey
    name: str
    kind: WorkloadKind
    device: Device
    launches: int
    duration_ns: float | None
    duration_min_ns: float | None
    duration_max_ns: float | None
    flop: FlopTotals
    dram_read_bytes: float | None
    dram_write_bytes: float | None
    dram_bytes: float | None
    l2_bytes: float | None
    l1_bytes: float | None
    peaks: LaunchPeaks
    sm_busy_pct: float | None = None
    sm_busy_member: str | None = None
    memory_pct: float | None = None
    dram_pct: float | None = None
    l2_pct: float | None = None
    l1_pct: float | None = None
    tensor_pipe_pct: float | None = None
    achieved_occupancy_pct: float | None = None
    theoretical_occupancy_pct: float | None = None
    registers_per_thread: int | None = None
    smem_per_block_bytes: float | None = None
    occupancy_limiter: tuple[str, ...] = ()
    blocks_per_sm: float | None = None
    waves_per_sm: float | None = None
    stalls: tuple[StallShare, ...] = ()
    stalls_are_sampled: bool = False
    tensor_engagement: str | None = None
    hfma2_only: bool = False
    dram_bytes_per_s_estimate: float | None = None
    intensity_pair: tuple[float, float] | None = None  # (FLOP, DRAM bytes) of the same launches
    flop_rate_pair: tuple[float, float] | None = None  # (FLOP, ns)
    dram_rate_pair: tuple[float, float] | None = None  # (bytes, ns)
    absences: tuple[Absence, ...] = ()
    rules: tuple[RuleAdvice, ...] = ()
    members: tuple[KernelLaunch, ...] = ()
    metric_set: MetricSet | None = None
