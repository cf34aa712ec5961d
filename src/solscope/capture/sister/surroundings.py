"""A namespace's objects that can pick pods, read through the port; what cannot be read is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from solscope.capture.sister import selectors
from solscope.cluster.port import Cluster, Forbidden, NotFound, UnknownKind
from solscope.model.cluster import KubernetesObject
from solscope.model.sister import SisterTarget

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
    # What the clouds and VictoriaMetrics have in their place.
    "podmonitorings.monitoring.googleapis.com",
    "clusterpodmonitorings.monitoring.googleapis.com",
    "podmonitors.azmonitoring.coreos.com",
    "vmpodscrapes.operator.victoriametrics.com",
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
    """What was read, and what could not be: ``kind: the missing right``.

    ``version`` is the server's, major and minor; ``None`` where it was not asked or not told.
    """

    objects: tuple[KubernetesObject, ...]
    unread: tuple[str, ...]
    version: tuple[int, int] | None = None


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
    return Surroundings(
        objects=tuple(objects),
        unread=tuple(dict.fromkeys(unread)),
        version=_version(cluster),
    )


def _version(cluster: Cluster) -> tuple[int, int] | None:
    """The server's version; providers write minors such as ``31+``."""
    try:
        found = json.loads(cluster.raw("/version"))
        return int(found["major"]), int(re.sub(r"\D.*", "", found["minor"]))
    except (Forbidden, NotFound, ValueError, KeyError, TypeError):
        return None


def _listed(
    cluster: Cluster, kind: str, namespace: str
) -> tuple[tuple[KubernetesObject, ...], tuple[str, ...]]:
    try:
        return cluster.list(kind, namespace=namespace), ()
    except UnknownKind:
        return (), ()
    except Forbidden as error:
        return (), (f"{kind.split('.', 1)[0]}: {error.right}",)


def running_command(
    cluster: Cluster, target: SisterTarget, objects: Iterable[KubernetesObject]
) -> tuple[str, ...]:
    """The command line of the target's server as a running pod has it; empty if none tells.

    A command that Kubernetes holds is the better one and is not asked for.
    Reads ``/proc/1/cmdline`` by exec. Where the pod's processes share one namespace, the first
    is not the server, and nothing is returned.
    """
    containers = target.template["spec"].get("containers") or ()
    if any(c.get("name") == target.container and c.get("command") for c in containers):
        return ()
    labels = (target.template.get("metadata") or {}).get("labels") or {}
    for pod in objects:
        metadata = pod.get("metadata") or {}
        phase = (pod.get("status") or {}).get("phase")
        if pod.get("kind") != "Pod" or phase != "Running" or not labels:
            continue
        if not selectors.matches(labels, metadata.get("labels") or {}):
            continue
        if (pod.get("spec") or {}).get("shareProcessNamespace"):
            continue
        command = ("cat", "/proc/1/cmdline")
        done = cluster.exec(
            str(metadata["name"]), target.container, command, namespace=target.namespace
        )
        if done.exit_code == 0 and not done.failed_to_start:
            words = done.stdout.decode("utf-8", "replace").split("\0")
            return tuple(words[:-1] if words and not words[-1] else words)
    return ()


def with_node(cluster: Cluster, found: Surroundings, name: str | None) -> Surroundings:
    """What was read, and the node that the target runs on: its labels tell of shared GPUs."""
    if name is None:
        return found
    try:
        node = cluster.get("nodes", name)
    except Forbidden as error:
        unread = (*found.unread, f"nodes: {error.right}")
        return replace(found, unread=unread)
    except NotFound:
        return found
    return replace(found, objects=(*found.objects, node))


def with_maps(cluster: Cluster, found: Surroundings, target: SisterTarget) -> Surroundings:
    """What was read, and the ConfigMaps that the server has variables or files from.

    They may hold options of its command. Those that may not be read are left out; Secrets are not
    read at all.
    """
    spec = target.template["spec"]
    volumes = {str(volume.get("name")): volume for volume in spec.get("volumes") or ()}
    names: list[str] = []
    for container in spec.get("containers") or ():
        if container.get("name") != target.container:
            continue
        sources = [entry.get("configMapRef") for entry in container.get("envFrom") or ()]
        mounts = (volumes.get(str(m.get("name"))) for m in container.get("volumeMounts") or ())
        sources += [(volume or {}).get("configMap") for volume in mounts]
        names += [str(source["name"]) for source in sources if source and source.get("name")]
    maps: list[KubernetesObject] = []
    for name in dict.fromkeys(names):
        try:
            maps.append(cluster.get("configmaps", name))
        except (Forbidden, NotFound):
            continue
    return replace(found, objects=(*found.objects, *maps))


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
