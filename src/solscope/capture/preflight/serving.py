"""The workload's life in the cluster: probes, replicas, scaling, quota, its pods right now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solscope.capture.preflight.memory import predicted_pause_s
from solscope.capture.preflight.view import container_name, found, whole
from solscope.model.cluster import KubernetesObject, ProbeKind, WorkloadSnapshot
from solscope.model.finding import Finding, Severity

_GPU = "nvidia.com/gpu"
# Under a profiler a start takes several times as long (imports, warm-up, graph capture).
_SHORT_START_S = 600


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Probes against the pause, replicas, scaling and its metrics, quota, room, live state."""
    yield from _liveness(workload)
    yield from _startup(workload)
    yield from _replicas(workload)
    yield from _scaling(workload)
    yield from _priority(workload)
    yield from _quota(workload)
    yield from _room(workload)
    yield from _events(workload)
    yield from _reach(workload)


def _liveness(workload: WorkloadSnapshot) -> Iterator[Finding]:
    probe = workload.server.probe(ProbeKind.LIVENESS) if workload.server else None
    if probe is None:
        return
    pause, basis = predicted_pause_s(workload)
    longer = pause is None or pause >= probe.budget_s
    yield found(
        "liveness-kills-profiled-engine",
        Severity.WARNING if longer else Severity.INFO,
        container_name(workload),
        f"the liveness probe ends the server after about {probe.budget_s} s of silence; replay "
        "stops it for "
        + ("an unknown time" if pause is None else f"about {_seconds(pause)} a kernel"),
        "profile a copy without probes, never the live pod",
        f"livenessProbe: {probe.handler}, {probe.period_s} s x {probe.failure_threshold} failures, "
        f"each waiting {probe.timeout_s} s",
        basis,
    )


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


def _startup(workload: WorkloadSnapshot) -> Iterator[Finding]:
    probe = workload.server.probe(ProbeKind.STARTUP) if workload.server else None
    if probe is not None and probe.initial_delay_s + probe.budget_s < _SHORT_START_S:
        yield found(
            "startup-budget-short",
            Severity.INFO,
            container_name(workload),
            f"the startup probe allows {probe.initial_delay_s + probe.budget_s} s; a start under "
            "ncu takes longer than a plain one",
            "the sister has no probes",
            f"startupProbe: {probe.period_s} s x {probe.failure_threshold} failures",
        )


def _replicas(workload: WorkloadSnapshot) -> Iterator[Finding]:
    if workload.replicas == 1:
        yield found(
            "single-replica",
            Severity.INFO,
            workload.reference,
            "one replica carries all the traffic: it must not be touched, and there is none to "
            "take out of service",
            "the sister needs GPUs of its own besides it",
            "replicas: 1",
        )
    elif workload.replicas == 0:
        yield found(
            "scaled-to-zero",
            Severity.INFO,
            workload.reference,
            "no replica runs",
            "nothing live can be asked; the sister starts from the template",
            "replicas: 0",
        )


def _points_here(workload: WorkloadSnapshot, ref: Mapping[str, Any]) -> bool:
    named = (ref.get("kind") or "Deployment", ref.get("name"))
    return named == (workload.kind, workload.name) or f"{named[0]}/{named[1]}" in workload.owners


def _scaling(workload: WorkloadSnapshot) -> Iterator[Finding]:
    scalers = [
        *(("HorizontalPodAutoscaler", o) for o in workload.seen("horizontalpodautoscalers")),
        *(("ScaledObject", o) for o in workload.seen("scaledobjects")),
    ]
    for kind, scaler in scalers:
        if not _points_here(workload, (scaler.get("spec") or {}).get("scaleTargetRef") or {}):
            continue
        yield found(
            "autoscaled",
            Severity.WARNING,
            workload.reference,
            f"{kind} {_name(scaler)} scales this workload; metrics that are summed by model name "
            "count a scraped copy too",
            "keep the sister out of scraping (no annotations, new labels) and under a served name "
            "of its own",
            *_metrics(scaler),
        )
    for budget in workload.seen("poddisruptionbudgets"):
        if _selects((budget.get("spec") or {}).get("selector"), workload):
            yield found(
                "disruption-budget",
                Severity.INFO,
                workload.reference,
                f"PodDisruptionBudget {_name(budget)} counts pods with these labels",
                "new labels keep the sister out of it",
                f"minAvailable {(budget.get('spec') or {}).get('minAvailable')}, maxUnavailable "
                f"{(budget.get('spec') or {}).get('maxUnavailable')}",
            )


def _metrics(scaler: KubernetesObject) -> Iterator[str]:
    spec = scaler.get("spec") or {}
    for metric in spec.get("metrics") or ():
        kind = str(metric.get("type", ""))
        body = metric.get(kind[:1].lower() + kind[1:])
        body = body if isinstance(body, Mapping) else {}
        inner = body.get("metric")
        name = inner.get("name") if isinstance(inner, Mapping) else body.get("name")
        yield f"scales on {name or metric.get('type')}"
    for trigger in spec.get("triggers") or ():
        yield f"scales on {trigger.get('type')}: {(trigger.get('metadata') or {}).get('query')}"


def _priority(workload: WorkloadSnapshot) -> Iterator[Finding]:
    name, value = workload.template.priority_class, workload.template.priority
    if name or (value or 0) > 0:
        yield found(
            "priority-class",
            Severity.WARNING,
            workload.reference,
            f"the pods have priority {name or value}: a copy with it may push production pods off "
            "their nodes",
            "leave the priority class out of the sister",
            f"priorityClassName: {name}" if name else f"priority: {value}",
        )


def _quota(workload: WorkloadSnapshot) -> Iterator[Finding]:
    needed = workload.server.gpus if workload.server else 0
    for quota in workload.seen("resourcequotas"):
        status, spec = quota.get("status") or {}, quota.get("spec") or {}
        hard = whole((status.get("hard") or spec.get("hard") or {}).get(f"requests.{_GPU}"))
        if hard is None:
            continue
        used = whole((status.get("used") or {}).get(f"requests.{_GPU}"))
        known = used is not None
        over = (used or 0) + needed > hard
        yield found(
            "gpu-quota",
            Severity.BLOCKS if over else Severity.INFO,
            f"ResourceQuota {_name(quota)}",
            f"{used if known else 'an unknown number'} of {hard} GPUs are in use; the sister needs "
            f"{needed}" + (": its pods would be refused" if over else ""),
            "raise the quota, or free GPUs, before the capture" if over else "nothing to do",
            f"requests.{_GPU}: hard {hard}, used {used if known else 'unknown'}",
        )


def _room(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Free GPUs on the node; a claim that one node holds ties the sister to that node."""
    node, server = workload.node, workload.server
    count = node.gpu_count.value if node else None
    seen = workload.seen("node-pods")
    if node is None or server is None or count is None or not seen:
        return
    used = sum(_gpus(pod) for pod in seen)
    if count - used < server.gpus:
        yield found(
            "no-free-gpu-on-node",
            Severity.INFO,
            f"node {node.name}",
            f"{used} of its {count} GPUs are requested; the sister needs {server.gpus} and would "
            "wait, or go to another node",
            "find room first: a claim that mounts on one node only would keep the sister pending",
            f"{len(seen)} pods on the node",
        )


def _gpus(pod: KubernetesObject) -> int:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    total = 0
    for container in (pod.get("spec") or {}).get("containers") or ():
        limits = (container.get("resources") or {}).get("limits") or {}
        total += whole(limits.get(_GPU)) or 0
    return total


def _events(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """What the pods' events say now: pulls, failed probes, no room."""
    for event in workload.seen("events"):
        reason, text = event.get("reason"), str(event.get("message") or "")
        about = f"{(event.get('involvedObject') or {}).get('kind', 'Pod')}/" + str(
            (event.get("involvedObject") or {}).get("name")
        )
        if reason == "Pulling" and not _pulled(workload, about):
            yield found(
                "image-pull-in-progress",
                Severity.INFO,
                about,
                "an image is still being pulled; inference and profiling images take minutes",
                "wait; pre-pull the tools image, or copy only ncu's folder",
                text,
            )
        elif reason == "Unhealthy" and "iveness" in text:
            yield found(
                "liveness-failing",
                Severity.WARNING,
                about,
                "the live pod fails its liveness probe already",
                "find out why before anything is profiled; never add load to it",
                text[:200],
            )
        elif reason == "FailedScheduling" and "nsufficient nvidia.com/gpu" in text:
            yield found(
                "no-free-gpu",
                Severity.WARNING,
                about,
                "its own pods find no free GPU: a sister would wait too",
                "free GPUs, or set a time limit: an autoscaler may buy a node for it",
                text[:200],
            )


def _pulled(workload: WorkloadSnapshot, about: str) -> bool:
    return any(
        event.get("reason") == "Pulled"
        and about.endswith(f"/{(event.get('involvedObject') or {}).get('name')}")
        for event in workload.seen("events")
    )


def _reach(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Services that select the target: its labels must not be copied."""
    fact = workload.related.get("services")
    names = [_name(s) for s in workload.seen("services") if _plain(s, workload)]
    if names:
        yield found(
            "receives-traffic",
            Severity.INFO,
            workload.reference,
            "its labels are selected by a Service: a pod with the same labels gets production "
            "traffic",
            "give the sister new labels only; `solscope sister` proves that nothing selects it",
            *(f"Service {name}" for name in names),
        )
    elif fact is not None and fact.is_unknown:
        yield found(
            "services-unknown",
            Severity.INFO,
            workload.reference,
            "which Services select its pods is not known",
            "the sister gets new labels in any case; its proof of isolation needs this right",
            f"missing: {fact.missing}",
        )


def _plain(service: KubernetesObject, workload: WorkloadSnapshot) -> bool:
    selector = (service.get("spec") or {}).get("selector") or {}
    labels = workload.template.labels
    return bool(selector) and all(labels.get(k) == v for k, v in selector.items())


def _selects(selector: Mapping[str, Any] | None, workload: WorkloadSnapshot) -> bool:
    wanted = (selector or {}).get("matchLabels") or {}
    return bool(wanted) and all(workload.template.labels.get(k) == v for k, v in wanted.items())


def _name(obj: KubernetesObject) -> str:
    return str((obj.get("metadata") or {}).get("name"))
