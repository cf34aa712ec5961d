"""Timelines in, decode-step budgets out: what binds a step, and whether the capture can say so.

Host-bound means that the GPU waits for the host: work on single kernels is moot then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from re import Pattern
from statistics import median
from typing import TYPE_CHECKING

from solscope.analysis.budget import gates, steps
from solscope.analysis.budget.intervals import Union
from solscope.analysis.budget.steps import Step
from solscope.model.budget import Budget, DeviceBudget, QualityGate, StepSource, StepTime
from solscope.model.finding import Absence
from solscope.model.trace import TimelineReport

if TYPE_CHECKING:
    import pyarrow as pa

OUTLIER = 3.0
"""A step this many times longer than the median waits for something else (no request, a
collection, another stage) and is left out; how many were is said."""

CLEAR_LEAD = 0.05
"""A verdict needs this lead (of the wall time) over the next cause; else it is mixed."""


def judge(
    reports: Sequence[TimelineReport],
    is_collective: Callable[[str], bool],
    *,
    step_pattern: Pattern[str] | None = None,
) -> Budget:
    """The budget of every device that worked, report by report."""
    return Budget(
        reports=tuple(reports),
        devices=tuple(
            found
            for index, report in enumerate(reports)
            for found in _devices(report, index, is_collective, step_pattern)
        ),
    )


def annotation_names(report: TimelineReport) -> list[str]:
    """The names that steps can be found by, the most frequent first."""
    return steps.names(report)


def _devices(
    report: TimelineReport,
    index: int,
    is_collective: Callable[[str], bool],
    pattern: Pattern[str] | None,
) -> Iterator[DeviceBudget]:
    ordinals: set[int | None] = set()
    for table in (report.kernels, report.graphs):
        ordinals |= set(table["device"].unique().to_pylist())
    for ordinal in sorted(ordinals, key=lambda o: -1 if o is None else o):
        source, found = steps.find(report, ordinal, pattern)
        if found:
            yield _budget(report, index, ordinal, (source, found), is_collective)


def _budget(
    report: TimelineReport,
    index: int,
    ordinal: int | None,
    where: tuple[StepSource, list[Step]],
    is_collective: Callable[[str], bool],
) -> DeviceBudget:
    source, found = where
    typical = median(step.end - step.begin for step in found)
    used = [step for step in found if step.end - step.begin <= OUTLIER * typical]
    work = _Work(report, ordinal, is_collective)
    time = work.mean(used)
    kernels = work.kernels_in(used)
    has_work = kernels > 0 or time.graph_ns > 0
    checks = tuple(
        gates.check(report, source, used=len(used), left_out=len(found) - len(used), work=has_work)
    )
    verdict, grounds, part = _verdict(time, checks, source)
    return DeviceBudget(
        report=index,
        ordinal=ordinal,
        device=report.device(ordinal),
        rank=report.rank,
        source=source,
        steps=len(used),
        left_out=len(found) - len(used),
        time=time,
        kernels_per_step=kernels / len(used),
        verdict=verdict,
        grounds=grounds,
        gates=checks,
        best_case_speedup=None if part is None else _speedup(time.wall_ns, part),
        absences=() if time.communication_ns is not None else (_UNSEEN_COMMUNICATION,),
    )


_UNSEEN_COMMUNICATION = Absence(
    field="communication_ns",
    reason="kernels inside CUDA graphs were not recorded singly, so collectives are not seen",
    remedy="capture again with --cuda-graph-trace=node (it costs some overhead per kernel)",
)


def _speedup(wall: float, part: float) -> float | None:
    return wall / (wall - part) if wall > part else None


class _Work:
    """One device's work as unions of intervals."""

    def __init__(
        self, report: TimelineReport, ordinal: int | None, is_collective: Callable[[str], bool]
    ) -> None:
        import pyarrow.compute as pc

        kernels, graphs, copies = (
            _on(table, ordinal) for table in (report.kernels, report.graphs, report.copies)
        )
        collective = _marked(kernels["name"], is_collective)
        peer = _marked(copies["kind"], lambda kind: kind == "PtoP")
        compute = kernels.filter(pc.invert(collective))
        communication = (kernels.filter(collective), copies.filter(peer))
        self._starts = kernels["start_ns"]
        self._sees_inside = graphs.num_rows == 0
        self._graphs, self._kernels, self._copies = map(_union, (graphs, kernels, copies))
        self._communication = _union(*communication)
        self._compute = _union(compute, graphs)
        self._no_copies = _union(compute, graphs, *communication)
        self._all = _union(kernels, graphs, copies)

    def mean(self, used: Sequence[Step]) -> StepTime:
        """Mean times per step: sums over sums."""
        count = len(used)

        def spent(union: Union) -> float:
            return sum(union.within(step.begin, step.end) for step in used) / count

        wall = sum(step.end - step.begin for step in used) / count
        busy, no_copies = spent(self._all), spent(self._no_copies)
        return StepTime(
            wall_ns=wall,
            busy_ns=busy,
            kernel_ns=spent(self._kernels),
            graph_ns=spent(self._graphs),
            copy_ns=spent(self._copies),
            exposed_copy_ns=busy - no_copies,
            host_gap_ns=wall - busy,
            communication_ns=spent(self._communication) if self._sees_inside else None,
            exposed_communication_ns=no_copies - spent(self._compute)
            if self._sees_inside
            else None,
        )

    def kernels_in(self, used: Sequence[Step]) -> int:
        """How many kernels begin within these steps."""
        import pyarrow.compute as pc

        total = 0
        for step in _runs(used):
            after = pc.greater_equal(self._starts, step.begin)
            total += pc.sum(pc.and_(after, pc.less(self._starts, step.end))).as_py() or 0
        return total


def _runs(used: Sequence[Step]) -> list[Step]:
    """Steps that follow each other without a gap, joined."""
    joined: list[Step] = []
    for step in used:
        if joined and joined[-1].end == step.begin:
            joined[-1] = Step(joined[-1].begin, step.end)
        else:
            joined.append(step)
    return joined


def _on(table: pa.Table, ordinal: int | None) -> pa.Table:
    import pyarrow.compute as pc

    if ordinal is None:
        return table.filter(pc.is_null(table["device"]))
    return table.filter(pc.equal(table["device"], ordinal))


def _union(*tables: pa.Table) -> Union:
    import pyarrow as pa

    whole = pa.concat_tables([table.select(["start_ns", "end_ns"]) for table in tables])
    return Union(whole["start_ns"].combine_chunks(), whole["end_ns"].combine_chunks())


def _marked(names: pa.ChunkedArray, is_wanted: Callable[[str], bool]) -> pa.ChunkedArray:
    """Which rows have a wanted name, each name judged once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for chunk in names.unify_dictionaries().chunks:
        listed = chunk.dictionary.to_pylist()
        wanted = pa.array([i for i, n in enumerate(listed) if n and is_wanted(n)], pa.int32())
        found.append(pc.is_in(chunk.indices, value_set=wanted))
    return pa.chunked_array(found, pa.bool_())


def _verdict(
    time: StepTime, checks: Sequence[QualityGate], source: StepSource
) -> tuple[str, tuple[str, ...], float | None]:
    """The verdict, its grounds, and the part of the wall time that it names."""
    parts = {
        "host-bound": time.host_gap_ns,
        "kernel-bound": time.compute_ns,
        "comm-bound": time.exposed_communication_ns or 0.0,
        "copy-bound": time.exposed_copy_ns,
    }
    ranked = sorted(parts.items(), key=lambda item: -item[1])
    (first, most), (second, next_most) = ranked[0], ranked[1]
    grounds = [
        f"of {time.wall_ns / 1e3:,.1f} us "
        + ("in the whole capture" if source.kind == "window" else "a step")
        + f": GPU busy {_percent(time.busy_ns, time)}, "
        f"host gap {_percent(time.host_gap_ns, time)}, exposed communication "
        + (
            "not seen"
            if time.exposed_communication_ns is None
            else _percent(time.exposed_communication_ns, time)
        )
        + f", exposed copies {_percent(time.exposed_copy_ns, time)}"
    ]
    blocking = gates.blocking(checks, first)
    if blocking:
        grounds += [f"{gate.name}: {gate.fact}" for gate in blocking]
        return "undetermined", tuple(grounds), None
    if most - next_most < CLEAR_LEAD * time.wall_ns:
        grounds.append(f"{first} and {second} are within {CLEAR_LEAD:.0%} of the step")
        return "mixed", tuple(grounds), None
    if first == "comm-bound":
        grounds.append("a collective's time includes waiting for the slowest rank")
    return first, tuple(grounds), None if first == "kernel-bound" else most


def _percent(part: float, time: StepTime) -> str:
    return f"{100 * part / time.wall_ns:.1f}%" if time.wall_ns else "unknown"
