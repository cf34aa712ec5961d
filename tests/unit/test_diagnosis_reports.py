"""Empty or odd captures that succeeded are told from the report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solscope.capture.diagnosis import Evidence, diagnose
from solscope.model.diagnosis import Outcome
from solscope.model.report import (
    Device,
    KernelLaunch,
    PlainMetrics,
    Provenance,
    Report,
    Session,
    WorkloadKind,
)

DEVICE = Device(
    name="NVIDIA TOY",
    compute_capability=(9, 0),
    ordinal=0,
    max_sm_clock_khz=2_000_000,  # 2 GHz
    l2_bytes=50_000_000,
)
FLOP = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


def launch(index: int, name: str = "gemm", block: int = 128, **metrics: float) -> KernelLaunch:
    return KernelLaunch(
        index=index,
        kind=WorkloadKind.KERNEL,
        name=name,
        name_full=f"void {name}<128>(float*)",
        metrics=PlainMetrics(
            {FLOP: 1.0, **{k.replace("__DOT__", "."): v for k, v in metrics.items()}}
        ),
        device=DEVICE,
        grid=(index + 1, 1, 1),
        block=(block, 1, 1),
    )


def report(
    *launches: KernelLaunch, complete: bool = True, session: Session | None = None
) -> Report:
    return Report(
        provenance=Provenance(
            path="/home/alice/r.ncu-rep",
            sha256="0" * 64,
            size_bytes=1,
            format="ncu-rep",
            tool_name="ncu",
            tool_version="2025.3.1",
        ),
        launches=launches,
        devices=(DEVICE,),
        complete=complete,
        session=session or Session(),
    )


def codes(made: Report, command: str | None = None) -> list[str]:
    evidence = [Evidence(name="--command", text=command, is_command=True)] if command else []
    found = diagnose(evidence, reports=[made])
    return [c.code for c in (*found.causes, *found.harmless)]


def test_a_whole_report_is_well() -> None:
    found = diagnose([], reports=[report(launch(0))])
    assert found.outcome is Outcome.WELL
    assert found.causes[0].code == "report-fine"
    assert found.causes[0].evidence[0].where == "r.ncu-rep"  # the base name: no one's folder


def test_a_report_without_results_is_undecided_and_sends_to_the_log() -> None:
    found = diagnose([], reports=[report()])
    assert (found.outcome, found.code) == (Outcome.UNDECIDED, "report-holds-nothing")
    assert "log" in found.checks[0].do


def test_a_cut_report_is_told() -> None:
    assert codes(report(launch(0), complete=False))[0] == "report-cut"


def test_autotuning_trials_are_told_by_one_launch_for_each_of_many_shapes() -> None:
    trials = [launch(i, block=64 << i) for i in range(3)]
    assert "autotune-launches-in-capture" in codes(report(*trials))
    steady = [launch(i, block=128) for i in range(3)]  # one block shape: sizes of the problem
    assert "autotune-launches-in-capture" not in codes(report(*steady))


@pytest.mark.parametrize(("clock_hz", "is_held"), [(1.2e9, True), (1.9e9, False)])
def test_a_clock_well_below_the_maximum_is_told(clock_hz: float, is_held: bool) -> None:
    made = report(launch(0, sm__cycles_elapsed__DOT__avg__DOT__per_second=clock_hz))
    assert ("clock-locked-to-base" in codes(made)) is is_held


@pytest.mark.parametrize(
    ("read", "cache", "is_cold"),
    [
        (4e6, "all", True),  # 4 MB fit into 50 MB
        (4e9, "all", False),
        (4e6, "none", False),  # nothing was flushed
    ],
)
def test_busy_dram_with_bytes_that_fit_the_cache_is_doubted(
    read: float, cache: str, is_cold: bool
) -> None:
    made = report(
        launch(
            0,
            dram__bytes_read__DOT__sum=read,
            dram__throughput__DOT__avg__DOT__pct_of_peak_sustained_elapsed=90.0,
        ),
        session=Session(cache_control=cache),
    )
    assert ("cold-cache-artefact-possible" in codes(made)) is is_cold


def test_range_results_are_told_from_kernels() -> None:
    made = report(replace(launch(0), kind=WorkloadKind.GRAPH))
    assert "range-results" in codes(made)


@pytest.mark.parametrize(
    ("wanted", "is_other"),
    [
        ("regex:attention", True),
        ("regex:ge.m", False),
        ("gemm", False),
        ("gem", True),  # an exact name
    ],
)
def test_kernels_that_the_command_did_not_ask_for_are_told(wanted: str, is_other: bool) -> None:
    made = report(launch(0))
    assert ("report-wrong-kernels" in codes(made, f"ncu -k {wanted} a.out")) is is_other


def test_absent_values_other_devices_and_missing_flop_counters_are_remarks_only() -> None:
    bare = replace(
        launch(0), metrics=PlainMetrics({"gpu__time_duration.sum": 1.0}, without_value=("a.sum",))
    )
    other = replace(launch(1), device=replace(DEVICE, ordinal=1), metrics=bare.metrics)
    found = diagnose([], reports=[report(bare, other)])
    assert found.outcome is Outcome.WELL
    assert {c.code for c in found.harmless} == {
        "partial-metrics",
        "several-devices",
        "roofline-not-collected",
    }


@pytest.mark.parametrize(("option", "is_other"), [("0", False), ("1", True), ("0,1", False)])
def test_results_of_another_rank_than_asked_for_are_told(option: str, is_other: bool) -> None:
    made = report(launch(0))  # of device 0
    found = codes(made, f"ncu --devices {option} -o r.ncu-rep a.out")
    assert ("report-of-another-rank" in found) is is_other
