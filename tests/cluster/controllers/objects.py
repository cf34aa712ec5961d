"""What every controller does to objects: amend, own, create, report events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.cluster.server import defaults, writes
from tests.cluster.server.api import ADMIN
from tests.cluster.server.request import Request, Target
from tests.cluster.server.resources import BY_KEY, Resource
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store, timestamp

PODS = BY_KEY["pods"]
EVENTS = BY_KEY["events"]
MANAGER = "kube-controller-manager"


def amend(
    store: Store, resource: Resource, body: Json, change: Callable[[Json], object]
) -> Json | None:
    """Change the object as it stands now; ``None`` if it is gone or was made anew."""
    meta = body["metadata"]
    with store.lock:
        now = store.get(resource, meta.get("namespace", ""), meta["name"])
        if now is None or now["metadata"]["uid"] != meta["uid"]:
            return None
        change(now)
        return store.replace(resource, now)


def set_status(store: Store, resource: Resource, body: Json, status: Json) -> None:
    """Replace the status."""
    amend(store, resource, body, lambda now: now.__setitem__("status", status))


def create(store: Store, resource: Resource, body: Json) -> Json:
    """Create through admission and validation, as any client does. Raises ApiError."""
    body.setdefault("apiVersion", resource.api_version)
    body.setdefault("kind", resource.kind)
    namespace = body["metadata"].get("namespace", "")
    request = Request.of(ADMIN, "POST", "/", {"user-agent": MANAGER})
    with store.lock:
        return writes.create(store, Target(resource, namespace), body, request, [])


def delete(
    store: Store, resource: Resource, body: Json, *, policy: str = "", grace: int | None = None
) -> None:
    """Delete by uid; silent if it is gone."""
    import json

    meta = body["metadata"]
    options: Json = {"preconditions": {"uid": meta["uid"]}}
    if policy:
        options["propagationPolicy"] = policy
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    request = Request.of(ADMIN, "DELETE", "/", {}, json.dumps(options).encode())
    target = Target(resource, meta.get("namespace", ""), meta["name"])
    with store.lock:
        now = store.get(resource, target.namespace, target.name)
        if now is not None and now["metadata"]["uid"] == meta["uid"]:
            writes.delete(store, target, request)


def owner_of(body: Json, api_version: str) -> Json:
    """A controlling owner reference to an object."""
    meta = body["metadata"]
    return {
        "apiVersion": api_version,
        "kind": body["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(items: list[Json], owner: Json) -> list[Json]:
    """Those that the owner controls."""
    uid = owner["metadata"]["uid"]
    return [
        item
        for item in items
        if any(
            r.get("controller") and r["uid"] == uid
            for r in item["metadata"].get("ownerReferences") or []
        )
    ]


def pod_from(template: Json, owner: Json, api_version: str) -> Json:
    """A pod of a template, owned and named after its owner."""
    meta = dict(template.get("metadata") or {})
    prefix = owner["metadata"]["name"]
    meta["name"] = f"{prefix}-{defaults.suffix()}"
    meta["generateName"] = f"{prefix}-"
    meta["namespace"] = owner["metadata"]["namespace"]
    meta["ownerReferences"] = [owner_of(owner, api_version)]
    return {"metadata": meta, "spec": template["spec"]}


def is_active(pod: Json) -> bool:
    """Whether a pod is neither finished nor going."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")


def condition(
    conditions: list[Json], kind: str, status: str, reason: str, message: str, *, updated: bool
) -> list[Json]:
    """The list with one condition set; its transition time moves only with its status."""
    now = timestamp()
    before = next((c for c in conditions if c["type"] == kind), None)
    moved = now if before is None or before["status"] != status else before["lastTransitionTime"]
    entry: Json = {"type": kind, "status": status}
    if updated:
        same = before is not None and (before["reason"], before["message"]) == (reason, message)
        entry["lastUpdateTime"] = before["lastUpdateTime"] if before and same else now
    entry |= {"lastTransitionTime": moved, "reason": reason, "message": message}
    if before is None:
        return [*conditions, entry]
    return [entry if c is before else c for c in conditions]


def event(
    store: Store, about: Json, reason: str, message: str, *, kind: str, component: str
) -> None:
    """Report an event; a repeat raises the count of the first."""
    meta = about["metadata"]
    with store.lock:
        for known in store.list(EVENTS, meta.get("namespace") or "default"):
            involved = known["involvedObject"]
            if (involved.get("uid"), known["reason"], known["message"]) == (
                meta["uid"],
                reason,
                message,
            ):
                known["count"] += 1
                known["lastTimestamp"] = timestamp()
                store.replace(EVENTS, known)
                return
        name = f"{meta['name']}.{time.time_ns():x}"
        involved = {
            "kind": about["kind"],
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
            "uid": meta["uid"],
            "apiVersion": about.get("apiVersion", "v1"),
            "resourceVersion": meta["resourceVersion"],
        }
        now = timestamp()
        body: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": meta.get("namespace") or "default"},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        store.insert(EVENTS, body)
