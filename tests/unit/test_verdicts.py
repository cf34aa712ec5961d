"""What binds a kernel, with its grounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.launches import H100, PCT, TENSOR, launch, sass

from solscope.analysis import roofline, verdicts, work
from solscope.model.finding import Finding
from solscope.model.kernel import KernelIdentity, KernelTotals
from solscope.model.report import MetricValue
from solscope.model.roofline import RooflinePoint, Standing
from solscope.model.verdict import Verdict
from solscope.reports import tables

PLAIN = KernelIdentity(family="f", category="Other", role="r", dtype=None, pattern="p")
PEERS = replace(PLAIN, is_collective=True)
H100_SXM = tables.ceilings().chips["h100_sxm"]


def kernel(**extra: MetricValue) -> dict[str, MetricValue]:
    """10 us on an H100 at 1 GHz; DRAM peak 1 TB/s; nothing done yet."""
    return {
        "gpu__time_duration.sum": 10_000,
        "sm__cycles_elapsed.avg.per_second": 1e9,
        "dram__cycles_elapsed.avg.per_second": 1e9,
        "dram__bytes.sum.peak_sustained": 1000.0,
        "sm__pipe_tensor_cycles_active" + PCT: 0.0,
        "launch__waves_per_multiprocessor": 4.0,
        **extra,
    }


def counted(*, dram: float = 0, fp32: float = 0, **extra: MetricValue) -> dict[str, MetricValue]:
    """The same with shares of the DRAM and FP32 roofs reached."""
    return {
        **kernel(),
        "dram__bytes_read.sum": dram * 1e7,
        "dram__bytes_write.sum": 0,
        **sass(ffma=fp32 * 128 * 132 * 1e4),
        **extra,
    }


def judged(
    *metrics: dict[str, MetricValue], who: KernelIdentity = PLAIN, **fields: object
) -> tuple[Verdict, KernelTotals, RooflinePoint]:
    (totals,) = work.total([launch(m, **fields) for m in metrics], report=0)
    point = roofline.place(totals, H100_SXM)
    return verdicts.judge(who, totals, point), totals, point


def verdict(*metrics: dict[str, MetricValue], **fields: object) -> Verdict:
    return judged(*metrics, **fields)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(("share", "at_roof"), [(0.6, False), (0.79, False), (0.8, True)])
def test_near_dram_is_dram_bound_and_at_the_roof_from_80_percent(
    share: float, at_roof: bool
) -> None:
    result = verdict(counted(dram=share))
    assert result.bound == "dram"
    assert result.is_at_roof is at_roof
    assert result.grounds[0].startswith(f"DRAM {100 * share:.1f} % of 1 TB/s at 1.00 GHz")


def test_near_fp32_is_fp32_bound() -> None:
    result = verdict(counted(dram=0.4, fp32=0.9))
    assert result.bound == "fp32"
    assert result.grounds[1].startswith("DRAM 40.0 %")


def test_near_a_tensor_roof_by_legacy_mma_says_that_a_faster_path_exists() -> None:
    work_done = {TENSOR + "op_hmma_src_bf16_dst_fp32_sparsity_off.sum": 0.7 * 4096 * 132 * 1e4}
    bare = {TENSOR + "src_bf16_dst_fp32.sum": 0.7 * 4096 * 132 * 1e4}
    result = verdict(counted(dram=0.1, **work_done, **bare))
    assert result.bound == "tensor:bf16"
    assert result.grounds[0].startswith("tensor BF16 70.0 %")
    assert any("warpgroup path" in ground for ground in result.grounds)


def test_l2_binds_when_clearly_busier_than_dram_and_is_no_claim_of_a_roof() -> None:
    l2: dict[str, MetricValue] = {"lts__t_sectors.sum": 10_000, "lts__throughput" + PCT: 95.0}
    result = verdict(counted(dram=0.62, **l2))
    assert result.bound == "l2"
    assert result.is_at_roof is None
    streaming = verdict(counted(dram=0.85, **l2))
    assert streaming.bound == "dram"  # a stream drives L2 as hard; DRAM is the cause


def test_few_blocks_or_a_few_microseconds_are_too_small() -> None:
    few = verdict(
        counted(dram=0.1, launch__waves_per_multiprocessor=0.1, launch__occupancy_limit_warps=4.0),
        grid=(50, 1, 1),
    )  # fmt: skip
    assert few.bound == "too-small"
    assert few.grounds[0] == "50 blocks for 132 SMs x 4 blocks/SM: 0.10 waves"
    assert few.is_at_roof is False
    short = verdict({**counted(dram=0.1), "gpu__time_duration.sum": 2000.0})
    assert short.bound == "too-small"
    assert "2.0 µs a launch" in short.grounds[0]
    one = verdict(counted(launch__waves_per_multiprocessor=0.0), grid=(1, 1, 1))
    assert one.grounds[0].startswith("1 block for 132 SMs: 0.00 waves")


def test_few_blocks_are_too_small_even_without_a_duration() -> None:
    few: dict[str, MetricValue] = {"launch__waves_per_multiprocessor": 0.1}
    result = verdict(few, grid=(5, 1, 1))
    assert result.bound == "too-small"
    assert result.grounds == ("5 blocks for 132 SMs: 0.10 waves",)


def test_a_persistent_kernel_with_a_block_per_sm_is_not_too_small() -> None:
    waves: dict[str, MetricValue] = {"launch__waves_per_multiprocessor": 0.5}
    assert verdict(counted(dram=0.3, **waves), grid=(132, 1, 1)).bound == "latency"
    assert verdict(counted(dram=0.3, **waves), grid=None).bound == "too-small"
    unknown = replace(H100, sm_count=None)
    assert verdict(counted(dram=0.3, **waves), device=unknown).bound == "too-small"
    assert (
        verdict(counted(dram=0.3, **waves), device=unknown, grid=(5, 1, 1)).grounds[0]
        == "5 blocks for the GPU: 0.50 waves"
    )


def test_no_roof_near_is_latency_with_stalls_and_the_occupancy_limiter() -> None:
    metrics = counted(
        dram=0.2,
        **{
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 6.0,
            "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 2.0,
            "sm__warps_active.avg.pct_of_peak_sustained_active": 40.0,
            "sm__maximum_warps_per_active_cycle_pct": 50.0,
            "launch__occupancy_limit_registers": 2.0,
        },
    )
    result = verdict(metrics)
    assert result.bound == "latency"
    assert result.is_at_roof is False
    assert result.grounds == (
        "no roof is near; nearest: DRAM 20.0 % of 1 TB/s at 1.00 GHz (200 GB/s)",
        "warps wait on long_scoreboard 75 %, wait 25 % (of stalled warp cycles)",
        "occupancy 40.0 % of 50.0 % possible, limited by registers",
    )
    del metrics["sm__maximum_warps_per_active_cycle_pct"]
    assert verdict(metrics).grounds[2] == "occupancy 40.0 %, limited by registers"
    full = {**metrics, "sm__maximum_warps_per_active_cycle_pct": 100.0}
    assert verdict(full).grounds[2] == "occupancy 40.0 % of 100.0 % possible"


BUSY: dict[str, MetricValue] = {
    "sm__throughput" + PCT: 30.0,
    "gpu__compute_memory_throughput" + PCT: 40.0,
    "gpu__dram_throughput" + PCT: 10.0,
}


def test_percentages_alone_can_say_that_nothing_is_busy_and_claim_no_roof() -> None:
    sampled = {"smsp__pcsamp_warps_issue_stalled_wait": 5}
    result = verdict(kernel(**BUSY, **sampled))
    assert result.bound == "latency"
    assert result.is_at_roof is None
    assert "no FLOP or bytes were counted" in result.grounds[0]
    assert result.grounds[1].endswith("(sampled)")


def test_counted_bytes_without_a_peak_are_not_called_uncounted() -> None:
    """They stand against the data sheet, and the ground says which peak is missing."""
    metrics = kernel(**BUSY, **{"dram__bytes_read.sum": 5e6, "dram__bytes_write.sum": 0})
    _, totals, point = judged(metrics)
    point = replace(point, profiled=())
    idle = verdicts.judge(PLAIN, totals, point)
    assert idle.bound == "latency"
    assert "(percentages; no FLOP were counted)" in idle.grounds[0]
    near = verdicts.judge(PLAIN, replace(totals, dram_pct=88.0), point)
    assert near.bound == "dram"
    assert "bytes were counted, the peak at the clock of the profile is not" in near.grounds[0]
    assert near.grounds[1].startswith("by the data sheet: DRAM ")
    assert "(500 GB/s)" in near.grounds[1]


def test_sm_busy_alone_is_never_a_roof() -> None:
    busy = {**BUSY, "sm__throughput" + PCT: 92.0}
    members: dict[str, MetricValue] = {
        "breakdown:sm__throughput" + PCT: "sm__inst_issued" + PCT,
        "sm__inst_issued" + PCT: 92.0,
    }
    result = verdict(kernel(**busy, **members))
    assert result.bound == "unmeasured"
    assert result.is_at_roof is None
    assert "SM busy 92.0 % (its busiest unit: sm__inst_issued)" in result.grounds[0]
    assert "nothing about FLOP/s" in result.grounds[0]
    assert "busiest unit" not in verdict(kernel(**busy)).grounds[0]


def test_dram_or_l2_busy_by_percentage_binds_without_a_claim() -> None:
    dram = verdict(kernel(**{**BUSY, "gpu__dram_throughput" + PCT: 88.0}))
    assert dram.bound == "dram"
    assert dram.is_at_roof is None
    assert "no claim of the roof" in dram.grounds[0]
    assert "the bytes were not counted" in dram.grounds[0]
    assert len(dram.grounds) == 1
    l2 = verdict(kernel(**BUSY, **{"lts__throughput" + PCT: 70.0}))
    assert l2.bound == "l2"
    assert l2.is_at_roof is None


def test_what_was_not_collected_is_unmeasured_and_says_what() -> None:
    result = verdict({"gpu__time_duration.sum": 10_000, "gpu__dram_throughput" + PCT: 7.0})
    assert result.bound == "unmeasured"
    assert result.grounds[-1] == "DRAM busy 7.0 %"
    assert any("FP32" in ground for ground in result.grounds)
    assert verdict({}).grounds[0] == "no duration was collected"


def test_bytes_without_flop_are_not_called_latency_unless_percentages_agree() -> None:
    bytes_only = kernel(**{"dram__bytes.sum": 1e6})
    assert verdict(bytes_only).bound == "unmeasured"
    assert verdict({**bytes_only, **BUSY}).bound == "latency"


def test_a_collective_waits_for_peers_however_busy_dram_is() -> None:
    result = verdict(counted(dram=0.9), counted(dram=0.5), who=PEERS)
    assert result.bound == "peers"
    assert result.is_at_roof is None
    assert result.grounds[-1] == "launches take 10.0 to 10.0 µs"
    assert len(verdict({}, who=PEERS).grounds) == 1


def findings(*metrics: dict[str, MetricValue], mismatch: str | None = None) -> list[Finding]:
    _, totals, point = judged(*metrics)
    return list(verdicts.findings(totals, point, mismatch))


def test_values_above_100_percent_carry_the_reason() -> None:
    (dram,) = [f for f in findings(counted(dram=1.03)) if "DRAM" in f.fact]
    assert dram.code == "above-100"
    assert "memory clock" in dram.fact
    passes = [f for f in findings(counted(dram=0.1, fp32=1.02)) if "FP32" in f.fact]
    assert "different passes" in passes[0].fact


def test_a_data_sheet_value_above_100_percent_is_explained_by_the_clocks() -> None:
    _, totals, point = judged(counted(dram=0.1))
    standing = Standing(
        resource="tensor:bf16", value=1.05, achieved=1.05e15, peak=1e15, clock_hz=1.83e9,
        ceiling="h100_sxm.bf16_dense_pflops", basis="datasheet",
    )  # fmt: skip
    fast = replace(totals, peaks=replace(totals.peaks, sm_clock_hz=1.98e9))
    (above,) = verdicts.findings(fast, replace(point, datasheet=(standing,)))
    assert "quotes 1.83 GHz and the profile ran at 1.98 GHz" in above.fact


def test_traps_and_differences_become_findings() -> None:
    codes = [f.code for f in findings(counted(dram=0.1, **sass(ffma=1e6, hfma=5)))]
    assert codes == ["hfma2-constants"]
    (different,) = findings(counted(dram=0.1), mismatch="the device has 16 SMs, h100_sxm 132")
    assert different.code == "device-differs"
    assert not different.blocks


def test_small_rates_are_printed_without_prefix() -> None:
    slow = counted(dram=1e-9)  # 0.01 B in 10 us
    slow["lts__t_sectors.sum"] = 0
    _, totals, point = judged({**slow, "dram__bytes_read.sum": 64})
    texts = verdicts.judge(PLAIN, totals, point).grounds
    assert "(6.4 MB/s)" in texts[0]
    _, totals, point = judged({**slow, "gpu__time_duration.sum": 1e12, "dram__bytes_read.sum": 64})
    assert "(0.064 B/s)" in verdicts.judge(PLAIN, totals, point).grounds[0]


def test_a_petaflop_is_printed_as_one() -> None:
    done = 0.9 * 8192 * 132 * 1e4
    result = verdict(counted(dram=0.1, **{TENSOR + "src_fp8.sum": done}))
    assert result.bound == "tensor:fp8"
    assert "of 1.08 PFLOP/s" in result.grounds[0]


def test_fp16_accumulation_is_the_same_bound_said_more_exactly() -> None:
    done = 0.9 * 4096 * 132 * 1e4
    result = verdict(counted(dram=0.1, **{TENSOR + "src_fp16_dst_fp16.sum": done}))
    assert result.bound == "tensor:fp16"
    assert result.grounds[0].startswith("tensor FP16 (FP16 accumulate) 90.0 %")


def test_a_busy_memory_of_unknown_part_is_not_called_latency() -> None:
    name = "gpu__compute_memory_throughput" + PCT
    found = verdict({name: 71.0, "sm__throughput" + PCT: 22.0})
    assert found.bound == "unmeasured"
    assert "memory busy 71.0 %" in found.grounds[0]
    assert verdict({name: 31.0, "sm__throughput" + PCT: 22.0}).bound == "latency"


def bare(**metrics: MetricValue) -> Verdict:
    """The verdict on a launch of 10 us that holds nothing but these metrics."""
    return verdict({"gpu__time_duration.sum": 10_000, **metrics})


def test_a_busy_tensor_pipe_without_counted_work_is_no_claim_of_a_roof() -> None:
    found = bare(**{"sm__pipe_tensor_cycles_active" + PCT: 78.0})
    assert (found.bound, found.is_at_roof) == ("tensor", None)
    assert found.grounds[0].startswith("tensor pipe busy 78.0 % (a percentage;")


def test_a_rate_and_its_percentage_imply_the_peak_of_the_part() -> None:
    found = verdict({"dram__throughput" + PCT: 89.2, "dram__bytes.sum.per_second": 1.82e12})
    assert (found.bound, found.is_at_roof) == ("dram", None)
    assert found.grounds[1] == "1.82 TB/s moved: by that percentage its peak is 2.04 TB/s"


def test_two_low_percentages_are_latency_even_without_the_memory_breakdown() -> None:
    found = bare(**{"sm__throughput" + PCT: 4.7, "dram__throughput" + PCT: 29.0})
    assert found.bound == "latency"
    assert "compute 4.7 %, DRAM 29.0 %, L2 and L1 not collected" in found.grounds[0]


A40 = replace(H100, name="NVIDIA A40", compute_capability=(8, 6), sm_count=84)


def int8_without_a_roof(**extra: MetricValue) -> Verdict:
    """30 % of DRAM and INT8 tensor work on a product that no table holds."""
    metrics = counted(dram=0.3, **{TENSOR + "src_int8.sum": 1e9, **extra})
    (totals,) = work.total([launch(metrics, device=A40)], report=0)
    return verdicts.judge(PLAIN, totals, roofline.place(totals, None))


def test_a_pipe_near_its_peak_binds_where_no_table_holds_the_peak() -> None:
    result = int8_without_a_roof(**{"sm__pipe_tensor_cycles_active" + PCT: 85.0})
    assert (result.bound, result.is_at_roof) == ("tensor:int8", None)
    assert result.grounds[0].startswith("tensor pipe busy 85.0 %")
    assert "the peak of tensor INT8 at the clock of the profile is not known" in result.grounds[0]


def test_no_kernel_is_far_from_a_roof_that_is_not_known() -> None:
    result = int8_without_a_roof(**{"sm__pipe_tensor_cycles_active" + PCT: 40.0})
    assert (result.bound, result.is_at_roof) == ("latency", None)
    assert result.grounds[0].startswith("no known roof is near; nearest: DRAM 30.0 %")
    assert "tensor INT8" in result.grounds[1]
    assert "tensor pipe busy 40.0 %" in result.grounds[1]


def test_work_without_roof_and_without_percentages_is_unmeasured() -> None:
    metrics = counted(dram=0.3, **{TENSOR + "src_int8.sum": 1e9})
    del metrics["sm__pipe_tensor_cycles_active" + PCT]
    (totals,) = work.total([launch(metrics, device=A40)], report=0)
    result = verdicts.judge(PLAIN, totals, roofline.place(totals, None))
    assert (result.bound, result.is_at_roof) == ("unmeasured", None)
    assert "tensor INT8" in result.grounds[0]


def test_a_few_operations_without_a_roof_leave_the_verdict() -> None:
    metrics = counted(dram=0.3, fp32=0.2, **{TENSOR + "src_int8.sum": 1000.0})
    (totals,) = work.total([launch(metrics, device=A40)], report=0)
    result = verdicts.judge(PLAIN, totals, roofline.place(totals, None))
    assert (result.bound, result.is_at_roof) == ("latency", False)


def test_of_several_types_without_a_roof_the_one_that_did_most_binds() -> None:
    busy = {"sm__pipe_tensor_cycles_active" + PCT: 85.0}
    few, many = TENSOR + "src_fp8.sum", TENSOR + "src_int8.sum"
    result = int8_without_a_roof(**{many: 8e8, few: 2e8, **busy})
    assert result.bound == "tensor:int8"
    result = int8_without_a_roof(**{many: 2e8, few: 8e8, **busy})
    assert result.bound == "tensor:fp8"


def test_an_idle_tensor_pipe_says_nothing_of_scalar_work_without_a_roof() -> None:
    metrics = counted(dram=0.3, **sass(dfma=1e6), **{TENSOR + "src_int8.sum": 1e7})
    metrics["sm__pipe_tensor_cycles_active" + PCT] = 5.0
    metrics["sm__throughput" + PCT] = 90.0
    (totals,) = work.total([launch(metrics, device=A40)], report=0)
    result = verdicts.judge(PLAIN, totals, roofline.place(totals, None))
    assert (result.bound, result.is_at_roof) == ("unmeasured", None)
    assert "FP64" in result.grounds[0]


def test_integer_tensor_work_is_said_in_operations() -> None:
    standing = Standing(
        resource="tensor:int8",
        value=0.9,
        achieved=1.6e15,
        peak=1.8e15,
        ceiling="h100_sxm.int8_dense_pops",
    )
    assert verdicts._standing_text(standing) == "tensor INT8 90.0 % of 1.8 POP/s (1.6 POP/s)"
