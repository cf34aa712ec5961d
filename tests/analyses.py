"""Analyses built by hand, for the tests of the pages. Every number can be checked by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from solscope.model.finding import Absence, Finding, Issue, Severity
from solscope.model.kernel import (
    FlopTotals,
    KernelIdentity,
    KernelKey,
    KernelTotals,
    LaunchPeaks,
    StallShare,
)
from solscope.model.report import (
    Device,
    KernelLaunch,
    PlainMetrics,
    Provenance,
    Report,
    RuleAdvice,
    Session,
    WorkloadKind,
)
from solscope.model.roofline import Ceiling, Chip, RooflinePoint, Standing
from solscope.model.verdict import Analysis, KernelVerdict, Verdict

H100 = Device(
    name="NVIDIA H100 80GB HBM3",
    compute_capability=(9, 0),
    sm_count=132,
    ordinal=0,
    max_sm_clock_khz=1_980_000,
    max_memory_clock_khz=2_619_000,
    memory_bus_width_bits=5120,
    max_warps_per_sm=64,
    l2_bytes=52_428_800,
    memory_bytes=85_000_000_000,
)

SM_CLOCK = 1.755e9
DRAM_CLOCK = 2.619e9
DRAM_PEAK = 3.352e12
PROFILED: Mapping[str, tuple[float, str, float]] = {
    "dram": (DRAM_PEAK, "dram__bytes.sum.peak_sustained", DRAM_CLOCK),
    "l2": (7.41e12, "lts__lts2xbar_cycles_active.sum.peak_sustained", SM_CLOCK),
    "fp32": (
        59.3e12,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
        SM_CLOCK,
    ),
    "tensor:bf16": (
        948.9e12,
        "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained",
        SM_CLOCK,
    ),
}
SHEET: Mapping[str, tuple[float, str, float | None]] = {
    "dram": (3.35e12, "h100_sxm.hbm3_tbps", None),
    "fp32": (66.9e12, "h100_sxm.fp32_tflops", 1.98e9),
    "tensor:bf16": (989.4e12, "h100_sxm.bf16_dense_pflops", 1.83e9),
}


def a_chip() -> Chip:
    """An H100 SXM with three ceilings."""
    rows = {
        "hbm3_tbps": Ceiling(
            key="h100_sxm.hbm3_tbps",
            value=3.35,
            units="TB/s",
            peak=3.35e12,
            source="H100 data sheet",
            clock_basis="max memory clock",
            confidence="C",
        ),
        "fp32_tflops": Ceiling(
            key="h100_sxm.fp32_tflops",
            value=66.9,
            units="TFLOP/s",
            peak=66.9e12,
            source="H100 data sheet",
            clock_basis="max 1980",
            clock_hz=1.98e9,
            confidence="A",
        ),
        "bf16_dense_pflops": Ceiling(
            key="h100_sxm.bf16_dense_pflops",
            value=0.9894,
            units="PFLOP/s",
            peak=989.4e12,
            source="H100 data sheet",
            clock_basis="tensor boost 1830",
            clock_hz=1.83e9,
            confidence="A",
        ),
    }
    return Chip(
        key="h100_sxm",
        name="H100 SXM5 80GB",
        ceilings=rows,
        compute_capability=(9, 0),
        sm_count=132,
        dram_bytes_per_s=3.35e12,
    )


def a_report(name: str = "/home/someone/secret-project/decode.ncu-rep", **changes: Any) -> Report:
    """A report of one H100, its session full of names that pages must not show."""
    report = Report(
        provenance=Provenance(
            path=name,
            sha256="3f8a9c1e" * 8,
            size_bytes=1_234_567,
            format="ncu-rep",
            tool_name="Nsight Compute",
            tool_version="2025.1.1",
        ),
        launches=(),
        devices=(H100,),
        session=Session(
            host_name="node-17.private.example",
            ip_addresses=("10.20.30.40",),
            os_name="Linux",
            executable="/home/someone/venv/bin/python3",
            arguments="serve --token hunter2",
            work_directory="/home/someone/secret-project",
            profiler_command_line="ncu --set full -o decode python3 serve --token hunter2",
            clock_control="none",
            cache_control="all",
            replay_mode="kernel",
        ),
    )
    return dataclasses.replace(report, **changes)


def flop_totals(**work: Any) -> FlopTotals:
    """Work by precision, in FLOP."""
    return FlopTotals(**{"tensor_paths": work.get("tensor") or {}, **work})


def standings(rates: Mapping[str, float], *, clock: float = SM_CLOCK) -> dict[str, Any]:
    """Standings of achieved rates under the H100's roofs, both clocks."""
    scale = clock / SM_CLOCK
    profiled, sheet = [], []
    for resource, achieved in rates.items():
        peak, name, at = PROFILED[resource]
        if resource not in {"dram"}:
            peak, at = peak * scale, clock
        profiled.append(
            Standing(
                resource=resource,
                value=achieved / peak,
                achieved=achieved,
                peak=peak,
                ceiling=name,
                clock_hz=at,
                basis="report",
            )
        )
        if resource in SHEET:
            top, key, quoted = SHEET[resource]
            sheet.append(
                Standing(
                    resource=resource,
                    value=achieved / top,
                    achieved=achieved,
                    peak=top,
                    ceiling=key,
                    clock_hz=quoted,
                    basis="datasheet",
                )
            )
    return {"profiled": tuple(profiled), "datasheet": tuple(sheet)}


def a_kernel(
    name: str,
    *,
    us: float,
    bound: str,
    name_full: str | None = None,
    launches: int = 1,
    flop: FlopTotals | None = None,
    flop_total: float | None = None,
    dram_read: float | None = None,
    dram_write: float | None = None,
    rates: Mapping[str, float] | None = None,
    report: int = 0,
    grounds: tuple[str, ...] = (),
    family: str = "unknown",
    category: str = "Other",
    role: str = "unknown",
    dtype: str | None = None,
    device: Device = H100,
    clock: float = SM_CLOCK,
    l2_resident: bool = False,
    absences: tuple[Absence, ...] = (),
    findings: tuple[Finding, ...] = (),
    is_at_roof: bool | None = None,
    totals: Mapping[str, Any] | None = None,
) -> KernelVerdict:
    """One row of an analysis; durations in µs, traffic in bytes, rates per second."""
    ns = us * 1e3
    dram = None if dram_read is None or dram_write is None else dram_read + dram_write
    flop_rate = None if flop_total is None else flop_total / (ns * 1e-9)
    dram_rate = None if dram is None else dram / (ns * 1e-9)
    full = name_full or name
    sums: dict[str, Any] = {
        "key": KernelKey(
            report=report,
            name_full=full,
            grid=(132, 1, 1),
            block=(384, 1, 1),
            device=device.name or "unknown",
            process_id=1,
        ),
        "name": name,
        "kind": WorkloadKind.KERNEL,
        "device": device,
        "launches": launches,
        "duration_ns": ns,
        "duration_min_ns": ns / launches * 0.98,
        "duration_max_ns": ns / launches * 1.03,
        "flop": flop or flop_totals(),
        "dram_read_bytes": dram_read,
        "dram_write_bytes": dram_write,
        "dram_bytes": dram,
        "l2_bytes": None if dram is None else dram * 1.7,
        "l1_bytes": None,
        "peaks": LaunchPeaks(
            sm_clock_hz=clock,
            dram_clock_hz=DRAM_CLOCK,
            fp32_flop_per_s=59.3e12 * clock / SM_CLOCK,
            dram_bytes_per_s=DRAM_PEAK,
        ),
    }
    sums.update(totals or {})
    point = RooflinePoint(
        intensity=(
            None if flop_total is None or dram is None or l2_resident else flop_total / dram
        ),
        flop_per_s=flop_rate,
        dram_bytes_per_s=dram_rate,
        is_l2_resident=l2_resident,
        **standings(rates or {}, clock=clock),
    )
    return KernelVerdict(
        identity=KernelIdentity(
            family=family, category=category, role=role, dtype=dtype, pattern=None
        ),
        totals=KernelTotals(**sums),
        point=point,
        verdict=Verdict(bound=bound, grounds=grounds, is_at_roof=is_at_roof),
        time_share=None,
        absences=absences,
        findings=findings,
    )


def an_analysis(
    *kernels: KernelVerdict,
    reports: tuple[Report, ...] = (),
    chips: tuple[Chip | None, ...] | None = None,
    absences: tuple[Absence, ...] = (),
) -> Analysis:
    """Kernels sorted by duration with their time shares, under one report unless given."""
    reports = reports or (a_report(launches=tuple(_launch(k) for k in kernels)),)
    total = sum(k.totals.duration_ns or 0.0 for k in kernels)
    used = chips or tuple(a_chip() for _ in reports)
    shared = [
        dataclasses.replace(
            k,
            time_share=(k.totals.duration_ns or 0.0) / total,
            chip=used[k.totals.key.report],
        )
        for k in kernels
    ]
    shared.sort(key=lambda k: -(k.totals.duration_ns or 0.0))
    unknown = sum(k.time_share or 0.0 for k in shared if k.identity.family == "unknown")
    return Analysis(
        reports=reports,
        kernels=tuple(shared),
        chips=used,
        unknown_time_share=unknown,
        absences=absences,
    )


def _launch(kernel: KernelVerdict) -> KernelLaunch:
    return KernelLaunch(
        index=0,
        kind=WorkloadKind.KERNEL,
        name=kernel.totals.name,
        name_full=kernel.totals.key.name_full,
        metrics=PlainMetrics({}),
        device=kernel.totals.device,
    )


def a_gemm(**changes: Any) -> KernelVerdict:
    """A wgmma GEMM near the tensor roof: 206.2 GFLOP in 240 µs is 859 TFLOP/s."""
    return a_kernel(
        "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT",
        us=240,
        bound="tensor:bf16",
        launches=2,
        flop=flop_totals(
            fp64=0.0, fp32=41.9e6, fp16=0.0, tensor={"bf16": 206.158e9}, total=206.2e9
        ),
        flop_total=206.2e9,
        dram_read=287e6,
        dram_write=67e6,
        rates={"tensor:bf16": 858.99e12, "dram": 1.475e12, "fp32": 0.1746e12, "l2": 4.1e12},
        family="nvjet",
        category="cuBLAS",
        role="gemm",
        dtype="bf16",
        is_at_roof=True,
        grounds=(
            "858.99 TFLOP/s of tensor bf16 is 90.5 % of the roof at 1.755 GHz",
            "DRAM traffic is at 44.0 % of its roof",
        ),
        totals={
            "sm_busy_pct": 91.3,
            "sm_busy_member": "tensor pipe",
            "dram_pct": 43.8,
            "tensor_pipe_pct": 91.3,
            "achieved_occupancy_pct": 18.4,
            "theoretical_occupancy_pct": 18.75,
            "registers_per_thread": 168,
            "smem_per_block_bytes": 233_472,
            "occupancy_limiter": ("shared memory", "registers"),
            "blocks_per_sm": 1.0,
            "waves_per_sm": 3.88,
            "tensor_engagement": "wgmma-class",
            "stalls": (
                StallShare(reason="gmma", share=0.61),
                StallShare(reason="barrier", share=0.18),
                StallShare(reason="long scoreboard", share=0.09),
            ),
            "rules": (
                RuleAdvice(
                    rule="SOLBottleneck",
                    name="Bottleneck",
                    section="SpeedOfLight",
                    message="The kernel uses more than 80 % of the compute of the device.",
                    kind="ok",
                ),
                RuleAdvice(
                    rule="TheoreticalOccupancy",
                    name="Theoretical occupancy",
                    section="Occupancy",
                    message="Shared memory limits the blocks per SM to 1.",
                    kind="optimization",
                    speedup_kind="global",
                    speedup_pct=8.7,
                ),
            ),
            **changes,
        },
    )


def a_decode_step() -> Analysis:
    """One H100 decode step with every kind of row that the pages know."""
    return an_analysis(
        a_gemm(),
        _attention(),
        _rmsnorm(),
        _silu(),
        _all_reduce(),
        _tiny(),
        _percentages_only(),
        _l2_resident(),
        _router(),
        absences=(
            Absence(
                field="nvlink_bytes",
                reason="no NVLink counter was collected",
                remedy="collect `--section Nvlink`",
            ),
        ),
    )


def _attention() -> KernelVerdict:
    return a_kernel(
        "BatchDecodeWithPagedKVCacheKernel",
        name_full=(
            "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, "
            "2u, 4u, 8u, 16u, 2u, flashinfer::DefaultAttention<false, false, false, false>, "
            "flashinfer::BatchDecodeParams<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int>>"
            "(flashinfer::BatchDecodeParams<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int>)"
        ),
        us=180,
        bound="dram",
        flop=flop_totals(fp64=0.0, fp32=3.1e9, fp16=0.0, tensor={"bf16": 0.0}, total=3.1e9),
        flop_total=3.1e9,
        dram_read=542e6,
        dram_write=4e6,
        rates={"dram": 3.033e12, "fp32": 17.2e12, "l2": 3.4e12},
        family="FlashInfer decode",
        category="FMHA",
        role="attention",
        dtype="bf16",
        is_at_roof=True,
        grounds=("3.03 TB/s is 90.5 % of the DRAM roof at the clock of the profile",),
        totals={
            "sm_busy_pct": 41.0,
            "dram_pct": 90.4,
            "achieved_occupancy_pct": 46.2,
            "theoretical_occupancy_pct": 50.0,
            "registers_per_thread": 96,
            "tensor_engagement": "none",
            "occupancy_limiter": ("registers",),
            "stalls": (
                StallShare(reason="long scoreboard", share=0.72),
                StallShare(reason="wait", share=0.11),
            ),
        },
    )


def _rmsnorm() -> KernelVerdict:
    return a_kernel(
        "fused_add_rms_norm_kernel",
        us=26,
        launches=4,
        bound="dram",
        flop=flop_totals(fp64=0.0, fp32=88e6, fp16=0.0, tensor={}, total=88e6),
        flop_total=88e6,
        dram_read=41e6,
        dram_write=29e6,
        rates={"dram": 2.692e12, "fp32": 3.38e12},
        family="RMSNorm",
        category="Elementwise",
        role="norm",
        dtype="bf16",
        is_at_roof=True,
        grounds=("2.69 TB/s is 80.3 % of the DRAM roof at the clock of the profile",),
        totals={"achieved_occupancy_pct": 88.1, "sm_busy_pct": 22.0, "dram_pct": 80.1},
    )


def _silu() -> KernelVerdict:
    return a_kernel(
        "act_and_mul_kernel",
        us=14,
        bound="dram",
        flop=flop_totals(fp64=0.0, fp32=120e6, fp16=0.0, tensor={}, total=120e6),
        flop_total=120e6,
        dram_read=31.5e6,
        dram_write=15.6e6,
        rates={"dram": 3.3645e12, "fp32": 8.57e12},
        family="SiLU",
        category="Elementwise",
        role="activation",
        dtype="bf16",
        is_at_roof=True,
        grounds=("3.36 TB/s is 100.4 % of the DRAM roof at the clock of the profile",),
        totals={"achieved_occupancy_pct": 81.0},
    )


def _all_reduce() -> KernelVerdict:
    return a_kernel(
        "cross_device_reduce_1stage",
        us=35,
        bound="peers",
        launches=2,
        flop=flop_totals(fp64=0.0, fp32=2e6, fp16=0.0, tensor={}, total=2e6),
        flop_total=2e6,
        dram_read=3.1e6,
        dram_write=0.9e6,
        rates={"dram": 0.114e12, "fp32": 0.057e12},
        family="one-shot all-reduce",
        category="NCCL",
        role="collective",
        dtype="bf16",
        is_at_roof=False,
        grounds=("a collective: most of its time it waits for the slowest GPU",),
        findings=(
            Finding(
                code="collective-alone",
                severity=Severity.WARNING,
                where="cross_device_reduce_1stage",
                fact="a collective profiled by kernel replay does not see its peers in step",
                remedy="profile with range replay on all ranks, or take its time from a timeline",
            ),
        ),
        totals={"achieved_occupancy_pct": 24.0},
    )


def _tiny() -> KernelVerdict:
    return a_kernel(
        "apply_penalties_kernel",
        us=2.4,
        bound="too-small",
        flop=flop_totals(fp64=0.0, fp32=4_096.0, fp16=0.0, tensor={}, total=4_096.0),
        flop_total=4_096.0,
        dram_read=96_000.0,
        dram_write=4_000.0,
        rates={"dram": 0.0417e12, "fp32": 0.0017e12},
        grounds=("4 blocks on 132 SMs: 128 SMs have nothing to do",),
        totals={"achieved_occupancy_pct": 6.0, "waves_per_sm": 0.015},
    )


def _percentages_only() -> KernelVerdict:
    missing = "collected with the basic set: no DRAM byte counter"
    return a_kernel(
        "reshape_and_cache_flash_kernel",
        us=9,
        bound="unmeasured",
        absences=(
            Absence(
                field="dram_bytes",
                reason=missing,
                remedy="collect `--metrics dram__bytes_read.sum,dram__bytes_write.sum`",
            ),
            Absence(field="arithmetic_intensity", reason="neither FLOP nor bytes were counted"),
        ),
        grounds=("DRAM is busy 61.0 % and the SMs 14.0 % by ncu's percentages alone",),
        family="KV-cache write",
        role="cache",
        totals={
            "sm_busy_pct": 14.0,
            "dram_pct": 61.0,
            "achieved_occupancy_pct": 71.0,
            "dram_bytes_per_s_estimate": 2.045e12,
        },
    )


def _l2_resident() -> KernelVerdict:
    return a_kernel(
        "rotary_embedding_kernel",
        us=6,
        bound="l2",
        flop=flop_totals(fp64=0.0, fp32=31e6, fp16=0.0, tensor={}, total=31e6),
        flop_total=31e6,
        dram_read=640.0,
        dram_write=0.0,
        rates={"l2": 4.9e12, "fp32": 5.17e12},
        l2_resident=True,
        family="rotary",
        category="Elementwise",
        role="position",
        is_at_roof=False,
        grounds=("DRAM moved 640 B: the working set lies in L2, at 66.1 % of the L2 roof",),
        totals={"achieved_occupancy_pct": 63.0},
    )


def _router() -> KernelVerdict:
    return a_kernel(
        "topkGatingSoftmax",
        us=11,
        bound="latency",
        flop=flop_totals(fp64=0.0, fp32=9.6e6, fp16=0.0, tensor=None),
        flop_total=9.6e6,
        rates={"fp32": 0.87e12},
        family="MoE routing",
        category="MoE",
        role="routing",
        is_at_roof=False,
        absences=(
            Absence(
                field="dram_bytes",
                reason="no DRAM byte counter was collected",
                remedy="collect `--metrics dram__bytes_read.sum,dram__bytes_write.sum`",
            ),
        ),
        grounds=("no roof is above 2 %; 74.0 % of stalled cycles wait for memory",),
        totals={
            "achieved_occupancy_pct": 12.0,
            "stalls": (StallShare(reason="long scoreboard", share=0.74),),
        },
    )


HOSTILE = "evil</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\x1b[31m[bold]"


def a_hostile_analysis() -> Analysis:
    """Names that try to become markup, script, terminal codes or a path."""
    report = a_report(
        "/home/someone/<b>x&y</b>.ncu-rep",
        complete=False,
        issues=(
            Issue(
                code="cut",
                severity=Severity.WARNING,
                what="the file ends inside a block",
                where="/home/someone/<b>x&y</b>.ncu-rep",
            ),
        ),
    )
    return an_analysis(
        a_kernel(
            HOSTILE,
            name_full=HOSTILE + "${x}{{7*7}}#text()`*_$",
            us=10,
            bound="dram",
            flop_total=1e6,
            dram_read=1e6,
            dram_write=1e6,
            rates={"dram": 2e11},
            grounds=("<script>alert(3)</script>",),
            absences=(Absence(field="x", reason="<i>why</i>", remedy="</style>"),),
        ),
        a_gemm(),
        reports=(report,),
    )
