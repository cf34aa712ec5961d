"""Decode-step budgets: numbers that can be checked by hand. All times in ns."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from solscope.analysis import budget
from solscope.analysis.budget.intervals import Union
from solscope.model import trace
from solscope.model.budget import DeviceBudget
from solscope.model.finding import Issue, Severity
from solscope.model.report import Provenance
from solscope.model.trace import CallTotal, TimelineReport

WHERE = Provenance(
    path="t", sha256="0", size_bytes=0, format="test", tool_name=None, tool_version=None
)


def table(name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), trace.schemas()[name])


def kernel(
    start: int, end: int, name: str = "gemm", device: int = 0, **more: Any
) -> dict[str, Any]:
    place = {"device": device, "name": name, "short_name": name}
    return {"start_ns": start, "end_ns": end, **place, **more}


def mark(start: int, end: int, name: str = "decode_step", **more: Any) -> dict[str, Any]:
    return {"start_ns": start, "end_ns": end, "name": name, "side": "host", **more}


def a_timeline(
    kernels: Sequence[dict[str, Any]] = (),
    marks: Sequence[dict[str, Any]] = (),
    *,
    graphs: Sequence[dict[str, Any]] = (),
    copies: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> TimelineReport:
    return TimelineReport(
        provenance=WHERE,
        kernels=table("kernels", kernels),
        graphs=table("graphs", graphs),
        copies=table("copies", copies),
        annotations=table("annotations", marks),
        **more,
    )


def judged(report: TimelineReport, step: str | None = None) -> tuple[DeviceBudget, ...]:
    pattern = None if step is None else re.compile(step)
    return budget.judge([report], lambda n: "nccl" in n, step_pattern=pattern).devices


def steps_of(busy: int, wall: int = 100, count: int = 7) -> TimelineReport:
    """Steps of ``wall`` ns, each with one kernel of ``busy`` ns at its begin."""
    begins = [i * wall for i in range(count)]
    kernels = [kernel(b, b + busy) for b in begins]
    return a_timeline(kernels, [mark(b, b + 10) for b in begins])


def test_overlapping_work_counts_once() -> None:
    union = Union(pa.array([0, 5, 40, 20]), pa.array([10, 25, 41, 22]))
    assert union.within(0, 100) == 25 + 1
    assert union.within(8, 40) == 17
    assert union.within(25, 40) == 0
    assert Union(pa.array([], pa.int64()), pa.array([], pa.int64())).within(0, 9) == 0


def test_a_step_of_mostly_idle_gpu_is_host_bound() -> None:
    (found,) = judged(steps_of(busy=20))
    assert (found.verdict, found.is_firm, found.steps) == ("host-bound", True, 6)
    assert (found.time.wall_ns, found.time.busy_ns, found.time.host_gap_ns) == (100, 20, 80)
    assert found.best_case_speedup == pytest.approx(5.0)  # 100 ns could become 20
    assert found.kernels_per_step == 1.0


def test_a_busy_step_is_kernel_bound_and_promises_nothing() -> None:
    (found,) = judged(steps_of(busy=90))
    assert (found.verdict, found.best_case_speedup) == ("kernel-bound", None)


def test_parts_within_five_percent_of_the_step_are_mixed() -> None:
    (found,) = judged(steps_of(busy=52))
    assert found.verdict == "mixed"


def test_communication_that_other_work_covers_is_not_exposed() -> None:
    kernels, marks = [], []
    for begin in range(0, 700, 100):
        marks.append(mark(begin, begin + 1))
        kernels += [kernel(begin, begin + 20), kernel(begin + 10, begin + 90, "ncclAllReduce")]
    (found,) = judged(a_timeline(kernels, marks))
    assert found.time.communication_ns == 80
    assert found.time.exposed_communication_ns == 70
    assert found.time.compute_ns == 20
    assert (found.verdict, found.best_case_speedup) == ("comm-bound", pytest.approx(100 / 30))
    assert "waiting for the slowest rank" in found.grounds[-1]


def test_copies_and_peer_copies_are_told_apart() -> None:
    kernels, copies, marks = [], [], []
    for begin in range(0, 700, 100):
        marks.append(mark(begin, begin + 1))
        kernels.append(kernel(begin, begin + 10))
        copies.append({"start_ns": begin, "end_ns": begin + 60, "kind": "HtoD", "device": 0})
        copies.append({"start_ns": begin + 50, "end_ns": begin + 70, "kind": "PtoP", "device": 0})
    (found,) = judged(a_timeline(kernels, marks, copies=copies))
    assert found.time.copy_ns == 70
    assert found.time.exposed_communication_ns == 20
    assert found.time.exposed_copy_ns == 40
    assert found.verdict == "copy-bound"


def test_whole_graph_replays_are_busy_time_and_hide_communication() -> None:
    graphs = [
        {"start_ns": b, "end_ns": b + 70, "device": 0, "graph": 3} for b in range(0, 700, 100)
    ]
    (found,) = judged(a_timeline(graphs=graphs))
    assert (found.source.kind, found.steps) == ("graph", 6)
    assert (found.time.graph_ns, found.time.busy_ns) == (70, 70)
    assert found.time.communication_ns is None
    assert found.absences[0].field == "communication_ns"
    assert found.verdict == "kernel-bound"


def test_graph_launches_that_left_no_trace_forbid_host_bound() -> None:
    calls = (CallTotal(name="cudaGraphLaunch", calls=7), CallTotal(name="cuLaunchKernel", calls=7))
    report = dataclasses.replace(steps_of(busy=20), calls=calls)
    (found,) = judged(report)
    assert found.verdict == "undetermined"
    assert "graphs seen: 7 graph launches; 0 replays and 0 graph kernels" in found.grounds[1]


def test_a_slowed_host_forbids_host_bound_but_not_kernel_bound() -> None:
    slow = {"host_slowed_by": "Python stacks"}
    (idle,) = judged(dataclasses.replace(steps_of(busy=20), **slow))
    (busy,) = judged(dataclasses.replace(steps_of(busy=90), **slow))
    assert (idle.verdict, busy.verdict) == ("undetermined", "kernel-bound")
    assert not busy.is_firm


def test_lost_events_forbid_host_bound() -> None:
    what = "nsys says: Not all CUDA events might have been collected."
    issue = Issue(code="nsys-says", severity=Severity.WARNING, what=what)
    (found,) = judged(dataclasses.replace(steps_of(busy=20), issues=(issue,)))
    assert found.verdict == "undetermined"


def test_without_steps_an_idle_capture_is_undetermined() -> None:
    (found,) = judged(a_timeline([kernel(0, 10), kernel(990, 1000)]))
    assert (found.source.kind, found.time.wall_ns) == ("window", 1000)
    assert found.verdict == "undetermined"
    assert "steps marked" in found.grounds[1]


def test_few_steps_are_not_firm() -> None:
    (found,) = judged(steps_of(busy=20, count=4))
    assert (found.verdict, found.steps, found.is_firm) == ("host-bound", 3, False)


def test_a_pause_between_requests_is_left_out_and_said() -> None:
    begins = [0, 100, 200, 5000, 5100, 5200, 5300]
    report = a_timeline([kernel(b, b + 80) for b in begins], [mark(b, b + 9) for b in begins])
    (found,) = judged(report)
    assert (found.steps, found.left_out, found.time.wall_ns) == (5, 1, 100)
    assert found.verdict == "kernel-bound"


def test_prefill_steps_end_decode_steps_and_are_not_decode_steps() -> None:
    decode, prefill = "execute_context_0(0)_generation_4(4)", "execute_context_1(9)_generation_0(0)"
    marks = [mark(0, 5, decode), mark(100, 105, prefill), mark(900, 905, decode)]
    marks.append(mark(1000, 1005, decode))
    report = a_timeline([kernel(m["start_ns"], m["start_ns"] + 50) for m in marks], marks)
    (found,) = judged(report)
    assert (found.steps, found.time.wall_ns) == (2, 100)


def test_only_prefill_marks_are_no_decode_steps() -> None:
    marks = [mark(i * 100, i * 100 + 5, "execute_context_1(9)_generation_0(0)") for i in range(7)]
    (found,) = judged(a_timeline([kernel(0, 10), kernel(600, 610)], marks))
    assert found.source.label == "7 step marks by vLLM, none of a decode step"


def test_marks_of_another_process_are_not_this_devices_steps() -> None:
    kernels = [kernel(b, b + 50, device=d, process=d) for b in range(0, 700, 100) for d in (1, 2)]
    marks = [mark(b, b + 5, process=1) for b in range(0, 700, 100)]
    marks += [mark(b, b + 5, process=2) for b in range(50, 750, 100)]
    first, second = judged(a_timeline(kernels, marks))
    assert (first.steps, second.steps) == (6, 6)
    assert (first.time.wall_ns, second.time.wall_ns) == (100, 100)


def test_marks_inside_marks_are_no_steps() -> None:
    marks = [mark(b, b + 90) for b in range(0, 700, 100)]
    marks += [mark(b + 20, b + 30) for b in range(0, 700, 100)]
    (found,) = judged(a_timeline([kernel(b, b + 50) for b in range(0, 700, 100)], marks))
    assert (found.steps, found.time.wall_ns) == (6, 100)


def test_a_single_step_is_bounded_by_the_work_of_the_gpu() -> None:
    report = a_timeline([kernel(200, 240), kernel(250, 300)], [mark(0, 100)])
    (found,) = judged(report)
    assert (found.steps, found.time.wall_ns, found.time.busy_ns) == (1, 100, 90)


def test_steps_can_be_named_and_steps_without_gpu_work_decide_nothing() -> None:
    marks = [mark(i * 10, i * 10 + 5, "tick") for i in range(7)]
    report = a_timeline([kernel(1000, 1100)], marks)
    (found,) = judged(report, step="^tick$")
    assert (found.steps, found.verdict) == (6, "undetermined")
    assert "none begins within the steps" in found.grounds[1]
    assert judged(report, step="^tock$") == ()


def test_an_empty_timeline_has_neither_kernels_nor_a_budget() -> None:
    assert a_timeline().kernel_times() == ()
    assert judged(a_timeline()) == ()


def test_a_report_of_sums_only_has_no_budget() -> None:
    assert judged(a_timeline(sums=())) == ()


def test_annotations_are_listed_by_how_often_they_are_there() -> None:
    report = a_timeline(marks=[mark(0, 1, "a"), mark(2, 3, "b"), mark(4, 5, "b")])
    assert budget.annotation_names(report) == ["b", "a"]


def test_events_without_a_device_are_one_device_of_their_own() -> None:
    rows = [{**kernel(b, b + 90), "device": None} for b in range(0, 700, 100)]
    report = a_timeline(rows, [mark(b, b + 5) for b in range(0, 700, 100)])
    (found,) = judged(report)
    assert (found.ordinal, found.verdict) == (None, "kernel-bound")
