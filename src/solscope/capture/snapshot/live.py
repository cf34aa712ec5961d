"""A live workload through the cluster port: its object, pods, nodes, surroundings.

Only the target itself must be readable. Everything else that is refused becomes an unknown fact
that names the missing right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from solscope.capture.snapshot import choice, nodes, podspec
from solscope.capture.snapshot.kinds import Role, pod_selector, roles
from solscope.cluster.port import Cluster, Forbidden, NotFound, UnknownKind
from solscope.errors import ClusterError, UsageError
from solscope.model.cluster import Fact, GpuNode, KubernetesObject, PodSnapshot, WorkloadSnapshot

# What a namespace may hold that reaches, scales, protects or limits a copy: the name used in a
# snapshot, and the kind as kubectl must be asked.
RELATED: Mapping[str, str] = {
    "services": "services",
    "horizontalpodautoscalers": "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets": "poddisruptionbudgets.policy",
    "networkpolicies": "networkpolicies.networking.k8s.io",
    "resourcequotas": "resourcequotas",
    "podmonitors": "podmonitors.monitoring.coreos.com",
    "servicemonitors": "servicemonitors.monitoring.coreos.com",
    "scaledobjects": "scaledobjects.keda.sh",
    "inferencepools": "inferencepools.inference.networking.k8s.io",
    "configmaps": "configmaps",
    "persistentvolumeclaims": "persistentvolumeclaims",
}
_NODES_READ = 3
_AT_ONCE = 6
_PRODUCED = frozenset({"Pod", "ReplicaSet", "StatefulSet", "Deployment", "Job", "DaemonSet"})

Objects = Fact[tuple[KubernetesObject, ...]]


def from_cluster(
    cluster: Cluster,
    target: str,
    *,
    container: str | None,
    now: datetime,
    recognises: choice.Recognises,
) -> WorkloadSnapshot:
    """The workload that ``target`` (``deploy/NAME``) names.

    Raises UsageError for a target that cannot be meant, ClusterError (NotFound, Forbidden,
    Unreachable) where the target itself cannot be read.
    """
    kind, name = choice.split_target(target)
    named = cluster.get(kind, name)
    obj, notes = _workload(cluster, named)
    pods = [podspec.pod(named)] if named.get("kind") == "Pod" else []
    pod_fact = _pods(cluster, obj) if not pods else Fact(value=())
    pods += [podspec.pod(pod) for pod in pod_fact.value or ()]
    if pod_fact.is_unknown:
        notes.append(f"pods unknown: {pod_fact.missing}")
    role = _role(obj, pods, recognises)
    if role.role:
        notes.append(f"looked at role {role.role}")
    if not role.is_complete:
        notes.append("a controller adds parts that this object does not hold")
    template = podspec.pod(role.template)
    metadata = obj.get("metadata") or {}
    return WorkloadSnapshot(
        kind=str(obj.get("kind")),
        name=str(metadata.get("name")),
        namespace=str(metadata.get("namespace") or cluster.namespace),
        context=cluster.context,
        source=f"context {cluster.context}",
        taken_at=now.isoformat(timespec="seconds"),
        replicas=role.replicas,
        template=template,
        template_raw=role.template,
        raw=obj,
        container=choice.container(template, container, recognises),
        gpu_containers=choice.accelerated(template),
        pods=tuple(pods),
        owners=tuple(f"{o.get('kind')}/{o.get('name')}" for o in _owner_references(obj)),
        nodes=_nodes(cluster, template, pods),
        related=_related(cluster, pods),
        notes=tuple(notes),
    )


def _workload(cluster: Cluster, named: KubernetesObject) -> tuple[KubernetesObject, list[str]]:
    """The object whose template the pods come from: climb from a pod to its makers."""
    obj, notes = named, []
    while str(obj.get("kind")) in _PRODUCED:
        owner = next((o for o in _owner_references(obj) if o.get("controller")), None)
        # A custom resource above stays an owner: its template is not the pod's.
        if owner is None or str(owner.get("kind")) not in _PRODUCED:
            break
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind")).lower() + (f".{group}" if group else "")
        try:
            above = cluster.get(kind, str(owner.get("name")))
        except Forbidden as error:
            notes.append(f"owner {owner.get('kind')}/{owner.get('name')} unknown: {error.right}")
            break
        except ClusterError as error:
            notes.append(f"owner {owner.get('kind')}/{owner.get('name')} unknown: {error.what}")
            break
        if obj is named:
            notes.append(f"{named.get('kind')}/{_name(named)} was asked for; this is its maker")
        obj = above
    return obj, notes


def _role(
    obj: KubernetesObject, pods: Sequence[PodSnapshot], recognises: choice.Recognises
) -> Role:
    found = roles(obj)
    if found and all(role.is_complete for role in found):
        return choice.workloads([obj], None, recognises)[0][1]
    # A controller completes the template: a live pod shows what it made of it.
    for pod in pods:
        if choice.accelerated(pod):
            return Role(template=pod.raw, replicas=len(pods), is_complete=False)
    if found:
        return found[0]
    raise UsageError(
        f"{obj.get('kind')}/{_name(obj)} holds no pod template and has no pod here",
        hint="name one of its pods: pod/NAME",
    )


def _pods(cluster: Cluster, obj: KubernetesObject) -> Objects:
    selector = pod_selector(obj)
    if selector is None:
        return Fact(missing="no rule finds the pods of this kind: name one as pod/NAME")
    return _listed(cluster, "pods", labels=selector)


def _nodes(
    cluster: Cluster, template: PodSnapshot, pods: Sequence[PodSnapshot]
) -> tuple[GpuNode, ...]:
    names = list(dict.fromkeys(pod.node for pod in pods if pod.node))
    found: list[GpuNode] = []
    for name in names[:_NODES_READ]:
        try:
            found.append(nodes.from_object(cluster.get("node", name)))
        except Forbidden as error:
            found.append(nodes.unreadable(name, error.right))
        except ClusterError as error:
            found.append(nodes.unreadable(name, error.what))
    if found:
        return tuple(found)
    selected = nodes.selected(template.node_selector, "no pod of it runs on a node")
    return (selected,) if selected else ()


def _related(cluster: Cluster, pods: Sequence[PodSnapshot]) -> dict[str, Objects]:
    """Everything around the workload, several questions at a time."""
    node = next((pod.node for pod in pods if pod.node), None)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        asked = {name: pool.submit(_listed, cluster, kind) for name, kind in RELATED.items()}
        asked["namespaces"] = pool.submit(_own_namespace, cluster)
        asked["events"] = pool.submit(_events, cluster, pods)
        if node:
            fields = f"spec.nodeName={node}"
            asked["node-pods"] = pool.submit(
                _listed, cluster, "pods", fields=fields, everywhere=True
            )
        found = {name: future.result() for name, future in asked.items()}
    older = "inferencepools.inference.networking.x-k8s.io"
    if found["inferencepools"].value == ():
        found["inferencepools"] = _listed(cluster, older)
    if not node:
        found["node-pods"] = Fact(missing="no pod of it runs on a node")
    return found


def _listed(
    cluster: Cluster,
    kind: str,
    *,
    labels: str | None = None,
    fields: str | None = None,
    everywhere: bool = False,
) -> Objects:
    source = f"list {kind}" + (" in all namespaces" if everywhere else "")
    try:
        items = cluster.list(kind, labels=labels, fields=fields, everywhere=everywhere)
    except UnknownKind:
        return Fact(value=(), source="this cluster has no such kind")
    except Forbidden as error:
        return Fact(missing=error.right)
    except ClusterError as error:
        return Fact(missing=error.what)
    return Fact(value=items, source=source)


def _own_namespace(cluster: Cluster) -> Objects:
    try:
        return Fact(value=(cluster.get("namespace", cluster.namespace),), source="its namespace")
    except Forbidden as error:
        return Fact(missing=error.right)
    except NotFound:
        return Fact(missing=f"namespace {cluster.namespace} does not exist")
    except ClusterError as error:
        return Fact(missing=error.what)


def _events(cluster: Cluster, pods: Sequence[PodSnapshot]) -> Objects:
    """The events of its pods."""
    found = _listed(cluster, "events")
    names = {pod.name for pod in pods}
    if found.value is None:
        return found
    mine = [e for e in found.value if (e.get("involvedObject") or {}).get("name") in names]
    return replace(found, value=tuple(mine))


def _owner_references(obj: KubernetesObject) -> Sequence[Mapping[str, object]]:
    return tuple((obj.get("metadata") or {}).get("ownerReferences") or ())


def _name(obj: KubernetesObject) -> str:
    return str((obj.get("metadata") or {}).get("name"))
