"""Points under their roofs: numbers that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.launches import H100, PCT, TENSOR, launch, sass

from solscope.analysis import chips, roofline, work
from solscope.model.kernel import KernelTotals
from solscope.model.report import Device, MetricValue
from solscope.model.roofline import Chip, RooflinePoint, Standing
from solscope.reports import tables

CHIPS = tables.ceilings().chips
H100_SXM = CHIPS["h100_sxm"]


def totals(*metrics: dict[str, MetricValue], device: Device = H100) -> KernelTotals:
    (result,) = work.total([launch(m, device=device) for m in metrics], report=0)
    return result


def kernel(**extra: MetricValue) -> dict[str, MetricValue]:
    """2 MB of DRAM traffic and 4 MFLOP of FP32 in 1 us, at 1 GHz."""
    return {
        "gpu__time_duration.sum": 1000,
        "dram__bytes_read.sum": 1_500_000,
        "dram__bytes_write.sum": 500_000,
        "sm__cycles_elapsed.avg.per_second": 1e9,
        "sm__pipe_tensor_cycles_active" + PCT: 0.0,
        **sass(ffma=2_000_000),
        **extra,
    }


def standing(point: RooflinePoint, resource: str) -> Standing:
    (found,) = [s for s in point.profiled if s.resource == resource]
    return found


def test_a_kernel_on_the_dram_roof() -> None:
    measured: dict[str, MetricValue] = {
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__cycles_elapsed.avg.per_second": 2e9,
    }
    point = roofline.place(totals(kernel(**measured)), None)
    assert point.intensity == 2.0  # 4 MFLOP / 2 MB
    assert point.flop_per_s == 4e12
    assert point.dram_bytes_per_s == 2e12
    dram = standing(point, "dram")
    assert dram.value == 1.0  # 2 TB/s, the whole roof of 1000 B x 2 GHz
    assert dram.ceiling == "dram__bytes.sum.peak_sustained"
    assert dram.clock_hz == 2e9
    assert point.profiled_binding == dram
    assert point.datasheet == ()


def test_without_a_measured_peak_the_devices_attributes_give_the_dram_roof() -> None:
    dram = standing(roofline.place(totals(kernel()), None), "dram")
    assert dram.peak == 2 * 2.619e9 * 5120 / 8
    assert dram.basis == "attributes"
    bare = Device(name="x", compute_capability=None)
    point = roofline.place(totals(kernel(), device=bare), None)
    assert point.profiled == ()
    assert {a.field for a in point.absences} == {"speed_of_light.profiled"}
    clockless = replace(H100, max_memory_clock_khz=None)
    assert not [
        s
        for s in roofline.place(totals(kernel(), device=clockless), None).profiled
        if s.resource == "dram"
    ]


def test_a_compute_roof_is_lanes_times_two_times_sms_times_clock_where_none_was_stored() -> None:
    point = roofline.place(totals(kernel()), None)
    fp32 = standing(point, "fp32")
    assert fp32.peak == 128 * 2 * 132 * 1e9
    assert fp32.value == pytest.approx(4e12 / (128 * 2 * 132 * 1e9))
    stored = {"sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 2000.0}
    assert standing(roofline.place(totals(kernel(**stored)), None), "fp32").value == 1.0


def test_the_data_sheet_standing_is_of_the_same_roof_and_names_its_key() -> None:
    point = roofline.place(totals(kernel()), H100_SXM)
    binding, sheet = point.profiled_binding, point.datasheet_binding
    assert binding is not None
    assert sheet is not None
    assert sheet.resource == binding.resource == "dram"
    assert sheet.ceiling == "h100_sxm.hbm3_tbps"
    assert sheet.value == pytest.approx(2e12 / 3.35e12)


def test_tensor_work_stands_under_the_dense_ceiling_of_its_type() -> None:
    gemm = kernel(**{TENSOR + "src_bf16_dst_fp32.sum": 400_000_000})
    point = roofline.place(totals(gemm), H100_SXM)
    tensor = standing(point, "tensor:bf16")
    assert tensor.peak == 4096 * 132 * 1e9
    assert tensor.value == pytest.approx(400e12 / (4096 * 132 * 1e9))
    sheet = next(s for s in point.datasheet if s.resource == "tensor:bf16")
    assert sheet.ceiling == "h100_sxm.bf16_dense_pflops"
    assert sheet.clock_hz == 1.83e9
    stored = {TENSOR + "op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained": 1e6}
    own = standing(roofline.place(totals({**gemm, **stored}), H100_SXM), "tensor:bf16")
    assert own.peak == 1e15
    assert own.basis == "report"


@pytest.mark.parametrize(
    ("chip", "resource", "key"),
    [
        ("h100_sxm", "fp64", "fp64_tflops"),
        ("h100_sxm", "fp16", "fp16_nontensor_tflops"),
        ("h100_sxm", "tensor:fp64", "fp64_tensor_tflops"),
        ("h100_sxm", "tensor:int8", "int8_dense_pops"),
        ("rtx4090", "tensor:fp16", "fp16_fp32acc_dense_pflops"),
        ("b200_sm100", "tensor:nvfp4", "nvfp4_dense_pflops"),
        ("gb300_nvl72", "dram", "hbm3e_tbps"),
    ],
)
def test_every_resource_finds_its_dense_ceiling(chip: str, resource: str, key: str) -> None:
    ceiling = roofline.datasheet_ceiling(CHIPS[chip], resource)
    assert ceiling is not None
    assert ceiling.key == f"{chip}.{key}"


def test_a_resource_that_the_chip_has_no_ceiling_for_has_no_standing() -> None:
    assert roofline.datasheet_ceiling(CHIPS["t4"], "tensor:fp8") is None
    gemm = kernel(**{TENSOR + "src_fp8.sum": 4_000_000})
    point = roofline.place(totals(gemm), CHIPS["t4"])
    assert not [s for s in point.datasheet if s.resource == "tensor:fp8"]
    assert not [s for s in point.profiled if s.resource == "tensor:fp8"]


def test_fp4_peaks_serve_nvfp4_work() -> None:
    metrics = kernel(
        **{
            TENSOR + "src_fp4_dst_fp32.sum": 5_000_000,
            TENSOR + "op_utcomma_src_fp4_dst_fp32_sparsity_off.sum.peak_sustained": 1e5,
        }
    )
    assert standing(roofline.place(totals(metrics), None), "tensor:nvfp4").peak == 1e14


def test_fp16_accumulation_stands_under_its_own_peak_where_the_chip_has_one() -> None:
    rtx = Device(name="NVIDIA GeForce RTX 4090", compute_capability=(8, 9), sm_count=128)
    work_done = kernel(
        **{TENSOR + "src_fp16_dst_fp16.sum": 3_000_000, TENSOR + "src_fp16_dst_fp32.sum": 1_000_000}
    )
    made = totals(work_done, device=rtx)
    assert made.flop.tensor == {"fp16": 4_000_000}  # one source type
    point = roofline.place(made, CHIPS["rtx4090"])
    assert standing(point, "tensor:fp16").peak == 512 * 128 * 1e9
    assert standing(point, "tensor:fp16_fp16acc").peak == 1024 * 128 * 1e9
    keys = {s.resource: s.ceiling for s in point.datasheet}
    assert keys["tensor:fp16"] == "rtx4090.fp16_fp32acc_dense_pflops"
    assert keys["tensor:fp16_fp16acc"] == "rtx4090.fp16_fp16acc_dense_pflops"
    hopper = roofline.place(totals(work_done), H100_SXM)
    assert standing(hopper, "tensor:fp16_fp16acc").peak == 4096 * 132 * 1e9


def test_scalar_half_and_double_stand_under_their_rates() -> None:
    metrics = kernel(**sass(ffma=2_000_000, hadd=5, hfma=1_000_000, dfma=1_000_000))
    point = roofline.place(totals(metrics), H100_SXM)
    assert standing(point, "fp16").peak == 512 * 132 * 1e9
    assert standing(point, "fp64").peak == 128 * 132 * 1e9
    sheet_less = roofline.place(totals(metrics), None)
    assert not [s for s in sheet_less.profiled if s.resource in ("fp16", "fp64")]
    tensor64 = kernel(**{TENSOR + "src_fp64.sum": 5_000_000})
    assert standing(roofline.place(totals(tensor64), H100_SXM), "tensor:fp64").peak == 256 * 132e9


def test_without_clock_or_sm_count_no_compute_peak_is_made_up() -> None:
    metrics = kernel()
    del metrics["sm__cycles_elapsed.avg.per_second"]
    assert not [
        s for s in roofline.place(totals(metrics), H100_SXM).profiled if s.resource == "fp32"
    ]


def test_an_l2_resident_kernel_has_no_intensity_and_stands_under_l2() -> None:
    metrics = kernel(**{"dram__bytes_read.sum": 64, "dram__bytes_write.sum": 0,
                        "lts__t_sectors.sum": 100_000, "lts__throughput" + PCT: 80.0})  # fmt: skip
    point = roofline.place(totals(metrics), H100_SXM)
    assert point.is_l2_resident
    assert point.intensity is None
    (absence,) = [a for a in point.absences if a.field == "arithmetic_intensity"]
    assert "L2-resident" in absence.reason
    l2 = standing(point, "l2")
    assert l2.value == 0.8
    assert l2.achieved == 3.2e12  # 100,000 sectors of 32 B in 1 us
    binding = point.profiled_binding
    assert binding is not None
    assert binding.resource != "l2"  # a busy percentage is no counted roof


def test_zero_dram_bytes_never_divide() -> None:
    metrics = kernel(**{"dram__bytes_read.sum": 0, "dram__bytes_write.sum": 0})
    point = roofline.place(totals(metrics), None)
    assert point.is_l2_resident
    assert point.intensity is None
    idle = kernel(**{"lts__t_sectors.sum": 10, "lts__throughput" + PCT: 0.0})
    assert not [s for s in roofline.place(totals(idle), None).profiled if s.resource == "l2"]


def test_what_is_missing_for_the_intensity_is_named() -> None:
    time: dict[str, MetricValue] = {"gpu__time_duration.sum": 1000}
    nothing = roofline.place(totals(time), H100_SXM)
    reasons = {a.field: a.reason for a in nothing.absences}
    assert reasons["arithmetic_intensity"] == "FLOP and DRAM bytes not measured"
    assert set(reasons) == {
        "arithmetic_intensity", "speed_of_light.profiled", "speed_of_light.datasheet",
    }  # fmt: skip
    apart = roofline.place(
        totals({**time, **kernel()}, {**time, "dram__bytes.sum": 5}, {**time, **sass()}), None
    )
    assert apart.intensity == 2.0  # of the one launch that measured both
    bytes_only = totals({**time, "dram__bytes.sum": 5})
    assert "FLOP not measured" in roofline.place(bytes_only, None).absences[0].reason


def test_without_a_duration_nothing_stands_and_that_is_said() -> None:
    metrics = kernel()
    del metrics["gpu__time_duration.sum"]
    point = roofline.place(totals(metrics), None)
    assert point.flop_per_s is None
    assert "no duration" in point.absences[-1].reason


def test_the_ridge_point_is_peak_over_bandwidth() -> None:
    assert roofline.ridge_point(8.0, 2.0) == 4.0


def test_a_point_without_profiled_standing_keeps_its_data_sheet_one() -> None:
    only = Standing(resource="dram", value=0.5, achieved=1, peak=2, ceiling="x.y")
    point = RooflinePoint(intensity=None, flop_per_s=None, dram_bytes_per_s=None, datasheet=(only,))
    assert point.datasheet_binding == only
    assert point.profiled_binding is None
    other = replace(only, resource="fp32")
    apart = replace(point, profiled=(other,))
    assert apart.datasheet_binding is None


# --- which chip -----------------------------------------------------------------------------


def identify(device: Device, wanted: str | None = None) -> chips.Match:
    return chips.identify(device, tables.ceilings(), wanted=wanted)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("NVIDIA H100 PCIe", "h100_pcie"),
        ("NVIDIA H100 NVL", "h100_nvl"),
        ("NVIDIA H200", "h200_sxm"),
        ("NVIDIA GH200 480GB", "gh200_96gb"),
        ("NVIDIA B200", "b200_sm100"),
        ("NVIDIA GB200", "gb200_nvl72"),
        ("NVIDIA GB300", "gb300_nvl72"),
        ("NVIDIA A100-SXM4-80GB", "a100_sxm4_80gb"),
        ("A100-PCIE-40GB", "a100_pcie_40gb"),
        ("NVIDIA A100 80GB PCIe", "a100_pcie_80gb"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
    ],
)
def test_product_names_are_told_apart(name: str, key: str) -> None:
    match = identify(Device(name=name, compute_capability=None))
    assert match.chip is not None
    assert match.chip.key == key


@pytest.mark.parametrize(
    "name",
    ["NVIDIA A10G", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA L40", "NVIDIA H200 NVL", None],
)
def test_a_sibling_of_another_rate_is_not_taken_for_the_product(name: str | None) -> None:
    match = identify(Device(name=name, compute_capability=None))
    assert match.chip is None
    assert match.absence is not None
    assert "--ceilings" in str(match.absence.remedy)


def test_a_bare_h100_is_decided_by_sm_count_memory_or_clock_else_asked_for() -> None:
    bare = Device(name="NVIDIA H100", compute_capability=(9, 0))
    asked = identify(bare)
    assert asked.chip is None
    assert asked.absence is not None
    assert "--chip" in str(asked.absence.remedy)
    assert identify(replace(bare, sm_count=114)).chip is CHIPS["h100_pcie"]
    wide = replace(bare, sm_count=132, max_memory_clock_khz=2.619e6, memory_bus_width_bits=5120)
    assert identify(wide).chip is CHIPS["h100_sxm"]
    by_clock = replace(bare, sm_count=132, max_sm_clock_khz=1_785_000)
    assert identify(by_clock).chip is CHIPS["h100_nvl"]
    no_fit = replace(bare, sm_count=1, max_sm_clock_khz=1)
    assert identify(no_fit).chip is None
    other = replace(bare, compute_capability=(8, 0))
    assert identify(other).chip is None


def test_a_partition_is_still_its_product_and_the_difference_is_said() -> None:
    mig = replace(H100, sm_count=16, max_memory_clock_khz=2_000_000)
    match = identify(mig)
    assert match.chip is CHIPS["h100_sxm"]
    assert "16 SMs" in str(match.mismatch)
    assert "GB/s" in str(match.mismatch)
    assert identify(H100).mismatch is None


def test_the_users_word_wins_by_key_or_by_a_part_of_one() -> None:
    device = Device(name="whatever", compute_capability=None)
    assert identify(device, "h100_pcie").chip is CHIPS["h100_pcie"]
    assert identify(device, "GB300").chip is CHIPS["gb300_nvl72"]
    with pytest.raises(KeyError, match="h100_sxm"):
        identify(device, "h100")
    with pytest.raises(KeyError):
        identify(device, "nonsense")


def test_a_chip_without_figures_fits_any_device_of_its_name() -> None:
    empty = Chip(key="x", name="x", ceilings={}, family="X1")
    from solscope.model.roofline import CeilingSet

    match = chips.identify(
        Device(name="NVIDIA X1", compute_capability=(9, 0), sm_count=5),
        CeilingSet(chips={"x": empty}),
    )
    assert match.chip is empty


def test_a_chip_gives_its_sm_count_where_the_report_states_none_and_says_so() -> None:
    nameless = Device(name=None, compute_capability=(9, 0), ordinal=0)
    point = roofline.place(totals(kernel(), device=nameless), H100_SXM)
    fp32 = standing(point, "fp32")
    assert fp32.peak == 2 * 128 * 132 * 1e9  # at the 1 GHz of the profile, not of the data sheet
    assert "its 132 SMs (the report does not say" in fp32.ceiling


def test_counted_work_without_a_clock_has_no_profiled_value_and_says_what_to_collect() -> None:
    clockless = {k: v for k, v in kernel().items() if not k.startswith("sm__cycles")}
    nameless = Device(name=None, compute_capability=(9, 0), ordinal=0)
    point = roofline.place(totals(clockless, device=nameless), H100_SXM)
    assert point.profiled == ()
    assert {s.resource for s in point.datasheet} == {"dram", "fp32"}
    (absence,) = [a for a in point.absences if a.field == "speed_of_light.profiled"]
    assert "work was counted" in absence.reason
    assert "sm__cycles_elapsed.avg.per_second" in (absence.remedy or "")
    assert not absence.is_derived


def test_a_nameless_device_lists_the_chips_of_its_capability() -> None:
    match = chips.identify(Device(name=None, compute_capability=(9, 0)), tables.ceilings())
    assert match.chip is None
    assert match.absence is not None
    assert "compute capability 9.0" in match.absence.reason
    assert "h100_sxm" in (match.absence.remedy or "")
    assert "b200" not in (match.absence.remedy or "")


@pytest.mark.parametrize(
    ("wanted", "key"), [("h200", "h200_sxm"), ("B200", "b200_sm100"), ("sxm2", "v100_sxm2")]
)
def test_a_chip_is_named_by_its_first_word_or_by_what_no_other_has(wanted: str, key: str) -> None:
    found = identify(Device(name="NVIDIA Something", compute_capability=None), wanted).chip
    assert found is not None
    assert found.key == key


def test_a_chip_of_another_compute_capability_is_no_match() -> None:
    found = identify(Device(name="NVIDIA A100-SXM4-40GB", compute_capability=(8, 0)), "b200")
    assert found.mismatch == "the device has compute capability 8.0, b200_sm100 10.0"
