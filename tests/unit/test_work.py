"""Work, bytes and time from counters, in every form in which ncu stores them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.launches import H100, PCT, SASS, TENSOR, launch, sass

from solscope.analysis import work
from solscope.model.kernel import KernelTotals
from solscope.model.report import Device, Instance, KernelLaunch, MetricValue, PlainMetrics

TIME: dict[str, MetricValue] = {"gpu__time_duration.sum": 1000}
B200 = replace(H100, name="NVIDIA B200", compute_capability=(10, 0), sm_count=148)


def one(*launches: KernelLaunch) -> KernelTotals:
    (totals,) = work.total(launches, report=0)
    return totals


def reasons(totals: KernelTotals) -> dict[str, str]:
    return {a.field: a.reason for a in totals.absences}


def test_scalar_work_is_adds_plus_multiplies_plus_two_fmas() -> None:
    totals = one(launch({**TIME, **sass(fadd=1, fmul=10, ffma=100, dadd=2, dfma=3)}))
    assert totals.flop.fp32 == 1 + 10 + 2 * 100
    assert totals.flop.fp64 == 2 + 2 * 3


def test_packed_half_instructions_carry_two_lanes() -> None:
    totals = one(launch({**TIME, **sass(hadd=1, hmul=10, hfma=100)}))
    assert totals.flop.fp16 == 2 * 1 + 2 * 10 + 4 * 100


def test_packed_fp32_of_cc_10_weighs_2_2_4_and_its_absence_makes_fp32_absent() -> None:
    packed = sass(ffma=1, fadd2=1, fmul2=10, ffma2=100)
    assert one(launch({**TIME, **packed}, device=B200)).flop.fp32 == 2 + 2 + 20 + 400
    without = one(launch({**TIME, **sass(ffma=1)}, device=B200))
    assert without.flop.fp32 is None
    assert "fadd2" in reasons(without)["flop.fp32"]
    histogram = {"sass__thread_inst_executed_true_per_opcode": {"FFMA2": 100, "FADD2": 1}}
    counted = one(launch({**TIME, **sass(ffma=1)}, device=B200, instances=histogram))
    assert counted.flop.fp32 == 2 + 2 * 1 + 4 * 100


def test_a_rate_per_cycle_gives_the_integer_count_back() -> None:
    cycles = 444490.1929824561  # of a real launch
    rates: dict[str, MetricValue] = {
        name.replace(".sum", ".sum.per_cycle_elapsed"): float(count) / cycles
        for name, count in sass(fmul=67_125_248, ffma=402_710_528).items()
    }
    totals = one(launch({**TIME, **rates, "smsp__cycles_elapsed.avg": cycles}))
    assert totals.flop.fp32 == 67_125_248 + 2 * 402_710_528
    # without stored cycles: clock x time
    clock: dict[str, MetricValue] = {"smsp__cycles_elapsed.avg.per_second": cycles / 1e-6}
    assert one(launch({**TIME, **rates, **clock})).flop.fp32 == totals.flop.fp32


def test_a_rate_per_cycle_without_cycles_or_time_counts_only_zero() -> None:
    rates: dict[str, MetricValue] = {
        name.replace(".sum", ".sum.per_cycle_elapsed"): 2.0 if "ffma" in name else 0.0
        for name in sass()
    }
    totals = one(launch({**TIME, **rates}))
    assert totals.flop.fp32 is None
    assert totals.flop.fp64 == 0


def test_rates_without_cycles_or_time_say_what_makes_a_total_of_them() -> None:
    rates = {SASS.format(f"f{op}") + ".per_cycle_elapsed": 2.0 for op in ("add", "mul", "fma")}
    exact = launch(rates)
    assert "not the cycles" in reasons(one(exact))["flop.fp32"]
    coarse = PlainMetrics({**TIME, **rates}, half_digits=dict.fromkeys(rates, 0.5))
    assert "too few digits" in reasons(one(replace(exact, metrics=coarse)))["flop.fp32"]
    part = PlainMetrics(dict(list(rates.items())[:2]))
    assert "no FP32 operation" in reasons(one(replace(exact, metrics=part)))["flop.fp32"]


def test_a_histogram_without_its_opcodes_is_to_be_printed_again() -> None:
    name = "sass__thread_inst_executed_true_per_opcode"
    printed = one(launch({**TIME, name: 4096}))
    assert "without its opcodes" in reasons(printed)["flop.fp16"]
    (absence,) = [a for a in printed.absences if a.field == "flop.fp16"]
    assert "--print-metric-instances details" in (absence.remedy or "")
    # Nothing was executed: there is no opcode to name.
    assert "without its opcodes" not in reasons(one(launch({**TIME, name: 0})))["flop.fp16"]


def test_the_opcode_histogram_stands_in_for_missing_counters() -> None:
    histogram = {
        "sass__thread_inst_executed_true_per_opcode": {
            "FFMA": 56_623_104,
            "FADD": 7,
            "DFMA": 3,
            "HADD2": 5,
            "HFMA2.MMA": 11,
            "BRA": 99,
        }
    }
    totals = one(launch(TIME, instances=histogram))
    assert totals.flop.fp32 == 2 * 384**3 + 7
    assert totals.flop.fp64 == 6
    assert totals.flop.fp16 == 2 * 5 + 4 * 11


def test_hfma2_alone_beside_fp32_work_is_a_constant_move() -> None:
    totals = one(launch({**TIME, **sass(ffma=1000, hfma=10)}))
    assert totals.hfma2_only
    assert totals.flop.fp16 is None
    assert "constant moves" in reasons(totals)["flop.fp16"]


@pytest.mark.parametrize("counts", [{"hfma": 10}, {"ffma": 1000, "hfma": 10, "hmul": 1}])
def test_hfma2_is_work_where_halves_are_added_or_fp32_does_nothing(
    counts: dict[str, float],
) -> None:
    totals = one(launch({**TIME, **sass(**counts)}))
    assert not totals.hfma2_only
    assert totals.flop.fp16 == 40 + 2 * counts.get("hmul", 0)


def test_nothing_collected_is_absent_with_what_to_collect() -> None:
    totals = one(launch({}))
    assert totals.flop.total is None
    assert totals.duration_ns is None
    for name in ("duration_ns", "flop.fp32", "flop.fp64", "flop.fp16", "dram_bytes"):
        absence = next(a for a in totals.absences if a.field == name)
        assert absence.remedy


def test_a_duration_that_is_not_positive_or_not_finite_is_absent() -> None:
    assert one(launch({"gpu__time_duration.sum": 0})).duration_ns is None
    assert one(launch({"gpu__time_duration.sum": float("nan")})).duration_ns is None
    assert one(launch({"gpu__time_duration.sum": "n/a"})).duration_ns is None


# --- bytes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("dram__bytes_read.sum", "dram__bytes_write.sum", 1),
        ("dram__bytes_op_read.sum", "dram__bytes_op_write.sum", 1),
        ("dram__sectors_read.sum", "dram__sectors_write.sum", 32),
    ],
)
def test_dram_bytes_are_reads_plus_writes_under_the_chips_names(
    names: tuple[str, str, int],
) -> None:
    read, write, factor = names
    totals = one(launch({**TIME, read: 300, write: 50}))
    assert totals.dram_read_bytes == 300 * factor
    assert totals.dram_write_bytes == 50 * factor
    assert totals.dram_bytes == 350 * factor


def test_dram_bytes_from_the_rate_are_rate_times_time() -> None:
    totals = one(launch({**TIME, "dram__bytes.sum.per_second": 2e12}))
    assert totals.dram_bytes == 2_000_000  # 2 TB/s for 1 us
    assert totals.dram_read_bytes is None
    assert one(launch({**TIME, "dram__bytes.sum": 77})).dram_bytes == 77
    assert one(launch({"dram__bytes.sum.per_second": 2e12})).dram_bytes is None


def test_a_percentage_gives_an_estimate_and_never_bytes() -> None:
    totals = one(launch({**TIME, "gpu__dram_throughput" + PCT: 50.0}))
    assert totals.dram_bytes is None
    # half of 2 x 2619 MHz x 5120 bit / 8
    assert totals.dram_bytes_per_s_estimate == pytest.approx(0.5 * 2 * 2.619e9 * 5120 / 8)
    assert "basic set" in reasons(totals)["dram_bytes"]
    measured = {
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__cycles_elapsed.avg.per_second": 1e9,
    }
    own = one(launch({**TIME, **measured, "dram__throughput" + PCT: 50.0}))
    assert own.dram_bytes_per_s_estimate == 0.5 * 1e12
    bare = Device(name="x", compute_capability=(12, 0))
    nothing = one(launch({**TIME, "dram__throughput" + PCT: 50.0}, device=bare))
    assert nothing.dram_bytes_per_s_estimate is None
    remedy = next(a.remedy for a in nothing.absences if a.field == "dram_bytes")
    assert "dram__bytes_op_read" in str(remedy)


def test_cache_traffic_is_sectors_times_32_or_bytes_or_writebacks() -> None:
    assert one(launch({**TIME, "lts__t_sectors.sum": 10})).l2_bytes == 320
    assert one(launch({**TIME, "lts__t_bytes.sum": 10})).l2_bytes == 10
    assert one(launch({**TIME, "l1tex__t_bytes.sum": 10})).l1_bytes == 10
    assert one(launch({**TIME, "l1tex__t_sectors.sum": 10})).l1_bytes == 320
    rate: dict[str, MetricValue] = {"l1tex__lsu_writeback_active_mem_lg.sum.per_second": 1e9}
    assert one(launch({**TIME, **rate})).l1_bytes == 1000 * 128
    assert one(launch(TIME)).l1_bytes is None


# --- tensor ---------------------------------------------------------------------------------


def tensor(counts: dict[str, float], **extra: MetricValue) -> KernelTotals:
    named: dict[str, MetricValue] = {TENSOR + k: v for k, v in counts.items()}
    return one(launch({**TIME, **sass(), **named, **extra}))


def test_the_bare_group_is_taken_once_whatever_nests_in_it() -> None:
    totals = tensor(
        {
            "src_bf16_dst_fp32.sum": 1024,
            "op_hgmma_src_bf16_dst_fp32.sum": 1000,
            "op_hgmma_src_bf16_dst_fp32_sparsity_off.sum": 1000,
            "op_hmma_src_bf16_dst_fp32_sparsity_off.sum": 24,
        }
    )
    assert totals.flop.tensor == {"bf16": 1024}
    assert totals.flop.total == 1024
    assert totals.tensor_engagement == "wgmma"


def test_without_the_bare_group_the_halves_then_the_instructions_are_summed() -> None:
    halves = tensor({"src_fp8_sparsity_off.sum": 100, "src_fp8_sparsity_on.sum": 7})
    assert halves.flop.tensor == {"fp8": 100}
    assert halves.flop.tensor_sparse == {"fp8": 7}
    operations = tensor(
        {
            "op_imma_src_int8_sparsity_off.sum": 30,
            "op_imma_src_int8_sparsity_on.sum": 0,
            "op_igmma_src_int8.sum": 12,
        }
    )
    assert operations.flop.tensor == {"int8": 42}
    assert tensor({"src_fp8_sparsity_off.sum": 9}).flop.tensor == {"fp8": 9}
    assert tensor({"src_fp16.sum": 9, "src_fp16_sparsity_on.sum": 4}).flop.tensor == {"fp16": 5}


def test_peaks_percentages_and_realtime_twins_are_no_work() -> None:
    totals = tensor(
        {
            "src_fp16.sum.peak_sustained": 4096.0,
            "src_fp16.sum.pct_of_peak_sustained_elapsed": 3.0,
            "src_bf16_dst_fp32_realtime.sum": 5,
            "weird.sum": 5,
        },
        **{"sm__pipe_tensor_cycles_active" + PCT: 0.0},
    )
    assert totals.flop.tensor == {}  # the pipe was idle, so this is a measured zero
    assert totals.tensor_engagement == "none"


def test_groups_without_a_readable_value_leave_tensor_work_absent() -> None:
    totals = tensor({"src_fp16.sum": float("nan"), "op_hmma_src_int8.sum": float("nan")})
    assert totals.flop.tensor is None
    assert totals.flop.total is None


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("src_fp16_bf16_tf32_dst_fp32", "fp16"),
        ("src_fp4_fp6_fp8_dst_fp32", "fp8"),
        ("src_fp4_dst_fp32", "nvfp4"),
        ("src_fp4_fp6_dst_fp16", "fp6"),
        ("src_tf32_dst_fp32", "tf32"),
        ("src_int8", "int8"),
    ],
)
def test_source_types_are_named_as_ceilings_name_them(source: str, label: str) -> None:
    assert tensor({f"{source}.sum": 5}).flop.tensor == {label: 5}


def test_counters_at_zero_are_measured_zero_work() -> None:
    totals = tensor({"src_fp16.sum": 0, "src_int8_sparsity_off.sum": 0})
    assert totals.flop.tensor == {}
    assert totals.tensor_engagement == "none"


def test_histogram_entries_without_an_opcode_or_a_count_are_left_out() -> None:
    odd = launch({**TIME, **sass()}, instances={MMA: {"HMMA.16816.F32": 1.0}})
    lists = {MMA: (*odd.metrics.instances(MMA), Instance(7, 5.0), Instance("HMMA.1688", None))}
    odd = replace(odd, metrics=PlainMetrics({**TIME, **sass()}, lists))
    assert one(odd).flop.tensor == {"fp16": 4096}


def test_two_accumulators_of_one_type_add_up() -> None:
    totals = tensor({"src_fp16_dst_fp16.sum": 5, "src_fp16_dst_fp32.sum": 6})
    assert totals.flop.tensor == {"fp16": 11}


MMA = "sass__inst_executed_per_opcode_with_modifier_all"


@pytest.mark.parametrize(
    ("opcode", "label", "operations"),
    [
        ("HMMA.884.F16.F16", "fp16", 2 * 8 * 8 * 4),
        ("HMMA.1688.F32.TF32", "tf32", 2 * 16 * 8 * 8),
        ("HMMA.16816.F32.BF16", "bf16", 2 * 16 * 8 * 16),
        ("IMMA.16832.S8.S8.SAT", "int8", 2 * 16 * 8 * 32),
        ("IMMA.16864.S4.S4", "int4", 2 * 16 * 8 * 64),
        ("DMMA.884", "fp64", 2 * 8 * 8 * 4),
        ("BMMA.168256.XOR", "int1", 2 * 16 * 8 * 256),
        ("QMMA.16832.F32.E4M3", "fp8", 2 * 16 * 8 * 32),
        ("OMMA.SF.16864.F32.E2M1", "nvfp4", 2 * 16 * 8 * 64),
    ],
)
def test_a_warp_level_mma_does_2mnk_by_the_shape_in_its_opcode(
    opcode: str, label: str, operations: int
) -> None:
    totals = one(launch({**TIME, **sass()}, instances={MMA: {opcode: 3.0, "FFMA": 9.0}}))
    assert totals.flop.tensor == {label: 3 * operations}
    assert totals.tensor_engagement == "legacy-mma"


def test_sparse_unknown_and_warpgroup_opcodes() -> None:
    sparse = one(launch({**TIME, **sass()}, instances={MMA: {"HMMA.SP.16832.F32": 1.0}}))
    assert sparse.flop.tensor == {}
    assert sparse.flop.tensor_sparse == {"fp16": 8192}
    unknown = one(launch({**TIME, **sass()}, instances={MMA: {"HMMA.999.F32": 1.0}}))
    assert unknown.flop.tensor is None
    assert "unknown shape" in reasons(unknown)["flop.tensor"]
    group = one(launch({**TIME, **sass()}, instances={MMA: {"HGMMA.64x64x16.F32": 1.0}}))
    assert group.flop.tensor is None
    assert group.tensor_engagement == "wgmma"
    none = one(launch({**TIME, **sass()}, instances={MMA: {"FFMA": 1.0}}))
    assert none.flop.tensor == {}
    assert none.tensor_engagement == "none"


@pytest.mark.parametrize(
    ("device", "has_none"),
    [
        (Device(name="NVIDIA GeForce GTX 1660 SUPER", compute_capability=(7, 5)), True),
        (Device(name="Tesla P100", compute_capability=(6, 0)), True),
        (Device(name="Tesla T4", compute_capability=(7, 5)), False),
        (Device(name=None, compute_capability=(7, 5)), False),
        (Device(name="x", compute_capability=None), False),
    ],
)
def test_chips_without_tensor_cores_do_no_tensor_work(device: Device, has_none: bool) -> None:
    totals = one(launch({**TIME, **sass()}, device=device))
    assert (totals.flop.tensor == {}) is has_none


def test_a_busy_pipe_without_counters_is_absent_work_with_known_engagement() -> None:
    busy: dict[str, MetricValue] = {"sm__pipe_tensor_cycles_active" + PCT: 40.0}
    totals = one(launch({**TIME, **sass(), **busy}))
    assert totals.flop.tensor is None
    assert "40.0 % busy" in reasons(totals)["flop.tensor"]
    assert totals.tensor_engagement is None
    legacy = {**busy, "sm__pipe_tensor_op_hmma_cycles_active" + PCT: 40.0}
    assert one(launch({**TIME, **legacy})).tensor_engagement == "legacy-mma"
    group = {**busy, "sm__inst_executed_pipe_tensor_op_gmma.sum": 12}
    assert one(launch({**TIME, **group})).tensor_engagement == "wgmma"
    # constants are moved through this pipe: half a percent proves nothing
    little: dict[str, MetricValue] = {
        "sm__pipe_tensor_cycles_active" + PCT: 0.5,
        "sm__pipe_tensor_op_hmma_cycles_active" + PCT: 0.5,
    }
    assert one(launch({**TIME, **little})).tensor_engagement is None


def test_bare_tensor_work_is_told_apart_by_the_pipes() -> None:
    pipes = {"sm__pipe_tensor_cycles_active" + PCT: 9.0}
    legacy = tensor(
        {"src_fp16.sum": 5}, **pipes, **{"sm__pipe_tensor_op_hmma_cycles_active" + PCT: 9.0}
    )
    assert legacy.tensor_engagement == "legacy-mma"
    idle = tensor({"src_fp16.sum": 5}, **{"sm__pipe_tensor_cycles_active" + PCT: 0.0})
    assert idle.tensor_engagement == "none"
    warp = tensor({"src_fp16.sum": 5, "op_hmma_src_fp16_dst_fp32.sum": 5})
    assert warp.tensor_engagement == "legacy-mma"


# --- peaks, occupancy, stalls ---------------------------------------------------------------


def test_dense_peaks_are_taken_and_sparse_aggregates_are_not() -> None:
    totals = one(
        launch(
            {
                **TIME,
                "sm__cycles_elapsed.avg.per_second": 1e9,
                TENSOR + "src_bf16_dst_fp32.sum.peak_sustained": 8192.0,  # the sparse rate
                TENSOR + "op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained": 4096.0,
                TENSOR + "op_hmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained": 2730.7,
                TENSOR + "src_fp64.sum.peak_sustained": 256.0,
                TENSOR + "src_int8_sparsity_off.sum.peak_sustained": 0.0,
                TENSOR + "src_fp16_realtime_sparsity_off.sum.peak_sustained": 9.0,
                "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 128.0,
                "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained": 128.0,
                "lts__lts2xbar_cycles_active.sum.peak_sustained": 96.0,
                "lts__cycles_elapsed.avg.per_second": 1e9,
            }
        )
    )
    assert totals.peaks.tensor_flop_per_s == {"bf16": 4096e9, "fp64": 256e9}
    assert totals.peaks.fp32_flop_per_s == 2 * 128e9
    assert totals.peaks.fp16_flop_per_s == 4 * 128e9
    assert totals.peaks.fp64_flop_per_s is None
    assert totals.peaks.l2_bytes_per_s == 32 * 96e9


def test_without_a_clock_there_are_no_peaks() -> None:
    peak = {TENSOR + "src_fp64.sum.peak_sustained": 256.0}
    assert one(launch({**TIME, **peak})).peaks.tensor_flop_per_s == {}


def test_the_smallest_block_limit_limits_and_ties_are_all_named() -> None:
    limits: dict[str, MetricValue] = {
        "launch__occupancy_limit_registers": 2.0,
        "launch__occupancy_limit_shared_mem": 2.0,
        "launch__occupancy_limit_warps": 4.0,
        "launch__occupancy_limit_barriers": 0.0,
    }
    totals = one(launch({**TIME, **limits}))
    assert totals.occupancy_limiter == ("registers", "shared_mem")
    assert totals.blocks_per_sm == 2
    assert one(launch(TIME)).occupancy_limiter == ()


def stall(reason: str) -> str:
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


def test_stalls_are_weighted_by_issued_instructions_without_the_issuing_warp() -> None:
    first = {**TIME, stall("wait"): 2.0, stall("selected"): 1.0, "smsp__inst_issued.sum": 100}
    second = {**TIME, stall("barrier"): 8.0, stall("selected"): 1.0, "smsp__inst_issued.sum": 50}
    shares = {s.reason: s.share for s in one(launch(first), launch(second)).stalls}
    assert shares == {"barrier": 400 / 600, "wait": 200 / 600}


def test_without_a_common_weight_the_longest_launch_speaks_for_the_kernel() -> None:
    short = {"gpu__time_duration.sum": 10, stall("wait"): 2.0}
    long = {"gpu__time_duration.sum": 90, stall("barrier"): 8.0}
    totals = one(launch(short), launch(long))
    assert [(s.reason, s.share) for s in totals.stalls] == [("barrier", 1.0)]


def test_sampled_stalls_add_up_under_the_counted_names() -> None:
    prefix = "smsp__pcsamp_warps_issue_stalled_"
    samples: dict[str, MetricValue] = {
        prefix + "long_scoreboard": 30,
        prefix + "warpgroup_arrive": 10,
        prefix + "wait_not_issued": 99,
        prefix + "wait": "n/a",
    }
    totals = one(launch({**TIME, **samples}))
    assert totals.stalls_are_sampled
    assert [(s.reason, s.share) for s in totals.stalls] == [
        ("long_scoreboard", 0.75),
        ("gmma", 0.25),
    ]


def test_shared_memory_is_the_stored_total_or_its_parts() -> None:
    parts: dict[str, MetricValue] = {
        "launch__shared_mem_per_block_static": 100,
        "launch__shared_mem_per_block_dynamic": 20,
        "launch__shared_mem_per_block_driver": 1024,
    }
    assert one(launch({**TIME, **parts})).smem_per_block_bytes == 1144
    assert one(launch({**TIME, "launch__shared_mem_per_block": 9})).smem_per_block_bytes == 9
    assert one(launch(TIME)).smem_per_block_bytes is None


def test_the_busiest_member_of_the_breakdown_is_named() -> None:
    members = f"sm__inst_executed{PCT},sm__pipe_alu_cycles_active{PCT}, unknown"
    metrics: dict[str, MetricValue] = {
        "breakdown:sm__throughput" + PCT: members,
        "sm__inst_executed" + PCT: 30.0,
        "sm__pipe_alu_cycles_active" + PCT: 80.0,
    }
    assert one(launch({**TIME, **metrics})).sm_busy_member == "sm__pipe_alu_cycles_active"
    assert one(launch({**TIME, "breakdown:sm__throughput" + PCT: "x"})).sm_busy_member is None


# --- totals ---------------------------------------------------------------------------------


def test_launches_that_differ_in_grid_block_device_or_process_are_other_kernels() -> None:
    base = launch(TIME)
    others = [
        launch(TIME, grid=(1, 1, 1)),
        launch(TIME, block=(64, 1, 1)),
        launch(TIME, process_id=2),
        launch(TIME, name_full="axpy(double *)"),
        launch(TIME, device=replace(H100, ordinal=1)),
        launch(TIME, device=replace(H100, name=None, ordinal=None)),
    ]
    assert len(work.total([base, *others, launch(TIME)], report=0)) == 7


def test_rates_are_sums_over_sums_of_the_launches_that_measured_both() -> None:
    read, write = "dram__bytes_read.sum", "dram__bytes_write.sum"
    fast = launch({"gpu__time_duration.sum": 100, read: 1000, write: 0})
    slow = launch({"gpu__time_duration.sum": 900, read: 1000, write: 0})
    blind = launch({"gpu__time_duration.sum": 500})
    totals = one(fast, slow, blind)
    assert totals.dram_rate_pair == (2000, 1000)  # 2 GB/s, not the mean of 10 and 1.1
    assert totals.dram_bytes is None
    assert reasons(totals)["dram_bytes"] == "measured in 2 of 3 launches only"
    assert totals.duration_ns == 1500
    assert (totals.duration_min_ns, totals.duration_max_ns) == (100, 900)


def test_percentages_are_weighted_by_time() -> None:
    busy = "sm__throughput" + PCT
    totals = one(
        launch({"gpu__time_duration.sum": 100, busy: 10.0}),
        launch({"gpu__time_duration.sum": 300, busy: 50.0}),
        launch({"gpu__time_duration.sum": 300}),
    )
    assert totals.sm_busy_pct == pytest.approx((100 * 10 + 300 * 50) / 400)
    assert totals.dram_pct is None


def test_tensor_peaks_and_work_of_several_launches_are_combined() -> None:
    base: dict[str, MetricValue] = {**TIME, **sass(), "sm__cycles_elapsed.avg.per_second": 1e9}
    work_name, peak = "src_fp16.sum", TENSOR + "src_fp16_sparsity_off.sum.peak_sustained"
    first = launch({**base, TENSOR + work_name: 10, peak: 100.0})
    second = launch({**base, TENSOR + work_name: 30, TENSOR + "src_fp16_sparsity_on.sum": 4})
    totals = one(first, second)
    assert totals.flop.tensor == {"fp16": 10 + 26}
    assert totals.flop.tensor_sparse == {"fp16": 4}
    assert totals.flop.total == 40
    assert totals.peaks.tensor_flop_per_s == {"fp16": 100e9}


def test_engagement_is_the_strongest_and_unknown_beside_none_is_unknown() -> None:
    none = launch({**TIME, "sm__pipe_tensor_cycles_active" + PCT: 0.0})
    unknown = launch(TIME)
    assert one(none).tensor_engagement == "none"
    assert one(none, unknown).tensor_engagement is None


def test_an_sm_counter_stands_in_for_the_smsp_one() -> None:
    names = {k.replace("smsp__", "sm__"): v for k, v in sass(ffma=5).items()}
    assert one(launch({**TIME, **names})).flop.fp32 == 10
    del names[SASS.format("fadd").replace("smsp__", "sm__")]
    assert one(launch({**TIME, **names})).flop.fp32 is None


HMMA = "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum"
GMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"


@pytest.mark.parametrize("hmma", [0, 4096])
def test_warpgroup_work_that_no_collected_counter_counts_is_absent_not_zero(hmma: int) -> None:
    (found,) = work.total([launch({HMMA: hmma, GMMA: 1048576})], report=0)
    assert found.flop.tensor is None
    assert found.tensor_engagement == "wgmma"
    (reason,) = [a.reason for a in found.absences if a.field == "flop.tensor"]
    assert "does not cover wgmma" in reason


def test_a_counter_of_all_operations_covers_warpgroup_work() -> None:
    bare = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
    (found,) = work.total([launch({bare: 2e9, GMMA: 1048576})], report=0)
    assert found.flop.tensor == {"bf16": 2e9}


@pytest.mark.parametrize("hertz", [0.0, -1.0])
def test_a_clock_that_is_none_has_no_peak(hertz: float) -> None:
    metrics: dict[str, MetricValue] = {
        "sm__cycles_elapsed.avg.per_second": hertz,
        "dram__cycles_elapsed.avg.per_second": hertz,
        f"{TENSOR}op_hmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained": 8192,
    }
    peaks = one(launch({**TIME, **sass(ffma=10), **metrics})).peaks
    assert (peaks.sm_clock_hz, peaks.dram_clock_hz, peaks.tensor_flop_per_s) == (None, None, {})
