"""How long, how much memory, how large a file: estimates, with what they rest on."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.capture.planning.question import Question
from solscope.model.finding import Finding, Severity
from solscope.model.plan import CostEstimate, CostInput, Strategy

ASSUMED_KERNEL_S = 100e-6
"""A typical hot kernel of a decode step lasts 10 to 500 µs."""

DEVICE_COPY_BYTES_PER_S = 1.0e12
HOST_COPY_BYTES_PER_S = 20e9
# Median size per profiled launch of public reports: 11 KB to 0.7 MB for lists, 0.2 to 4 MB full.
LIST_REPORT_BYTES = 100e3
SET_REPORT_BYTES = 1e6
_LARGE_SETS = ("full", "detailed", "source")
GB = 1e9
HOST_COPIES = 2.0
"""Host memory per byte saved, at most: a public report had 21 GB on the device and failed at 34."""
SAID = ("--memory-gb",)


def estimate(question: Question, launches: int) -> CostEstimate:
    """Pause, total time, memory to back up and report size of a plan of so many launches."""
    inputs = list(_inputs(question, launches))
    passes = question.passes.predicted
    kernel_s = question.facts.kernel_time_s or ASSUMED_KERNEL_S
    caveats: list[str] = []
    backup = _backup_bytes(question)
    copy_s: float | None = 0.0
    if question.replay_mode == "kernel":
        copy_s = None if backup is None else _copy_s(question, backup)
    pause = total = None
    if question.replay_mode == "application":
        caveats.append(f"the program is run about {passes} times; one run's time is not known")
    elif copy_s is None:
        caveats.append(
            f"without save and restore: about {passes} x {kernel_s * 1e6:.0f} µs of kernel time "
            "a launch; give --memory-gb (device memory in use) for the rest"
        )
    else:
        # Saved once, restored before every pass but the first.
        pause = passes * kernel_s + copy_s * passes
        total = pause * launches
    per_launch = (
        SET_REPORT_BYTES if question.metrics.section_set in _LARGE_SETS else LIST_REPORT_BYTES
    )
    return CostEstimate(
        pause_s=pause,
        total_s=total,
        backup_bytes=backup,
        report_bytes=per_launch * launches,
        inputs=tuple(inputs),
        caveats=tuple(caveats),
    )


def _backup_bytes(question: Question) -> float | None:
    """Kernel replay saves all memory that the kernel can write: in a server, all it has."""
    if question.replay_mode != "kernel":
        return 0.0
    return _resident(question)


def _resident(question: Question) -> float | None:
    """Device memory in use where the capture runs: a harness has not the server's."""
    said_by_user = question.facts.sources == SAID
    resident = question.facts.resident_bytes
    if said_by_user or resident is None:
        return resident
    if question.strategy is Strategy.HARNESS:
        return None
    lowered, fraction = question.gpu_memory_utilization, question.facts.memory_fraction
    return resident if not lowered or not fraction else resident * lowered / fraction


def _copy_s(question: Question, backup: float) -> float:
    return backup / _copy_rate(question)[0]


def _copy_rate(question: Question) -> tuple[float, str]:
    fraction = question.gpu_memory_utilization or question.facts.memory_fraction
    if fraction is not None and fraction <= 0.45:
        return DEVICE_COPY_BYTES_PER_S, "assumed: the copy fits beside the original on the device"
    return HOST_COPY_BYTES_PER_S, "assumed: the copy goes to host memory over PCIe"


def _inputs(question: Question, launches: int) -> Iterator[CostInput]:
    facts = question.facts
    yield CostInput(
        name="passes",
        value=question.passes.predicted,
        unit="passes",
        source=question.passes.method.value,
    )
    each = "" if launches == question.launches else " of each kernel"
    yield CostInput(name="launches", value=launches, unit="launches", source=f"--launches{each}")
    measured = facts.kernel_time_s is not None
    yield CostInput(
        name="kernel time",
        value=(facts.kernel_time_s or ASSUMED_KERNEL_S) * 1e6,
        unit="µs",
        source="--kernel-time-us" if measured else "assumed",
    )
    resident = _resident(question)
    if resident is not None and question.replay_mode == "kernel":
        yield CostInput(
            name="device memory in use",
            value=resident / GB,
            unit="GB",
            source=", ".join(facts.sources or SAID),
        )
        rate, why = _copy_rate(question)
        yield CostInput(name="save and restore rate", value=rate / GB, unit="GB/s", source=why)


def findings(question: Question, cost: CostEstimate) -> Iterator[Finding]:
    """What the cost forbids, or asks to prepare."""
    yield from _too_long(question, cost)
    yield from _memory(question, cost)
    yield from _silence(question, cost)


def _too_long(question: Question, cost: CostEstimate) -> Iterator[Finding]:
    if cost.total_s is not None and cost.total_s > question.max_time_s:
        yield Finding(
            code="plan-too-long",
            severity=Severity.BLOCKS,
            where="--max-time-s",
            fact=(
                f"about {question.passes.predicted} passes x {_launches(cost)} launches take "
                f"about {cost.total_s:.0f} s, more than the {question.max_time_s:.0f} s allowed"
            ),
            remedy=(
                "fewer launches, a cheaper --level, less device memory in use (a smaller "
                "KV cache), or a higher --max-time-s"
            ),
        )


def _launches(cost: CostEstimate) -> int:
    return round(next(item.value for item in cost.inputs if item.name == "launches"))


def _memory(question: Question, cost: CostEstimate) -> Iterator[Finding]:
    facts = question.facts
    backup = cost.backup_bytes
    free = facts.host_free_bytes
    if backup and free is not None and HOST_COPIES * backup > free:
        yield Finding(
            code="plan-host-memory",
            severity=Severity.BLOCKS,
            where="memory",
            fact=(
                f"kernel replay saves about {backup / GB:.0f} GB of device memory, which took "
                f"up to {HOST_COPIES:g} times that in host memory; {free / GB:.0f} GB are allowed: "
                "the save may end in a failed allocation"
            ),
            remedy=(
                "more host memory for the sister, a smaller KV cache, an isolated harness, or "
                "--replay-mode application (no save and restore) with a deterministic driver"
            ),
        )
    fraction = facts.memory_fraction
    if question.strategy is Strategy.HARNESS or question.gpu_memory_utilization is not None:
        return
    if fraction is not None and fraction >= 0.85:
        yield Finding(
            code="plan-device-memory-full",
            severity=Severity.WARNING,
            where="gpu-memory-utilization",
            fact=(
                f"the server takes {fraction:g} of the GPU's memory: little is left for the "
                "profiler, and kernel replay must save all of it"
            ),
            remedy="plan with --gpu-memory-utilization 0.6 or as low as the weights allow",
        )


def _silence(question: Question, cost: CostEstimate) -> Iterator[Finding]:
    budget, pause = question.facts.probe_budget_s, cost.pause_s
    if budget is not None and pause is not None:
        is_safe = pause < budget
        yield Finding(
            code="plan-probe-margin",
            severity=Severity.INFO if is_safe else Severity.WARNING,
            where="livenessProbe",
            fact=(
                f"the engine is silent for about {pause:.2g} s a launch; the liveness probe "
                f"allows about {budget:.0f} s"
            ),
            remedy="capture on the sister, which has no probes; never on the target",
        )
    limit, total = question.facts.idle_limit_s, cost.total_s
    if total is not None and total > (limit if limit is not None else 300.0):
        yield Finding(
            code="plan-needs-detach",
            severity=Severity.INFO,
            where="kubectl exec",
            fact=(
                f"about {total:.0f} s of capture; an exec stream that is silent for "
                f"{limit if limit is not None else 300:.0f} s may be cut"
            ),
            remedy="detach: run ncu as the container's own process, and poll for its report",
        )
