"""Campaigns built by hand, complete and proven, for tests to break one thing at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from solscope.model.campaign import Arm, Campaign, CampaignConfig, CaptureCheck, Cell, NextLever
from solscope.model.context import (
    Grounding,
    Identity,
    MeasurementContext,
    Parallelism,
    Regime,
    Serving,
    Stack,
    Trials,
    Workload,
)
from solscope.model.kernel import MetricSet
from solscope.model.verdict import KernelVerdict
from tests import analyses

CONTEXT = MeasurementContext(
    identity=Identity(
        model="toy-70b",
        model_path="toy/toy-70b",
        hardware="H100",
        quantization="bf16",
        kv_cache_dtype="bf16",
    ),
    parallelism=Parallelism(tensor=8, data=1, pipeline=1, expert=1, strategy="tp"),
    serving=Serving(
        max_num_seqs=256,
        max_num_batched_tokens=8192,
        gpu_memory_utilization=0.85,
        max_model_len=8192,
        cudagraph_mode="FULL",
        async_scheduling=True,
        prefix_caching=False,
    ),
    workload=Workload(
        dataset="random", input_tokens=1024, output_tokens=256, concurrency=64, num_prompts=512
    ),
    regime=Regime(state="warm", tier="throughput"),
    stack=Stack(engine="vllm", version="0.9.1", image="example/vllm:0.9.1", bench_backend="vllm"),
    grounding=Grounding(
        ceiling_key="h100_sxm",
        sol_rigor="L4",
        trials=Trials(n=5, mean=12.1, std=0.3, quantity="TPOT", unit="ms"),
        same_node=True,
        baseline="cuBLAS nvjet",
        baseline_is_production=True,
    ),
)

BASELINE_TRIALS = Trials(n=5, mean=14.0, std=0.2, quantity="TPOT", unit="ms")


def grounded(**changes: Any) -> MeasurementContext:
    """The complete context with other grounding."""
    return dataclasses.replace(CONTEXT, grounding=dataclasses.replace(CONTEXT.grounding, **changes))


def a_tensor_kernel(**changes: Any) -> KernelVerdict:
    """200 GFLOP of tensor work in 240 µs: 833 TFLOP/s, 88 % of 948.9 TFLOP/s."""
    base: dict[str, Any] = {
        "us": 240,
        "bound": "tensor:bf16",
        "flop": analyses.flop_totals(
            fp64=0.0, fp32=1e9, fp16=0.0, tensor={"bf16": 200e9}, total=201e9
        ),
        "flop_total": 201e9,
        "dram_read": 200e6,
        "dram_write": 50e6,
        "rates": {"tensor:bf16": 833.3e12, "dram": 1.04e12},
        "is_at_roof": True,
        "grounds": ("tensor BF16 87.8 % of its roof",),
        "totals": {
            "tensor_engagement": "wgmma",
            "intensity_pair": (201e9, 250e6),
            "sm_busy_pct": 92.0,
        },
    }
    base.update(changes)
    return analyses.a_kernel(base.pop("name", "nvjet_tst_128x256"), **base)


def a_fma_kernel(**changes: Any) -> KernelVerdict:
    """10 GFLOP of FP32 in 400 µs: 25 TFLOP/s, 42 % of 59.3 TFLOP/s, no tensor core."""
    base: dict[str, Any] = {
        "us": 400,
        "bound": "fp32",
        "flop": analyses.flop_totals(fp64=0.0, fp32=10e9, fp16=0.0, tensor={}, total=10e9),
        "flop_total": 10e9,
        "dram_read": 200e6,
        "dram_write": 50e6,
        "rates": {"fp32": 25e12, "dram": 0.625e12},
        "is_at_roof": False,
        "grounds": ("FP32 42.2 % of its roof",),
        "totals": {"tensor_engagement": "none", "intensity_pair": (10e9, 250e6)},
    }
    base.update(changes)
    return analyses.a_kernel(base.pop("name", "warp_decode_kernel"), **base)


def a_busy_kernel(busy: float = 90.0, **changes: Any) -> KernelVerdict:
    """What `--set basic` gives: SM busy, no FLOP, no bytes."""
    base: dict[str, Any] = {
        "us": 100,
        "bound": "unmeasured",
        "grounds": ("SM busy; no FLOP was counted",),
        "totals": {"sm_busy_pct": busy, "dram_pct": 20.0},
    }
    base.update(changes)
    return analyses.a_kernel(base.pop("name", "sm100_fp8_fp4_gemm_1d1d"), **base)


def a_starved_gemm(share_of_peak: float, busy: float = 90.0) -> KernelVerdict:
    """The FP8 GEMM of the worked case: busy SMs, little of the FLOP peak."""
    return a_tensor_kernel(
        name="sm100_fp8_fp4_gemm_1d1d",
        bound="latency",
        rates={"tensor:bf16": share_of_peak * 948.9e12},
        is_at_roof=False,
        totals={
            "tensor_engagement": "wgmma",
            "intensity_pair": (201e9, 250e6),
            "sm_busy_pct": busy,
        },
    )


METRICS = MetricSet(count=120, sha256="0f" * 32)


def with_metric_set(row: KernelVerdict, metrics: MetricSet = METRICS) -> KernelVerdict:
    """The same kernel, profiled with these metrics where it does not say with which."""
    found = row.totals.metric_set or metrics
    return dataclasses.replace(row, totals=dataclasses.replace(row.totals, metric_set=found))


def a_cell(
    *kernels: KernelVerdict,
    cell_id: str = "candidate",
    context: MeasurementContext = CONTEXT,
    report: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Cell:
    """A sealed cell of one report."""
    analysis = analyses.an_analysis(
        *map(with_metric_set, kernels),
        reports=(analyses.a_report("decode.ncu-rep", **(report or {})),),
        chips=(analyses.a_chip(),),
    )
    values: dict[str, Any] = {
        "id": cell_id,
        "analysis": analysis,
        "hw_key": "h100_sxm",
        "captured_sources": ("ncu",),
        "context": context,
        "capture": CaptureCheck(problems=(), is_sealed=True),
        "run_id": "run-1",
        "added_at": "2026-01-01T00:00:00+00:00",
    }
    values.update(changes)
    return Cell(**values)


def an_arm(grades: str, cell: str, name: str = "a library", kernel: str | None = None) -> Arm:
    """An arm from grades such as ``K4/R1/H4/P4/A1``."""
    axes = {part[0]: int(part[1:]) for part in grades.split("/")}
    return Arm(name=name, axes={"P": 1, "A": 1, **axes}, cell=cell, kernel=kernel)


def a_config(**changes: Any) -> CampaignConfig:
    """An exempt campaign with a stated next lever."""
    values: dict[str, Any] = {
        "name": "Decode",
        "krhpa_exempt_reason": "stock engine",
        "next_lever": NextLever(what="fuse the norm", unlock="2 % of TPOT", gate="trials n=5"),
    }
    values.update(changes)
    return CampaignConfig(**values)


def a_campaign(*cells: Cell, **config: Any) -> Campaign:
    """A campaign that every gate passes, unless a cell or the config says otherwise."""
    given = cells or (a_cell(a_tensor_kernel()),)
    return Campaign(slug="decode", config=a_config(**config), cells=given)


def a_comparison(
    candidate: str = "K4/R1/H4/P4",
    baseline: str = "K4/R1/H4/P4",
    *,
    ours: Cell | None = None,
    theirs: Cell | None = None,
    **config: Any,
) -> Campaign:
    """Two arms in two cells, both on tensor cores, measured alike."""
    one = ours or a_cell(a_tensor_kernel(name="my_gemm"))
    other = theirs or a_cell(a_tensor_kernel(), cell_id="baseline")
    if other.context.grounding.trials == CONTEXT.grounding.trials:
        grounding = dataclasses.replace(other.context.grounding, trials=BASELINE_TRIALS)
        context = dataclasses.replace(other.context, grounding=grounding)
        other = dataclasses.replace(other, context=context)
    return a_campaign(
        one,
        other,
        krhpa_exempt_reason=None,
        candidate=an_arm(candidate, one.id, "my GEMM"),
        baseline=an_arm(baseline, other.id, "cuBLAS nvjet"),
        **config,
    )
