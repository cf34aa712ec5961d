"""Where each kind of workload keeps its pod templates, and how its pods are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solscope.model.cluster import KubernetesObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One pod template of a workload. ``role`` is empty where there is only one.

    ``is_complete`` is ``False`` where a controller adds parts that the object does not hold.
    """

    template: KubernetesObject
    role: str = ""
    replicas: int | None = None
    is_complete: bool = True


def roles(obj: KubernetesObject, others: Sequence[KubernetesObject] = ()) -> tuple[Role, ...]:
    """Every pod template of an object, the one that serves first. ``others``: objects that may
    hold missing parts (serving runtimes, configurations)."""
    kind, spec = str(obj.get("kind")), _map(obj.get("spec"))
    reader = _READERS.get(kind)
    if reader is not None:
        return tuple(reader(obj, spec, others))
    template = _map(spec.get("template"))
    if _map(template.get("spec")).get("containers"):
        return (Role(template=template, replicas=_count(spec.get("replicas"), 1)),)
    return ()


def pod_selector(obj: KubernetesObject) -> str | None:
    """The label selector that finds an object's pods; ``None`` where no rule is known."""
    kind, spec = str(obj.get("kind")), _map(obj.get("spec"))
    name = _map(obj.get("metadata")).get("name")
    if kind in _POD_LABEL:
        return f"{_POD_LABEL[kind]}={name}"
    selector = _map(spec.get("selector"))
    labels = _map(selector.get("matchLabels")) or (
        selector if kind == "ReplicationController" else {}
    )
    parts = [f"{k}={v}" for k, v in labels.items()]
    for rule in selector.get("matchExpressions") or ():
        operator, values = rule.get("operator"), ",".join(rule.get("values") or ())
        written = {
            "In": f"{rule.get('key')} in ({values})",
            "NotIn": f"{rule.get('key')} notin ({values})",
            "Exists": str(rule.get("key")),
            "DoesNotExist": f"!{rule.get('key')}",
        }
        parts.append(written.get(str(operator), ""))
    return ",".join(filter(None, parts)) or None


_POD_LABEL: Mapping[str, str] = {
    "LeaderWorkerSet": "leaderworkerset.sigs.k8s.io/name",
    "RayCluster": "ray.io/cluster",
    "InferenceService": "serving.kserve.io/inferenceservice",
    "LLMInferenceService": "app.kubernetes.io/name",
    "Job": "batch.kubernetes.io/job-name",
    "StormService": "storm-service-name",
    "NIMService": "app.kubernetes.io/instance",
    "Model": "model",
}


def _pod(obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]) -> Iterator[Role]:
    yield Role(template=obj, replicas=1)


def _cron_job(obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]) -> Iterator[Role]:
    template = _map(_map(_map(spec.get("jobTemplate")).get("spec")).get("template"))
    yield Role(template=template, replicas=1)


def _leader_worker(
    obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]
) -> Iterator[Role]:
    group = _map(spec.get("leaderWorkerTemplate"))
    replicas = _count(spec.get("replicas"), 1)
    for key, role in (("leaderTemplate", "leader"), ("workerTemplate", "worker")):
        if group.get(key):
            yield Role(template=group[key], role=role, replicas=replicas)


def _ray(obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]) -> Iterator[Role]:
    for path in (("rayClusterConfig",), ("rayClusterSpec",), ("template", "spec")):
        inner: Mapping[str, Any] = spec
        for key in path:
            inner = _map(inner.get(key))
        if inner.get("headGroupSpec"):
            spec = inner
    head = _map(spec.get("headGroupSpec"))
    if head.get("template"):
        yield Role(template=head["template"], role="head", replicas=1)
    for group in spec.get("workerGroupSpecs") or ():
        if group.get("template"):
            yield Role(
                template=group["template"],
                role=f"worker {group.get('groupName', '')}".strip(),
                replicas=_count(group.get("replicas"), 1),
            )


def _storm(obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]) -> Iterator[Role]:
    inner = _map(_map(spec.get("template")).get("spec"))
    for role in inner.get("roles") or ():
        yield Role(
            template=_map(role.get("template")),
            role=str(role.get("name")),
            replicas=_count(role.get("replicas"), 1),
        )


def _dynamo(obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]) -> Iterator[Role]:
    found: list[Role] = []
    services = _map(spec.get("services")) or {"": spec}
    for name, service in services.items():
        extra = _map(service.get("extraPodSpec"))
        main = dict(_map(extra.get("mainContainer")))
        resources = _map(service.get("resources"))
        main.setdefault("name", "main")
        main.setdefault("resources", resources)
        for probe in ("livenessProbe", "readinessProbe"):
            if service.get(probe):
                main.setdefault(probe, service[probe])
        pod = {k: v for k, v in extra.items() if k != "mainContainer"}
        pod["containers"] = [main, *(extra.get("containers") or ())]
        template = {"metadata": {}, "spec": pod}
        replicas = _count(service.get("replicas"), 1)
        found.append(Role(template=template, role=str(name), replicas=replicas, is_complete=False))
    # The service that asks for a GPU is the one that serves.
    yield from sorted(found, key=lambda r: "gpu" not in str(r.template["spec"]["containers"][0]))


def _runtime(obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]) -> Iterator[Role]:
    metadata = {"labels": spec.get("labels") or {}, "annotations": spec.get("annotations") or {}}
    yield Role(template={"metadata": metadata, "spec": spec}, is_complete=False)


def _llm_service(
    obj: KubernetesObject, spec: Mapping[str, Any], others: Sequence[KubernetesObject]
) -> Iterator[Role]:
    base: Mapping[str, Any] = {}
    for other in others:
        if other.get("kind") == "LLMInferenceServiceConfig":
            base = _map(_map(other.get("spec")).get("template"))
    pod = merged(base, _map(spec.get("template")))
    replicas = _count(spec.get("replicas"), 1)
    if pod.get("containers"):
        yield Role(
            template={"metadata": {}, "spec": pod}, replicas=replicas, is_complete=bool(base)
        )
    for role in ("prefill", "worker"):
        inner = _map(_map(spec.get(role)).get("template") or spec.get(role))
        if inner.get("containers"):
            yield Role(template={"metadata": {}, "spec": inner}, role=role, is_complete=False)


def _inference_service(
    obj: KubernetesObject, spec: Mapping[str, Any], others: Sequence[KubernetesObject]
) -> Iterator[Role]:
    predictor = _map(spec.get("predictor"))
    replicas = _count(predictor.get("minReplicas"), 1)
    if predictor.get("containers"):
        yield Role(template={"metadata": {}, "spec": predictor}, replicas=replicas)
        return
    model = _map(predictor.get("model"))
    own = {k: model[k] for k in ("image", "command", "args", "env", "resources") if model.get(k)}
    for other in others:
        name = _map(other.get("metadata")).get("name")
        if str(other.get("kind")).endswith("ServingRuntime") and name == model.get("runtime"):
            runtime = _map(other.get("spec"))
            pod = merged(runtime, {"containers": [{"name": "kserve-container", **own}]})
            metadata = {"annotations": runtime.get("annotations") or {}}
            yield Role(template={"metadata": metadata, "spec": pod}, replicas=replicas)
            return
    container = {"name": "kserve-container", **own}
    yield Role(
        template={"metadata": {}, "spec": {"containers": [container]}},
        replicas=replicas,
        is_complete=False,
    )


def _nim_service(
    obj: KubernetesObject, spec: Mapping[str, Any], _: Sequence[Any]
) -> Iterator[Role]:
    image = _map(spec.get("image"))
    container = {
        "name": str(_map(obj.get("metadata")).get("name") or "nim"),
        "image": f"{image.get('repository', '')}:{image.get('tag', 'latest')}",
        "resources": spec.get("resources") or {},
        "env": spec.get("env") or [],
    }
    pod = {"containers": [container], "nodeSelector": spec.get("nodeSelector") or {}}
    yield Role(
        template={"metadata": {}, "spec": pod},
        replicas=_count(spec.get("replicas"), 1),
        is_complete=False,
    )


_READERS = {
    "Pod": _pod,
    "CronJob": _cron_job,
    "LeaderWorkerSet": _leader_worker,
    "RayCluster": _ray,
    "RayService": _ray,
    "RayJob": _ray,
    "RayClusterFleet": _ray,
    "StormService": _storm,
    "DynamoGraphDeployment": _dynamo,
    "DynamoComponentDeployment": _dynamo,
    "ServingRuntime": _runtime,
    "ClusterServingRuntime": _runtime,
    "LLMInferenceService": _llm_service,
    "InferenceService": _inference_service,
    "NIMService": _nim_service,
}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A pod spec over another: containers and volumes by name, other fields replaced."""
    result = {**base, **over}
    for key in ("containers", "initContainers", "volumes"):
        below = list(base.get(key) or ())
        for item in over.get(key) or ():
            at = next((i for i, b in enumerate(below) if b.get("name") == item.get("name")), None)
            if at is None:
                below.append(item)
            else:
                below[at] = {**below[at], **item}
        if below:
            result[key] = below
    return result


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
