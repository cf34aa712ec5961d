"""The workload that was copied, before and after: read only, and the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solscope.cluster.port import Cluster
from solscope.errors import ClusterError
from solscope.model.capture import PodState, WorkloadState


def read(cluster: Cluster, workload: str) -> WorkloadState:
    """The state of a workload and of its pods. Raises ClusterError."""
    kind, _, name = workload.partition("/")
    found: Mapping[str, Any] = cluster.get(kind, name)
    metadata, spec = found.get("metadata") or {}, found.get("spec") or {}
    status = found.get("status") or {}
    return WorkloadState(
        workload=workload,
        generation=metadata.get("generation"),
        replicas=spec.get("replicas"),
        ready_replicas=status.get("readyReplicas"),
        refused=_refused(status),
        uid=metadata.get("uid"),
        pods=tuple(sorted(_pods(cluster, found), key=lambda pod: pod.name)),
    )


def is_another(cluster: Cluster, before: WorkloadState) -> bool:
    """Whether the cluster has another workload of that name: it is not the one that was looked
    at before, though its context is called the same, or the workload was made anew."""
    kind, _, name = before.workload.partition("/")
    try:
        uid = (cluster.get(kind, name).get("metadata") or {}).get("uid")
    except ClusterError:
        return False  # nothing can be told
    return None not in (before.uid, uid) and before.uid != uid


def _refused(status: Mapping[str, Any]) -> str | None:
    """Why a Deployment or a ReplicaSet gets no pod: they alone say so."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason"))
    return None


def _pods(cluster: Cluster, workload: Mapping[str, Any]) -> Iterator[PodState]:
    if str(workload.get("kind")) == "Pod":
        yield _pod(workload)
        return
    selector = ",".join(_requirements((workload.get("spec") or {}).get("selector") or {}))
    for pod in cluster.list("pods", labels=selector) if selector else ():
        yield _pod(pod)


def _requirements(selector: Mapping[str, Any]) -> Iterator[str]:
    """A selector as ``kubectl -l`` takes it, requirement by requirement."""
    plain = selector.get("matchLabels") or {}
    yield from (f"{key}={value}" for key, value in sorted(plain.items()))
    for item in selector.get("matchExpressions") or ():
        key, values = item["key"], ",".join(item.get("values") or ())
        match item["operator"]:
            case "In":
                yield f"{key} in ({values})"
            case "NotIn":
                yield f"{key} notin ({values})"
            case "Exists":
                yield str(key)
            case "DoesNotExist":
                yield f"!{key}"


def _pod(pod: Mapping[str, Any]) -> PodState:
    status = pod.get("status") or {}
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or ()}
    # Native sidecars stand among the init containers.
    groups = ("containerStatuses", "initContainerStatuses")
    containers = [entry for group in groups for entry in status.get(group) or ()]
    return PodState(
        name=str(pod["metadata"]["name"]),
        uid=str(pod["metadata"].get("uid")),
        ready=conditions.get("Ready") == "True",
        restarts=sum(int(c.get("restartCount") or 0) for c in containers),
    )


def differences(before: WorkloadState, after: WorkloadState) -> tuple[str, ...]:
    """What changed, in words; empty where nothing did."""
    found = [
        f"{name} {was} -> {now}"
        for name, was, now in (
            ("generation", before.generation, after.generation),
            ("replicas", before.replicas, after.replicas),
            ("ready replicas", before.ready_replicas, after.ready_replicas),
        )
        if was != now
    ]
    if after.refused is not None and before.refused is None:
        found.append(f"a further pod of it is refused: {after.refused}")
    now_there = {pod.uid: pod for pod in after.pods}
    known = {pod.uid for pod in before.pods}
    for pod in before.pods:
        now = now_there.get(pod.uid)
        if now is None:
            found.append(f"pod {pod.name} is gone")
            continue
        if now.restarts != pod.restarts:
            found.append(f"pod {pod.name} restarted: {pod.restarts} -> {now.restarts}")
        if pod.ready and not now.ready:
            found.append(f"pod {pod.name} is not ready any more")
    found += [f"pod {pod.name} is new" for pod in after.pods if pod.uid not in known]
    return tuple(found)


def disturbances(before: WorkloadState, now: WorkloadState) -> tuple[str, ...]:
    """Of what changed, that which must end a capture: pods that suffer, come, go, or cannot come.

    A generation alone also counts annotations, and ready replicas may be pods that recover.
    """
    return tuple(text for text in differences(before, now) if "pod " in text)
