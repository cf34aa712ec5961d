"""What a plan is asked: the question, the target, and the facts that bear on the cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from solscope.model.finding import Finding
from solscope.model.plan import Level, MetricList, PassEstimate, Strategy, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the target. ``None`` means not known, never a default.

    ``resident_bytes`` is the device memory that the process has allocated, ``probe_budget_s``
    how long the liveness probe lets it be silent, ``idle_limit_s`` how long a silent exec
    stream lives.
    """

    target: str | None = None
    resident_bytes: float | None = None
    host_free_bytes: float | None = None
    memory_fraction: float | None = None
    tensor_parallel: int | None = None
    probe_budget_s: float | None = None
    idle_limit_s: float | None = None
    kernel_time_s: float | None = None
    engine: str | None = None
    budget_verdict: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The request, validated: everything that decides a plan except the passes.

    ``runs_each`` asks for a run of its own for each kernel pattern.
    """

    level: Level
    chip: str
    capability: str
    dtype: str | None
    metrics: MetricList
    passes: PassEstimate
    full_passes: PassEstimate | None = None
    kernels: tuple[str, ...] = ()
    share: float | None = None
    min_win: float = 0.02
    is_decode: bool = True
    launches: int = 3
    runs_each: bool = False
    skip: int = 0
    nvtx: tuple[str, ...] = ()
    replay_mode: str = "kernel"
    cache_control: str = "all"
    clock_control: str = "base"
    graph_profiling: str = "node"
    ncu_version: str | None = None
    run: tuple[str, ...] = ()
    window: Window | None = None
    strategy: Strategy | None = None
    strategy_reason: str | None = None
    max_time_s: float = 900.0
    gpu_memory_utilization: float | None = None
    facts: Facts = field(default_factory=Facts)
    given_findings: tuple[Finding, ...] = ()
