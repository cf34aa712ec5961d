"""`analyze` on real reports, against numbers checked by hand or printed by ncu itself."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

import solscope
from solscope.flows.analyze import AnalyzeRequest, run
from solscope.flows.world import World
from solscope.model.report import Report
from solscope.model.verdict import Analysis, KernelVerdict

pytestmark = pytest.mark.corpus


def analysis_of(fragment: str, *, launch: int | None = None) -> Analysis:
    report = solscope.read(str(corpus.find(fragment)))
    if launch is not None:
        report = replace(report, launches=report.launches[launch : launch + 1])
    return solscope.analyze([report])


def only(analysis: Analysis) -> KernelVerdict:
    (kernel,) = analysis.kernels
    return kernel


def test_h100_rms_norm_counts_874_million_flop_at_1_1776_flop_per_byte() -> None:
    kernel = only(analysis_of("2025-04-21_v2-float4", launch=0))
    totals = kernel.totals
    # FFMA 402,710,528 x 2 + FMUL 67,125,248 + FADD 2,097,152 (the report's own histogram)
    assert totals.flop.fp32 == 874_643_456
    assert totals.flop.total == 874_643_456
    assert (totals.dram_read_bytes, totals.dram_write_bytes) == (491_620_096, 251_153_664)
    assert totals.duration_ns == 408_352
    # 874,643,456 FLOP / 742,773,760 B
    assert kernel.point.intensity == pytest.approx(1.1776, rel=1e-4)
    assert kernel.verdict.bound == "dram"
    assert kernel.verdict.is_at_roof


def test_both_speeds_of_light_name_their_ceiling_and_clock() -> None:
    point = only(analysis_of("2025-04-21_v2-float4", launch=0)).point
    profiled, datasheet = point.profiled_binding, point.datasheet_binding
    assert profiled is not None
    assert datasheet is not None
    # 742,773,760 B / 408,352 ns = 1818.95 GB/s; of 1280 B x 1.5927 GHz and of 2039 GB/s
    assert profiled.value == pytest.approx(1818.954627 / (1.280 * 1592.680824), rel=1e-4)
    assert profiled.ceiling == "dram__bytes.sum.peak_sustained"
    assert profiled.clock_hz == pytest.approx(1.59268e9, rel=1e-4)
    assert datasheet.value == pytest.approx(1818.954627 / 2039, rel=1e-6)
    assert datasheet.ceiling == "h100_pcie.hbm2e_tbps"


def test_launches_of_a_kernel_are_summed_not_averaged() -> None:
    report = solscope.read(str(corpus.find("2025-04-21_v2-float4")))
    singles = [
        only(solscope.analyze([replace(report, launches=(launch,))])) for launch in report.launches
    ]
    whole = only(solscope.analyze([report]))
    assert whole.totals.launches == 4
    assert whole.totals.flop.total == sum(s.totals.flop.total or 0 for s in singles)
    assert whole.totals.dram_bytes == sum(s.totals.dram_bytes or 0 for s in singles)
    assert whole.point.intensity == pytest.approx(
        sum(s.totals.flop.total or 0 for s in singles)
        / sum(s.totals.dram_bytes or 0 for s in singles)
    )
    durations = [s.totals.duration_ns for s in singles]
    assert whole.totals.duration_min_ns == min(durations)
    assert whole.totals.duration_max_ns == max(durations)


def test_a100_silu() -> None:
    totals = only(analysis_of("2025-04-21-77_06-MT", launch=0)).totals
    assert totals.flop.total == 1_409_286_144
    assert (totals.dram_read_bytes, totals.dram_write_bytes) == (268_443_904, 255_749_248)
    assert totals.duration_ns == 437_440


def test_a_silu_kernels_hfma2_are_marked_as_constants_not_counted() -> None:
    kernel = only(analysis_of("2025-04-21-77_06-MT", launch=0))
    assert kernel.totals.hfma2_only
    assert kernel.totals.flop.fp16 is None
    assert any(f.code == "hfma2-constants" for f in kernel.findings)


def test_gh200_fill_kernel_writes_a_quarter_gigabyte() -> None:
    totals = only(analysis_of("silu-2025-04-18-v8", launch=0)).totals
    assert (totals.dram_read_bytes, totals.dram_write_bytes) == (19_456, 240_869_376)


def test_an_int8_gemm_of_2024_has_its_work_from_the_opcode_histogram() -> None:
    gemm = next(k for k in analysis_of("report-s8").kernels if k.totals.name == "Kernel")
    # 13,824 IMMA.16832 x 2 x 16 x 8 x 32 = 2 x 384^3
    assert gemm.totals.flop.tensor == {"int8": 2 * 384**3}
    assert gemm.totals.tensor_engagement == "legacy-mma"
    datasheet = gemm.point.datasheet_binding
    assert datasheet is not None
    assert datasheet.ceiling == "a100_pcie_80gb.int8_dense_pops"
    # 113,246,208 OP / 8512 ns = 13.304 TOP/s of 624
    assert datasheet.value == pytest.approx(13.304 / 624, rel=1e-3)


def test_an_fp32_reference_gemm_does_2_n_cubed() -> None:
    reference = next(
        k for k in analysis_of("report-s8").kernels if k.totals.name == "ReferenceGemm_kernel"
    )
    assert reference.totals.flop.fp32 == 2 * 384**3
    assert reference.totals.flop.tensor == {}


def test_a_fused_gemm_that_left_early_did_no_tensor_work() -> None:
    kernel = only(analysis_of("report80"))
    histogram = kernel.totals.members[0].metrics.instances(
        "sass__inst_executed_per_opcode_with_modifier_all"
    )
    opcodes = {str(instance.correlation_id) for instance in histogram}
    assert len(opcodes) == 59
    assert not any("MMA." in opcode for opcode in opcodes)
    assert kernel.totals.flop.tensor == {}
    assert kernel.totals.tensor_engagement == "none"


def test_back_to_back_int8_gemms_of_the_a100() -> None:
    kernels = analysis_of("panjd123__cutlass/384").kernels
    works = sorted(sum((k.totals.flop.tensor or {}).values()) for k in kernels)
    # 221,184 IMMA.16832 in the fused kernel; 110,592 in each of the two launches of the plain one
    assert works == [221_184 * 8192, 2 * 110_592 * 8192]


@pytest.mark.parametrize("fragment", ["silu-2025-04-18-v2", "2025-04-21_v2-float4", "77_06-MT"])
def test_a_hierarchy_of_tensor_counters_at_zero_is_measured_zero_work(fragment: str) -> None:
    for kernel in analysis_of(fragment).kernels:
        assert kernel.totals.flop.tensor == {}
        assert kernel.totals.tensor_engagement == "none"


def test_rtx_50_reads_its_dram_bytes_under_the_names_of_its_chip() -> None:
    kernel = only(analysis_of("rowwise_softmax_512x1024"))
    launch = kernel.totals.members[0]
    assert launch.metrics.get("dram__bytes_op_read.sum") == 2_262_784
    assert launch.metrics.get("dram__bytes_op_write.sum") == 399_104
    assert kernel.totals.dram_bytes == 2_262_784 + 399_104
    assert kernel.point.intensity == pytest.approx(2_836_992 / 2_661_888)


@pytest.mark.parametrize("fragment", ["R_decode_c1_out2k", "R_decode_c128_out256"])
def test_h200_decode_without_counters_is_useful_and_honest(fragment: str) -> None:
    analysis = analysis_of(fragment)
    assert analysis.chips[0] is not None
    assert analysis.chips[0].key == "h200_sxm"
    for kernel in analysis.kernels:
        assert kernel.point.intensity is None
        assert kernel.point.profiled_binding is None
        assert kernel.totals.flop.total is None
        assert kernel.totals.dram_bytes is None
        assert kernel.totals.dram_bytes_per_s_estimate is not None
        assert kernel.totals.dram_pct is not None
        assert kernel.totals.sm_busy_pct is not None
        assert kernel.totals.occupancy_limiter
        assert kernel.totals.tensor_pipe_pct is not None
        assert kernel.verdict.is_at_roof is None
        reasons = {a.field: a for a in kernel.absences}
        assert "basic set" in reasons["dram_bytes"].reason
        assert "dram__bytes_read.sum" in str(reasons["dram_bytes"].remedy)
        assert reasons["arithmetic_intensity"].remedy


def test_an_estimated_bandwidth_is_busy_percent_times_peak() -> None:
    kernel = analysis_of("R_decode_c1_out2k").kernels[-1]
    launch = kernel.totals.members[0]
    percent = launch.metrics.get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")
    assert kernel.totals.launches == 1
    # 2 x 3201 MHz x 6016 bit / 8 = 4814 GB/s by the attributes
    assert kernel.totals.dram_bytes_per_s_estimate == pytest.approx(
        float(percent or 0) / 100 * 2 * 3201e6 * 6016 / 8
    )


_PERCENT = re.compile(
    r"achieved\s+(?:close to )?(?P<fp32>\d+)% of this device's fp32 peak performance and\s+"
    r"(?:close to )?(?P<fp64>\d+)% of its fp64",
    re.IGNORECASE,
)


def test_percentages_of_fp32_and_fp64_peak_agree_with_ncus_own_roofline_rule() -> None:
    corpus.require(corpus.CORPUS)
    compared = 0
    for record in corpus.records("ncu-rep"):
        report = solscope.read(str(corpus.CORPUS / record["file"]))
        for launch in report.launches:
            texts = [r.message for r in launch.details.rules() if r.rule == "SOLFPRoofline"]
            printed = [m for t in texts if (m := _PERCENT.search(t))]
            if printed:
                _agrees(replace(report, launches=(launch,)), printed[0], record["file"])
                compared += 1
    assert compared == 104


def _agrees(report: Report, printed: re.Match[str], where: str) -> None:
    standings = {s.resource: s.value for s in only(solscope.analyze([report])).point.profiled}
    for precision in ("fp32", "fp64"):
        percent = 100 * standings.get(precision, 0.0)
        # ncu rounds to whole percents; it prints "close to 1%" for anything between 0 and 1.
        expected = int(printed[precision])
        assert abs(percent - expected) <= 0.5 + 1e-6 or (0 < percent < 1 and expected in (0, 1)), (
            where,
            precision,
            percent,
            expected,
        )


@pytest.mark.parametrize("record", corpus.records("ncu-rep"), ids=lambda r: r["file"][8:])
def test_every_report_of_the_corpus_gets_a_verdict_for_every_kernel(record: Any) -> None:
    analysis = solscope.analyze([solscope.read(str(corpus.CORPUS / record["file"]))])
    assert sum(k.totals.launches for k in analysis.kernels) == record["results"]
    durations = [k.totals.duration_ns or 0 for k in analysis.kernels]
    assert durations == sorted(durations, reverse=True)
    for kernel in analysis.kernels:
        assert kernel.verdict.grounds
        for standing in (*kernel.point.profiled, *kernel.point.datasheet):
            assert 0 <= standing.value < 1.5
            assert standing.ceiling
        if kernel.point.intensity is None:
            assert any(a.field == "arithmetic_intensity" for a in kernel.absences)


def test_pages_without_a_roof_say_so_and_show_what_they_can(tmp_path: Path) -> None:
    # FLOP counted, no GPU named and no peak printed: points, and no roof.
    points = str(corpus.find("v18_gflops__qwen3-30b-a3b-bf16__agent_decode_b32", "ncu-csv"))
    pages = {"html": tmp_path / "a.html", "pdf": tmp_path / "a.pdf", "figure": tmp_path / "a.svg"}
    asked = {name: str(path) for name, path in pages.items()}
    outcome = run(AnalyzeRequest(paths=(points,), **asked), World())
    assert len(outcome.files) == 3
    assert "No roof is known" in pages["figure"].read_text()

    # Neither FLOP nor roofs: a sentence stands in for the chart.
    nothing = str(corpus.find("copy_blocked", "ncu-csv"))
    pages = {"html": tmp_path / "b.html", "pdf": tmp_path / "b.pdf", "figure": tmp_path / "b.svg"}
    asked = {name: str(path) for name, path in pages.items()}
    run(AnalyzeRequest(paths=(nothing,), **asked), World())
    for face in ("html", "figure"):
        assert "no FLOP were counted and no roof is known" in pages[face].read_text()
