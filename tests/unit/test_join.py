"""Joins: which names are the same kernel, and what is said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyarrow as pa
import pytest

from solscope.analysis import join
from solscope.analysis.join.matching import canonical, match
from solscope.model import trace
from solscope.model.finding import Issue, Severity
from solscope.model.join import Join
from solscope.model.kernel import FlopTotals, KernelIdentity, KernelKey, KernelTotals, LaunchPeaks
from solscope.model.report import Device, Provenance, WorkloadKind
from solscope.model.roofline import RooflinePoint, Standing
from solscope.model.trace import CallTotal, KernelTime, SampleReport, TimelineReport
from solscope.model.verdict import Analysis, KernelVerdict, Verdict

WHERE = Provenance(
    path="t", sha256="0", size_bytes=0, format="test", tool_name=None, tool_version=None
)


def samples(shares: dict[str, float | None]) -> SampleReport:
    table = pa.table(
        {
            "name": list(shares),
            "samples": pa.nulls(len(shares), pa.float64()),
            "share": list(shares.values()),
        }
    )
    return SampleReport(provenance=WHERE, samples=table)


def timeline(times: Sequence[KernelTime], graph_launches: int = 0) -> TimelineReport:
    calls = (CallTotal(name="cudaGraphLaunch", calls=graph_launches),) if graph_launches else ()
    return TimelineReport(
        provenance=WHERE,
        **{name: trace.empty(name) for name in trace.schemas()},
        sums=tuple(times),
        calls=calls,
    )


def ran(name: str, launches: int = 10, total_ns: float | None = 1000.0, **more: int) -> KernelTime:
    return KernelTime(name=name, name_full=name, launches=launches, total_ns=total_ns, **more)


def identify(name: str, _full: str) -> KernelIdentity:
    return KernelIdentity(
        family="f",
        category="c",
        role="r",
        dtype=None,
        pattern=None,
        is_collective="nccl" in name,
    )


def joined(shares: dict[str, float], *timelines: TimelineReport) -> Join:
    return join.join([samples(shares)] if shares else [], timelines, None, identify)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void f<(int)4, (bool)1>(int, T1)", "f<4, true>(int, float)"),
        ("void ns::deep::f<ns::G<float> >(T)", "ns::deep::f<ns::G<float>>"),
        ("step 3 (warm)/void f<int>(int)", "void f<int>(long)"),
        ("plain_kernel", "plain_kernel(float*, int)"),
    ],
)
def test_spellings_of_one_kernel_are_one(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


def test_other_template_arguments_are_another_kernel() -> None:
    assert canonical("void f<1>(int)") != canonical("void f<2>(int)")


def test_each_entry_is_in_exactly_one_match() -> None:
    names = {
        "samples": ["void f<1>(int)", "g", "a_very_long_kernel_name_that_was_cut", "alone"],
        "time": [
            "f<1>",
            "void g<1>(int)",
            "void g<2>(int)",
            "void a_very_long_kernel_name_that_was_cut_by_the_sampler<3>(int)",
        ],
    }
    found = {m.name: (m.confidence, dict(m.members)) for m in match(names)}
    assert found == {
        "f": ("exact", {"samples": (0,), "time": (0,)}),
        "g": ("function", {"samples": (1,), "time": (1, 2)}),
        "a_very_long_kernel_name_that_was_cut_by_the_sampler": (
            "truncated",
            {"samples": (2,), "time": (3,)},
        ),
        "alone": ("single", {"samples": (3,)}),
    }


def test_a_beginning_that_fits_two_kernels_matches_none() -> None:
    start = "a_very_long_kernel_name_that_"
    found = match({"samples": [start], "time": [start + "one", start + "two"]})
    assert [m.confidence for m in found] == ["single"] * 3


def test_shares_and_times_stand_side_by_side_and_are_not_multiplied() -> None:
    times = [ran("flash_fwd", 1000, 33_100_000.0), ran("gemm", 10, 66_200_000.0)]
    flash = next(k for k in joined({"flash_fwd": 0.41}, timeline(times)).kernels if k.sample_share)
    assert flash.time is not None
    assert (flash.time.total_ns, flash.time.launches) == (33_100_000.0, 1000)
    assert flash.time.share == pytest.approx(1 / 3)
    assert flash.estimated_ns == pytest.approx(0.41 * 99_300_000)
    assert flash.verdict == "unmeasured"


def test_ranks_are_not_added_up_and_skew_is_said() -> None:
    times = [
        ran("gemm", 1, 100.0, device=0, process=11),
        ran("gemm", 1, 160.0, device=1, process=12),
    ]
    (row,) = joined({"gemm": 0.5}, timeline(times)).kernels
    assert row.time is not None
    assert (row.time.total_ns, row.time.gpus, row.time.skew) == (160.0, 2, 1.6)
    assert row.notes == ("the slowest of 2 GPUs takes 1.60x as long as the fastest",)


def test_launches_under_graphs_are_marked_not_comparable() -> None:
    report = timeline([ran("decode_kernel", 1)], graph_launches=500)
    found = joined({"decode_kernel": 0.5}, report)
    assert found.kernels[0].time is not None
    assert not found.kernels[0].time.count_is_exact
    assert found.notes[0].startswith("cudaGraphLaunch 500 calls")


def test_a_mean_and_a_count_give_the_total() -> None:
    time = KernelTime(name="k", name_full="k", launches=1000, mean_ns=33_100.0)
    (row,) = joined({"k": 0.41}, timeline([time])).kernels
    assert row.time is not None
    assert (row.time.total_ns, row.time.mean_ns) == (33_100_000.0, 33_100.0)


def test_a_table_without_times_gives_none() -> None:
    (row,) = joined({"k": 0.41}, timeline([ran("k", 7, None)])).kernels
    assert row.time is not None
    assert (row.time.total_ns, row.time.share, row.time.launches) == (None, None, 7)
    assert row.estimated_ns is None


def test_collectives_wait_for_peers() -> None:
    (row,) = joined({"ncclAllReduce": 0.2}, timeline([ran("ncclAllReduce")])).kernels
    assert (row.verdict, row.win_bound) == ("peers", None)


def test_runs_that_differ_are_said() -> None:
    times = [ran("a", 1, 10.0), ran("b", 1, 90.0)]
    found = joined({"a": 0.5, "b": 0.5}, timeline(times))
    row = next(k for k in found.kernels if k.name == "a")
    assert row.notes == ("samples say 50.0% of the time, the timeline 10.0%: the runs differ",)


def test_several_sample_reports_are_averaged() -> None:
    found = join.join(
        [samples({"a": 0.2}), samples({"a": 0.4})], [timeline([ran("a")])], None, identify
    )
    assert found.kernels[0].sample_share == pytest.approx(0.3)


def test_a_mean_share_is_unknown_where_one_share_is_and_counts_what_was_not_seen() -> None:
    reports = [samples({"a": 0.2, "b": 0.8}), samples({"a": None})]
    found = join.join(reports, [timeline([ran("a"), ran("b")])], None, identify)
    shares = {row.name: row.sample_share for row in found.kernels}
    assert shares == {"a": None, "b": pytest.approx(0.4)}


def test_variants_of_a_function_are_told_apart_by_their_arguments() -> None:
    times = [ran("void ns::kernel<1>(int)"), ran("void ns::kernel<2>(int)"), ran("other")]
    names = {row.name for row in joined({}, timeline(times)).kernels}
    assert names == {"ns::kernel<1>", "ns::kernel<2>", "other"}


DEVICE = Device(name="NVIDIA H100", compute_capability=(9, 0), ordinal=0)


def counted(
    name: str,
    *,
    duration_ns: float | None = 1000.0,
    launches: int = 1,
    roof: float | None = 0.5,
    device: int = 0,
    clock_hz: float | None = None,
) -> KernelVerdict:
    where = dataclasses.replace(DEVICE, ordinal=device)
    standing = Standing(resource="dram", value=roof or 0.0, achieved=1.0, peak=2.0, ceiling="x")
    return KernelVerdict(
        identity=identify(name, name),
        totals=KernelTotals(
            key=KernelKey(
                report=0,
                name_full=name,
                grid=None,
                block=None,
                device=str(device),
                process_id=None,
            ),
            name=name,
            kind=WorkloadKind.KERNEL,
            device=where,
            launches=launches,
            duration_ns=duration_ns,
            duration_min_ns=None,
            duration_max_ns=None,
            flop=FlopTotals(),
            dram_read_bytes=None,
            dram_write_bytes=None,
            dram_bytes=None,
            l2_bytes=None,
            l1_bytes=None,
            peaks=LaunchPeaks(sm_clock_hz=clock_hz),
        ),
        point=RooflinePoint(
            intensity=None,
            flop_per_s=None,
            dram_bytes_per_s=None,
            profiled=() if roof is None else (standing,),
        ),
        verdict=Verdict(bound="dram", grounds=()),
        time_share=None,
    )


def with_counters(*rows: KernelVerdict, times: Sequence[KernelTime] = ()) -> Join:
    analysis = Analysis(reports=(), kernels=rows, chips=())
    return join.join([], [timeline(times)] if times else [], analysis, identify)


def test_a_win_is_bounded_by_the_share_of_time_and_the_roof() -> None:
    times = [ran("gemm", 1, 400.0), ran("other", 1, 600.0)]
    row = next(k for k in with_counters(counted("gemm"), times=times).kernels if k.counters)
    assert row.win_bound == pytest.approx(0.4 * (1 - 0.5))
    assert (row.verdict, row.sources, row.confidence) == ("dram", 2, "exact")


@pytest.mark.parametrize("roof", [None, 0.0, 1.2])
def test_without_a_counted_standing_no_win_is_promised(roof: float | None) -> None:
    found = with_counters(counted("gemm", roof=roof), times=[ran("gemm")])
    assert found.kernels[0].win_bound is None


def test_a_collective_at_its_roof_promises_nothing() -> None:
    found = with_counters(counted("ncclX"), times=[ran("ncclX")])
    assert found.kernels[0].win_bound is None


def test_a_duration_of_ncu_that_differs_is_said_with_its_clock() -> None:
    slow = counted("gemm", duration_ns=53_500.0, clock_hz=1.13e9)
    found = with_counters(slow, times=[ran("gemm", 1000, 33_100_000.0)])
    assert found.kernels[0].notes == (
        "durations not comparable: ncu 53.5 us at an SM clock of 1.13 GHz, timeline 33.1 us; "
        "compare bytes and percentages",
    )
    assert found.notes[0].startswith("ncu durations are not used for totals")
    assert found.kernels[0].time is not None
    assert found.kernels[0].time.total_ns == 33_100_000.0


def test_a_duration_that_agrees_or_is_not_measured_needs_no_word() -> None:
    same = with_counters(counted("gemm", duration_ns=105.0), times=[ran("gemm", 10, 1000.0)])
    none = with_counters(counted("gemm", duration_ns=None), times=[ran("gemm", 10, 1000.0)])
    assert (same.kernels[0].notes, none.kernels[0].notes) == ((), ())


def test_the_slower_of_two_devices_is_named_and_nothing_added_up() -> None:
    rows = (counted("gemm", duration_ns=100e3), counted("gemm", duration_ns=160e3, device=1))
    (row,) = with_counters(*rows).kernels
    assert row.notes == ("device 1 slower under ncu: 160.0 us against 100.0 us on device 0",)
    assert row.time is None


def test_devices_that_agree_need_no_word() -> None:
    rows = (counted("gemm", duration_ns=100e3), counted("gemm", duration_ns=101e3, device=1))
    assert with_counters(*rows).kernels[0].notes == ()


def test_missing_kernels_of_a_timeline_are_repeated() -> None:
    issue = Issue(code="kernels-not-recorded", severity=Severity.WARNING, what="launches exist: 3")
    other = Issue(code="table-suffix", severity=Severity.INFO, what="X_V2 used")
    report = dataclasses.replace(timeline([]), issues=(other, issue))
    found = join.join([samples({"k": 1.0})], [report], None, identify)
    assert found.notes == ("launches exist: 3",)
    assert found.kernels[0].estimated_ns is None


def test_casts_and_spaces_do_not_part_names_but_truncation_to_one_does_join() -> None:
    long = "void ns::a_kernel_with_a_rather_long_name<(int)4>(int)"
    found = match({"time": [long], "counters": [long[:40]]})
    assert [(m.confidence, dict(m.members)) for m in found] == [
        ("truncated", {"time": (0,), "counters": (0,)})
    ]


def test_a_table_without_counts_and_a_sample_without_share_stay_absent() -> None:
    table = pa.table(
        {
            "name": ["k"],
            "samples": pa.nulls(1, pa.float64()),
            "share": pa.nulls(1, pa.float64()),
        }
    )
    empty = SampleReport(provenance=WHERE, samples=table)
    time = KernelTime(name="k", name_full="k", total_ns=10.0)
    (row,) = join.join([empty], [timeline([time])], None, identify).kernels
    assert (row.sample_share, row.estimated_ns) == (None, None)
    assert row.time is not None
    assert (row.time.launches, row.time.mean_ns, row.time.total_ns) == (None, None, 10.0)


def test_graph_replays_recorded_as_a_whole_are_part_of_the_gpus_time() -> None:
    replays = pa.table(
        {
            **{name: pa.array([None] * 2, pa.int64()) for name in trace.schemas()["graphs"].names},
            "start_ns": [0, 5000],
            "end_ns": [1000, 7000],
        }
    ).cast(trace.schemas()["graphs"])
    report = dataclasses.replace(timeline([ran("k", 10, 1000.0)]), graphs=replays)
    (row,) = joined({}, report).kernels
    assert row.time is not None
    assert row.time.share == 0.25  # 1 us of 1 us + 3 us in replays


def test_what_a_reader_left_out_is_a_note_of_the_join() -> None:
    left_out = Issue(code="table-not-read", severity=Severity.WARNING, what="a table was not read")
    aside = Issue(code="table-skipped", severity=Severity.INFO, what="nothing of note")
    report = dataclasses.replace(timeline([ran("k")]), issues=(left_out, aside))
    inclusive = dataclasses.replace(
        samples({"k": 1.0}),
        issues=(Issue(code="shares-over-one", severity=Severity.WARNING, what="over one"),),
    )
    found = join.join([inclusive], [report], None, identify)
    assert found.notes == ("t: over one", "t: a table was not read")
