"""Objects of a folder or a namespace in, the one workload to copy out.

Raises UsageError where the user must choose; workloads that must not be copied are found all
the same, so that ``refusal`` can say why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister import command as commands
from solscope.capture.sister import selectors, shapes
from solscope.errors import UsageError
from solscope.model.cluster import KubernetesObject
from solscope.model.sister import SisterTarget

_SHORT_NAMES: Mapping[str, str] = {
    "deploy": "Deployment",
    "deployments": "Deployment",
    "deployment": "Deployment",
    "sts": "StatefulSet",
    "statefulset": "StatefulSet",
    "rs": "ReplicaSet",
    "replicaset": "ReplicaSet",
    "rc": "ReplicationController",
    "ds": "DaemonSet",
    "daemonset": "DaemonSet",
    "po": "Pod",
    "pod": "Pod",
    "pods": "Pod",
    "job": "Job",
    "jobs": "Job",
    "cj": "CronJob",
    "cronjob": "CronJob",
    "lws": "LeaderWorkerSet",
    "isvc": "InferenceService",
    "llmisvc": "LLMInferenceService",
    "raycluster": "RayCluster",
    "dgd": "DynamoGraphDeployment",
}

CONTROLLER_KINDS: Mapping[str, str] = {
    "LeaderWorkerSet": "a leader works only with its group; copying it alone gives a server "
    "that waits for workers for ever",
    "RayCluster": "its pods join a Ray cluster, and Ray's workers are children of the raylet, "
    "which a profiler of the server never sees",
    "RayService": "its pods join a Ray cluster, and Ray's workers are children of the raylet, "
    "which a profiler of the server never sees",
    "RayJob": "its pods join a Ray cluster, and Ray's workers are children of the raylet, "
    "which a profiler of the server never sees",
    "RayClusterFleet": "its pods join Ray clusters, and Ray's workers are children of the "
    "raylet, which a profiler of the server never sees",
    "DynamoGraphDeployment": "a worker registers itself in the discovery store as it starts "
    "and would get production traffic",
    "DynamoComponentDeployment": "a worker registers itself in the discovery store as it "
    "starts and would get production traffic",
    "StormService": "its controller makes the pods and pairs prefill with decode roles",
    "LLMInferenceService": "its controller makes the pods; the object holds only a part of them",
    "LLMInferenceServiceConfig": "it is a template for a controller, not a workload",
    "InferenceService": "its controller makes the pods; the object holds only a part of them",
    "ClusterServingRuntime": "it is a template for a controller, not a workload",
    "ServingRuntime": "it is a template for a controller, not a workload",
    "NIMService": "its controller makes the pods; the object holds only a part of them",
    "Model": "its controller makes bare pods; the object holds only a part of them",
}
"""Kinds whose pods a controller makes, and why a copy of one is refused."""

# What a controller above names as owner of an ordinary workload that still cannot stand alone.
GROUP_OWNERS = frozenset(
    kind for kind in CONTROLLER_KINDS if kind.startswith(("Ray", "Leader", "Dynamo", "Storm"))
)

_ACCELERATOR = re.compile(
    r"nvidia\.com/|amd\.com/gpu|gpu\.intel\.com/|google\.com/tpu|habana\.ai/|"
    r"aws\.amazon\.com/neuron|huawei\.com/Ascend"
)


def expand_kind(text: str) -> str:
    """The kind that a kubectl short name stands for.

    >>> expand_kind("deploy"), expand_kind("Deployment.apps")
    ('Deployment', 'Deployment')
    """
    name = text.split(".", 1)[0]
    return _SHORT_NAMES.get(name.lower(), name)


def template_of(item: KubernetesObject) -> Mapping[str, Any] | None:
    """The pod template that an object holds; a bare pod is its own."""
    kind, spec = item.get("kind"), item.get("spec")
    if kind not in shapes.WORKLOADS or not isinstance(spec, Mapping):
        return None
    if kind == "Pod":
        return item
    if kind == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    template = spec.get("template")
    if isinstance(template, Mapping) and (template.get("spec") or {}).get("containers"):
        return template
    return None


def accelerators(container: Mapping[str, Any]) -> dict[str, str]:
    """The accelerators that a container asks for, by resource name.

    >>> accelerators({"resources": {"limits": {"nvidia.com/gpu": 4, "cpu": "8"}}})
    {'nvidia.com/gpu': '4'}
    """
    resources = container.get("resources") or {}
    found: dict[str, str] = {}
    for part in ("requests", "limits"):
        for name, count in (resources.get(part) or {}).items():
            if _ACCELERATOR.match(str(name)) and str(count) != "0":
                found[str(name)] = str(count)
    for claim in resources.get("claims") or ():
        found[f"claim {claim.get('name')}"] = "1"
    return found


def choose(
    objects: Sequence[KubernetesObject],
    *,
    wanted: str | None = None,
    container: str | None = None,
    namespace: str | None = None,
    where: str | None = None,
) -> SisterTarget:
    """The workload to copy and its GPU container.

    ``wanted`` is ``kind/name`` or a name. Raises UsageError if there is none, or if there are
    several and nothing says which.
    """
    found = list(_candidates(objects, wanted))
    if not found:
        raise _nothing(objects, wanted, where)
    if len(found) > 1:
        names = ", ".join(f"{item['kind']}/{_name(item)}" for item in found)
        raise UsageError(
            f"several GPU workloads: {names}",
            where=where,
            hint="name one, for example "
            f"`solscope sister {str(found[0]['kind']).lower()}/{_name(found[0])} ...`",
        )
    item = _topmost(found[0], objects)
    template = template_of(item) or {"metadata": {}, "spec": {}}
    return SisterTarget(
        kind=str(item["kind"]),
        name=_name(item),
        namespace=namespace or (item.get("metadata") or {}).get("namespace"),
        template=template,
        container=_container(template, container, where),
        owner=_owner(item),
        node=_node(found[0], template, objects),
    )


def _name(item: KubernetesObject) -> str:
    return str((item.get("metadata") or {}).get("name", ""))


def _candidates(objects: Sequence[KubernetesObject], wanted: str | None) -> Iterator[Any]:
    present = {(str(item.get("kind")), _name(item)) for item in objects}
    if wanted is not None:
        kind, _, name = wanted.rpartition("/")
        for item in objects:
            named = _name(item) == name and (not kind or item.get("kind") == expand_kind(kind))
            if named and (template_of(item) or item.get("kind") in CONTROLLER_KINDS):
                yield item
        return
    plain = [
        item
        for item in objects
        if _serves(template_of(item)) and not _owned_by_one_of(item, present)
    ]
    if plain:
        yield from plain
        return
    controlled = [item for item in objects if item.get("kind") in CONTROLLER_KINDS]
    # One reason is enough: a runtime's template beside the service that uses it says the same.
    services = [item for item in controlled if not _is_template(item)]
    if controlled:
        yield from services or controlled[:1]
        return
    # Nothing shows a GPU: the reason for the refusal is worth more than "not found".
    bare = [o for o in objects if template_of(o) and not _owned_by_one_of(o, present)]
    yield from bare if len(bare) == 1 else ()


def _is_template(item: KubernetesObject) -> bool:
    return str(item.get("kind")).endswith(("Runtime", "Config"))


def _owned_by_one_of(item: KubernetesObject, present: set[tuple[str, str]]) -> bool:
    owners = (item.get("metadata") or {}).get("ownerReferences") or ()
    return any((owner.get("kind"), owner.get("name")) in present for owner in owners)


def _serves(template: Mapping[str, Any] | None) -> bool:
    """Whether a pod asks for an accelerator or starts a known engine."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return any(accelerators(item) or _starts_engine(item) for item in containers)


def _starts_engine(container: Mapping[str, Any]) -> bool:
    words = _words(container.get("command")), _words(container.get("args"))
    located = commands.locate(*words)
    return located is not None and located.engine is not commands.Engine.UNKNOWN


def _words(value: Any) -> list[str]:
    return [str(word) for word in value or ()]


def _nothing(
    objects: Sequence[KubernetesObject], wanted: str | None, where: str | None
) -> UsageError:
    kinds = sorted({f"{item.get('kind')}/{_name(item)}" for item in objects})
    seen = ", ".join(kinds[:8]) + (" ..." if len(kinds) > 8 else "")
    what = f"no workload {wanted!r}" if wanted else "no workload that asks for a GPU"
    return UsageError(what, where=where, hint=f"it holds {seen or 'no Kubernetes object'}")


def _container(template: Mapping[str, Any], wanted: str | None, where: str | None) -> str:
    containers = template["spec"].get("containers") or ()
    names = [str(item.get("name", "")) for item in containers]
    if wanted is not None:
        if wanted not in names and names:
            hint = f"it has {', '.join(names)}"
            raise UsageError(f"no container {wanted!r}", where=where, hint=hint)
        return wanted
    with_gpu = [str(item.get("name")) for item in containers if accelerators(item)]
    with_gpu = with_gpu or [str(i.get("name")) for i in containers if _starts_engine(i)]
    if len(with_gpu) > 1:
        raise UsageError(
            f"several containers ask for GPUs: {', '.join(with_gpu)}",
            where=where,
            hint=f"say which is to be profiled: --container {with_gpu[0]}",
        )
    return (with_gpu or names or [""])[0]


def _topmost(item: KubernetesObject, objects: Sequence[KubernetesObject]) -> KubernetesObject:
    """The highest owner that holds a template: a live pod carries fields injected into it."""
    for owner in (item.get("metadata") or {}).get("ownerReferences") or ():
        for above in objects:
            same = (above.get("kind"), _name(above)) == (owner.get("kind"), owner.get("name"))
            if same and owner.get("controller") and template_of(above) is not None:
                return _topmost(above, objects)
    return item


def _owner(item: KubernetesObject) -> str | None:
    for owner in (item.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')}/{owner.get('name')}"
    return None


def _node(
    item: KubernetesObject, template: Mapping[str, Any], objects: Iterable[KubernetesObject]
) -> str | None:
    own = item["spec"].get("nodeName") if item.get("kind") == "Pod" else None
    if own:
        return str(own)
    labels = (template.get("metadata") or {}).get("labels") or {}
    for pod in objects:
        if pod.get("kind") != "Pod" or not labels:
            continue
        node = (pod.get("spec") or {}).get("nodeName")
        if node and selectors.matches(labels, (pod.get("metadata") or {}).get("labels") or {}):
            return str(node)
    return None
