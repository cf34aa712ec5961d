"""What stands between a valid object and the store: references, Pod Security, quota."""

from __future__ import annotations

from tests.cluster.server import podsecurity, quota
from tests.cluster.server.resources import BY_KEY, Resource
from tests.cluster.server.status import Json, forbidden, not_found
from tests.cluster.server.store import Store

NAMESPACES = BY_KEY["namespaces"]
_TEMPLATED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")


def namespace_open(store: Store, resource: Resource, namespace: str, name: str) -> None:
    """Raise where the namespace is missing or going away."""
    if not resource.namespaced:
        return
    found = store.get(NAMESPACES, "", namespace)
    if found is None:
        raise not_found("namespaces", "", namespace)
    if found["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise forbidden(resource.plural, resource.group, name, why)


def pod_references(store: Store, pod: Json) -> None:
    """Raise 403 for a service account, priority class or runtime class that does not exist."""
    meta, spec = pod["metadata"], pod["spec"]
    name, namespace = meta["name"], meta["namespace"]
    account = spec.get("serviceAccountName") or "default"
    if account != "default" and not store.get(BY_KEY["serviceaccounts"], namespace, account):
        why = (
            f"error looking up service account {namespace}/{account}: "
            f'serviceaccount "{account}" not found'
        )
        raise forbidden("pods", "", name, why)
    priority = spec.get("priorityClassName")
    if priority and not store.get(BY_KEY["priorityclasses.scheduling.k8s.io"], "", priority):
        raise forbidden("pods", "", name, f"no PriorityClass with name {priority} was found")
    runtime = spec.get("runtimeClassName")
    if runtime and not store.get(BY_KEY["runtimeclasses.node.k8s.io"], "", runtime):
        raise forbidden("pods", "", name, f'pod rejected: RuntimeClass "{runtime}" not found')


def _level(store: Store, namespace: str, label: str) -> str:
    found = store.get(NAMESPACES, "", namespace) or {"metadata": {}}
    return str((found["metadata"].get("labels") or {}).get(label, "privileged"))


def pod(store: Store, body: Json, *, only: list[Json] | None = None) -> None:
    """Raise 403 where Pod Security or, for a new pod, a quota refuses it."""
    meta = body["metadata"]
    level = _level(store, meta["namespace"], podsecurity.ENFORCE)
    text = podsecurity.violations(body["spec"], level, only=only)
    if text:
        raise forbidden("pods", "", meta["name"], podsecurity.refusal(level, text))
    if only is None:
        quota.check(store, body)


def warnings(store: Store, body: Json) -> list[str]:
    """What Pod Security says, without refusing, about an object that will make pods."""
    if body.get("kind") not in _TEMPLATED:
        return []
    level = _level(store, body["metadata"]["namespace"], podsecurity.WARN)
    template = ((body.get("spec") or {}).get("template") or {}).get("spec") or {}
    text = podsecurity.violations(template, level)
    return (
        [podsecurity.refusal(level, text).replace("violates", "would violate", 1)] if text else []
    )
