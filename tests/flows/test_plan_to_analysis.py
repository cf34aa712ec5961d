"""A report that holds exactly the planned metrics gives the whole roofline."""

from __future__ import annotations

from pathlib import Path

import pytest

from solscope.flows import plan
from solscope.flows.world import World
from solscope.model.plan import CapturePlan

builder = pytest.importorskip("tests.builder", reason="the report builder is not here yet")

# One SM-clock of 1 GHz and 100 µs: 100,000 cycles. 2 GFLOP of BF16 tensor work and 100 MB.
DURATION_NS = 100_000
CLOCK_HZ = 1e9
TENSOR_FLOP = 2e9
BYTES_EACH_WAY = 50e6
SM_COUNT = 132


def planned(chip: str) -> CapturePlan:
    outcome = plan.run(plan.PlanRequest(chip=chip, level="roofline", dtype="bf16"), World())
    assert isinstance(outcome.value, CapturePlan)
    return outcome.value


def value_of(metric: str) -> float:
    """A value by the metric's name; scalar work is zero, as in a plain GEMM."""
    if metric.startswith("sm__ops_path_tensor"):
        # Dense BF16: 4096 operations per SM and cycle on GH100; more elsewhere does not matter.
        return 4096.0 * SM_COUNT if "peak" in metric else TENSOR_FLOP
    if metric.endswith("peak_sustained"):
        return 1250.0 if metric.startswith("dram__") else 128.0 * SM_COUNT
    if metric.endswith("per_second"):
        return CLOCK_HZ
    if "cycles_elapsed" in metric:
        return CLOCK_HZ * DURATION_NS * 1e-9
    if metric.startswith("dram__bytes"):
        return BYTES_EACH_WAY
    if metric.startswith("lts__"):
        return 2 * BYTES_EACH_WAY / 32
    return {"gpu__time_duration.sum": float(DURATION_NS)}.get(metric, 0.0) or (
        50.0 if "warps_active" in metric else 0.0
    )


@pytest.mark.parametrize(
    ("chip", "device", "capability"),
    [("GH100", "NVIDIA H100 80GB HBM3", (9, 0)), ("GB100", "NVIDIA B200", (10, 0))],
)
def test_the_planned_roofline_metrics_answer_it_with_no_absence(
    chip: str, device: str, capability: tuple[int, int], tmp_path: Path
) -> None:
    from solscope.flows import analyze

    made = planned(chip)
    assert made.passes.predicted <= 4
    metrics = {name: value_of(name) for name in made.metrics.metrics}
    kernel = builder.Kernel("gemm_bf16", metrics=metrics)
    gpu = builder.Device(name=device, capability=capability, sms=SM_COUNT)
    path = tmp_path / "planned.ncu-rep"
    path.write_bytes(builder.report([kernel], device=gpu))
    outcome = analyze.run(analyze.AnalyzeRequest(paths=(str(path),)), World())
    (verdict,) = outcome.value.kernels
    point = verdict.point
    # 2e9 FLOP over 1e8 bytes.
    assert point.intensity == pytest.approx(20.0)
    # 1e8 B in 100 µs is 1e12 B/s of 1250 B/cycle x 1 GHz.
    dram = {s.resource: s.value for s in point.profiled}["dram"]
    assert dram == pytest.approx(0.8)
    assert point.profiled_binding is not None
    assert point.datasheet_binding is not None
    assert verdict.verdict.bound == "dram"
    absent = [a.field for a in (*point.absences, *verdict.absences, *verdict.totals.absences)]
    assert absent == []
