"""Table answers, so that ``kubectl get`` prints its usual columns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.cluster.server.resources import Resource
from tests.cluster.server.status import Json

Cells = Callable[[Json], list[Any]]


def _age(body: Json) -> str:
    stamp = body["metadata"].get("creationTimestamp")
    if not stamp:
        return "<unknown>"
    made = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    seconds = max(0, int((datetime.now(UTC) - made).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"


def _status(body: Json) -> Json:
    return body.get("status") or {}


def pod_state(body: Json) -> str:
    """The STATUS column of a pod."""
    if body["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = _status(body)
    if status.get("reason"):
        return str(status["reason"])
    for entry in status.get("containerStatuses") or []:
        state = entry.get("state") or {}
        for kind in ("waiting", "terminated"):
            if state.get(kind, {}).get("reason"):
                return str(state[kind]["reason"])
    return str(status.get("phase", "Unknown"))


def _pod(body: Json) -> list[Any]:
    entries = _status(body).get("containerStatuses") or []
    ready = sum(bool(e.get("ready")) for e in entries)
    restarts = sum(e.get("restartCount", 0) for e in entries)
    total = len(body["spec"]["containers"])
    return [f"{ready}/{total}", pod_state(body), restarts, _age(body)]


def _deployment(body: Json) -> list[Any]:
    status, spec = _status(body), body["spec"]
    containers = spec["template"]["spec"]["containers"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return [
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(body),
        ",".join(c["name"] for c in containers),
        ",".join(c["image"] for c in containers),
        ",".join(f"{k}={v}" for k, v in labels.items()),
    ]


def _replica_set(body: Json) -> list[Any]:
    status = _status(body)
    counts = [status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [body["spec"].get("replicas", 1), *counts, _age(body)]


def _job(body: Json) -> list[Any]:
    status = _status(body)
    done = [c["type"] for c in status.get("conditions") or [] if c["status"] == "True"]
    state = next((s for s in ("Complete", "Failed") if s in done), "Running")
    return [state, f"{status.get('succeeded', 0)}/{body['spec'].get('completions', 1)}", _age(body)]


def _event(body: Json) -> list[Any]:
    about = body.get("involvedObject") or {}
    thing = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    return [_age(body), body.get("type"), body.get("reason"), thing, body.get("message")]


_COLUMNS: dict[str, tuple[tuple[str, ...], Cells]] = {
    "Pod": (("Name", "Ready", "Status", "Restarts", "Age"), _pod),
    "Deployment": (
        ("Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"),
        _deployment,
    ),
    "ReplicaSet": (("Name", "Desired", "Current", "Ready", "Age"), _replica_set),
    "Job": (("Name", "Status", "Completions", "Age"), _job),
    "Event": (("Last Seen", "Type", "Reason", "Object", "Message"), _event),
}
_WIDE = ("Containers", "Images", "Selector")
_NUMBERS = ("Up-to-date", "Available", "Restarts", "Desired", "Current")


def render(resource: Resource, items: list[Json], version: str) -> Json:
    """The Table of some objects."""
    names, cells = _COLUMNS.get(resource.kind, (("Name", "Age"), lambda body: [_age(body)]))
    columns = [
        {
            "name": name,
            "type": "integer" if name in _NUMBERS and resource.kind != "Deployment" else "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": 1 if name in _WIDE else 0,
        }
        for name in names
    ]
    rows = []
    for body in items:
        meta = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
        partial = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
        }
        first = [] if resource.kind == "Event" else [body["metadata"]["name"]]
        rows.append({"cells": [*first, *cells(body)], "object": partial})
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": columns,
        "rows": rows,
    }
