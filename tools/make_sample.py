"""Makes samples/decode-step-h100.ncu-rep: a built report, not a capture.

The step is one decoder layer of an 8-billion-parameter Llama (hidden 4096, intermediate 14336,
32 query heads, 8 KV heads of 128) in BF16 on an H100 SXM, tensor parallel 2, 64 sequences of
2048 tokens decoding while 2048 tokens are prefilled in chunks. Work and bytes follow from those
shapes; durations from rates that such kernels reach; stalls and occupancies are plausible.

Run `python tools/make_sample.py` after a change; a test holds the file to this program.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests import builder  # noqa: E402
from tests.builder import Kernel, Rule, Value  # noqa: E402

SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"

SM_HZ = 1.755e9
DRAM_HZ = 2.619e9
SMS = 132
PCT = ".avg.pct_of_peak_sustained_elapsed"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
TENSOR = "sm__ops_path_tensor_src_{}.sum"
TENSOR_TYPES = ("fp16", "bf16_dst_fp32", "tf32_dst_fp32", "int8", "fp64")


def metrics(
    *,
    time_ns: int,
    read: int,
    write: int,
    bf16: int = 0,
    fadd: int = 0,
    fmul: int = 0,
    ffma: int = 0,
    l2: int,
    sm_busy: float,
    occupancy: float,
    registers: int,
    shared: int,
    limits: tuple[int, int, int],
    waves: float,
    stalls: dict[str, float],
    wgmma: bool = False,
) -> dict[str, Value]:
    """The metrics of one launch. ``limits``: blocks per SM by registers, shared memory, warps."""
    cycles = time_ns * 1e-9 * SM_HZ
    dram_pct = 100 * (read + write) / (time_ns * 1e-9) / (1280 * DRAM_HZ)
    values: dict[str, Value] = {
        "gpu__time_duration.sum": time_ns,
        "sm__cycles_elapsed.avg": cycles,
        "sm__cycles_elapsed.avg.per_second": SM_HZ,
        "smsp__cycles_elapsed.avg": cycles,
        "dram__cycles_elapsed.avg.per_second": DRAM_HZ,
        "dram__bytes.sum.peak_sustained": 1280.0,
        "dram__bytes_read.sum": read,
        "dram__bytes_write.sum": write,
        "lts__t_sectors.sum": l2 // 32,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 128.0 * SMS,
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 64.0 * SMS,
        "sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained": 128.0 * SMS,
        "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained": 4096.0
        * SMS,
        "sm__throughput" + PCT: sm_busy,
        "gpu__compute_memory_throughput" + PCT: max(dram_pct, 100 * l2 / (time_ns * 5.5e3)),
        "gpu__dram_throughput" + PCT: dram_pct,
        "lts__throughput" + PCT: 100 * l2 / (time_ns * 5.5e3),
        "sm__pipe_tensor_cycles_active" + PCT: 100 * bf16 / (time_ns * 1e-9) / (4096 * SMS * SM_HZ),
        "sm__warps_active.avg.pct_of_peak_sustained_active": occupancy,
        "sm__maximum_warps_per_active_cycle_pct": min(100.0, 100.0 * min(*limits, 32) * 8 / 64),
        "launch__registers_per_thread": registers,
        "launch__shared_mem_per_block": shared,
        "launch__occupancy_limit_registers": float(limits[0]),
        "launch__occupancy_limit_shared_mem": float(limits[1]),
        "launch__occupancy_limit_warps": float(limits[2]),
        "launch__occupancy_limit_blocks": 32.0,
        "launch__waves_per_multiprocessor": waves,
        "smsp__inst_issued.sum": int(cycles * SMS * 4 * sm_busy / 100),
        "launch__device_id": 0,
    }
    for name, count in (("fadd", fadd), ("fmul", fmul), ("ffma", ffma)):
        values[f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"] = count
    for name in ("hadd", "hmul", "hfma", "dadd", "dmul", "dfma"):
        values[f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"] = 0
    for name in TENSOR_TYPES:
        values[TENSOR.format(name)] = bf16 if name.startswith("bf16") else 0
    path = "hgmma" if wgmma else "hmma"
    if bf16:
        values[f"sm__ops_path_tensor_op_{path}_src_bf16_dst_fp32_sparsity_off.sum"] = bf16
    for reason, ratio in stalls.items():
        values[STALL.format(reason)] = ratio
    return values


def launches() -> list[Kernel]:
    """The launches of the step, in order. Half of every GEMM is here: tensor parallel 2."""
    gemm = "nvjet_tst_{}_v_bz_TNT"
    busy = {"long_scoreboard": 3.1, "wait": 1.2, "selected": 1.0, "gmma": 0.6}
    waiting = {"long_scoreboard": 11.4, "barrier": 2.3, "wait": 1.6, "selected": 1.0}
    common = {"process_name": "VLLM::Worker_TP0"}
    norm = Kernel(
        "fused_add_rms_norm_kernel",
        demangled="void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>"
        "(c10::BFloat16 *, long, c10::BFloat16 *, const c10::BFloat16 *, float, int, int)",
        grid=(2112, 1, 1),
        block=(512, 1, 1),
        metrics=metrics(
            time_ns=24_160,
            read=34_603_008,
            write=31_457_280,
            fadd=17_301_504,
            fmul=17_301_504,
            ffma=8_650_752,
            l2=73_400_320,
            sm_busy=31.5,
            occupancy=88.4,
            registers=32,
            shared=1_152,
            limits=(4, 24, 4),
            waves=4.0,
            stalls=waiting,
        ),
        **common,
    )
    qkv = Kernel(
        gemm.format("128x256_64x4_2x1"),
        grid=(132, 1, 1),
        block=(384, 1, 1),
        # 2112 tokens x 3072 outputs x 4096 inputs
        metrics=metrics(
            time_ns=86_400,
            read=42_467_328,
            write=12_976_128,
            bf16=2 * 2112 * 3072 * 4096,
            fmul=6_488_064,
            l2=190_840_832,
            sm_busy=83.9,
            occupancy=18.6,
            registers=168,
            shared=213_024,
            limits=(1, 1, 5),
            waves=1.0,
            stalls=busy,
            wgmma=True,
        ),
        **common,
    )
    rotary = Kernel(
        "rotary_embedding_kernel",
        demangled="void vllm::rotary_embedding_kernel<c10::BFloat16, true>(const long *, "
        "c10::BFloat16 *, c10::BFloat16 *, const c10::BFloat16 *, int, long, long, int, int, int)",
        grid=(64, 1, 1),
        block=(512, 1, 1),
        metrics=metrics(
            time_ns=2_816,
            read=884_736,
            write=0,
            fadd=163_840,
            fmul=655_360,
            l2=2_097_152,
            sm_busy=4.1,
            occupancy=21.7,
            registers=26,
            shared=1_024,
            limits=(4, 32, 4),
            waves=0.12,
            stalls=waiting,
        ),
        **common,
    )
    attention = Kernel(
        "flash_fwd_splitkv_kernel",
        demangled="void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, "
        "false, false, cutlass::bfloat16_t>, false, true, false, true, true, true>"
        "(Flash_fwd_params)",
        grid=(1, 8, 64),
        block=(128, 1, 1),
        # 64 sequences x 2048 tokens x 4 KV heads x 128 x (K, V) x 2 bytes
        metrics=metrics(
            time_ns=98_304,
            read=64 * 2048 * 4 * 128 * 2 * 2,
            write=1_310_720,
            bf16=4 * 64 * 2048 * 16 * 128 * 4,
            fadd=33_554_432,
            fmul=16_777_216,
            ffma=33_554_432,
            l2=272_629_760,
            sm_busy=44.6,
            occupancy=15.1,
            registers=240,
            shared=82_944,
            limits=(2, 2, 16),
            waves=1.94,
            stalls=waiting,
        ),
        rules=[
            Rule(
                "TheoreticalOccupancy",
                "The theoretical warps per scheduler are limited by registers and shared memory.",
                speedup_pct=31.2,
                section="Occupancy",
            )
        ],
        **common,
    )
    reduce = Kernel(
        "cross_device_reduce_1stage",
        demangled="void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData *, "
        "vllm::RankSignals, vllm::Signal *, __nv_bfloat16 *, int, int)",
        grid=(36, 1, 1),
        block=(512, 1, 1),
        metrics=metrics(
            time_ns=31_200,
            read=17_301_504,
            write=16_777_216,
            fadd=8_650_752,
            l2=38_797_312,
            sm_busy=6.2,
            occupancy=24.2,
            registers=40,
            shared=1_024,
            limits=(3, 32, 4),
            waves=0.09,
            stalls={"long_scoreboard": 38.0, "wait": 1.4, "selected": 1.0},
        ),
        **common,
    )
    gate_up = Kernel(
        gemm.format("64x64_64x13_2x1"),
        grid=(112, 1, 1),
        block=(384, 1, 1),
        # the decode half alone: 64 tokens x 14336 outputs x 4096 inputs
        metrics=metrics(
            time_ns=43_840,
            read=118_489_088,
            write=1_835_008,
            bf16=2 * 64 * 14336 * 4096,
            fmul=917_504,
            l2=124_780_544,
            sm_busy=21.3,
            occupancy=17.9,
            registers=168,
            shared=221_216,
            limits=(1, 1, 5),
            waves=0.85,
            stalls=busy,
            wgmma=True,
        ),
        **common,
    )
    sample = Kernel(
        "fill_kernel",
        demangled="void at::native::vectorized_elementwise_kernel<4, "
        "at::native::FillFunctor<int>, std::array<char *, 1> >(int, at::native::FillFunctor<int>, "
        "std::array<char *, 1>)",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        metrics=metrics(
            time_ns=1_728,
            read=4_096,
            write=0,
            l2=8_192,
            sm_busy=0.2,
            occupancy=5.9,
            registers=16,
            shared=1_024,
            limits=(16, 32, 16),
            waves=0.0,
            stalls={"wait": 2.0, "selected": 1.0},
        ),
        **common,
    )
    return [norm, qkv, rotary, attention, reduce, norm, gate_up, reduce, sample]


def sample() -> bytes:
    """The bytes of the sample."""
    return builder.report(
        launches(),
        device=builder.Device(),
        tool_version="2025.3.1.0 (built, not captured)",
    )


if __name__ == "__main__":
    SAMPLE.write_bytes(sample())
    print(f"wrote {SAMPLE.relative_to(ROOT)}")
