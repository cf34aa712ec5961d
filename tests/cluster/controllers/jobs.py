"""Job: one pod at a time, a deadline, a limit of failures, a time to live afterwards."""

from __future__ import annotations

import copy
import time
from datetime import UTC, datetime

from tests.cluster.controllers import objects
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import ApiError, Json
from tests.cluster.server.store import Store, timestamp

JOBS = BY_KEY["jobs.batch"]
RETRY_S = 1.0


def seconds_since(stamp: str) -> float:
    """Seconds from an API time to now."""
    then = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return (datetime.now(UTC) - then).total_seconds()


class Jobs:
    """Runs every Job to its end."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._due: dict[str, float] = {}

    def reconcile(self) -> None:
        """One round over all of them."""
        pods = self.store.list(objects.PODS)
        for body in self.store.list(JOBS):
            if not body["metadata"].get("deletionTimestamp"):
                self._one(body, objects.owned(pods, body))

    def _one(self, body: Json, pods: list[Json]) -> None:
        spec, status = body["spec"], copy.deepcopy(body.get("status") or {})
        if status.get("completionTime") or _is_done(status):
            self._expire(body, status)
            return
        status.setdefault("startTime", timestamp())
        phases = [(pod.get("status") or {}).get("phase") for pod in pods]
        status["succeeded"] = phases.count("Succeeded")
        status["failed"] = phases.count("Failed")
        active = [pod for pod in pods if objects.is_active(pod)]
        status["active"] = len(active)
        limit = spec.get("activeDeadlineSeconds")
        if limit is not None and seconds_since(status["startTime"]) >= limit:
            words = "Job was active longer than specified deadline"
            self._fail(body, status, active, "DeadlineExceeded", words)
            return
        if status["failed"] > spec.get("backoffLimit", 6):
            words = "Job has reached the specified backoff limit"
            self._fail(body, status, active, "BackoffLimitExceeded", words)
            return
        if status["succeeded"] >= spec.get("completions", 1):
            self._finish(body, status, "Complete", "CompletionsReached", "Reached expected number")
            return
        if not active and not spec.get("suspend") and time.monotonic() >= self._wait(body):
            status["active"] = self._start(body)
        objects.set_status(self.store, JOBS, body, {k: v for k, v in status.items() if v})

    def _wait(self, body: Json) -> float:
        return self._due.get(body["metadata"]["uid"], 0.0)

    def _start(self, body: Json) -> int:
        pod = objects.pod_from(copy.deepcopy(body["spec"]["template"]), body, "batch/v1")
        try:
            made = objects.create(self.store, objects.PODS, pod)
        except ApiError as error:
            self._due[body["metadata"]["uid"]] = time.monotonic() + RETRY_S
            self._tell(body, "FailedCreate", f"Error creating: {error.message}", "Warning")
            return 0
        name = made["metadata"]["name"]
        self._tell(body, "SuccessfulCreate", f"Created pod: {name}", "Normal")
        return 1

    def _tell(self, body: Json, reason: str, message: str, kind: str) -> None:
        objects.event(self.store, body, reason, message, kind=kind, component="job-controller")

    def _fail(
        self, body: Json, status: Json, active: list[Json], reason: str, message: str
    ) -> None:
        for pod in active:
            objects.delete(self.store, objects.PODS, pod)
        self._tell(body, reason, message, "Warning")
        self._finish(body, status, "Failed", reason, message)

    def _finish(self, body: Json, status: Json, kind: str, reason: str, message: str) -> None:
        conditions = status.get("conditions") or []
        early = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        for name in (early, kind):
            conditions = objects.condition(conditions, name, "True", reason, message, updated=False)
        status["conditions"] = conditions
        status.pop("active", None)
        if kind == "Complete":
            status["completionTime"] = timestamp()
        objects.set_status(self.store, JOBS, body, {k: v for k, v in status.items() if v})

    def _expire(self, body: Json, status: Json) -> None:
        ttl = body["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        stamps = [c["lastTransitionTime"] for c in status["conditions"] if c["status"] == "True"]
        if seconds_since(max(stamps)) >= ttl:
            objects.delete(self.store, JOBS, body, policy="Foreground")


def _is_done(status: Json) -> bool:
    return any(
        c["type"] in ("Complete", "Failed") and c["status"] == "True"
        for c in status.get("conditions") or []
    )
