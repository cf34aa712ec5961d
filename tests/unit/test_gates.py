"""Gates fail closed: one thing broken at a time, the gate that says so, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.analyses import a_chip, an_analysis, flop_totals
from tests.campaigns import (
    BASELINE_TRIALS,
    CONTEXT,
    METRICS,
    a_busy_kernel,
    a_campaign,
    a_cell,
    a_comparison,
    a_fma_kernel,
    a_starved_gemm,
    a_tensor_kernel,
    an_arm,
    grounded,
    with_metric_set,
)

from solscope.analysis import frontier, gates
from solscope.model.campaign import (
    Campaign,
    CaptureCheck,
    Claim,
    FindingStatus,
    Frontier,
    GateResult,
    NextLever,
    Standing,
    Tier,
    ValueFinding,
)
from solscope.model.context import MeasurementContext, Trials, Workload
from solscope.model.finding import Finding, Severity
from solscope.model.kernel import MetricSet
from solscope.model.report import WorkloadKind

DRAFT, REFUTED = Standing.DRAFT, Standing.REFUTED


def of(context: MeasurementContext, **changes: Any) -> Campaign:
    """A campaign of one cell in this context."""
    return a_campaign(a_cell(a_tensor_kernel(), context=context), **changes)


def on(hardware: str) -> Campaign:
    """A campaign whose context says that it ran on this."""
    identity = dataclasses.replace(CONTEXT.identity, hardware=hardware)
    return of(dataclasses.replace(CONTEXT, identity=identity))


def trials(n: int, mean: float, std: float) -> MeasurementContext:
    return grounded(trials=Trials(n=n, mean=mean, std=std, quantity="TPOT", unit="ms"))


def claiming(*kernels: Any, **claim: Any) -> Campaign:
    cell = a_cell(*kernels, context=grounded(sol_rigor="L3"))
    return a_campaign(cell, claims=(Claim(says="at-roof", **claim),))


def fma_cell(cell_id: str = "candidate") -> Any:
    return a_cell(a_fma_kernel(), cell_id=cell_id)


def legacy_cell() -> Any:
    totals = {"tensor_engagement": "legacy-mma", "intensity_pair": (201e9, 250e6)}
    return a_cell(a_tensor_kernel(name="my_gemm", totals=totals))


def half_fma_cell() -> Any:
    """A few tensor operations beside far more FP32 work."""
    work = flop_totals(fp64=0.0, fp32=90e9, fp16=0.0, tensor={"bf16": 10e9}, total=100e9)
    return a_cell(a_tensor_kernel(name="my_gemm", flop=work))


def uncounted_tensor_cell() -> Any:
    """Warpgroup instructions were seen; their FLOP by type were not counted."""
    work = flop_totals(fp64=0.0, fp32=1e9, fp16=0.0, tensor=None, total=201e9)
    return a_cell(a_tensor_kernel(name="my_gemm", flop=work))


def basic_cell() -> Any:
    return a_cell(a_busy_kernel(), context=grounded(sol_rigor="L3"))


def baseline_in(context: MeasurementContext, **report: Any) -> Any:
    return a_cell(a_tensor_kernel(), cell_id="baseline", context=context, report=report)


MIXED = dataclasses.replace(
    CONTEXT, workload=dataclasses.replace(CONTEXT.workload, input_tokens=None)
)
SMEARED = dataclasses.replace(
    MIXED, refused={"workload.input_tokens": "expected a number: '1024-4096'"}
)
OTHER_SHAPE = dataclasses.replace(
    CONTEXT, workload=dataclasses.replace(CONTEXT.workload, concurrency=1)
)
OTHER_STACK = dataclasses.replace(CONTEXT, stack=dataclasses.replace(CONTEXT.stack, version="0.9"))
COLD = dataclasses.replace(CONTEXT, regime=dataclasses.replace(CONTEXT.regime, state="cold"))

Row = tuple[str, Callable[[], Campaign], str, Standing, str]

ROWS: list[Row] = [
    # --- nothing to check -------------------------------------------------------------------
    ("no cell", lambda: dataclasses.replace(a_campaign(), cells=()), "cells", DRAFT, "nothing"),
    ("no cell, context", lambda: _empty(), "context", DRAFT, "nothing"),
    ("no cell, trials", lambda: _empty(), "trials", DRAFT, "nothing"),
    ("no cell, capture", lambda: _empty(), "capture", DRAFT, "nothing"),
    ("no cell, rigor", lambda: _empty(), "rigor", DRAFT, "nothing"),
    ("no cell, claims", lambda: _empty(), "claims", DRAFT, "nothing"),
    ("no cell, baseline", lambda: _empty(), "baseline", DRAFT, "nothing"),
    ("no kernel", lambda: _no_kernel(), "cells", DRAFT, "no kernel"),
    (
        "ncu is no source",
        lambda: a_campaign(a_cell(a_tensor_kernel(), captured_sources=("nsys",))),
        "cells",
        DRAFT,
        "ncu is no source",
    ),
    # --- context ----------------------------------------------------------------------------
    ("no context", lambda: of(MeasurementContext()), "context", DRAFT, "34 fields missing"),
    ("one field", lambda: of(MIXED), "context", DRAFT, "workload.input_tokens"),
    ("a smeared shape", lambda: of(SMEARED), "context", DRAFT, "1024-4096"),
    ("no workload", lambda: _no_workload(), "context", DRAFT, "all of workload"),
    # --- ceiling ----------------------------------------------------------------------------
    ("other ceiling", lambda: of(grounded(ceiling_key="b200_sm100")), "ceiling", REFUTED, "b200"),
    ("other hardware", lambda: on("B200"), "ceiling", REFUTED, "ran on B200, the reports are"),
    ("other form factor", lambda: on("H100 PCIe"), "ceiling", REFUTED, "H100 PCIe"),
    (
        "no such ceiling",
        lambda: of(grounded(ceiling_key="h100_sxm.nonsense")),
        "ceiling",
        REFUTED,
        "h100_sxm has no ceiling nonsense",
    ),
    (
        "a kernel above its roof",
        lambda: a_campaign(a_cell(a_tensor_kernel(rates={"tensor:bf16": 1.2 * 948.9e12}))),
        "ceiling",
        REFUTED,
        "stands at 120.0% of",
    ),
    ("no ceiling key", lambda: of(grounded(ceiling_key=None)), "ceiling", DRAFT, "no ceiling"),
    ("chip in no table", lambda: _no_chip(), "ceiling", DRAFT, "in no ceilings table"),
    # --- trials -----------------------------------------------------------------------------
    ("one trial", lambda: of(trials(1, 12.0, 0.2)), "trials", DRAFT, "n = 1"),
    ("two trials", lambda: of(trials(2, 12.0, 0.2)), "trials", DRAFT, "n = 2"),
    ("no spread", lambda: of(trials(5, 12.0, 0.0)), "trials", DRAFT, "no spread"),
    ("a spread of nan", lambda: of(trials(5, 12.0, float("nan"))), "trials", DRAFT, "± nan ms"),
    ("a spread as large", lambda: of(trials(5, 12.0, 500.0)), "trials", DRAFT, "12 ± 500 ms"),
    ("no trials", lambda: of(grounded(trials=None)), "trials", DRAFT, "no trials"),
    # --- capture ----------------------------------------------------------------------------
    ("cut report", lambda: _captured("x was cut"), "capture", REFUTED, "was cut"),
    ("other digest", lambda: _captured("digest differs"), "capture", REFUTED, "digest differs"),
    ("no report", lambda: _no_report(), "capture", DRAFT, "no report is named"),
    # --- rigor ------------------------------------------------------------------------------
    ("L4 of percentages", lambda: _basic("L4"), "rigor", REFUTED, "percentages alone carry L3"),
    ("L3 of times alone", lambda: _timed("L3"), "rigor", REFUTED, "times alone carry L2"),
    ("no rigor", lambda: of(grounded(sol_rigor=None)), "rigor", DRAFT, "no sol_rigor"),
    # --- claims of a roof -------------------------------------------------------------------
    ("basic, busy 88 %", lambda: claiming(a_busy_kernel(88.0)), "claims", DRAFT, "88.0 %"),
    ("basic, busy 92 %", lambda: claiming(a_busy_kernel(92.0)), "claims", DRAFT, "no work was"),
    ("FP8 GEMM at 1 %", lambda: claiming(a_starved_gemm(0.01)), "claims", REFUTED, "at 1.0%"),
    ("FP8 GEMM at 7 %", lambda: claiming(a_starved_gemm(0.07)), "claims", REFUTED, "at 7.0%"),
    ("FP8 GEMM at 14.5 %", lambda: claiming(a_starved_gemm(0.145)), "claims", REFUTED, "14.5%"),
    ("FMA kernel", lambda: claiming(a_fma_kernel()), "claims", REFUTED, "42.2%"),
    ("no such kernel", lambda: claiming(a_fma_kernel(), kernel="x"), "claims", DRAFT, "matches"),
    (
        "one of two",
        lambda: claiming(a_tensor_kernel(), a_starved_gemm(0.1)),
        "claims",
        REFUTED,
        "10.0%",
    ),
    # --- baseline ---------------------------------------------------------------------------
    ("no baseline", lambda: of(grounded(baseline=None)), "baseline", DRAFT, "no baseline"),
    (
        "a toy baseline",
        lambda: of(grounded(baseline_is_production=False)),
        "baseline",
        DRAFT,
        "not said to be what production runs",
    ),
    (
        "another baseline than the rubric's",
        lambda: _named_otherwise("generic Triton"),
        "baseline",
        DRAFT,
        "names cuBLAS nvjet as the baseline, the rubric compares with generic Triton",
    ),
    # --- rubric -----------------------------------------------------------------------------
    ("no rubric", lambda: a_campaign(krhpa_exempt_reason=None), "rubric", DRAFT, "neither"),
    ("no rubric, H", lambda: a_campaign(krhpa_exempt_reason=None), "hardware", DRAFT, "no two"),
    ("no rubric, P", lambda: a_campaign(krhpa_exempt_reason=None), "performance", DRAFT, "no two"),
    (
        "malformed, though exempt",
        lambda: a_campaign(krhpa_problems=("krhpa.baseline.H is 5",)),
        "rubric",
        DRAFT,
        "H is 5",
    ),
    (
        "malformed is no exemption",
        lambda: a_campaign(krhpa_problems=("krhpa.baseline.H is 5",)),
        "fairness",
        DRAFT,
        "no two arms",
    ),
    # --- fair baseline ----------------------------------------------------------------------
    (
        "Triton FMA against a tensor library",
        lambda: a_comparison("K4/R2/H1", "K4/R1/H4", ours=fma_cell()),
        "fairness",
        DRAFT,
        "R1, the candidate R2",
    ),
    (
        "H1 against H4",
        lambda: a_comparison("K4/R1/H1", "K4/R1/H4", ours=fma_cell()),
        "fairness",
        DRAFT,
        "does not beat an H4",
    ),
    (
        "tensor cores against generic Triton",
        lambda: a_comparison("K4/R1/H4", "K4/R1/H1", theirs=fma_cell("baseline")),
        "fairness",
        DRAFT,
        "H1, the candidate H4",
    ),
    (
        "lower R",
        lambda: a_comparison("K2/R3/H4", "K2/R2/H4"),
        "fairness",
        DRAFT,
        "R2, the candidate R3",
    ),
    # --- like with like ---------------------------------------------------------------------
    (
        "other concurrency",
        lambda: a_comparison(theirs=baseline_in(OTHER_SHAPE)),
        "comparison",
        DRAFT,
        "workload.concurrency",
    ),
    (
        "a shape may not vary",
        lambda: a_comparison(theirs=baseline_in(OTHER_SHAPE), varies=("workload.concurrency",)),
        "comparison",
        DRAFT,
        "workload.concurrency",
    ),
    ("cold", lambda: a_comparison(theirs=baseline_in(COLD)), "comparison", DRAFT, "regime.state"),
    (
        "other engine, unsaid",
        lambda: a_comparison(theirs=baseline_in(OTHER_STACK)),
        "comparison",
        DRAFT,
        "stack.version",
    ),
    (
        "other node",
        lambda: a_comparison(theirs=baseline_in(grounded(same_node=False))),
        "comparison",
        DRAFT,
        "the node",
    ),
    ("other clocks", lambda: _session(clock_control="base"), "comparison", DRAFT, "clock control"),
    ("other caches", lambda: _session(cache_control="none"), "comparison", DRAFT, "cache control"),
    ("other replay", lambda: _session(replay_mode="range"), "comparison", DRAFT, "replay mode"),
    ("other ncu", lambda: _tool("2026.1"), "comparison", DRAFT, "tool version"),
    ("other chip", lambda: _baseline_row(chip="h200_sxm"), "comparison", DRAFT, "chip (h100_sxm"),
    ("other GPU", lambda: _baseline_row(ordinal=1), "comparison", DRAFT, "device (GPU 0 against"),
    ("faster SM", lambda: _baseline_row(sm_clock_hz=1.9e9), "comparison", DRAFT, "SM clock (1.755"),
    (
        "slower memory",
        lambda: _baseline_row(dram_clock_hz=2.4e9),
        "comparison",
        DRAFT,
        "DRAM clock (2.619 GHz against 2.400 GHz)",
    ),
    (
        "other metrics, so other passes",
        lambda: _baseline_row(metrics=MetricSet(count=7, sha256="a" * 64)),
        "comparison",
        DRAFT,
        "set of metrics (120 metrics",
    ),
    (
        "clocks that nobody stated",
        lambda: _session(clock_control=None, profiler_command_line=None),
        "comparison",
        DRAFT,
        "not known of both arms: clock control",
    ),
    (
        "a range against a launch",
        lambda: _baseline_row(kind=WorkloadKind.RANGE),
        "comparison",
        DRAFT,
        "kind of result",
    ),
    ("no baseline cell", lambda: _without_baseline(), "comparison", DRAFT, "there is no cell"),
    ("an arm without a cell", lambda: _arm_in(None), "comparison", DRAFT, "no cell is named"),
    (
        "an arm without a kernel",
        lambda: _arm_in("candidate", kernel="no_such"),
        "comparison",
        DRAFT,
        "no kernel of candidate matches 'no_such'",
    ),
    ("one cell twice", lambda: _twice(), "comparison", DRAFT, "same kernels of the same report"),
    ("arms that overlap", lambda: _overlapping(), "comparison", DRAFT, "same kernels"),
    ("a file among others", lambda: _copied(is_packed=False), "comparison", DRAFT, "same kernels"),
    ("a copy, packed", lambda: _copied(is_packed=True), "comparison", DRAFT, "same kernels"),
    ("the same code twice", lambda: _same_code(CONTEXT), "comparison", DRAFT, "nothing tells"),
    (
        "other things tried",
        lambda: _tried(quantity="throughput", unit="tok/s"),
        "comparison",
        DRAFT,
        "of TPOT in ms and of throughput in tok/s",
    ),
    ("trials in another unit", lambda: _tried(unit="s"), "comparison", DRAFT, "of TPOT in s"),
    ("trials copied", lambda: _trials_copied(), "comparison", DRAFT, "state the same trials"),
    # --- H against the counters -------------------------------------------------------------
    (
        "H4 without tensor cores",
        lambda: a_comparison("K4/R1/H4", ours=fma_cell()),
        "hardware",
        REFUTED,
        "0%",
    ),
    (
        "H3 without tensor cores",
        lambda: a_comparison("K4/R1/H3", ours=fma_cell()),
        "hardware",
        REFUTED,
        "H3",
    ),
    (
        "H4 mostly FMA",
        lambda: a_comparison("K4/R1/H4", ours=half_fma_cell()),
        "hardware",
        REFUTED,
        "0%",
    ),
    (
        "H4 mostly FP64",
        lambda: a_comparison("K4/R1/H4/P1", ours=fp64_cell()),
        "hardware",
        REFUTED,
        "0%",
    ),
    (
        "H4 by warp-level MMA",
        lambda: a_comparison("K4/R1/H4", ours=legacy_cell()),
        "hardware",
        REFUTED,
        "warp-level MMA",
    ),
    (
        "H4 unmeasured",
        lambda: a_comparison("K4/R1/H4", ours=basic_cell()),
        "hardware",
        DRAFT,
        "measured for 0%",
    ),
    (
        "a baseline graded down",
        lambda: a_comparison("K4/R1/H1", "K4/R1/H1", ours=fma_cell()),
        "hardware",
        REFUTED,
        "H1 is declared",
    ),
    (
        "tensor cores graded H2",
        lambda: a_comparison("K4/R1/H2", "K4/R1/H2", theirs=fma_cell("baseline")),
        "hardware",
        REFUTED,
        "H2 is declared and tensor cores do the work in 100%",
    ),
    (
        "H1 unmeasured",
        lambda: a_comparison("K4/R1/H1", "K4/R1/H1", ours=basic_cell()),
        "hardware",
        DRAFT,
        "measured for 0%",
    ),
    # --- P against the speed of light -------------------------------------------------------
    (
        "P4 at 14.5 %",
        lambda: a_comparison("K4/R1/H4/P4", ours=a_cell(a_starved_gemm(0.145))),
        "performance",
        REFUTED,
        "14.5%",
    ),
    (
        "P2 at 1 %",
        lambda: a_comparison("K4/R1/H4/P2", ours=a_cell(a_starved_gemm(0.01))),
        "performance",
        REFUTED,
        "1.0%",
    ),
    (
        "P4 by percentages",
        lambda: a_comparison("K4/R1/H4/P4", ours=basic_cell()),
        "performance",
        DRAFT,
        "busy percentages",
    ),
    (
        "P4 of the FMA kernel",
        lambda: a_comparison("K4/R1/H1/P4", ours=fma_cell()),
        "performance",
        REFUTED,
        "42.2%",
    ),
    # --- next lever -------------------------------------------------------------------------
    ("nothing and no lever", lambda: _nothing_at_all(), "next-lever", DRAFT, "nothing was there"),
    ("no lever, no wall", lambda: _at_the_wall(None), "next-lever", DRAFT, "no wall"),
    (
        "a lever without gate",
        lambda: a_campaign(next_lever=NextLever(what="fuse", unlock="2 %", gate=" ")),
        "next-lever",
        DRAFT,
        "no gate",
    ),
    (
        "a lever of nothing",
        lambda: a_campaign(next_lever=NextLever(what="TBD", unlock="2 %", gate="trials")),
        "next-lever",
        DRAFT,
        "no what",
    ),
    ("a finding without a gate", lambda: _with_finding(max_win=0.2), "next-lever", DRAFT, "prove"),
    ("a finding of no size", lambda: _with_finding(gate="TPOT"), "next-lever", DRAFT, "may win"),
]


def _with_finding(**changes: Any) -> Campaign:
    """Nothing is left but what people found."""
    finding = ValueFinding(
        id="f", title="found", status=FindingStatus.NOT_DONE, next_lever="do it", **changes
    )
    return dataclasses.replace(_at_the_wall(None), findings=(finding,))


def test_a_rigor_that_the_evidence_refutes_is_not_the_campaigns() -> None:
    assert gates.judge(_basic("L4"), Frontier(), "now").sol_rigor == "L3"
    assert gates.judge(_timed("L4"), Frontier(), "now").sol_rigor == "L2"
    assert gates.judge(_timed("L1"), Frontier(), "now").sol_rigor == "L1"


def test_percentages_of_another_product_are_refuted() -> None:
    fact = "the device is not the product of the data sheet: the device has 108 SMs, h100_sxm 132"
    other = Finding(
        code="device-differs", severity=Severity.WARNING, where="k", fact=fact, remedy="look"
    )
    kernel = dataclasses.replace(a_tensor_kernel(), findings=(other,))
    (result,) = gates.GATES["ceiling"](a_campaign(a_cell(kernel)))
    assert (result.standing, result.reason) == (REFUTED, fact)


def a_gemm_of_unknown_roof() -> Any:
    """INT8 work on tensor cores that no table has a roof for, far below the DRAM roof."""
    work = flop_totals(fp64=0.0, fp32=0.0, fp16=0.0, tensor={"int8": 1e12}, total=1e12)
    kernel = a_tensor_kernel(
        name="my_gemm", flop=work, rates={"dram": 0.3 * 3.352e12}, is_at_roof=False, bound="latency"
    )
    point = dataclasses.replace(kernel.point, roofless=("tensor:int8",))
    return dataclasses.replace(kernel, point=point)


@pytest.mark.parametrize("hardware", ["8x H100", "8 × NVIDIA H100 SXM", "H100 x8", "h100_sxm"])
def test_how_many_there_are_is_no_part_of_a_chips_name(hardware: str) -> None:
    (result,) = gates.GATES["ceiling"](on(hardware))
    assert result.passes, result.reason


@pytest.mark.parametrize("hardware", ["8x H200", "8", "x8", "NVIDIA", "sxm", "80GB HBM3"])
def test_another_chip_or_none_is_refuted_whatever_the_count(hardware: str) -> None:
    (result,) = gates.GATES["ceiling"](on(hardware))
    assert result.standing is REFUTED


def test_tensor_work_without_a_roof_refutes_nothing() -> None:
    ours = a_cell(a_gemm_of_unknown_roof())
    campaign = a_comparison("K4/R1/H4/P3", ours=ours)
    first = next(iter(gates.GATES["performance"](campaign)))
    assert first.standing is DRAFT
    assert "counted against a known roof for 0%" in first.reason
    (claim,) = gates.GATES["claims"](claiming(a_gemm_of_unknown_roof()))
    assert claim.standing is DRAFT
    assert "the roof of a part of its work (tensor:int8) is not known" in claim.reason


def test_a_claim_names_what_was_counted() -> None:
    streams = a_tensor_kernel(
        flop=None,
        flop_total=None,
        rates={"dram": 1.676e12},
        is_at_roof=None,
        totals={"tensor_engagement": None, "intensity_pair": None},
    )
    (result,) = gates.GATES["claims"](claiming(streams))
    assert result.standing is DRAFT
    assert "counted are 50.0% of dram__bytes.sum.peak_sustained" in result.reason


@pytest.mark.parametrize("hardware", ["H100", "h100_sxm", "NVIDIA H100", "H100-SXM"])
def test_hardware_may_be_named_by_any_words_of_its_own(hardware: str) -> None:
    (result,) = gates.GATES["ceiling"](on(hardware))
    assert result.passes


def test_a_ceiling_may_be_named_by_its_key_path() -> None:
    (result,) = gates.GATES["ceiling"](of(grounded(ceiling_key="h100_sxm.bf16_dense_pflops")))
    assert result.passes


def _timed(rigor: str) -> Campaign:
    kernel = a_busy_kernel(totals={"sm_busy_pct": None, "dram_pct": None})
    return a_campaign(a_cell(kernel, context=grounded(sol_rigor=rigor)))


def _empty() -> Campaign:
    return dataclasses.replace(a_campaign(), cells=())


def _no_kernel() -> Campaign:
    cell = a_cell(a_tensor_kernel())
    bare = dataclasses.replace(cell.analysis, kernels=())
    return a_campaign(dataclasses.replace(cell, analysis=bare))


def _no_report() -> Campaign:
    cell = a_cell(a_tensor_kernel())
    bare = dataclasses.replace(cell.analysis, reports=())
    return a_campaign(dataclasses.replace(cell, analysis=bare))


def _no_workload() -> Campaign:
    return of(dataclasses.replace(CONTEXT, workload=Workload()))


def _no_chip() -> Campaign:
    cell = a_cell(a_tensor_kernel())
    rows = tuple(dataclasses.replace(row, chip=None) for row in cell.analysis.kernels)
    return a_campaign(
        dataclasses.replace(cell, analysis=dataclasses.replace(cell.analysis, kernels=rows))
    )


def _captured(problem: str) -> Campaign:
    return a_campaign(a_cell(a_tensor_kernel(), capture=CaptureCheck(problems=(problem,))))


def _basic(rigor: str) -> Campaign:
    return a_campaign(a_cell(a_busy_kernel(), context=grounded(sol_rigor=rigor)))


def _baseline_row(**changes: Any) -> Campaign:
    """The baseline's kernel, measured under one other condition."""
    row = with_metric_set(a_tensor_kernel(), changes.get("metrics", METRICS))
    totals = row.totals
    clocks = {name: hz for name, hz in changes.items() if name.endswith("_hz")}
    totals = dataclasses.replace(
        totals,
        kind=changes.get("kind", totals.kind),
        peaks=dataclasses.replace(totals.peaks, **clocks),
        device=dataclasses.replace(totals.device, ordinal=changes.get("ordinal", 0)),
    )
    theirs = a_cell(dataclasses.replace(row, totals=totals), cell_id="baseline")
    if "chip" in changes:
        chip = dataclasses.replace(a_chip(), key=changes["chip"])
        rows = tuple(dataclasses.replace(r, chip=chip) for r in theirs.analysis.kernels)
        analysis = dataclasses.replace(theirs.analysis, kernels=rows)
        theirs = dataclasses.replace(theirs, analysis=analysis)
    return a_comparison(theirs=theirs)


def _session(**changes: Any) -> Campaign:
    campaign = a_comparison()
    theirs = campaign.cells[1]
    (report,) = theirs.analysis.reports
    other = dataclasses.replace(report, session=dataclasses.replace(report.session, **changes))
    return a_comparison(theirs=_with_report(theirs, other))


def _tool(version: str) -> Campaign:
    theirs = a_comparison().cells[1]
    (report,) = theirs.analysis.reports
    origin = dataclasses.replace(report.provenance, tool_version=version)
    return a_comparison(theirs=_with_report(theirs, dataclasses.replace(report, provenance=origin)))


def _with_report(cell: Any, report: Any) -> Any:
    return dataclasses.replace(cell, analysis=dataclasses.replace(cell.analysis, reports=(report,)))


def _without_baseline() -> Campaign:
    return dataclasses.replace(a_comparison(), cells=a_comparison().cells[:1])


def _arm_in(cell: str | None, kernel: str | None = None) -> Campaign:
    campaign = a_comparison()
    arm = an_arm("K4/R1/H4", "candidate", "my GEMM", kernel)
    config = dataclasses.replace(campaign.config, candidate=dataclasses.replace(arm, cell=cell))
    return dataclasses.replace(campaign, config=config)


def _twice() -> Campaign:
    cell = a_cell(a_tensor_kernel())
    arm = an_arm("K4/R1/H4", cell.id, "cuBLAS nvjet")
    return a_campaign(cell, krhpa_exempt_reason=None, candidate=arm, baseline=arm)


def _copied(*, is_packed: bool) -> Campaign:
    """The candidate's report beside another one in the baseline's cell, or packed anew."""
    kernel = a_tensor_kernel()
    theirs = a_cell(a_tensor_kernel(name="other", us=300), kernel, cell_id="baseline")
    (report,) = theirs.analysis.reports
    of = report.provenance
    first = dataclasses.replace(report, provenance=dataclasses.replace(of, sha256="1" * 64))
    if is_packed:
        report = dataclasses.replace(report, provenance=dataclasses.replace(of, sha256="2" * 64))
    other, same = theirs.analysis.kernels
    key = dataclasses.replace(same.totals.key, report=1)
    same = dataclasses.replace(same, totals=dataclasses.replace(same.totals, key=key))
    if not is_packed:  # another number of it is told otherwise: the file is the same
        same = dataclasses.replace(same, totals=dataclasses.replace(same.totals, launches=2))
    analysis = dataclasses.replace(
        theirs.analysis,
        kernels=(other, same),
        reports=(first, report),
        chips=(a_chip(), a_chip()),
    )
    theirs = dataclasses.replace(theirs, analysis=analysis)
    return a_comparison(ours=a_cell(kernel), theirs=theirs)


def _same_code(theirs: MeasurementContext, **config: Any) -> Campaign:
    """The same kernel in both arms, on other extents too."""
    row = a_tensor_kernel(us=250)
    key = dataclasses.replace(row.totals.key, grid=(7, 1, 1))
    row = dataclasses.replace(row, totals=dataclasses.replace(row.totals, key=key))
    baseline = a_cell(row, cell_id="baseline", context=theirs)
    return a_comparison(ours=a_cell(a_tensor_kernel()), theirs=baseline, **config)


def _tried(**changes: Any) -> Campaign:
    """The baseline's trials, stated otherwise."""
    stated = dataclasses.replace(BASELINE_TRIALS, **changes)
    return a_comparison(theirs=baseline_in(grounded(trials=stated)))


def _trials_copied() -> Campaign:
    campaign = a_comparison()
    grounding = dataclasses.replace(CONTEXT.grounding, trials=BASELINE_TRIALS)
    ours = dataclasses.replace(
        campaign.cells[0], context=dataclasses.replace(CONTEXT, grounding=grounding)
    )
    return a_comparison(ours=ours)


def _named_otherwise(name: str) -> Campaign:
    campaign = a_comparison()
    arm = an_arm("K4/R1/H4/P4", "baseline", name)
    return dataclasses.replace(campaign, config=dataclasses.replace(campaign.config, baseline=arm))


def fp64_cell() -> Any:
    """A few tensor operations beside far more FP64 work on the scalar pipes."""
    work = flop_totals(fp64=90e9, fp32=0.0, fp16=0.0, tensor={"bf16": 10e9}, total=100e9)
    return a_cell(a_tensor_kernel(name="my_gemm", flop=work))


def _overlapping() -> Campaign:
    """The candidate is every kernel of the cell, the baseline one of them."""
    cell = a_cell(a_tensor_kernel(), a_tensor_kernel(name="my_gemm"))
    theirs = an_arm("K4/R1/H4", cell.id, "cuBLAS nvjet", "nvjet")
    arms = (an_arm("K4/R1/H4", cell.id), theirs)
    return a_campaign(cell, krhpa_exempt_reason=None, candidate=arms[0], baseline=arms[1])


def _nothing_at_all() -> Campaign:
    return dataclasses.replace(a_campaign(next_lever=None), cells=())


def _at_the_wall(wall: str | None) -> Campaign:
    """One kernel at 99.9 % of DRAM: nothing is left to win."""
    done = a_tensor_kernel(bound="dram", rates={"dram": 0.999 * 3.352e12})
    return a_campaign(a_cell(done), next_lever=None, wall=wall)


def check(campaign: Campaign) -> tuple[GateResult, ...]:
    return gates.check(campaign, frontier.rank(campaign))


@pytest.mark.parametrize(
    ("made", "gate", "standing", "why"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_broken_campaign_does_not_pass(
    made: Callable[[], Campaign], gate: str, standing: Standing, why: str
) -> None:
    campaign = made()
    failed = [r for r in check(campaign) if r.gate == gate and not r.passes]
    assert [r for r in failed if r.standing is standing and why in r.reason], failed
    assert all(r.promote for r in failed), "what would make it pass is said"
    verdict = gates.judge(campaign, frontier.rank(campaign), "now")
    assert verdict.tier is Tier.DRAFT


NOTHING = {"cells", "context", "ceiling", "trials", "capture", "rigor", "claims", "baseline"}
UNCOMPARED = {"rubric", "fairness", "comparison", "hardware", "performance"}
ALSO = {
    **{name: NOTHING for name, *_ in ROWS if name.startswith("no cell")},
    **{name: UNCOMPARED for name, *_ in ROWS if name.startswith(("no rubric", "malformed"))},
    "no kernel": {"ceiling", "rigor"},
    "no context": {"ceiling", "trials", "rigor", "baseline"},
    "no ceiling key": {"context"},
    "no trials": {"context"},
    "no rigor": {"context"},
    "no baseline": {"context"},
    "other chip": {"ceiling"},
    "no baseline cell": {"hardware", "performance"},
    "an arm without a cell": {"hardware", "performance"},
    "an arm without a kernel": {"hardware", "performance"},
    "nothing and no lever": NOTHING,
    "P4 by percentages": {"hardware"},
    "P4 of the FMA kernel": {"fairness"},
}
"""What else follows from the one broken thing, by the row's name."""


@pytest.mark.parametrize(("name", "made", "gate"), [r[:3] for r in ROWS], ids=[r[0] for r in ROWS])
def test_one_broken_thing_fails_its_gate_and_no_other(
    name: str, made: Callable[[], Campaign], gate: str
) -> None:
    failed = {result.gate for result in check(made()) if not result.passes}
    assert failed == {gate} | ALSO.get(name, set())


def test_the_table_has_at_least_forty_rows_and_fails_every_gate() -> None:
    assert len(ROWS) >= 40
    assert len({name for name, *_ in ROWS}) == len(ROWS)
    assert {gate for _name, _made, gate, *_ in ROWS} == {*gates.GATES, "next-lever"}


@pytest.mark.parametrize(
    "campaign",
    [
        a_campaign(),
        a_campaign(claims=(Claim(says="at-roof", kernel="nvjet"),)),
        a_comparison(),
        a_comparison("K4/R1/H3/P3"),
        _named_otherwise("nvjet of cuBLAS 12"),
        _same_code(OTHER_STACK, varies=("stack.version",)),
        a_comparison(ours=uncounted_tensor_cell()),
        a_campaign(next_lever=None, end_to_end_share=0.9),
        a_comparison(theirs=baseline_in(OTHER_STACK), varies=("stack.version",)),
        _at_the_wall("DRAM roof, measured twice"),
        _basic("L3"),
    ],
    ids=[
        "exempt",
        "at the roof",
        "two arms",
        "H3",
        "the baseline's name, in more words",
        "the same code of another engine",
        "H4 by its pipe",
        "a lever found",
        "engine varies",
        "documented wall",
        "L3",
    ],
)
def test_a_proven_campaign_is_a_verdict(campaign: Campaign) -> None:
    failed = [result for result in check(campaign) if not result.passes]
    assert failed == []
    assert gates.judge(campaign, frontier.rank(campaign), "now").tier is Tier.VERDICT


def test_every_gate_says_something_of_every_campaign() -> None:
    for campaign in (_empty(), a_campaign(), a_comparison()):
        assert {r.gate for r in check(campaign)} == {*gates.GATES, "next-lever"}


def test_rigor_of_a_campaign_is_that_of_its_weakest_cell() -> None:
    weak = a_cell(a_busy_kernel(), cell_id="weak", context=grounded(sol_rigor="L3"))
    both = a_campaign(a_cell(a_tensor_kernel()), weak)
    assert gates.judge(both, Frontier(), "now").sol_rigor == "L3"
    unsaid = a_cell(a_busy_kernel(), cell_id="unsaid", context=grounded(sol_rigor=None))
    assert gates.judge(a_campaign(*both.cells, unsaid), Frontier(), "now").sol_rigor is None


def test_speed_of_light_of_an_arm_is_ideal_time_over_time_taken() -> None:
    # 240 µs at 87.8 % need 210.8 µs, 400 µs at 42.2 % need 168.6 µs: 379.4 of 640 µs.
    rows = an_analysis(a_tensor_kernel(), a_fma_kernel(), chips=(a_chip(),)).kernels
    speed, counted = gates.arms.speed_of_light(rows)
    assert speed == pytest.approx(0.593, abs=0.001)
    assert counted == 1.0


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({}, "TPOT 12.1 ± 0.3 ms against 14 ± 0.2 ms: 13.6% lower, beyond their spreads"),
        ({"mean": 12.4}, "2.4% lower, within their spreads: no difference is shown"),
        ({"mean": 11.0}, "10.0% higher, beyond their spreads"),
    ],
)
def test_a_comparison_says_whether_its_trials_show_a_difference(
    stated: dict[str, Any], words: str
) -> None:
    (result,) = gates.GATES["comparison"](_tried(**stated))
    assert result.passes
    assert words in result.reason


def test_what_was_changed_on_purpose_is_said_of_a_comparison_that_passes() -> None:
    campaign = a_comparison(theirs=baseline_in(OTHER_STACK), varies=("stack.version",))
    (result,) = gates.GATES["comparison"](campaign)
    assert "same context but for stack.version (0.9.1 against 0.9), same way" in result.reason
