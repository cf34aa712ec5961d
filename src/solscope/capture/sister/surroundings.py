"""A namespace's objects that can pick pods, read through the port; what cannot be read is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from solscope.cluster.port import Cluster, Forbidden, NotFound, UnknownKind
from solscope.model.cluster import KubernetesObject

KINDS = (
    "services",
    "inferencepools.inference.networking.k8s.io",
    "inferencepools.inference.networking.x-k8s.io",
    "endpointslices.discovery.k8s.io",
    "networkpolicies.networking.k8s.io",
    "ciliumnetworkpolicies.cilium.io",
    "serviceentries.networking.istio.io",
    "podmonitors.monitoring.coreos.com",
    "servicemonitors.monitoring.coreos.com",
    "poddisruptionbudgets.policy",
    "horizontalpodautoscalers.autoscaling",
    "scaledobjects.keda.sh",
    "deployments.apps",
    "statefulsets.apps",
    "replicasets.apps",
    "daemonsets.apps",
    "replicationcontrollers",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "persistentvolumeclaims",
    "pods",
)
MONITORS = ("podmonitors.monitoring.coreos.com", "servicemonitors.monitoring.coreos.com")
"""Kinds that may reach into the namespace from another one."""

# Each list is a process of kubectl, which mostly waits.
_AT_ONCE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What was read, and what could not be: ``kind: the missing right``."""

    objects: tuple[KubernetesObject, ...]
    unread: tuple[str, ...]


def read(
    cluster: Cluster,
    namespace: str,
    *,
    progress: Callable[[Iterable[str], str], Iterator[str]],
) -> Surroundings:
    """List every kind that can pick pods. Kinds that the cluster does not know exist nowhere.

    Raises Unreachable if the cluster does not answer.
    """
    objects: list[KubernetesObject] = []
    unread: list[str] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda kind: _listed(cluster, kind, namespace), KINDS)
        for _, (found, missing) in zip(
            progress(KINDS, f"reading {namespace}"), answers, strict=True
        ):
            objects.extend(found)
            unread.extend(missing)
    for kind in MONITORS:
        try:
            others = cluster.list(kind, everywhere=True)
        except UnknownKind:
            continue
        except Forbidden as error:
            unread.append(f"{kind.split('.', 1)[0]} of other namespaces: {error.right}")
            continue
        objects.extend(item for item in others if _namespace(item) != namespace)
    return Surroundings(objects=tuple(objects), unread=tuple(dict.fromkeys(unread)))


def _listed(
    cluster: Cluster, kind: str, namespace: str
) -> tuple[tuple[KubernetesObject, ...], tuple[str, ...]]:
    try:
        return cluster.list(kind, namespace=namespace), ()
    except UnknownKind:
        return (), ()
    except Forbidden as error:
        return (), (f"{kind.split('.', 1)[0]}: {error.right}",)


def with_node(cluster: Cluster, found: Surroundings, name: str | None) -> Surroundings:
    """What was read, and the node that the target runs on: its labels tell of shared GPUs."""
    if name is None:
        return found
    try:
        node = cluster.get("nodes", name)
    except Forbidden as error:
        unread = (*found.unread, f"nodes: {error.right}")
        return Surroundings(objects=found.objects, unread=unread)
    except NotFound:
        return found
    return Surroundings(objects=(*found.objects, node), unread=found.unread)


def distinct(objects: Iterable[KubernetesObject], namespace: str) -> tuple[KubernetesObject, ...]:
    """Each object once, by kind and name, the first one kept.

    An object that names no namespace counts as one of ``namespace``.
    """
    found: dict[tuple[str, str, str], KubernetesObject] = {}
    for item in objects:
        name = str((item.get("metadata") or {}).get("name"))
        found.setdefault((str(item.get("kind")), name, _namespace(item) or namespace), item)
    return tuple(found.values())


def _namespace(item: KubernetesObject) -> str | None:
    found = (item.get("metadata") or {}).get("namespace")
    return None if found is None else str(found)
