"""Joins: which names are the same kernel, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from solscope.analysis import join
from solscope.analysis.join.matching import canonical, match
from solscope.model import trace
from solscope.model.join import Join
from solscope.model.kernel import KernelIdentity
from solscope.model.report import Provenance
from solscope.model.trace import CallTotal, KernelTime, SampleReport, TimelineReport

WHERE = Provenance(
    path="t", sha256="0", size_bytes=0, format="test", tool_name=None, tool_version=None
)


def samples(shares: dict[str, float]) -> SampleReport:
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


def test_variants_of_a_function_are_told_apart_by_their_arguments() -> None:
    times = [ran("void ns::kernel<1>(int)"), ran("void ns::kernel<2>(int)"), ran("other")]
    names = {row.name for row in joined({}, timeline(times)).kernels}
    assert names == {"ns::kernel<1>", "ns::kernel<2>", "other"}
