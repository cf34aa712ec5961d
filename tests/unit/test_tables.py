"""Packaged ceilings and patterns, and the user's own file laid over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from solscope.analysis import identity
from solscope.errors import ReportError, UnknownUnit, UsageError
from solscope.model.units import ceiling_factor, duration_text, scaled
from solscope.reports import tables


@pytest.mark.parametrize(
    ("key", "peak"),
    [
        ("b200_sm100.nvfp4_dense_pflops", 9e15),
        ("b200_sm100.hbm3e_tbps", 7.672e12),
        ("h100_sxm.bf16_dense_pflops", 989.4e12),
        ("h100_sxm.fp8_dense_pflops", 1978.9e12),
        ("gb300_nvl72.nvfp4_dense_pflops", 15e15),
        ("h100_pcie.hbm2e_tbps", 2.039e12),
        ("t4.int8_dense_pops", 130e12),
        ("h200_sxm.memory_gb", 141e9),
        ("h200_sxm.l2_mib", 60 * 2**20),
    ],
)
def test_key_paths_exist_with_their_peak_in_base_units(key: str, peak: float) -> None:
    chip, metric = key.split(".")
    ceiling = tables.ceilings().chips[chip].ceilings[metric]
    assert ceiling.key == key
    assert ceiling.peak == pytest.approx(peak)


def test_every_ceiling_states_source_confidence_and_is_dense_unless_named_sparse() -> None:
    for chip in tables.ceilings().chips.values():
        assert chip.match is not None
        for name, ceiling in chip.ceilings.items():
            assert ceiling.source
            assert ceiling.confidence in ("A", "B", "C", "D")
            if name.endswith(("_pflops", "_pops")) and "fp64" not in name:
                assert ("_dense_" in name) != ("_sparse_" in name)


def test_tensor_ceilings_agree_with_rate_times_sms_times_their_clock() -> None:
    checked = 0
    for chip in tables.ceilings().chips.values():
        for name, ceiling in chip.ceilings.items():
            label = name.split("_dense_")[0]
            rate = chip.dense_ops_per_clk_per_sm.get(label)
            sure = ceiling.confidence in ("A", "B") and "_dense_" in name
            if sure and rate and ceiling.clock_hz and chip.sm_count:
                expected = rate * chip.sm_count * ceiling.clock_hz
                assert ceiling.peak == pytest.approx(expected, rel=0.015), ceiling.key
                checked += 1
    assert checked > 30


def test_every_category_points_at_a_kind_of_ceiling() -> None:
    found = tables.ceilings().category_ceiling_map
    categories = {p.category for p in tables.family_patterns()}
    assert categories <= set(found)
    known = {"NCCL", "MoE", "FMHA", "BMM-NVFP4", "Triton-fused", "cuBLAS", "Elementwise", "Other"}
    assert set(found) == known


def overlay(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_an_overlay_replaces_a_metric_and_adds_a_chip(tmp_path: Path) -> None:
    path = overlay(
        tmp_path,
        """
h100_sxm:
  hbm3_tbps: {value: 3.0, units: TB/s, source: measured here}
my_card:
  gddr6_tbps: {value: 0.5, units: TB/s, source: measured here}
chip_identity:
  my_card: {name: My card, match: 'My Card', sm_count: 20, compute_capability: '8.6'}
category_ceiling_map: {Other: fp32_tflops}
""",
    )
    found = tables.ceilings(path)
    assert found.chips["h100_sxm"].ceilings["hbm3_tbps"].peak == 3e12
    assert found.chips["h100_sxm"].dram_bytes_per_s == 3e12
    assert found.chips["h100_sxm"].sm_count == 132  # the rest stays
    assert found.chips["h100_sxm"].ceilings["bf16_dense_pflops"].peak == pytest.approx(9.894e14)
    assert found.chips["my_card"].compute_capability == (8, 6)
    assert found.category_ceiling_map["Other"] == "fp32_tflops"
    assert found.sources == ("sol-ceilings.yaml", path)
    assert tables.ceilings().chips["h100_sxm"].ceilings["hbm3_tbps"].peak == 3.35e12


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("a: [", ReportError, "not YAML"),
        ("- a", ReportError, "not a mapping"),
        ("h100_sxm: 5", ReportError, "h100_sxm is not a mapping"),
        ("h100_sxm: {x_tbps: 5}", ReportError, "h100_sxm.x_tbps"),
        ("h100_sxm: {x_tbps: {value: 5, units: TB/s}}", ReportError, "source"),
        ("h100_sxm: {x_tbps: {value: 0, units: TB/s, source: s}}", ReportError, "above zero"),
        ("h100_sxm: {x: {value: 5, units: furlong, source: s}}", UnknownUnit, "furlong"),
        ("chip_identity: {c: {nom: x}}", ReportError, "chip_identity.c"),
        ("chip_identity: {c: {name: x, match: '('}}", ReportError, "regular expression"),
    ],
)
def test_a_bad_overlay_is_refused_with_the_key(
    tmp_path: Path, text: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        tables.ceilings(overlay(tmp_path, text))
    assert says in str(caught.value)


def test_a_missing_overlay_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        tables.ceilings(str(tmp_path / "none.yaml"))


# --- identity -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "family", "category", "dtype"),
    [
        ("nvjet_tst_64x8_64x16_2x1_v_bz_TNT", "nvjet", "cuBLAS", "bf16"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN", "nvjet", "cuBLAS", "fp16"),
        ("bmm_E2m1_E2m1E2m1_Fp32_bA16_bB16_cA16_t128x8x512", "TRT-LLM BMM NVFP4", "BMM-NVFP4", "nvfp4"),
        ("bmm_Bfloat16_E2m1E2m1_Fp32_t128x16x512", "TRT-LLM BMM NVFP4", "BMM-NVFP4", "nvfp4"),
        ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128", "TRT-LLM BMM", "Other", "fp8"),
        ("fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvDenseStaticTokens", "TRT-LLM FMHA", "FMHA", "fp8"),
        ("multimem_all_reduce_kernel", "multimem all-reduce", "NCCL", None),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl", "NCCL", "bf16"),
        ("flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport", "fused all-reduce", "NCCL", None),
        ("cross_device_reduce_1stage", "one-shot all-reduce", "NCCL", None),
        ("concat_and_cache_mla_kernel", "KV-cache write", "Other", None),
        ("reshape_and_cache_flash_kernel", "KV-cache write", "Other", None),
        ("flash_fwd_splitkv_mla_kernel", "FlashMLA", "FMHA", None),
        ("flash_fwd_splitkv_kernel", "FlashAttention", "FMHA", None),
        ("BatchDecodeWithPagedKVCacheKernel", "FlashInfer attention", "FMHA", None),
        ("kernel_unified_attention_2d", "Triton attention", "FMHA", None),
        ("paged_attention_v2_kernel", "attention", "FMHA", None),
        ("fused_moe_kernel", "MoE GEMM", "MoE", None),
        ("topkGatingSoftmax", "MoE routing", "MoE", None),
        ("moe_align_block_size_kernel", "MoE routing", "MoE", None),
        ("finalizeMoeRoutingKernel", "MoE finalise", "MoE", None),
        ("sm100_fp8_fp4_gemm_1d1d_impl", "DeepGEMM", "Other", "nvfp4"),
        ("sm90_fp8_gemm_1d2d_impl", "DeepGEMM", "Other", "fp8"),
        ("marlin::Marlin", "Marlin", "Other", None),
        ("ampere_sgemm_128x32_tn", "cuBLAS", "cuBLAS", "fp32"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "cuBLAS", "cuBLAS", "bf16"),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_3", "Triton (Inductor)", "Triton-fused", None),
        ("triton_poi_fused_mul_silu_1", "Triton (Inductor)", "Triton-fused", None),
        ("rms_norm_kernel", "RMSNorm", "Elementwise", None),
        ("fused_add_rms_norm_kernel", "RMSNorm", "Elementwise", None),
        ("rotary_embedding_kernel", "rotary embedding", "Elementwise", None),
        ("act_and_mul_kernel", "activation", "Elementwise", None),
        ("scaled_fp8_quant_kernel", "quantise", "Elementwise", "fp8"),
        ("cvt_fp16_to_fp4", "quantise", "Elementwise", "nvfp4"),
        ("TopKTopPSamplingFromProbKernel", "sampling", "Other", None),
        ("CatArrayBatchedCopy", "copy", "Elementwise", None),
        ("vectorized_elementwise_kernel", "elementwise", "Elementwise", None),
        ("index_elementwise_kernel", "elementwise", "Elementwise", None),
        ("julia_runsteps_6374", "unknown", "Other", None),
    ],
)  # fmt: skip
def test_names_of_the_field_are_known(
    name: str, family: str, category: str, dtype: str | None
) -> None:
    found = identity.classify(name, name, tables.family_patterns(), tables.dtype_patterns())
    assert (found.family, found.category, found.dtype) == (family, category, dtype)


def test_the_head_of_the_demangled_name_serves_a_generic_function_name() -> None:
    found = identity.classify(
        "Kernel",
        "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<int8>>",
        tables.family_patterns(),
        tables.dtype_patterns(),
    )
    assert found.family == "CUTLASS"
    assert found.dtype == "int8"
    deep = "void k<" + "x" * 300 + "flash_fwd"
    unknown = identity.classify("k", deep, tables.family_patterns(), tables.dtype_patterns())
    assert unknown.family == "unknown"


def test_pattern_ids_are_unique_and_collectives_are_marked() -> None:
    patterns = tables.family_patterns()
    assert len({p.id for p in patterns}) == len(patterns)
    assert {p.category for p in patterns if p.is_collective} == {"NCCL"}


# --- units ----------------------------------------------------------------------------------


def test_unknown_ceiling_units_are_never_guessed() -> None:
    assert ceiling_factor("GB/s", where="x") == 1e9
    with pytest.raises(UnknownUnit, match="GiB/h"):
        ceiling_factor("GiB/h", where="x")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (7, "7.00 B"), (19456, "19.5 KB"), (2.0383e12, "2.04 TB"), (123456789, "123 MB")],
)
def test_scaled_numbers_keep_three_digits(value: float, text: str) -> None:
    assert scaled(value, "B") == text


@pytest.mark.parametrize(
    ("ns", "text"), [(5, "5.00 ns"), (408352, "408 µs"), (2.5e6, "2.50 ms"), (3e9, "3.00 s")]
)
def test_durations_pick_their_unit(ns: float, text: str) -> None:
    assert duration_text(ns) == text
