"""Garbage collection, namespaces, quota status, endpoints, and the scheduler."""

from __future__ import annotations

from fractions import Fraction

from tests.cluster.controllers import objects
from tests.cluster.server import quantity, quota, selectors
from tests.cluster.server.pods import is_ready
from tests.cluster.server.resources import BY_KEY, RESOURCES, Resource
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store, timestamp
from tests.cluster.server.writes import FOREGROUND

NODES = BY_KEY["nodes"]
NAMESPACES = BY_KEY["namespaces"]
SERVICES = BY_KEY["services"]
SLICES = BY_KEY["endpointslices.discovery.k8s.io"]
QUOTAS = BY_KEY["resourcequotas"]
Found = tuple[Resource, Json]
_STORED = [r for r in RESOURCES if "delete" in r.verbs]


def collect_garbage(store: Store) -> None:
    """Delete what owners leave behind, and end foreground deletions."""
    everything = [(r, body) for r in _STORED for body in store.list(r)]
    alive = {body["metadata"]["uid"] for _, body in everything}
    for resource, body in everything:
        meta = body["metadata"]
        owners = meta.get("ownerReferences") or []
        is_orphan = bool(owners) and not any(o["uid"] in alive for o in owners)
        if is_orphan and not meta.get("deletionTimestamp"):
            objects.delete(store, resource, body)
        if FOREGROUND in (meta.get("finalizers") or []):
            _foreground(store, body, everything)
            _release(store, resource, body, FOREGROUND, everything)
        if "orphan" in (meta.get("finalizers") or []):
            _orphan(store, body, everything)
            _release(store, resource, body, "orphan", [])


def _dependents(body: Json, everything: list[Found]) -> list[Found]:
    uid = body["metadata"]["uid"]
    return [
        (resource, other)
        for resource, other in everything
        if any(o["uid"] == uid for o in other["metadata"].get("ownerReferences") or [])
    ]


def _foreground(store: Store, body: Json, everything: list[Found]) -> None:
    for resource, other in _dependents(body, everything):
        if not other["metadata"].get("deletionTimestamp"):
            objects.delete(store, resource, other, policy="Foreground")


def _orphan(store: Store, body: Json, everything: list[Found]) -> None:
    uid = body["metadata"]["uid"]

    def let_go(now: Json) -> None:
        kept = [o for o in now["metadata"].get("ownerReferences") or [] if o["uid"] != uid]
        now["metadata"]["ownerReferences"] = kept

    for resource, other in _dependents(body, everything):
        objects.amend(store, resource, other, let_go)


def _release(
    store: Store, resource: Resource, body: Json, finalizer: str, everything: list[Found]
) -> None:
    with store.lock:
        left = [
            1
            for kind, other in _dependents(body, everything)
            if store.get(kind, other["metadata"].get("namespace", ""), other["metadata"]["name"])
        ]
        if left:
            return

        def drop(now: Json) -> None:
            now["metadata"]["finalizers"].remove(finalizer)

        now = objects.amend(store, resource, body, drop)
        if now is not None and not now["metadata"]["finalizers"]:
            store.remove(resource, now["metadata"].get("namespace", ""), now["metadata"]["name"])


def empty_namespaces(store: Store) -> None:
    """Delete what a terminating namespace holds; then the namespace."""
    for namespace in store.list(NAMESPACES):
        if not namespace["metadata"].get("deletionTimestamp"):
            continue
        name = namespace["metadata"]["name"]
        inside = [(r, b) for r in _STORED if r.namespaced for b in store.list(r, name)]
        for resource, body in inside:
            if not body["metadata"].get("deletionTimestamp"):
                objects.delete(store, resource, body)
        if not inside:
            store.remove(NAMESPACES, "", name)


def report_quotas(store: Store) -> None:
    """Write what is used into every quota's status."""
    for body in store.list(QUOTAS):
        hard = body["spec"].get("hard") or {}
        used = quota.used_in(store, body["metadata"]["namespace"], list(hard))
        shown = {name: quantity.show(amount) for name, amount in used.items()}
        objects.set_status(store, QUOTAS, body, {"hard": hard, "used": shown})


def fill_endpoints(store: Store) -> None:
    """One EndpointSlice a Service, with a target reference to each pod behind it."""
    for service in store.list(SERVICES):
        meta, spec = service["metadata"], service["spec"]
        if not spec.get("selector") or meta.get("deletionTimestamp"):
            continue
        match = selectors.by_label_selector({"matchLabels": spec["selector"]})
        endpoints = []
        for pod in store.list(objects.PODS, meta["namespace"]):
            status = pod.get("status") or {}
            if not match(pod["metadata"].get("labels") or {}) or not status.get("podIP"):
                continue
            if status.get("phase") in ("Succeeded", "Failed"):
                continue
            reference = {
                "kind": "Pod",
                "namespace": meta["namespace"],
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            }
            endpoints.append(
                {
                    "addresses": [status["podIP"]],
                    "conditions": {"ready": is_ready(pod)},
                    "targetRef": reference,
                }
            )
        _write_slice(store, service, endpoints)


def _write_slice(store: Store, service: Json, endpoints: list[Json]) -> None:
    meta = service["metadata"]
    ports = [
        {"name": p.get("name", ""), "port": p.get("targetPort"), "protocol": "TCP"}
        for p in service["spec"].get("ports") or []
    ]
    name = f"{meta['name']}-slice"
    known = store.get(SLICES, meta["namespace"], name)
    if known is None:
        objects.create(
            store,
            SLICES,
            {
                "metadata": {
                    "name": name,
                    "namespace": meta["namespace"],
                    "labels": {"kubernetes.io/service-name": meta["name"]},
                    "ownerReferences": [objects.owner_of(service, "v1")],
                },
                "addressType": "IPv4",
                "endpoints": endpoints,
                "ports": ports,
            },
        )
        return
    objects.amend(store, SLICES, known, lambda now: now.update(endpoints=endpoints, ports=ports))


def requested(spec: Json) -> dict[str, Fraction]:
    """Extended resources that a pod asks for."""
    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or []:
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if "/" in name:
                total[name] = total.get(name, Fraction(0)) + quantity.parse(amount)
    return total


class Scheduler:
    """Binds pods to the first node that fits: extended resources, node selector, taints."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def reconcile(self) -> None:
        """One round over the pods that have no node."""
        for pod in self.store.list(objects.PODS):
            if not pod["spec"].get("nodeName") and objects.is_active(pod):
                self._place(pod)

    def _place(self, pod: Json) -> None:
        nodes = self.store.list(NODES)
        why: dict[str, int] = {}
        for node in nodes:
            fault = self._fault(pod, node)
            if fault is None:
                self._bind(pod, node["metadata"]["name"])
                return
            why[fault] = why.get(fault, 0) + 1
        listed = ", ".join(f"{count} {text}" for text, count in why.items())
        message = f"0/{len(nodes)} nodes are available: {listed}."

        def unschedulable(now: Json) -> None:
            status = now.setdefault("status", {})
            status["conditions"] = objects.condition(
                status.get("conditions") or [],
                "PodScheduled",
                "False",
                "Unschedulable",
                message,
                updated=False,
            )

        known = [
            c
            for c in (pod.get("status") or {}).get("conditions") or []
            if c.get("message") == message
        ]
        if known:
            return
        objects.amend(self.store, objects.PODS, pod, unschedulable)
        objects.event(
            self.store,
            pod,
            "FailedScheduling",
            message,
            kind="Warning",
            component="default-scheduler",
        )

    def _fault(self, pod: Json, node: Json) -> str | None:
        labels = node["metadata"].get("labels") or {}
        wanted = pod["spec"].get("nodeSelector") or {}
        if any(labels.get(k) != v for k, v in wanted.items()):
            return "node(s) didn't match Pod's node affinity/selector"
        for taint in (node.get("spec") or {}).get("taints") or []:
            if taint["effect"] != "PreferNoSchedule" and not _tolerated(pod, taint):
                return (
                    f"node(s) had untolerated taint(s) {{{taint['key']}: {taint.get('value', '')}}}"
                )
        free = {
            k: quantity.parse(v)
            for k, v in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        for other in self.store.list(objects.PODS):
            phase = (other.get("status") or {}).get("phase")
            here = other["spec"].get("nodeName") == node["metadata"]["name"]
            if here and phase not in ("Succeeded", "Failed"):
                for name, amount in requested(other["spec"]).items():
                    free[name] = free.get(name, Fraction(0)) - amount
        for name, amount in requested(pod["spec"]).items():
            if free.get(name, Fraction(0)) < amount:
                return f"Insufficient {name}"
        return None

    def _bind(self, pod: Json, node: str) -> None:
        def bind(now: Json) -> None:
            now["spec"]["nodeName"] = node
            conditions = [
                c for c in now["status"].get("conditions") or [] if c["type"] != "PodScheduled"
            ]
            done = {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(),
            }
            now["status"]["conditions"] = [*conditions, done]

        now = objects.amend(self.store, objects.PODS, pod, bind)
        if now is not None:
            meta = now["metadata"]
            message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
            objects.event(
                self.store,
                now,
                "Scheduled",
                message,
                kind="Normal",
                component="default-scheduler",
            )


def _tolerated(pod: Json, taint: Json) -> bool:
    for toleration in pod["spec"].get("tolerations") or []:
        if toleration.get("effect") not in (None, "", taint["effect"]):
            continue
        if toleration.get("operator") == "Exists":
            if toleration.get("key") in (None, "", taint["key"]):
                return True
        elif (toleration.get("key"), toleration.get("value", "")) == (
            taint["key"],
            taint.get("value", ""),
        ):
            return True
    return False
