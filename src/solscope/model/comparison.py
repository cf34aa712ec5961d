"""Two analyses side by side: what may be compared, what changed, what is on one side only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from solscope.model.conditions import Conditions, ContextFact
from solscope.model.report import Dim3

COMPARISON_SCHEMA = "solscope.compare/1"

MatchedBy = Literal["name and launch shape", "full name", "short name", "given", "only kernels"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedReport:
    """Where one side's numbers come from, and how they were measured."""

    path: str
    sha256: str | None
    tool: str | None
    tool_version: str | None
    clock_control: str | None
    cache_control: str | None
    replay_mode: str | None
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedKernel:
    """One kernel of one side.

    ``quantities`` are per launch in base units (ns, FLOP, bytes, percent 0 to 100, speeds of
    light as fractions); a name that is not there was not measured, and ``absences`` says why.
    ``ceilings`` names the ceiling of each speed of light; ``metric_set`` identifies the names
    of the metrics collected.
    """

    report: ComparedReport
    name: str
    name_full: str
    kind: str
    chip: str | None
    device: str | None
    device_ordinal: int | None
    grid: Dim3 | None
    block: Dim3 | None
    launches: int
    sm_clock_hz: float | None
    dram_clock_hz: float | None
    metric_count: int | None
    metric_set: str | None
    bound: str
    duration_range_ns: tuple[float, float] | None = None
    quantities: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, str] = field(default_factory=dict)
    absences: Mapping[str, str] = field(default_factory=dict)
    stalls: Mapping[str, float] = field(default_factory=dict)
    stalls_are_sampled: bool = False

    @property
    def conditions(self) -> Conditions:
        """How it was measured."""
        return Conditions(
            chip=self.chip or self.device,
            device_ordinal=self.device_ordinal,
            tool=self.report.tool,
            tool_version=self.report.tool_version,
            clock_control=self.report.clock_control,
            sm_clock_hz=self.sm_clock_hz,
            dram_clock_hz=self.dram_clock_hz,
            cache_control=self.report.cache_control,
            replay_mode=self.report.replay_mode,
            metric_count=self.metric_count,
            metric_set=self.metric_set,
            kind=self.kind,
            grid=self.grid,
            block=self.block,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One quantity on both sides. ``ratio`` is b / a and ``difference`` b - a.

    Both are ``None``, and ``why_not`` says why, where they would claim what was not measured or
    compare unlike with unlike. ``a`` and ``b`` are ``None`` where they were not measured.
    """

    quantity: str
    unit: str
    a: float | None
    b: float | None
    ratio: float | None = None
    difference: float | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPair:
    """A kernel found on both sides."""

    a: ComparedKernel
    b: ComparedKernel
    matched_by: MatchedBy
    context: tuple[ContextFact, ...]
    changes: tuple[Change, ...]
    stalls: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_draft(self) -> bool:
        """Whether some condition differs or is not known: no claim rests on this pair."""
        return any(fact.state != "same" for fact in self.context)

    @property
    def is_comparable(self) -> bool:
        """Whether no condition is known to differ."""
        return all(fact.state != "differs" for fact in self.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both sides: pairs in the order of a's time, and what only one side has."""

    a: tuple[ComparedReport, ...]
    b: tuple[ComparedReport, ...]
    pairs: tuple[KernelPair, ...]
    only_in_a: tuple[ComparedKernel, ...]
    only_in_b: tuple[ComparedKernel, ...]

    @property
    def is_draft(self) -> bool:
        """Whether anything stands in the way of calling the whole a comparison."""
        return not self.pairs or any(pair.is_draft for pair in self.pairs)
