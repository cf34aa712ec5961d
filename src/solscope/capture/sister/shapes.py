"""The shapes of Kubernetes' own kinds, checked once as a manifest is read.

What the API server would refuse for its type is refused here with its path; all that comes
later may then trust mappings to be mappings. Kinds of operators are left alone: theirs vary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solscope.errors import UsageError

WORKLOADS = frozenset(
    {
        "Pod",
        "Deployment",
        "StatefulSet",
        "ReplicaSet",
        "ReplicationController",
        "DaemonSet",
        "Job",
        "CronJob",
        "Rollout",
    }
)
"""Kinds that hold a pod template, or are one."""

_CHECKED = WORKLOADS | {
    "Service",
    "Endpoints",
    "EndpointSlice",
    "InferencePool",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "PodMonitor",
    "ServiceMonitor",
    "HorizontalPodAutoscaler",
    "ScaledObject",
    "Node",
}

_MAPPINGS = frozenset(
    [
        "metadata",
        "labels",
        "annotations",
        "spec",
        "template",
        "jobTemplate",
        "selector",
        "matchLabels",
        "podSelector",
        "resources",
        "limits",
        "requests",
        "securityContext",
        "capabilities",
        "nodeSelector",
        "affinity",
        "podAffinity",
        "podAntiAffinity",
        "podAffinityTerm",
        "labelSelector",
        "valueFrom",
        "secretKeyRef",
        "scaleTargetRef",
        "persistentVolumeClaim",
        "targetRef",
        "namespaceSelector",
        "source",
    ]
)
_OBJECT_LISTS = frozenset(
    [
        "containers",
        "initContainers",
        "volumes",
        "volumeMounts",
        "env",
        "envFrom",
        "ports",
        "tolerations",
        "ownerReferences",
        "matchExpressions",
        "resourceClaims",
        "claims",
        "ingress",
        "egress",
        "from",
        "to",
        "volumeClaimTemplates",
        "topologySpreadConstraints",
        "imagePullSecrets",
        "endpoints",
        "subsets",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    ]
)
_WORD_LISTS = frozenset(["command", "args", "accessModes", "values", "add", "drop"])
_NAMED = frozenset({"containers", "initContainers", "volumes", "env"})
# Node affinity has a mapping here where pod affinity has a list.
_EXCEPT = frozenset(
    {"nodeAffinity", "annotations", "data", "stringData", "status", "managedFields"}
)


def check_all(objects: Sequence[Mapping[str, Any]], where: str) -> None:
    """Check every object of a manifest. Raises UsageError for the first fault."""
    for item in objects:
        check(item, where)


def check(item: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for the first value whose type Kubernetes would refuse."""
    kind = str(item.get("kind"))
    metadata = item.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise _wrong(kind, "metadata", metadata, "a mapping", where)
    name = (metadata or {}).get("name")
    for key in ("name", "namespace"):
        value = (metadata or {}).get(key)
        if value is not None and not isinstance(value, str):
            raise _wrong(kind, f"metadata.{key}", value, "a text", where)
    _walk(item if kind in _CHECKED else {"metadata": metadata}, f"{kind}/{name}", "", where)


def _walk(node: Any, who: str, path: str, where: str) -> None:
    if isinstance(node, Mapping):
        for key, value in node.items():
            here = f"{path}.{key}".lstrip(".")
            if value is None:
                continue
            _check_one(str(key), value, who, here, where)
            if key not in _EXCEPT:
                _walk(value, who, here, where)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            _walk(value, who, f"{path}[{index}]", where)


def _check_one(key: str, value: Any, who: str, path: str, where: str) -> None:
    if key in _MAPPINGS and not isinstance(value, Mapping):
        raise _wrong(who, path, value, "a mapping", where)
    if key in _OBJECT_LISTS:
        if not isinstance(value, list):
            raise _wrong(who, path, value, "a list", where)
        for index, entry in enumerate(value):
            if not isinstance(entry, Mapping):
                raise _wrong(who, f"{path}[{index}]", entry, "a mapping", where)
            if key in _NAMED and not isinstance(entry.get("name"), str):
                raise _wrong(who, f"{path}[{index}].name", entry.get("name"), "a text", where)
    if key in _WORD_LISTS:
        if not isinstance(value, list):
            raise _wrong(who, path, value, "a list", where)
        for index, entry in enumerate(value):
            if entry is None or isinstance(entry, Mapping | list):
                raise _wrong(who, f"{path}[{index}]", entry, "a text", where)


def _wrong(who: str, path: str, value: Any, wanted: str, where: str) -> UsageError:
    found = {"NoneType": "nothing", "str": "a text", "list": "a list", "dict": "a mapping"}
    shown = found.get(type(value).__name__, type(value).__name__)
    return UsageError(
        f"{who}: {path} is {shown}, not {wanted}",
        where=where,
        hint="the API server would refuse it too",
    )
