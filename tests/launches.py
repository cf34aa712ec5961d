"""Launches and kernels made by hand, for tests whose numbers can be checked by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solscope.model.report import (
    Device,
    Instance,
    KernelLaunch,
    MetricValue,
    PlainMetrics,
    WorkloadKind,
)

H100 = Device(
    name="NVIDIA H100 80GB HBM3",
    compute_capability=(9, 0),
    sm_count=132,
    ordinal=0,
    max_sm_clock_khz=1_980_000,
    max_memory_clock_khz=2_619_000,
    memory_bus_width_bits=5120,
)
PCT = ".avg.pct_of_peak_sustained_elapsed"
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = "sm__ops_path_tensor_"


def sass(**counts: float) -> dict[str, MetricValue]:
    """SASS counters; operations that are not named count zero."""
    names = ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma", "dadd", "dmul", "dfma")
    return {SASS.format(n): counts.get(n, 0) for n in (*names, *(set(counts) - set(names)))}


def launch(
    metrics: Mapping[str, MetricValue],
    *,
    instances: Mapping[str, Mapping[str, float]] | None = None,
    device: Device = H100,
    **fields: Any,
) -> KernelLaunch:
    """One launch of a kernel called axpy, 1000 blocks of 128 threads, unless told otherwise."""
    lists = {
        name: tuple(Instance(key, value) for key, value in content.items())
        for name, content in (instances or {}).items()
    }
    values = {
        "index": 0,
        "kind": WorkloadKind.KERNEL,
        "name": "axpy",
        "name_full": "axpy(float *)",
        "grid": (1000, 1, 1),
        "block": (128, 1, 1),
        "process_id": 1,
        **fields,
    }
    return KernelLaunch(metrics=PlainMetrics(metrics, lists), device=device, **values)
