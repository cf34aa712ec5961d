"""Whether a capture can carry a verdict on its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solscope.model.budget import QualityGate, StepSource
from solscope.model.trace import TimelineReport

ENOUGH_STEPS = 5
MAX_LEFT_OUT = 0.2

GRAPHS, RECORDED, HOST, WHOLE, MARKED, STEPS, STEADY = (
    "graphs seen",
    "kernels recorded",
    "host undisturbed",
    "capture whole",
    "steps marked",
    "steps enough",
    "steps steady",
)


def check(
    report: TimelineReport, source: StepSource, *, used: int, left_out: int, work: bool
) -> Iterator[QualityGate]:
    """Every gate with what was found."""
    yield _recorded(report, work)
    yield _graphs(report)
    yield _host(report)
    yield _whole(report)
    yield QualityGate(
        name=MARKED,
        passed=source.kind != "window",
        fact=f"{source.label}: the whole capture counts as one step"
        if source.kind == "window"
        else f"steps by {source.label}",
        remedy="name the steps with --step REGEX, or capture with the engine's NVTX marks",
    )
    yield QualityGate(
        name=STEPS,
        passed=used >= ENOUGH_STEPS,
        fact=f"{used} steps" if used != 1 else "1 step",
        remedy=f"capture at least {ENOUGH_STEPS + 1} steps",
    )
    total = used + left_out
    yield QualityGate(
        name=STEADY,
        passed=left_out <= MAX_LEFT_OUT * total,
        fact=f"{left_out} of {total} steps are far longer than the median, and left out",
        remedy="capture under a steady load, after warm-up",
    )


def blocking(checks: Sequence[QualityGate], verdict: str) -> list[QualityGate]:
    """The failed gates that forbid this verdict.

    Missing GPU work makes other parts look longer than they are; a slowed host and a capture
    without steps lengthen only the host gap. None of these can make a step look kernel-bound
    that is not, so that verdict only needs kernels.
    """
    forbidding = {RECORDED}
    if verdict != "kernel-bound":
        forbidding |= {GRAPHS, WHOLE}
    if verdict == "host-bound":
        forbidding |= {HOST, MARKED}
    return [gate for gate in checks if not gate.passed and gate.name in forbidding]


def _recorded(report: TimelineReport, work: bool) -> QualityGate:
    count = f"{report.kernels.num_rows} kernels and {report.graphs.num_rows} graph replays"
    return QualityGate(
        name=RECORDED,
        passed=work,
        fact=count if work else f"{count} in the capture, none begins within the steps",
        remedy="see the absences of the report (`solscope read FILE`), or name other steps",
    )


def _graphs(report: TimelineReport) -> QualityGate:
    """Graph launches must show as replays, as nodes, or as more kernels than launch calls."""
    import pyarrow.compute as pc

    launches = report.graph_launches or 0
    nodes = pc.sum(pc.is_valid(report.kernels["graph_node"])).as_py() or 0
    singles = report.kernel_launches or 0
    seen = report.graphs.num_rows > 0 or nodes > 0 or report.kernels.num_rows > singles
    return QualityGate(
        name=GRAPHS,
        passed=launches == 0 or seen,
        fact=f"{launches} graph launches; {report.graphs.num_rows} replays and {nodes} graph "
        f"kernels recorded",
        remedy="capture with --cuda-graph-trace=graph (cheap) or node (every kernel)",
    )


def _host(report: TimelineReport) -> QualityGate:
    slowed = report.host_slowed_by
    return QualityGate(
        name=HOST,
        passed=slowed is None,
        fact="nothing heavy was recorded on the host"
        if slowed is None
        else f"{slowed}: host gaps are longer than unobserved",
        remedy="capture without stacks, shapes and memory records",
    )


def _whole(report: TimelineReport) -> QualityGate:
    lost = [i.what for i in report.issues if "Not all CUDA events" in i.what]
    return QualityGate(
        name=WHOLE,
        passed=report.complete and not lost,
        fact=lost[0] if lost else "no loss of events is reported",
        remedy="capture a shorter window",
    )
