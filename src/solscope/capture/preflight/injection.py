"""Who else already sits in the process: one injection library, one CUPTI client a process."""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import Setting, container_name, found, setting, settings
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity

SLOTS = ("CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH", "NVTX_INJECTION64_PATH")
_OWNERS = (
    (re.compile(r"zymtrace", re.I), "zymtrace"),
    (re.compile(r"parca", re.I), "Parca's GPU agent"),
    (re.compile(r"nsys|nsight-systems|ToolsInjection", re.I), "Nsight Systems"),
    (re.compile(r"nsight-compute|ncu", re.I), "another Nsight Compute"),
    (re.compile(r"hta|kineto|dynolog", re.I), "Kineto"),
    (re.compile(r"datadog|\bdd[-_]", re.I), "the Datadog agent"),
)
_PRELOADS = re.compile(r"inject|zymtrace|parca|nsys|nsight", re.IGNORECASE)
_WEBHOOK = re.compile(r"nsys|nsight|zymtrace|instrumentation\.opentelemetry|inject", re.I)


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Injection variables, preloads, other CUPTI clients, webhooks that add them."""
    for name in SLOTS:
        taken = setting(workload, name)
        if taken is not None:
            yield _slot(workload, taken)
    preload = setting(workload, "LD_PRELOAD")
    if preload is not None and _PRELOADS.search(preload.value or ""):
        yield _slot(workload, preload)
    yield from _cupti_clients(workload)
    yield from _libraries(workload)
    yield from _webhooks(workload)


def owner(path: str | None) -> str:
    """Who owns an injection library, by its path."""
    return next((name for pattern, name in _OWNERS if pattern.search(path or "")), "another tool")


def _slot(workload: WorkloadSnapshot, taken: Setting) -> Finding:
    places = [s.where for s in settings(workload, taken.name)]
    only_live = workload.pods and not any(place.startswith("template") for place in places)
    added = (
        "; the template does not set it, so an admission webhook or the node adds it, and may "
        "add it to the sister too: opt the sister out"
        if only_live
        else ""
    )
    return found(
        "injection-slot-taken",
        Severity.WARNING,
        container_name(workload),
        f"{owner(taken.value)} owns {taken.name}: one injection library a process, and ncu "
        "refuses or records nothing while it is set",
        f"unset {taken.name} in the sister (the live pod is left as it is){added}",
        f"{taken.shown} ({taken.where})",
    )


def _cupti_clients(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """The torch profiler's switches: a second CUPTI subscriber gets nothing."""
    names = ("VLLM_TORCH_PROFILER_DIR", "SGLANG_TORCH_PROFILER_DIR", "KINETO_USE_DAEMON")
    clients = [s for name in names if (s := setting(workload, name)) is not None]
    slots = [s for name in SLOTS if (s := setting(workload, name)) is not None]
    if not clients:
        return
    with_slot = f" together with {slots[0].name}" if slots else ""
    yield found(
        "second-cupti-subscriber",
        Severity.WARNING,
        container_name(workload),
        f"the torch profiler is switched on{with_slot}; it takes the CUPTI subscription, of "
        "which a process has one",
        "unset it in the sister; torch traces and ncu counters are two runs, never one",
        *(f"{s.shown} ({s.where})" for s in (*clients, *slots)),
    )


def _libraries(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Libraries that are mapped although no variable asks for them."""
    text = "" if workload.inside is None else workload.inside.texts.get("maps", "")
    foreign = [p for p in text.splitlines() if owner(p) != "another tool" or "inject" in p.lower()]
    if foreign and not any(setting(workload, name) for name in SLOTS):
        yield found(
            "injection-slot-taken",
            Severity.WARNING,
            container_name(workload),
            f"{owner(foreign[0])} is loaded in the server's processes without a variable that "
            "asks for it",
            "find what loads it (LD_PRELOAD, sitecustomize, an agent), and leave it out",
            *(f"mapped: {path}" for path in foreign[:3]),
        )


def _webhooks(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Labels and annotations that ask an operator to instrument the pod."""
    template = workload.template
    marks = [
        f"{key}={value}"
        for key, value in (*template.labels.items(), *template.annotations.items())
        if _WEBHOOK.search(key) and "sidecar.istio.io" not in key and value.lower() != "false"
    ]
    helpers = [c.name for p in workload.pods for c in p.init_containers if _WEBHOOK.search(c.name)]
    if marks or helpers:
        yield found(
            "injected-by-operator",
            Severity.WARNING,
            workload.reference,
            "an operator is asked to instrument this pod and would instrument the sister too",
            "leave these labels and annotations out of the sister, and check its environment",
            *(f"label or annotation {mark}" for mark in marks),
            *(f"init container {name}" for name in helpers),
        )
