"""The shape of objects out of a file, checked once: whoever reads them later may trust it.

Only what is read here is looked at, and only in kinds whose fields are known; every other kind
needs no more than a mapping as its metadata. ``null`` stands for an absent field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KINDS = _names(
    """
    Pod Deployment StatefulSet DaemonSet ReplicaSet ReplicationController Job CronJob
    LeaderWorkerSet RayCluster RayService RayJob RayClusterFleet StormService
    DynamoGraphDeployment DynamoComponentDeployment ServingRuntime ClusterServingRuntime
    LLMInferenceService LLMInferenceServiceConfig InferenceService NIMService Service
    HorizontalPodAutoscaler PodDisruptionBudget NetworkPolicy ResourceQuota ScaledObject
    Namespace Node Event ConfigMap PersistentVolumeClaim
    """
)
_MAPPINGS = _names(
    """
    metadata spec status template jobTemplate labels annotations matchLabels nodeSelector
    resources limits requests securityContext capabilities livenessProbe readinessProbe
    startupProbe httpGet tcpSocket valueFrom secretKeyRef configMapKeyRef fieldRef
    persistentVolumeClaim leaderWorkerTemplate leaderTemplate workerTemplate headGroupSpec
    rayClusterConfig rayClusterSpec extraPodSpec mainContainer predictor affinity
    nodeAffinity requiredDuringSchedulingIgnoredDuringExecution scaleTargetRef involvedObject
    hard used capacity data selector services nodeInfo lifecycle configMap
    """
)
_LISTS_OF_MAPPINGS = _names(
    """
    containers initContainers ephemeralContainers env envFrom volumes volumeMounts
    ownerReferences containerStatuses workerGroupSpecs roles resourceClaims nodeSelectorTerms
    volumeClaimTemplates metrics triggers matchExpressions
    """
)
_LISTS = _names("command args accessModes add drop values")
_WHOLE = _names("periodSeconds failureThreshold timeoutSeconds initialDelaySeconds restartCount")
_TEXTS = _names(
    """
    name namespace image nodeName runtimeClassName priorityClassName serviceAccountName
    claimName restartPolicy reason phase uid generateName
    """
)
# What users name freely: no key below these means anything to us.
_OPAQUE = _names(
    """
    labels annotations matchLabels nodeSelector limits requests data hard used capacity
    allocatable
    """
)
# Mappings whose values are themselves objects of their own kind.
_NAMED_OBJECTS = frozenset(["services"])
# Below these a field may be called anything; a template of a controller is read with care.
_SKIPPED = frozenset(["managedFields", "rayStartParams", "router", "conditions"])


def faults(obj: Mapping[str, Any]) -> Iterator[str]:
    """What does not have the shape that Kubernetes gives it: the path and what was expected.

    >>> list(faults({"kind": "Pod", "spec": {"containers": "x"}}))
    ['spec.containers must be a list of objects']
    """
    if not isinstance(obj.get("metadata") or {}, Mapping):
        yield "metadata must be an object"
    if obj.get("kind") in _KINDS:
        yield from _walk(obj, "")


def _walk(node: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in node.items():
        where = f"{path}.{key}" if path else str(key)
        expected = None if value is None or key in _SKIPPED else _expected(str(key), value)
        if expected is not None:
            yield f"{where} must be {expected}"
        elif key in _SKIPPED or key in _OPAQUE or _is_plain_selector(str(key), value):
            continue
        elif key in _NAMED_OBJECTS and isinstance(value, Mapping):
            for name, inner in value.items():
                if isinstance(inner, Mapping):
                    yield from _walk(inner, f"{where}.{name}")
                else:
                    yield f"{where}.{name} must be an object"
        elif isinstance(value, Mapping):
            yield from _walk(value, where)
        elif isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield from _walk(item, f"{where}[{at}]")


def _is_plain_selector(key: str, value: Any) -> bool:
    """Whether it is a Service's selector: labels, named as users like."""
    words = ("matchLabels", "matchExpressions")
    return key == "selector" and not (isinstance(value, Mapping) and any(w in value for w in words))


def _expected(key: str, value: Any) -> str | None:
    """What a field should be, ``None`` where it is that."""
    if key in _MAPPINGS and not isinstance(value, Mapping):
        return "an object"
    if key in _LISTS_OF_MAPPINGS:
        is_list = isinstance(value, list)
        if not is_list or not all(isinstance(item, Mapping) for item in value):
            return "a list of objects"
    if key in _LISTS and not isinstance(value, list):
        return "a list"
    if key in _WHOLE and (isinstance(value, bool) or not isinstance(value, int)):
        return "a whole number"
    if key in _TEXTS and isinstance(value, Mapping | list):
        return "a text"
    return None
