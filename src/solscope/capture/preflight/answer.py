"""Findings to one answer: a strategy, a refusal, or the question that decides."""

from __future__ import annotations

from collections.abc import Sequence

from solscope.capture.preflight import parallel
from solscope.capture.preflight.counters import STRICT_LEVELS
from solscope.capture.preflight.view import namespace_level, was_looked_inside
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity
from solscope.model.plan import Strategy
from solscope.model.preflight import Answer, Preflight, StrategyVerdict

_NEVER_ATTACHED = (
    "nothing listens on ports 49152 to 49215 (or nobody looked): no endpoint, nothing to attach "
    "to; no release that was examined opens one by a variable"
)


def decide(workload: WorkloadSnapshot, findings: Sequence[Finding]) -> Preflight:
    """The answer: blocking findings refuse it, an open decisive question leaves it open."""
    blocking = [f for f in findings if f.blocks]
    codes = {f.code for f in findings}
    reason = _harness_reason(workload)
    questions = _decisive(workload, codes)
    if blocking:
        first = blocking[0]
        more = f" (and {len(blocking) - 1} more)" if len(blocking) > 1 else ""
        answer, strategy = Answer.REFUSED, Strategy.NONE
        line = f"refused: {first.fact}{more} [{first.code}]"
    elif questions:
        answer, strategy = Answer.UNDETERMINED, Strategy.NONE
        line = f"undetermined: {questions[0]}"
    elif reason:
        answer, strategy = Answer.POSSIBLE, Strategy.HARNESS
        line = f"harness: replay single operations outside the engine, because {reason}"
    else:
        answer, strategy = Answer.POSSIBLE, Strategy.LAUNCH
        line = _launch_line(codes)
    if answer is Answer.POSSIBLE:
        questions = _to_confirm(workload, codes)
        line += _condition(codes)
    return Preflight(
        answer=answer,
        strategy=strategy,
        line=line,
        questions=tuple(questions),
        strategies=_strategies(workload, blocking, questions, answer, reason),
        findings=tuple(_ordered(findings)),
        snapshot=workload,
    )


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    rank = {Severity.BLOCKS: 0, Severity.WARNING: 1, Severity.INFO: 2}
    return sorted(findings, key=lambda f: rank[f.severity])


def _harness_reason(workload: WorkloadSnapshot) -> str | None:
    engine = workload.engine
    if engine is None:
        return None
    ranks = engine.gpus_per_replica or 1
    if ranks > 1:
        return f"{ranks} ranks exchange data and cannot be replayed one kernel at a time"
    moe = parallel.is_moe(engine)
    if moe:
        return f"the model routes to experts ({moe})"
    sparse = parallel.is_sparse(engine)
    return f"attention is sparse ({sparse})" if sparse else None


def _decisive(workload: WorkloadSnapshot, codes: set[str]) -> list[str]:
    """Questions without whose answer neither yes nor no can be said."""
    asked: list[str] = []
    if workload.container is None:
        names = workload.gpu_containers or tuple(c.name for c in workload.template.containers)
        what = "use GPUs" if workload.gpu_containers else "may be the server"
        asked.append(f"which container? {', '.join(names)} {what}: name one with --container")
        return asked
    if "server-command-unknown" in codes or (
        "command-from-image" in codes and workload.engine and workload.engine.engine != "vllm"
    ):
        asked.append(
            "what starts the server? read /proc/1/cmdline in the live container (--exec), or ask "
            "the image's owner for its entrypoint"
        )
    if "pods-made-by-a-controller" in codes and not workload.pods:
        asked.append(
            f"which pods does {workload.reference} make? name the Deployment or pod that its "
            "controller made"
        )
    if "gpu-not-requested" in codes and "cuda" not in _devices(workload):
        asked.append(
            "which GPU does the container get? it requests none: look inside the live pod "
            "(--exec), or state nvidia.com/gpu in its limits"
        )
    level, _ = namespace_level(workload)
    if "counter-permission-unknown" in codes and level in STRICT_LEVELS:
        asked.append(
            f"does the node let users read counters? the namespace ({level}) refuses the "
            "capability that would replace it: --exec, or ask the node's owner for "
            "RmProfilingAdminOnly"
        )
    return asked


def _devices(workload: WorkloadSnapshot) -> str:
    inside = workload.inside
    return "cuda" if inside is not None and inside.text("devices") else ""


def _to_confirm(workload: WorkloadSnapshot, codes: set[str]) -> list[str]:
    """What must be settled before the capture; the answer stands without it."""
    asked: list[str] = []
    node = workload.node.name if workload.node else "the node"
    if "counter-permission-unknown" in codes:
        line = "`grep RmProfilingAdminOnly /proc/driver/nvidia/params`"
        how = (
            f"not to be seen from inside; {line} on the node"
            if was_looked_inside(workload)
            else f"`solscope preflight ... --exec`, or {line} in the container"
        )
        asked.append(f"counters on {node}: {how}; 1 means that the sister needs CAP_SYS_ADMIN")
    if "counter-permission" in codes:
        asked.append("counters: the sister needs CAP_SYS_ADMIN, or the driver's restriction lifted")
    if "gpu-unknown" in codes:
        asked.append(
            "the GPU: a node's label nvidia.com/gpu.product, or nvidia-smi; `plan` needs it"
        )
    if "command-from-image" in codes:
        asked.append(
            "the entrypoint: /proc/1/cmdline in a live container (--exec) shows it, and the sister "
            "takes it by --server-command"
        )
    if "cuda-version-unknown" in codes or "cuda-version-skew" in codes:
        asked.append(
            "the CUDA generations of image and driver: the tools image must be the driver's"
        )
    if "counter-holders-unknown" in codes:
        asked.append("whether DCGM watches DCGM_FI_PROF_* fields on the node: its operator knows")
    return asked


def _condition(codes: set[str]) -> str:
    if "counter-permission" in codes:
        return "; the sister needs CAP_SYS_ADMIN on this node"
    if "counter-permission-unknown" in codes:
        return ", provided that counters may be read on the node"
    return ""


def _launch_line(codes: set[str]) -> str:
    unset = " with the injection variable unset" if "injection-slot-taken" in codes else ""
    return f"launch: a sister runs the server under ncu{unset}, window opened after warm-up"


def _strategies(
    workload: WorkloadSnapshot,
    blocking: Sequence[Finding],
    questions: Sequence[str],
    answer: Answer,
    harness: str | None,
) -> tuple[StrategyVerdict, ...]:
    closed = None
    if blocking:
        closed = f"refused: {blocking[0].code}"
    elif answer is Answer.UNDETERMINED:
        closed = "undetermined: " + questions[0].partition("?")[0] + "?"
    in_engine = closed or (f"not in the engine: {harness}" if harness else None)

    def verdict(strategy: Strategy, closed_by: str | None, reason: str) -> StrategyVerdict:
        return StrategyVerdict(
            strategy=strategy, is_open=closed_by is None, reason=closed_by or reason
        )

    return (
        verdict(
            Strategy.LAUNCH,
            in_engine,
            "the server starts under ncu; kernels outside the window run at nearly full speed",
        ),
        verdict(
            Strategy.ATTACH,
            in_engine,
            "the server starts under `ncu --mode launch` and stands still at its first CUDA call "
            "until a second ncu attaches from a sidecar: attach first, then wait for readiness",
        ),
        verdict(
            Strategy.PRELOAD,
            closed or (None if _endpoint(workload) else _NEVER_ATTACHED),
            "unverified: something listens in ncu's port range; attach to it must be tried first",
        ),
        verdict(
            Strategy.HARNESS,
            closed,
            harness or "possible for any single operation, not needed here",
        ),
    )


def _endpoint(workload: WorkloadSnapshot) -> bool:
    """Whether a socket listens in the port range of ncu's connection (49152 to 49215)."""
    return workload.inside is not None and workload.inside.text("endpoint") is not None
