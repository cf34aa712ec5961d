"""Which workload of a folder, and which container of its pod, is meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solscope.capture.snapshot import podspec
from solscope.capture.snapshot.kinds import Role, roles
from solscope.errors import UsageError
from solscope.model.cluster import ContainerSnapshot, KubernetesObject, PodSnapshot

Recognises = Callable[[ContainerSnapshot], bool]
"""Whether a container runs an inference server, by its command and image."""

SHORT_NAMES = {
    "deploy": "deployment",
    "sts": "statefulset",
    "rs": "replicaset",
    "rc": "replicationcontroller",
    "ds": "daemonset",
    "po": "pod",
    "cj": "cronjob",
    "lws": "leaderworkerset",
    "isvc": "inferenceservice",
    "llmisvc": "llminferenceservice",
    "dgd": "dynamographdeployment",
}
_TEMPLATES_OF_OTHERS = frozenset(
    {"ServingRuntime", "ClusterServingRuntime", "LLMInferenceServiceConfig"}
)


def split_target(target: str) -> tuple[str, str]:
    """``deploy/NAME`` to kind and name; a bare name is a pod, as kubectl has it.

    Raises UsageError for anything else.
    """
    if target.endswith((".yaml", ".yml", ".json")):
        raise UsageError(f"{target!r} is a file", hint="give each file with a -f of its own")
    kind, slash, name = target.partition("/")
    if not slash:
        return "pod", kind
    if not kind or not name or "/" in name:
        raise UsageError(
            f"{target!r} names no workload",
            hint="write KIND/NAME: deploy/vllm, statefulset/x, pod/y, lws/z, isvc/w",
        )
    return kind, name


def same_kind(asked: str, kind: str) -> bool:
    """Whether a kind as typed (short, plural, with group) means this kind."""
    word = asked.partition(".")[0].lower()
    word = SHORT_NAMES.get(word, word)
    return word in (kind.lower(), f"{kind.lower()}s", f"{kind.lower()}es")


def workloads(
    objects: Sequence[KubernetesObject], target: str | None, recognises: Recognises
) -> list[tuple[KubernetesObject, Role]]:
    """The workloads of a file to look at: the one named, or each that runs a server on GPUs.

    Raises UsageError where nothing fits.
    """
    found = [(obj, found) for obj in objects if (found := roles(obj, objects))]
    if target is not None:
        return [_named(found, target)]
    bases = [obj for obj, _ in found if obj.get("kind") in _TEMPLATES_OF_OTHERS]
    if len(bases) < len(found):
        found = [item for item in found if item[0].get("kind") not in _TEMPLATES_OF_OTHERS]
    found = [item for item in found if not _owned(item[0], objects)]
    picked = [(obj, _serving(all_roles, recognises)) for obj, all_roles in found]
    for test in (_has_accelerator, lambda pod: any(recognises(c) for c in pod.containers)):
        chosen = [(obj, role) for obj, role in picked if test(podspec.pod(role.template))]
        if chosen:
            return chosen
    if picked:
        return picked[:1]
    kinds = ", ".join(sorted({str(obj.get("kind")) for obj in objects})) or "nothing"
    raise UsageError("no workload in the file", hint=f"it holds {kinds}")


def _named(
    found: Sequence[tuple[KubernetesObject, tuple[Role, ...]]], target: str
) -> tuple[KubernetesObject, Role]:
    kind, name = split_target(target)
    role_name = ""
    for obj, all_roles in found:
        metadata = obj.get("metadata") or {}
        if same_kind(kind, str(obj.get("kind"))) and metadata.get("name") == name:
            return obj, next((r for r in all_roles if r.role == role_name), all_roles[0])
    there = ", ".join(f"{o.get('kind')}/{(o.get('metadata') or {}).get('name')}" for o, _ in found)
    raise UsageError(f"the file holds no {target}", hint=f"it holds {there or 'no workload'}")


def _owned(obj: KubernetesObject, objects: Sequence[KubernetesObject]) -> bool:
    """Whether another object of the file made this one (a Deployment its pods, and so on)."""
    return any(owns(other, obj, objects) for other in objects if other is not obj)


def owns(
    maker: KubernetesObject, obj: KubernetesObject, objects: Sequence[KubernetesObject]
) -> bool:
    """Whether ``maker`` made ``obj``: by owner references, through others of the file, or, for a
    pod whose ReplicaSet is not in the file, by the Deployment's selector."""
    references = (obj.get("metadata") or {}).get("ownerReferences") or ()
    for reference in references:
        if _is(maker, reference):
            return True
        between = next((o for o in objects if _is(o, reference)), None)
        if between is not None and between is not obj and owns(maker, between, objects):
            return True
        if (
            between is None
            and reference.get("kind") == "ReplicaSet"
            and maker.get("kind") == "Deployment"
            and _selects(maker, obj)
        ):
            return True
    return False


def _is(obj: KubernetesObject, reference: KubernetesObject) -> bool:
    metadata = obj.get("metadata") or {}
    if reference.get("uid") and metadata.get("uid"):
        return bool(reference["uid"] == metadata["uid"])
    return (obj.get("kind"), metadata.get("name")) == (
        reference.get("kind"),
        reference.get("name"),
    )


def _selects(maker: KubernetesObject, pod: KubernetesObject) -> bool:
    wanted = ((maker.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    same = (maker.get("metadata") or {}).get("namespace") == metadata.get("namespace")
    return same and bool(wanted) and all(labels.get(k) == v for k, v in wanted.items())


def _serving(all_roles: Sequence[Role], recognises: Recognises) -> Role:
    """The role to look at: the first whose pod asks for accelerators, else the first server."""
    for test in (_has_accelerator, lambda pod: any(recognises(c) for c in pod.containers)):
        for role in all_roles:
            if test(podspec.pod(role.template)):
                return role
    return all_roles[0]


def _has_accelerator(pod: PodSnapshot) -> bool:
    return bool(accelerated(pod)) or bool(pod.resource_claims)


def accelerated(pod: PodSnapshot) -> tuple[str, ...]:
    """The containers that ask for accelerators, start-up helpers left out."""
    candidates = (*pod.containers, *(c for c in pod.init_containers if c.is_sidecar))
    return tuple(c.name for c in candidates if c.gpus)


def container(pod: PodSnapshot, asked: str | None, recognises: Recognises) -> str | None:
    """The container to profile; ``None`` where the user must say which.

    Raises UsageError where the asked one is not there.
    """
    names = [c.name for c in (*pod.containers, *pod.init_containers)]
    if asked is not None:
        if asked not in names:
            raise UsageError(f"no container {asked!r}", hint=f"there are {', '.join(names)}")
        return asked
    with_gpu = accelerated(pod)
    if len(with_gpu) == 1:
        return with_gpu[0]
    if with_gpu:
        return None
    servers = [c.name for c in pod.containers if recognises(c)]
    if len(servers) == 1:
        return servers[0]
    return pod.containers[0].name if len(pod.containers) == 1 and not servers else None
