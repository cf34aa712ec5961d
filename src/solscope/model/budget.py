"""Where the time of one decode step goes: GPU busy, communication, host."""

from __future__ import annotations

from dataclasses import dataclass

from solscope.model.finding import Absence
from solscope.model.report import Device
from solscope.model.trace import TimelineReport

BUDGET_SCHEMA = "solscope.budget/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityGate:
    """Whether the capture can carry the verdict. ``remedy`` is for a gate that failed."""

    name: str
    passed: bool
    fact: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSource:
    """How steps were found: ``annotation``, ``graph`` (replays of one CUDA graph) or ``window``
    (no steps; the whole capture is one)."""

    kind: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Mean nanoseconds per step. Unions of intervals: overlapping work counts once.

    ``wall`` = ``busy`` + ``host_gap``; ``busy`` is the union of kernels, graph replays and
    copies, and = ``compute`` + ``exposed_communication`` + ``exposed_copy``. ``communication``
    is the union of collective kernels and peer copies; its exposed part is what no kernel
    covers. Both are ``None`` where kernels inside graphs are not seen. ``exposed_copy`` is what
    neither kernels nor communication cover.
    """

    wall_ns: float
    busy_ns: float
    kernel_ns: float
    graph_ns: float
    copy_ns: float
    exposed_copy_ns: float
    host_gap_ns: float
    communication_ns: float | None
    exposed_communication_ns: float | None

    @property
    def compute_ns(self) -> float:
        """Time under kernels and graphs that are no communication."""
        return self.busy_ns - (self.exposed_communication_ns or 0.0) - self.exposed_copy_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBudget:
    """The budget of one device. ``verdict`` is ``host-bound``, ``kernel-bound``, ``comm-bound``,
    ``copy-bound``, ``mixed`` or ``undetermined``; ``is_firm`` tells whether every gate passed.

    ``best_case_speedup`` is wall over wall without the host gap, the exposed communication or
    the exposed copies that bind: what removing all of it could give at most. ``None`` for
    other verdicts.
    """

    report: int
    ordinal: int | None
    device: Device | None
    rank: int | None
    source: StepSource
    steps: int
    left_out: int
    time: StepTime
    kernels_per_step: float
    verdict: str
    grounds: tuple[str, ...]
    gates: tuple[QualityGate, ...]
    best_case_speedup: float | None = None
    absences: tuple[Absence, ...] = ()

    @property
    def is_firm(self) -> bool:
        """Whether no gate failed."""
        return all(gate.passed for gate in self.gates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Budgets of all devices of all timelines, in the order of the reports."""

    reports: tuple[TimelineReport, ...]
    devices: tuple[DeviceBudget, ...]
