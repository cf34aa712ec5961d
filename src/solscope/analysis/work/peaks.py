"""The peaks that a report states, at the clock of the profile."""

from __future__ import annotations

from solscope.analysis.work.counters import first, number
from solscope.analysis.work.tensor import STEM, path_label
from solscope.model.kernel import LaunchPeaks
from solscope.model.report import KernelLaunch, Metrics

_FMA = "__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained"

# An FMA is two operations; a packed half FMA does two lanes of it.
_SCALAR_WEIGHTS = {"fp64": ("dfma", 2.0), "fp32": ("ffma", 2.0), "fp16": ("hfma", 4.0)}


def peaks(launch: KernelLaunch) -> LaunchPeaks:
    """Peaks per second of one launch; what the report does not hold is ``None``."""
    metrics = launch.metrics
    sm_clock = _clock(
        first(
            metrics,
            (
                "sm__cycles_elapsed.avg.per_second",
                "smsp__cycles_elapsed.avg.per_second",
                "gpc__cycles_elapsed.avg.per_second",
            ),
        )
    )
    dram_clock = _clock(number(metrics, "dram__cycles_elapsed.avg.per_second"))
    scalar = {
        precision: _scalar_peak(metrics, operation, weight, sm_clock)
        for precision, (operation, weight) in _SCALAR_WEIGHTS.items()
    }
    return LaunchPeaks(
        sm_clock_hz=sm_clock,
        dram_clock_hz=dram_clock,
        fp64_flop_per_s=scalar["fp64"],
        fp32_flop_per_s=scalar["fp32"],
        fp16_flop_per_s=scalar["fp16"],
        tensor_flop_per_s=_tensor_peaks(metrics, sm_clock),
        dram_bytes_per_s=_product(number(metrics, "dram__bytes.sum.peak_sustained"), dram_clock),
        l2_bytes_per_s=_l2_peak(metrics),
    )


def _clock(hertz: float | None) -> float | None:
    """A clock that was measured. One of zero (a page with too few digits, an edited file) is none,
    and has no peak."""
    return hertz if hertz is not None and hertz > 0 else None


def _product(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None or a * b <= 0 else a * b


def _scalar_peak(
    metrics: Metrics, operation: str, weight: float, clock: float | None
) -> float | None:
    per_cycle = first(metrics, ["sm" + _FMA.format(operation), "smsp" + _FMA.format(operation)])
    return _product(None if per_cycle is None else weight * per_cycle, clock)


def _tensor_peaks(metrics: Metrics, clock: float | None) -> dict[str, float]:
    """Dense peak by source type: only ``_sparsity_off`` names, or names that have no pair.

    A name without suffix holds the 2:4-sparse peak wherever a pair exists. Within a type the
    fastest instruction's peak counts (the warpgroup path on Hopper).
    """
    if clock is None:
        return {}
    suffix = ".sum.peak_sustained"
    found: dict[str, float] = {}
    for name in metrics.starting(STEM):
        if not name.endswith(suffix) or "realtime" in name:
            continue
        base = name.removesuffix(suffix)
        if not base.endswith("_sparsity_off") and not _has_no_pair(base):
            continue
        value = number(metrics, name)
        if value is None or value <= 0:
            continue
        source = base[base.index("src_") :].removesuffix("_sparsity_off")
        label = path_label(source)
        found[label] = max(found.get(label, 0.0), value * clock)
    return found


def _has_no_pair(base: str) -> bool:
    return base.endswith(("src_fp64", "src_int1"))


def _l2_peak(metrics: Metrics) -> float | None:
    """ncu's L2 roof: the return path to the SMs, 32 bytes a cycle and slice."""
    per_cycle = number(metrics, "lts__lts2xbar_cycles_active.sum.peak_sustained")
    clock = number(metrics, "lts__cycles_elapsed.avg.per_second")
    return _product(None if per_cycle is None else 32.0 * per_cycle, clock)
