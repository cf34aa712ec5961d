"""Defaults that the API server writes into objects, and what it injects into pods."""

from __future__ import annotations

import secrets
from typing import Any

from tests.cluster.server.status import Json

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def suffix(length: int = 5) -> str:
    """A random name suffix from Kubernetes' alphabet."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def container(body: Json, *, ephemeral: bool = False) -> None:
    """Defaults of one container."""
    body.setdefault("resources", {})
    body.setdefault("terminationMessagePath", "/dev/termination-log")
    body.setdefault("terminationMessagePolicy", "File")
    image = body.get("image", "")
    tag = image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    body.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in body.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if body.get(probe) and not ephemeral:
            _probe(body[probe])


def requests_from_limits(body: Json) -> None:
    """A resource that has a limit and no request is requested at its limit."""
    resources = body["resources"]
    if resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, amount in resources["limits"].items():
            requests.setdefault(name, amount)


def _probe(body: Json) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        body.setdefault(name, value)
    if "httpGet" in body:
        body["httpGet"].setdefault("path", "/")
        body["httpGet"].setdefault("scheme", "HTTP")


def pod_spec(spec: Json) -> None:
    """Defaults of a pod's or a template's spec."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    spec.setdefault("schedulerName", "default-scheduler")
    for name in ("initContainers", "containers"):
        for item in spec.get(name) or []:
            container(item)
    for item in spec.get("ephemeralContainers") or []:
        container(item, ephemeral=True)
    for volume in spec.get("volumes") or []:
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}


def inject_pod(body: Json) -> None:
    """What admission writes into every pod and no template has."""
    spec = body["spec"]
    spec.setdefault("serviceAccountName", spec.get("serviceAccount") or "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("enableServiceLinks", True)
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(t.get("key") == key for t in tolerations):
            toleration: Json = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**toleration, "tolerationSeconds": 300})
    body.setdefault("status", {})
    body["status"].update(phase="Pending", qosClass=qos_class(spec))
    if spec.get("automountServiceAccountToken") is False:
        return
    name = f"kube-api-access-{suffix()}"
    spec.setdefault("volumes", []).append(_token_volume(name))
    mount = {
        "name": name,
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    for item in [*(spec.get("initContainers") or []), *spec["containers"]]:
        item.setdefault("volumeMounts", []).append(dict(mount))


def _token_volume(name: str) -> Json:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    authority = {
        "configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    }
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
    return {
        "name": name,
        "projected": {"sources": [token, authority, namespace], "defaultMode": 420},
    }


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory."""
    stated: list[tuple[Any, Any]] = []
    for item in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        resources = item.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        stated.extend((limits.get(n), requests.get(n)) for n in ("cpu", "memory"))
    if all(limit is None and request is None for limit, request in stated):
        return "BestEffort"
    if all(limit is not None and limit == request for limit, request in stated):
        return "Guaranteed"
    return "Burstable"


def _deployment(body: Json) -> None:
    spec = body["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _job(body: Json) -> None:
    spec, meta = body["spec"], body["metadata"]
    spec.setdefault("parallelism", 1)
    spec.setdefault("completions", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    if spec.get("manualSelector") or "selector" in spec or "uid" not in meta:
        return
    spec["manualSelector"] = False
    uid, name = meta["uid"], meta["name"]
    added = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    template_meta = spec["template"].setdefault("metadata", {})
    template_meta["labels"] = {**(template_meta.get("labels") or {}), **added}
    meta["labels"] = {**template_meta["labels"], **(meta.get("labels") or {})}


def _service(body: Json) -> None:
    spec = body["spec"]
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", f"10.96.0.{10 + secrets.randbelow(200)}")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def write(body: Json) -> None:
    """Write the defaults of an object's kind into it."""
    kind = body.get("kind")
    template = (body.get("spec") or {}).get("template")
    if isinstance(template, dict) and "spec" in template:
        pod_spec(template["spec"])
    match kind:
        case "Pod":
            pod_spec(body["spec"])
            for name in ("initContainers", "containers"):
                for item in body["spec"].get(name) or []:
                    requests_from_limits(item)
        case "Deployment":
            _deployment(body)
        case "Job":
            _job(body)
        case "ReplicaSet" | "StatefulSet":
            body["spec"].setdefault("replicas", 1)
        case "Service":
            _service(body)
        case "Namespace":
            _namespace(body)
        case _:
            pass
    if kind in ("Deployment", "ReplicaSet", "Job", "ResourceQuota", "StatefulSet", "Service"):
        body.setdefault("status", {})


def _namespace(body: Json) -> None:
    labels = body["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = body["metadata"]["name"]
    body.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    body.setdefault("status", {}).setdefault("phase", "Active")
