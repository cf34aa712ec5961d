"""Files of Kubernetes objects to WorkloadSnapshot, with no cluster at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from solscope.capture.snapshot import choice, nodes, podspec, shape
from solscope.capture.snapshot.kinds import Role
from solscope.errors import UsageError
from solscope.model.cluster import Fact, GpuNode, KubernetesObject, PodSnapshot, WorkloadSnapshot

RELATED = {
    "Service": "services",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies",
    "ResourceQuota": "resourcequotas",
    "PodMonitor": "podmonitors",
    "ServiceMonitor": "servicemonitors",
    "ScaledObject": "scaledobjects",
    "InferencePool": "inferencepools",
    "Namespace": "namespaces",
    "Event": "events",
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
_MISSING = "only a file was read; preflight of the live workload reads it"


def read_objects(text: str, name: str) -> tuple[KubernetesObject, ...]:
    """Every object of a YAML or JSON text, lists opened.

    Raises UsageError with the line where the text is no YAML or holds no objects.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    objects: list[KubernetesObject] = []
    try:
        for document in yaml.load_all(text, Loader=loader):
            objects += _opened(document, name)
    except yaml.YAMLError as error:
        raise _fault(error, text, name) from error
    except ValueError as error:
        # A scalar that looks like a date or a number and is none.
        raise UsageError(f"not valid YAML: {error}", where=name) from error
    if not objects:
        raise UsageError("no Kubernetes object in the file", where=name)
    return tuple(objects)


def _opened(document: Any, name: str) -> Iterator[KubernetesObject]:
    if document is None:
        return
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        what = "a list" if isinstance(document, list) else "a document without `kind`"
        raise UsageError(f"{what} is no Kubernetes object", where=name)
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            if not isinstance(item, Mapping):
                raise UsageError("a list of objects holds something else", where=name)
            inner = dict(item)
            inner.setdefault("kind", document["kind"].removesuffix("List"))
            yield from _opened(inner, name)
    else:
        wrong = list(shape.faults(document))
        if wrong:
            metadata = document.get("metadata")
            called = metadata.get("name") if isinstance(metadata, Mapping) else None
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise UsageError(wrong[0] + more, where=f"{name}: {document['kind']}/{called}")
        yield document


def _fault(error: Any, text: str, name: str) -> UsageError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    if mark is None:
        return UsageError(f"not valid YAML: {problem}", where=name)
    lines = text.split("\n")
    line = lines[mark.line].rstrip() if mark.line < len(lines) else ""
    hint = f"line {mark.line + 1} reads: {line[:100]}"
    if "{{" in text:
        hint += "; a Helm template must be rendered first (helm template)"
    if "\t" in line:
        hint += "; it has a tab, which YAML forbids as indentation"
    where = f"{name}:{mark.line + 1}:{mark.column + 1}"
    return UsageError(f"not valid YAML: {problem}", where=where, hint=hint)


def from_objects(
    objects: Sequence[KubernetesObject],
    *,
    target: str | None,
    container: str | None,
    namespace: str | None,
    source: str,
    now: datetime,
    recognises: choice.Recognises,
) -> tuple[WorkloadSnapshot, ...]:
    """One snapshot a workload: the one named, or every one that runs a server on GPUs.

    Raises UsageError where the target or the container is not there.
    """
    picked = choice.workloads(objects, target, recognises)
    return tuple(
        _snapshot(obj, role, objects, container, namespace, source, now, recognises)
        for obj, role in picked
    )


def _snapshot(
    obj: KubernetesObject,
    role: Role,
    objects: Sequence[KubernetesObject],
    container: str | None,
    namespace: str | None,
    source: str,
    now: datetime,
    recognises: choice.Recognises,
) -> WorkloadSnapshot:
    metadata = obj.get("metadata") or {}
    template = podspec.pod(role.template)
    own = metadata.get("namespace") or namespace
    pods = tuple(_pods_of(obj, objects))
    notes: list[str] = []
    if role.role:
        notes.append(f"looked at role {role.role}")
    if not role.is_complete:
        notes.append("a controller adds parts that this object does not hold")
    return WorkloadSnapshot(
        kind=str(obj.get("kind")),
        name=str(metadata.get("name") or metadata.get("generateName") or "<unnamed>"),
        namespace=own,
        context=None,
        source=source,
        taken_at=now.isoformat(timespec="seconds"),
        replicas=role.replicas,
        template=template,
        template_raw=role.template,
        raw=obj,
        container=choice.container(template, container, recognises),
        gpu_containers=choice.accelerated(template),
        pods=pods,
        owners=tuple(_owners(obj)),
        nodes=_nodes(template, pods, objects),
        related=_related(objects, own),
        notes=tuple(notes),
    )


def _owners(obj: KubernetesObject) -> Iterator[str]:
    for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
        yield f"{owner.get('kind')}/{owner.get('name')}"


def _pods_of(obj: KubernetesObject, objects: Sequence[KubernetesObject]) -> Iterator[PodSnapshot]:
    """The live pods of the file that the object owns, directly or through another."""
    for other in objects:
        if other.get("kind") == "Pod" and choice.owns(obj, other, objects):
            yield podspec.pod(other)


def _nodes(
    template: PodSnapshot, pods: Sequence[PodSnapshot], objects: Sequence[KubernetesObject]
) -> tuple[GpuNode, ...]:
    wanted = {pod.node for pod in pods if pod.node} | ({template.node} if template.node else set())
    there = [nodes.from_object(o) for o in objects if o.get("kind") == "Node"]
    exact = tuple(node for node in there if node.name in wanted)
    if exact:
        return exact
    chosen = template.node_selector.items()
    fitting = [node for node in there if all(node.labels.get(k) == v for k, v in chosen)]
    if not wanted and len(fitting) == 1:
        return tuple(fitting)
    if wanted:
        return tuple(nodes.unreadable(name, _MISSING) for name in sorted(wanted))
    selected = nodes.selected(template.node_selector, _MISSING)
    return (selected,) if selected else ()


def _related(
    objects: Sequence[KubernetesObject], namespace: str | None
) -> dict[str, Fact[tuple[KubernetesObject, ...]]]:
    found: dict[str, list[KubernetesObject]] = {}
    for obj in objects:
        plural = RELATED.get(str(obj.get("kind")))
        own = (obj.get("metadata") or {}).get("namespace")
        if plural == "namespaces":
            if namespace and (obj.get("metadata") or {}).get("name") != namespace:
                continue
        elif namespace and own and own != namespace:
            continue
        if plural:
            found.setdefault(plural, []).append(obj)
    facts: dict[str, Fact[tuple[KubernetesObject, ...]]] = {}
    for plural in RELATED.values():
        if plural in found:
            facts[plural] = Fact(value=tuple(found[plural]), source="the file")
        else:
            facts[plural] = Fact(missing=_MISSING)
    return facts


def config_files(
    container_mounts: Mapping[str, str],
    raw_pod: Mapping[str, Any],
    configmaps: Sequence[KubernetesObject],
) -> dict[str, str]:
    """Text of the files that ConfigMaps put into a container, by path."""
    by_name = {str((m.get("metadata") or {}).get("name")): m.get("data") or {} for m in configmaps}
    volumes = (raw_pod.get("spec") or {}).get("volumes") or ()
    sources = {
        str(v.get("name")): str((v.get("configMap") or {}).get("name"))
        for v in volumes
        if v.get("configMap")
    }
    files: dict[str, str] = {}
    for path, volume in container_mounts.items():
        for key, text in by_name.get(sources.get(volume, ""), {}).items():
            files[re.sub(r"/+", "/", f"{path}/{key}")] = str(text)
    return files
