"""A question, a chip and a data type in, a metric list out."""

from __future__ import annotations

import pytest

from solscope.capture import metriclists, passes
from solscope.capture.metriclists import lists
from solscope.capture.passes import estimate
from solscope.errors import UsageError
from solscope.model.plan import Level, MetricList


def a_list(level: Level, chip: str, dtype: str | None = None) -> MetricList:
    counters = passes.TableCounters(chip)
    tensor = None if dtype is None else counters.tensor(dtype)
    names = counters.base_names
    return metriclists.for_level(level, chip=chip, dtype=dtype, base_names=names, tensor=tensor)


@pytest.mark.parametrize(
    ("word", "chip"),
    [
        ("GH100", "GH100"),
        ("gh100", "GH100"),
        ("H200", "GH100"),
        ("NVIDIA H100 80GB HBM3", "GH100"),
        ("NVIDIA-H100-80GB-HBM3", "GH100"),
        ("NVIDIA GH200 480GB", "GH100"),
        ("9.0", "GH100"),
        ("sm_90a", "GH100"),
        ("b200", "GB100"),
        ("b200_sm100", "GB100"),
        ("NVIDIA GB300", "GB110"),
        ("10.3", "GB110"),
        ("a100-sxm4-80gb", "GA100"),
        ("NVIDIA L4", "AD104"),
        ("NVIDIA L40S", "AD102"),
        ("Tesla T4", "TU104"),
        ("NVIDIA GeForce RTX 5090", "GB202"),
    ],
)
def test_a_chip_is_known_by_its_products_and_capability(word: str, chip: str) -> None:
    assert metriclists.identify(word).name == chip


def test_an_unknown_chip_is_an_error_with_names_that_are_known() -> None:
    with pytest.raises(UsageError, match="no chip called 'H1000'") as error:
        metriclists.identify("H1000")
    assert "h100" in (error.value.hint or "")


@pytest.mark.parametrize("chip", [c for c in metriclists.known() if c != "GV100"])
@pytest.mark.parametrize("level", [Level.TIME, Level.ROOFLINE, Level.WHY])
def test_every_metric_of_every_level_exists_on_its_chip(chip: str, level: Level) -> None:
    made = a_list(level, chip)
    counters = passes.TableCounters(chip)
    assert [m for m in estimate.scheduled(made.metrics) if not counters.has(m)] == []
    assert "gpu__time_duration.sum" in made.metrics


def test_the_roofline_holds_work_bytes_time_clocks_and_occupancy() -> None:
    made = a_list(Level.ROOFLINE, "GH100", "bf16")
    for metric in (
        "gpu__time_duration.sum",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "dram__bytes.sum.peak_sustained",
        "sm__cycles_elapsed.avg.per_second",
        "dram__cycles_elapsed.avg.per_second",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
        "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ):
        assert metric in made.metrics
    assert made.sections == ("LaunchStats", "Occupancy")


def test_only_dense_tensor_peaks_are_asked_where_the_chip_tells_them_apart() -> None:
    for chip in ("GA100", "GH100", "GB100", "GB202"):
        tensor = passes.TableCounters(chip).tensor("bf16")
        peaks = [m for m in tensor if m.endswith("peak_sustained")]
        assert peaks
        assert all("sparsity_off" in m for m in peaks)


def test_packed_fp32_is_counted_where_the_chip_has_it_and_only_there() -> None:
    packed = "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum"
    assert packed in a_list(Level.ROOFLINE, "GB100").metrics
    assert packed not in a_list(Level.ROOFLINE, "GH100").metrics


def test_dram_names_follow_the_chip() -> None:
    assert "dram__bytes_op_read.sum" in a_list(Level.TIME, "GB202").metrics
    assert "dram__bytes_read.sum" in a_list(Level.TIME, "GH100").metrics
    without_dram = a_list(Level.TIME, "GB20B").metrics
    assert not any(m.startswith("dram__") for m in without_dram)
    assert "lts__d_sectors_fill_sysmem.sum" in without_dram


@pytest.mark.parametrize("chip", ["GH100", "GB100"])
def test_the_bf16_roofline_is_cheap(chip: str) -> None:
    counters = passes.TableCounters(chip)
    made = a_list(Level.ROOFLINE, chip, "bf16")
    assert passes.of_list(made, counters, family=chip).predicted <= 4


def test_a_type_that_the_chip_does_not_count_is_an_error_with_those_it_does() -> None:
    with pytest.raises(UsageError, match="counts no tensor work of fp8") as error:
        a_list(Level.ROOFLINE, "GA100", "fp8")
    assert "bf16" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("word", "dtype"), [("BF16", "bf16"), ("torch.bfloat16", "bf16"), ("nvfp4", "fp4")]
)
def test_data_types_go_by_their_usual_names(word: str, dtype: str) -> None:
    assert metriclists.dtype_named(word) == dtype


def test_an_unknown_data_type_is_an_error() -> None:
    with pytest.raises(UsageError, match="no data type"):
        metriclists.dtype_named("fp12")


def test_a_dear_tensor_group_is_narrowed_to_fp32_accumulation() -> None:
    names = frozenset(
        {
            "sm__ops_path_tensor_src_fp8_dst_fp16",
            "sm__ops_path_tensor_src_fp8_dst_fp32",
            "sm__ops_path_tensor_op_qmma_src_fp8_dst_fp32_sparsity_off",
        }
    )
    all_groups = lists.choose_tensor("fp8", names, lambda metrics: 1)
    assert "sm__ops_path_tensor_src_fp8_dst_fp16.sum" in all_groups
    narrowed = lists.choose_tensor("fp8", names, lambda metrics: 2 * len(metrics))
    assert "sm__ops_path_tensor_src_fp8_dst_fp16.sum" not in narrowed
    assert "sm__ops_path_tensor_src_fp8_dst_fp32.sum" in narrowed


def test_the_mixed_eight_bit_class_counts_for_each_of_its_types() -> None:
    assert "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum" in passes.TableCounters(
        "GB100"
    ).tensor("fp8")
    assert not any("fp4" in m for m in passes.TableCounters("GB100").tensor("fp16"))


def test_the_full_level_is_the_section_set() -> None:
    made = a_list(Level.FULL, "GH100")
    assert made.section_set == "full"
    assert made.metrics == ()


def test_work_that_a_list_does_not_count_is_said() -> None:
    assert "--dtype" in a_list(Level.ROOFLINE, "GH100").left_out[0]
    assert a_list(Level.ROOFLINE, "GH100", "bf16").left_out == ()
    (left_out,) = a_list(Level.ROOFLINE, "GB110", "fp8").left_out
    assert "src_fp8_dst_fp16" in left_out
    assert a_list(Level.TIME, "GH100").left_out == ()
