"""The driver as the container sees it: libraries, counters that the chip lacks, debug access."""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import chip, container_name, found, inside_text, setting
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Stubs, missing driver libraries, chips without DRAM counters, ephemeral containers."""
    yield from _library_path(workload)
    yield from _libraries(workload)
    yield from _no_dram_counters(workload)
    yield from _ephemeral(workload)


def _library_path(workload: WorkloadSnapshot) -> Iterator[Finding]:
    path = setting(workload, "LD_LIBRARY_PATH")
    if path is not None and re.search(r"(?:^|[/:])stubs(?:$|[/:])", path.value or ""):
        yield found(
            "stub-libcuda-or-no-driver",
            Severity.WARNING,
            container_name(workload),
            "LD_LIBRARY_PATH holds the toolkit's stubs folder: tools find the link-time stub of "
            "libcuda in place of the driver",
            "take the stubs folder off LD_LIBRARY_PATH in the sister",
            f"{path.shown} ({path.where})",
        )
    wanted = setting(workload, "NVIDIA_DRIVER_CAPABILITIES")
    words = set(re.split(r"[,\s]+", wanted.value or "")) if wanted is not None else {"all"}
    if wanted is not None and not ("all" in words or {"compute", "utility"} <= words):
        yield found(
            "driver-libraries-incomplete-or-skew",
            Severity.WARNING,
            container_name(workload),
            f"NVIDIA_DRIVER_CAPABILITIES={wanted.value} leaves out driver libraries that a "
            "profiler needs",
            "set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the sister",
            f"{wanted.shown} ({wanted.where})",
        )


def _libraries(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """libnvidia-ml comes with the `utility` set: without it only part of the driver is mounted."""
    names = (inside_text(workload, "libraries") or "").split()
    if "libcuda.so.1" in names and "libnvidia-ml.so.1" not in names:
        yield found(
            "driver-libraries-incomplete-or-skew",
            Severity.WARNING,
            container_name(workload),
            "only a part of the driver's libraries is visible: profilers load more than libcuda",
            "set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the sister; mount no single library "
            "by hand",
            f"libraries: {', '.join(names[:6])}",
        )


def _no_dram_counters(workload: WorkloadSnapshot) -> Iterator[Finding]:
    row = chip(workload)
    if row is not None and row.chip == "GB20B":
        yield found(
            "metric-not-available",
            Severity.INFO,
            workload.reference,
            f"{row.chip} has no DRAM counters: dram__* is not available there",
            "bytes come from L2's fill counters, and are an estimate for writes",
            f"compute capability {row.capability}",
        )


def _ephemeral(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Debug containers in the live pod: permanent, without a GPU, often without ptrace."""
    for pod in workload.pods:
        spec = pod.raw.get("spec") or {}
        for debugger in spec.get("ephemeralContainers") or ():
            added = ((debugger.get("securityContext") or {}).get("capabilities") or {}).get("add")
            may_trace = "SYS_PTRACE" in (added or ())
            yield found(
                "ephemeral-container" if may_trace else "no-ptrace",
                Severity.INFO,
                f"pod {pod.name}",
                f"debug container {debugger.get('name')} stays in the pod until the pod goes"
                + ("" if may_trace else "; it lacks SYS_PTRACE, so it cannot trace the server"),
                "use it for looking only: ncu cannot attach from it to a server that was not "
                "started under ncu",
                f"yama ptrace_scope {(inside_text(workload, 'yama') or 'unknown').strip()}",
            )
