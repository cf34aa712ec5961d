"""Deployment and ReplicaSet."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time

from tests.cluster.controllers import objects
from tests.cluster.server.defaults import ALPHABET
from tests.cluster.server.pods import is_ready
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import ApiError, Json
from tests.cluster.server.store import Store

DEPLOYMENTS = BY_KEY["deployments.apps"]
REPLICA_SETS = BY_KEY["replicasets.apps"]
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 10.0


def template_hash(template: Json) -> str:
    """A stable name for a pod template."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:10])


class ReplicaSets:
    """Keeps the number of pods; backs off where their creation is refused."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._retry: dict[str, tuple[float, float]] = {}

    def reconcile(self) -> None:
        """One round over all of them."""
        pods = self.store.list(objects.PODS)
        for body in self.store.list(REPLICA_SETS):
            mine = objects.owned(pods, body)
            failure = None
            if not body["metadata"].get("deletionTimestamp"):
                failure = self._scale(body, [p for p in mine if objects.is_active(p)])
            self._report(body, failure)

    def _scale(self, body: Json, active: list[Json]) -> ApiError | None:
        wanted, uid = body["spec"].get("replicas", 1), body["metadata"]["uid"]
        for pod in sorted(active, key=is_ready)[: max(0, len(active) - wanted)]:
            objects.delete(self.store, objects.PODS, pod)
        due, pause = self._retry.get(uid, (0.0, FIRST_RETRY_S))
        if len(active) >= wanted or time.monotonic() < due:
            return None
        for _ in range(wanted - len(active)):
            pod = objects.pod_from(copy.deepcopy(body["spec"]["template"]), body, "apps/v1")
            try:
                made = objects.create(self.store, objects.PODS, pod)
            except ApiError as error:
                self._retry[uid] = (time.monotonic() + pause, min(pause * 2, LAST_RETRY_S))
                self._tell(body, "FailedCreate", f"Error creating: {error.message}", "Warning")
                return error
            name = made["metadata"]["name"]
            self._tell(body, "SuccessfulCreate", f"Created pod: {name}", "Normal")
        self._retry.pop(uid, None)
        return None

    def _tell(self, body: Json, reason: str, message: str, kind: str) -> None:
        component = "replicaset-controller"
        objects.event(self.store, body, reason, message, kind=kind, component=component)

    def _report(self, body: Json, failure: ApiError | None) -> None:
        mine = objects.owned(self.store.list(objects.PODS, body["metadata"]["namespace"]), body)
        active = [pod for pod in mine if objects.is_active(pod)]
        ready = sum(is_ready(pod) for pod in active)
        status: Json = {"replicas": len(active), "fullyLabeledReplicas": len(active)}
        status |= {"readyReplicas": ready, "availableReplicas": ready}
        status["terminatingReplicas"] = sum(
            1 for pod in mine if pod["metadata"].get("deletionTimestamp")
        )
        status["observedGeneration"] = body["metadata"]["generation"]
        conditions = (body.get("status") or {}).get("conditions") or []
        if failure is not None:
            known = next((c for c in conditions if c["type"] == "ReplicaFailure"), None)
            if known is None:
                conditions = objects.condition(
                    conditions,
                    "ReplicaFailure",
                    "True",
                    "FailedCreate",
                    failure.message,
                    updated=False,
                )
        elif len(active) >= body["spec"].get("replicas", 1):
            conditions = [c for c in conditions if c["type"] != "ReplicaFailure"]
        if conditions:
            status["conditions"] = conditions
        objects.set_status(self.store, REPLICA_SETS, body, status)


class Deployments:
    """Makes a ReplicaSet a template, and moves replicas from old ones to the newest."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def reconcile(self) -> None:
        """One round over all of them."""
        sets = self.store.list(REPLICA_SETS)
        for body in self.store.list(DEPLOYMENTS):
            if body["metadata"].get("deletionTimestamp"):
                continue
            mine = objects.owned(sets, body)
            newest = self._newest(body, mine)
            if newest is None:
                newest = self._make_set(body, mine)
                mine = [*mine, newest]
            old = [s for s in mine if s["metadata"]["uid"] != newest["metadata"]["uid"]]
            self._roll(body, newest, old)
            self._report(body, newest, old)

    @staticmethod
    def _newest(body: Json, mine: list[Json]) -> Json | None:
        wanted = template_hash(body["spec"]["template"])
        labels = (s["metadata"]["labels"].get(HASH_LABEL) for s in mine)
        return next((s for s, label in zip(mine, labels, strict=True) if label == wanted), None)

    def _make_set(self, body: Json, mine: list[Json]) -> Json:
        spec, meta = body["spec"], body["metadata"]
        name = template_hash(spec["template"])
        template = copy.deepcopy(spec["template"])
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        labels[HASH_LABEL] = name
        selector = copy.deepcopy(spec["selector"])
        selector.setdefault("matchLabels", {})[HASH_LABEL] = name
        replicas = spec["replicas"] if not mine else 0
        revision = str(len(mine) + 1)
        made = objects.create(
            self.store,
            REPLICA_SETS,
            {
                "metadata": {
                    "name": f"{meta['name']}-{name}",
                    "namespace": meta["namespace"],
                    "labels": dict(labels),
                    "annotations": {REVISION: revision},
                    "ownerReferences": [objects.owner_of(body, "apps/v1")],
                },
                "spec": {"replicas": replicas, "selector": selector, "template": template},
            },
        )

        def note(now: Json) -> None:
            now["metadata"].setdefault("annotations", {})[REVISION] = revision

        objects.amend(self.store, DEPLOYMENTS, body, note)
        message = f"Scaled up replica set {made['metadata']['name']} from 0 to {replicas}"
        objects.event(
            self.store,
            body,
            "ScalingReplicaSet",
            message,
            kind="Normal",
            component="deployment-controller",
        )
        return made

    def _roll(self, body: Json, newest: Json, old: list[Json]) -> None:
        spec = body["spec"]
        wanted = spec.get("replicas", 1)
        running_old = sum((s.get("status") or {}).get("replicas", 0) for s in old)
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            for entry in old:
                self._set_replicas(entry, 0)
            left = sum((s.get("status") or {}).get("terminatingReplicas", 0) for s in old)
            if running_old + left == 0:
                self._set_replicas(newest, wanted)
            return
        rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
        surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
        down = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
        if surge == 0 and down == 0:
            down = 1
        asked_old = sum(s["spec"].get("replicas", 0) for s in old)
        self._set_replicas(newest, max(0, min(wanted, wanted + surge - asked_old)))
        ready = (newest.get("status") or {}).get("readyReplicas", 0)
        ready_old = sum((s.get("status") or {}).get("readyReplicas", 0) for s in old)
        spare = min(asked_old, ready + ready_old - (wanted - down))
        unready_old = asked_old - ready_old
        for entry in old:
            take = min(entry["spec"].get("replicas", 0), max(0, spare) + max(0, unready_old))
            if take:
                self._set_replicas(entry, entry["spec"]["replicas"] - take)
                spare -= take

    def _set_replicas(self, entry: Json, count: int) -> None:
        if entry["spec"].get("replicas") == count:
            return

        def change(now: Json) -> None:
            now["spec"]["replicas"] = count
            now["metadata"]["generation"] += 1

        objects.amend(self.store, REPLICA_SETS, entry, change)

    def _report(self, body: Json, newest: Json, old: list[Json]) -> None:
        namespace = body["metadata"]["namespace"]
        sets = objects.owned(self.store.list(REPLICA_SETS, namespace), body)
        uid = newest["metadata"]["uid"]
        statuses = {s["metadata"]["uid"]: s.get("status") or {} for s in sets}
        total = sum(s.get("replicas", 0) for s in statuses.values())
        ready = sum(s.get("readyReplicas", 0) for s in statuses.values())
        updated = statuses.get(uid, {}).get("replicas", 0)
        wanted = body["spec"].get("replicas", 1)
        status: Json = {"observedGeneration": body["metadata"]["generation"]}
        counts = {"replicas": total, "updatedReplicas": updated, "readyReplicas": ready}
        status |= {name: count for name, count in counts.items() if count}
        if ready:
            status["availableReplicas"] = ready
        if wanted > ready:
            status["unavailableReplicas"] = wanted - ready
        status["terminatingReplicas"] = sum(
            s.get("terminatingReplicas", 0) for s in statuses.values()
        )
        before = (body.get("status") or {}).get("conditions") or []
        status["conditions"] = _conditions(body, newest, before, sets, status)
        objects.set_status(self.store, DEPLOYMENTS, body, status)


def _conditions(
    body: Json, newest: Json, before: list[Json], sets: list[Json], status: Json
) -> list[Json]:
    wanted = body["spec"].get("replicas", 1)
    ready, updated = status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    rolling = (body["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    slack = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    name = newest["metadata"]["name"]
    if ready >= wanted == updated and status.get("replicas", 0) == wanted:
        progress = ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
    elif updated:
        progress = ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    else:
        progress = ("NewReplicaSetCreated", f'Created new replica set "{name}"')
    found = objects.condition(before, "Progressing", "True", *progress, updated=True)
    if ready >= wanted - slack:
        available = (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    else:
        available = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    found = objects.condition(found, "Available", *available, updated=True)
    failing = [
        c
        for s in sets
        for c in (s.get("status") or {}).get("conditions") or []
        if c["type"] == "ReplicaFailure"
    ]
    if not failing:
        return [c for c in found if c["type"] != "ReplicaFailure"]
    one = failing[0]
    return objects.condition(
        found, "ReplicaFailure", "True", one["reason"], one["message"], updated=True
    )


def _share(value: object, of: int, *, up: bool) -> int:
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    exact = of * int(text[:-1]) / 100
    return math.ceil(exact) if up else math.floor(exact)
