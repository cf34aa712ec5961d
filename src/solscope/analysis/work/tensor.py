"""Tensor-core work of one launch by source data type, each operation counted once.

The names of the tensor data path nest: ``src_T`` is the sum of all ``op_O_src_T``, and each is
the sum of its ``_sparsity_off`` and ``_sparsity_on``. Adding them all counts work two or three
times, so per type the first form that was collected is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from solscope.analysis.work.counters import (
    Ledger,
    counter_sum,
    first,
    number,
)
from solscope.analysis.work.opcodes import Opcodes, without_counter
from solscope.model.report import KernelLaunch, Metrics

STEM = "sm__ops_path_tensor_"
_OFF, _ON = "_sparsity_off", "_sparsity_on"
_NAME = re.compile(r"^sm__ops_path_tensor_(?:op_(?P<op>[a-z0-9]+)_)?(?P<src>src_[a-z0-9_]+)$")

# Shape digits of legacy MMA opcodes -> (m, n, k). One warp instruction does 2 x m x n x k.
_SHAPES: Mapping[str, tuple[int, int, int]] = {
    "884": (8, 8, 4),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "88128": (8, 8, 128),
}
# HMMA.884 works on four quad pairs at once; ncu itself weighs it with 512 per warp instruction.
_MMA = ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA")
_WARPGROUP = ("HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTCHMMA", "UTCQMMA", "UTCOMMA", "UTCIMMA")

FP16_ACCUMULATE = "_fp16acc"

NO_TENSOR_CORES = re.compile(r"GTX 16\d\d|\bMX\d50\b|TU11[67]")
"""Turing parts without tensor cores share their compute capability with those that have them."""

_WARPGROUP_INSTRUCTIONS = "sm__inst_executed_pipe_tensor_op_gmma.sum"
_UNCOVERED = (
    "wgmma (warpgroup) instructions were executed, and no counter that was collected counts "
    "them: the hmma counter does not cover wgmma, and each counter covers its data type only"
)
_REMEDY = (
    "collect the tensor counter of the kernel's data type, such as `--metrics "
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum` (ncu 2024.1 and newer; `--set full` from 2025.1)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorWork:
    """OP by source type; ``dense`` is ``None`` where nothing tells. ``is_legacy`` where only
    warp-level MMA did work on a chip that has a warpgroup path."""

    dense: Mapping[str, float] | None
    sparse: Mapping[str, float] = field(default_factory=dict)
    engagement: str | None = None


def tensor_work(launch: KernelLaunch, time_ns: float | None, ledger: Ledger) -> TensorWork:
    """Tensor work of a launch, from the data-path counters, else from the opcode histogram,
    else zero where the pipe is known to have been idle."""
    metrics = launch.metrics
    dense, sparse = _from_data_path(metrics, time_ns)
    if dense is not None and _misses_warpgroups(metrics, dense, sparse):
        ledger.miss("flop.tensor", _UNCOVERED, _REMEDY)
        return TensorWork(dense=None, engagement="wgmma")
    if dense is not None:
        return TensorWork(
            dense=dense, sparse=sparse, engagement=_engagement(metrics, dense, sparse)
        )
    histogram = Opcodes(metrics, "sass__inst_executed_per_opcode_with_modifier_all")
    if histogram:
        return _from_histogram(histogram, ledger)
    if _has_no_tensor_cores(launch):
        return TensorWork(dense={}, engagement="none")
    busy = pipe_busy(metrics)
    if busy == 0:
        return TensorWork(dense={}, engagement="none")
    reason = "no tensor operation counter was collected"
    if busy is not None:
        reason += f" (tensor pipe {busy:.1f} % busy)"
    executed = sum(number(metrics, f"{pipe}.sum") or 0 for pipe in _HMMA_PIPE)
    if executed > 0:
        reason += (
            f"; {executed:,.0f} instructions ran in the hmma pipe, which is not only fp16: BF16, "
            "TF32, FP8 where the chip has it, and HFMA2 moves run there too"
        )
    ledger.miss("flop.tensor", *without_counter(reason, _REMEDY, histogram))
    return TensorWork(dense=None, engagement=_engagement_by_pipe(metrics))


def _misses_warpgroups(
    metrics: Metrics, dense: Mapping[str, float], sparse: Mapping[str, float]
) -> bool:
    """Whether warpgroup instructions ran that none of the collected counters counts: only
    warp-level ones (``hmma``, ``imma``) were collected, or those of another data type."""
    if (number(metrics, _WARPGROUP_INSTRUCTIONS) or 0) <= 0:
        return False
    operations = {op for collected in _groups(metrics).values() for op in collected}
    covers = any(op == "" or op.endswith("gmma") for op in operations)
    return not covers or not (any(dense.values()) or any(sparse.values()))


def _from_data_path(
    metrics: Metrics, time_ns: float | None
) -> tuple[dict[str, float] | None, dict[str, float]]:
    groups = _groups(metrics)
    if not groups:
        return None, {}
    dense: dict[str, float] = {}
    sparse: dict[str, float] = {}
    complete = False
    for source, forms in groups.items():
        off, on = _once(metrics, source, forms, time_ns)
        if off is None:
            continue
        complete = True
        label = path_label(source)
        if off:
            dense[label] = dense.get(label, 0.0) + off
        if on:
            sparse[label] = sparse.get(label, 0.0) + on
    return (dense, sparse) if complete else (None, {})


def _groups(metrics: Metrics) -> dict[str, set[str]]:
    """Source type -> the operations (``""`` for the bare group) that were collected for it."""
    groups: dict[str, set[str]] = {}
    for name in metrics.starting(STEM):
        if "realtime" in name:
            continue
        base, _, rollup = name.partition(".")
        if not rollup.startswith("sum") or "peak" in rollup or "pct" in rollup:
            continue
        match = _NAME.match(base)
        if match is None:
            continue
        source = match["src"].removesuffix(_OFF).removesuffix(_ON)
        groups.setdefault(source, set()).add(match["op"] or "")
    return groups


def _once(
    metrics: Metrics, source: str, operations: set[str], time_ns: float | None
) -> tuple[float | None, float]:
    """(dense or undivided OP, sparse OP) of one source type, each counted once."""
    if "" in operations:
        found = _split(metrics, STEM + source, time_ns)
        if found is not None:
            return found
    parts = [
        _split(metrics, f"{STEM}op_{operation}_{source}", time_ns)
        for operation in sorted(operations - {""})
    ]
    known = [part for part in parts if part is not None]
    if not known:
        return None, 0.0
    return sum(part[0] for part in known), sum(part[1] for part in known)


def _split(metrics: Metrics, counter: str, time_ns: float | None) -> tuple[float, float] | None:
    on = counter_sum(metrics, counter + _ON, time_ns)
    off = counter_sum(metrics, counter + _OFF, time_ns)
    if off is not None and on is not None:
        return off, on
    bare = counter_sum(metrics, counter, time_ns)
    if bare is not None:
        return (bare - on, on) if on is not None else (bare, 0.0)
    return None if off is None else (off, 0.0)


def type_label(source: str) -> str:
    """The source type as a ceiling names it.

    >>> type_label("src_bf16_dst_fp32"), type_label("src_fp4_fp6_fp8_dst_fp32")
    ('bf16', 'fp8')
    """
    types = source.removeprefix("src_").split("_dst_")[0]
    if types == "fp16_bf16_tf32":
        return "fp16"  # Turing has FP16 only; the name covers what later chips add
    if "_" in types:
        return types.rsplit("_", 1)[1]
    return "nvfp4" if types == "fp4" else types


def path_label(source: str) -> str:
    """The source type, told apart by accumulator where the name tells.

    GeForce parts multiply FP16 with FP16 accumulation at twice the rate of FP32 accumulation, so
    the two stand under different peaks.

    >>> path_label("src_fp16_dst_fp16"), path_label("src_fp16_dst_fp32"), path_label("src_fp16")
    ('fp16_fp16acc', 'fp16', 'fp16')
    """
    label = type_label(source)
    return label + FP16_ACCUMULATE if source.endswith("_dst_fp16") else label


def _from_histogram(histogram: Opcodes, ledger: Ledger) -> TensorWork:
    dense: dict[str, float] = {}
    sparse: dict[str, float] = {}
    for opcode, warps in histogram.counts.items():
        name, *modifiers = opcode.split(".")
        if name in _WARPGROUP:
            # The shape arithmetic of warpgroup instructions is not verified: say so.
            ledger.miss(
                "flop.tensor",
                f"{name} instructions were executed, but no tensor operation counter collected",
                _REMEDY,
            )
            return TensorWork(dense=None, engagement="wgmma")
        if name not in _MMA:
            continue
        shape = next((_SHAPES[m] for m in modifiers if m in _SHAPES), None)
        if shape is None:
            ledger.miss("flop.tensor", f"opcode {opcode} of unknown shape was executed", _REMEDY)
            return TensorWork(dense=None, engagement="legacy-mma")
        work = 2.0 * shape[0] * shape[1] * shape[2] * warps
        target = sparse if "SP" in modifiers else dense
        label = _opcode_type(name, modifiers)
        target[label] = target.get(label, 0.0) + work
    engagement = "legacy-mma" if dense or sparse else "none"
    return TensorWork(dense=dense, sparse=sparse, engagement=engagement)


def _opcode_type(name: str, modifiers: list[str]) -> str:
    if name == "DMMA":
        return "fp64"
    if name == "BMMA":
        return "int1"
    if name == "QMMA":
        return "fp8"
    if name == "OMMA":
        return "nvfp4"
    if name == "IMMA":
        return "int4" if any(m in ("S4", "U4") for m in modifiers) else "int8"
    if "BF16" in modifiers:
        return "bf16"
    if "TF32" in modifiers:
        return "tf32"
    return "fp16" if "F32" in modifiers else "fp16" + FP16_ACCUMULATE


def _has_no_tensor_cores(launch: KernelLaunch) -> bool:
    capability = launch.device.compute_capability
    if capability is not None and capability < (7, 0):
        return True
    return capability == (7, 5) and bool(NO_TENSOR_CORES.search(launch.device.name or ""))


_PIPE_COUNTERS = (
    "sm__pipe_tensor_cycles_active",
    "sm__pipe_tc_cycles_active",
    "sm__inst_executed_pipe_tensor",
    "sm__inst_executed_pipe_tc",
)
_PIPE_ROLLUPS = (
    ".avg.pct_of_peak_sustained_elapsed",
    ".avg.pct_of_peak_sustained_active",
)
_LEGACY_PIPES = (
    "sm__pipe_tensor_op_hmma_cycles_active",
    "sm__pipe_tensor_op_imma_cycles_active",
    "sm__pipe_tensor_op_dmma_cycles_active",
    "sm__inst_executed_pipe_tensor_op_hmma",
    "sm__inst_executed_pipe_tensor_op_imma",
    "sm__inst_executed_pipe_tensor_op_dmma",
    "sm__pipe_tensor_subpipe_hmma_cycles_active",
    "sm__pipe_tensor_subpipe_imma_cycles_active",
)
_HMMA_PIPE = (
    "sm__inst_executed_pipe_tensor_op_hmma",
    "sm__inst_executed_pipe_tensor_subpipe_hmma",
)
"""Named after the instructions' class, not after a data type (H is no `half`)."""

_WARPGROUP_PIPES = ("sm__inst_executed_pipe_tensor_op_gmma", "sm__pipe_tc_cycles_active")


def pipe_busy(metrics: Metrics) -> float | None:
    """Tensor pipe busy in percent, over all the pipe's names; ``None`` where none was collected.

    Busy is not FLOP/s: a legacy MMA keeps the pipe busy at a quarter to two thirds of its rate.
    """
    values = [
        value
        for counter in _PIPE_COUNTERS
        if (value := first(metrics, [counter + rollup for rollup in _PIPE_ROLLUPS])) is not None
    ]
    return max(values, default=None)


def _any(metrics: Metrics, counters: tuple[str, ...]) -> bool | None:
    values = [
        value
        for counter in counters
        for rollup in (*_PIPE_ROLLUPS, ".sum")
        if (value := number(metrics, counter + rollup)) is not None
    ]
    return any(v > 0 for v in values) if values else None


def _engagement(
    metrics: Metrics, dense: Mapping[str, float], sparse: Mapping[str, float]
) -> str | None:
    """none, legacy-mma (warp level) or wgmma (warpgroup level, tcgen05 on Blackwell)."""
    if not dense and not sparse:
        return "none"
    operations = {
        match["op"]
        for name in metrics.starting(STEM + "op_")
        if (match := _NAME.match(name.split(".")[0])) and (number(metrics, name) or 0) > 0
    }
    if any(op is not None and (op.endswith("gmma") or op.startswith("utc")) for op in operations):
        return "wgmma"
    if operations:
        return "legacy-mma"
    return _engagement_by_pipe(metrics)


def _engagement_by_pipe(metrics: Metrics) -> str | None:
    warpgroup = _any(metrics, _WARPGROUP_PIPES)
    if warpgroup:
        return "wgmma"
    busy = pipe_busy(metrics)
    if busy == 0:
        return "none"
    legacy = _any(metrics, _LEGACY_PIPES)
    # HFMA2 constant moves run on this pipe too, so a little activity proves no tensor work.
    if legacy and busy is not None and busy >= 1.0:
        return "legacy-mma"
    return None
